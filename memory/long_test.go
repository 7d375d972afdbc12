package memory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/relations"
)

// slowly runs do on an engine whose reads take so long that a snapshot lives for so many,
// and do needs more.
func slowly(tb testing.TB, engine *kvtest.FaultyEngine, reads int, do func() error) error {
	tb.Helper()
	engine.Replan(kvtest.FailurePlan{Delay: kv.SnapshotLife / time.Duration(reads)})
	defer engine.Replan(kvtest.FailurePlan{})
	begun := time.Now()
	err := do()
	if took := time.Since(begun); took < kv.SnapshotLife {
		tb.Errorf("took %v, so it shows nothing", took)
	}
	return err
}

func TestCheckReadsForLongerThanASnapshotLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
		r := MustRig(t, engine)
		for n := range 20 {
			r.MustSave(t, record.Record{Text: fmt.Sprintf("note %d about green tea", n), Key: fmt.Sprint("note-", n)})
		}
		check := func() error { return r.Check(t.Context(), agent) }
		if err := slowly(t, engine, 16, check); err != nil {
			t.Errorf("check: %v", err)
		}
		// Whatever changes meanwhile is no damage.
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for n := 0; ctx.Err() == nil; n++ {
				time.Sleep(time.Second)
				r.MustSave(t, record.Record{Text: fmt.Sprintf("note %d about coffee", n)})
			}
		}()
		if err := slowly(t, engine, 16, check); !errors.Is(err, memory.ErrChanging) && err != nil {
			t.Errorf("check while records are saved: %v", err)
		}
		stop()
		<-stopped
	})
}

func TestRebuildingReadsForLongerThanASnapshotLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
		MustLoadGeneration1(t, engine)
		r := MustRig(t, engine)
		err := slowly(t, engine, 16, func() error {
			_, err := r.Stats(t.Context(), agent)
			return err
		})
		if err != nil {
			t.Errorf("stats: %v", err)
		}
		wantGeneration1(t, r)
	})
}

func TestExportReadsForLongerThanASnapshotLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
		r := MustRig(t, engine)
		const records = 40
		for n := range records {
			r.MustSave(t, record.Record{ID: fmt.Sprint("note-", n), Text: fmt.Sprintf("note %d about green tea", n)})
			r.MustUpdate(t, text(fmt.Sprint("note-", n), "changed, so that an earlier version is read, too"))
		}
		lines := func() (all []string) {
			if err := r.Export(t.Context(), agent, func(lines [][]byte) error {
				for _, line := range lines {
					all = append(all, string(line))
				}
				return nil
			}); err != nil {
				t.Errorf("export: %v", err)
			}
			return all
		}
		whole := lines()
		var slow []string
		_ = slowly(t, engine, 16, func() error { slow = lines(); return nil })
		if len(whole) != 2*records || !slices.Equal(slow, whole) {
			t.Errorf("%d lines, read slowly %d", len(whole), len(slow))
		}
	})
}

func TestDeletionsReadForLongerThanASnapshotLives(t *testing.T) {
	for name, do := range map[string]func(context.Context, *memory.Store) (int, error){
		"those a filter names": func(ctx context.Context, s *memory.Store) (int, error) {
			done, err := s.DeleteMatching(ctx, agent, memory.Matching{Filter: "version >= 1"})
			return done.Deleted, err
		},
		"old ones": func(ctx context.Context, s *memory.Store) (int, error) {
			done, err := s.DeleteAged(ctx, agent, time.Now().AddDate(100, 0, 0))
			return done.Deleted, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
				r := MustRig(t, engine)
				const records = 40
				for n := range records {
					r.MustSave(t, record.Record{Text: fmt.Sprintf("note %d about green tea", n), Key: fmt.Sprint("note-", n)})
				}
				n := 0
				if err := slowly(t, engine, 64, func() (err error) { n, err = do(t.Context(), r.Store); return err }); err != nil || n != records {
					t.Errorf("%d of %d are deleted: %v", n, records, err)
				}
			})
		})
	}
}

// As many relations as a call takes are made, and ended, on one snapshot.
func TestManyRelationsOnASlowEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
		r := MustRig(t, engine)
		hub := r.MustSave(t, record.Record{Text: "the hub", Key: "hub"})
		var all []relations.Relation
		for n := range memory.MaxRelated {
			leaf := r.MustSave(t, record.Record{Text: fmt.Sprintf("leaf %d", n), Key: fmt.Sprint("leaf-", n)})
			all = append(all, relations.Relation{From: hub.ID, Name: "has", To: leaf.ID})
		}
		for _, end := range []bool{false, true} {
			engine.Replan(kvtest.FailurePlan{Delay: kv.SnapshotLife / 64})
			begun := time.Now()
			n, err := r.Relate(t.Context(), agent, memory.Relating{Relations: all, End: end})
			if engine.Replan(kvtest.FailurePlan{}); err != nil || n != len(all) {
				t.Errorf("end %v: %d of %d: %v", end, n, len(all), err)
			}
			if took := time.Since(begun); took > kv.SnapshotLife {
				t.Errorf("end %v: took %v, so a snapshot lived for too long", end, took)
			}
		}
	})
}
