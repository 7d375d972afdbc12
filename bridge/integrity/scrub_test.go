package integrity_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/integrity"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

var agent = kv.AgentScope("default", "a")

// engine is an engine in memory with files that are damaged or not, and a health.
type engine struct {
	kv.Engine
	health  kv.Health
	bytes   int64 // of its files
	damaged *kv.DamageError
	fails   error
}

func (e *engine) Health() *kv.Health { return &e.health }

func (e *engine) Verify(ctx context.Context, v kv.Verification) error {
	const piece = 1000
	for done := int64(0); done < e.bytes; done += piece {
		if err := errors.Join(ctx.Err(), v.Read(done+piece, e.bytes)); err != nil {
			return err
		}
	}
	if e.damaged != nil {
		return v.Found(e.damaged)
	}
	return e.fails
}

// put writes a key of the agent's log behind the back of its package.
func (e *engine) put(tb testing.TB, tag byte, rest, value string) {
	tb.Helper()
	var batch kv.Batch
	batch.Put(kv.Log, agent.Key(tag, []byte(rest)), []byte(value))
	guard := kv.Guard{Ref: kv.Ref{Keyspace: kv.Log, Scope: agent}, Any: true}
	if err := e.Commit(tb.Context(), kv.Commit{Guards: []kv.Guard{guard}, Batch: &batch}); err != nil {
		tb.Fatal(err)
	}
}

func newEngine(tb testing.TB) *engine {
	tb.Helper()
	e := &engine{Engine: memkv.New(nil)}
	tb.Cleanup(func() { e.Close() })
	w := kv.NewWriter(e, nil)
	log := session.New(e, w, nil)
	for range 3 {
		if _, err := log.AppendMessages(tb.Context(), agent, "s", []session.Message{{Role: session.User, Content: "hello"}}, ""); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return e
}

func TestScrub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, fileBytes = 1000, 60_000
		e := newEngine(t)
		e.bytes = fileBytes
		s := integrity.StartScrub(e, &integrity.ScrubOptions{Every: time.Hour, BytesPerSecond: rate})
		defer s.Close()
		time.Sleep(time.Minute + fileBytes/rate*time.Second/2)
		if r := s.Report(); r.Passes != 0 || r.Bytes < fileBytes/3 || r.Bytes > fileBytes*2/3 {
			t.Errorf("half way through the first pass: %+v", r)
		}
		time.Sleep(fileBytes / rate * time.Second)
		if r := s.Report(); r.Passes != 1 || r.Damaged != 0 || r.Bytes < fileBytes {
			t.Errorf("after the first pass: %+v", r)
		}

		e.put(t, 'e', "nonsense", "x")
		e.damaged = &kv.DamageError{File: "000007.sst", Problem: "is gone", Keyspace: kv.Events}
		time.Sleep(time.Hour)
		r := s.Report()
		if c, _ := e.health.Condition(); r.Passes != 2 || r.Damaged != 2 || len(c.Damaged) != 2 || !errors.Is(c.Damaged[kv.Events], kv.ErrDamaged) {
			t.Errorf("with damage: %+v, %v", r, c)
		}
		if text := r.Findings[1].String(); !strings.HasPrefix(text, "log: default/a/a: ") {
			t.Errorf("finding %q", text)
		}

		e.damaged = nil
		time.Sleep(time.Hour)
		if c, _ := e.health.Condition(); len(c.Damaged) != 1 || c.Damaged[kv.Log] == nil || s.Report().Damaged != 1 {
			t.Errorf("with some of it mended: %+v, %v", s.Report(), c)
		}

		e.fails = errors.New("the disk does not answer")
		before := s.Report()
		time.Sleep(time.Hour)
		if r := s.Report(); r.Passes != before.Passes {
			t.Errorf("a pass that did not come through counts: %+v", r)
		}
	})
}

// TestScrubEnds closes in the middle of a pass: that finds nothing.
func TestScrubEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t)
		e.bytes = 1 << 20
		s := integrity.StartScrub(e, &integrity.ScrubOptions{Every: time.Second, BytesPerSecond: 1000})
		time.Sleep(time.Minute)
		began := time.Now()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if c, _ := e.health.Condition(); time.Since(began) > time.Second || len(c.Damaged) != 0 || s.Report().Passes != 0 {
			t.Errorf("after %v: %+v, %v", time.Since(began), s.Report(), c)
		}
	})
}

// TestEntriesEnd ends the reading by its own error: that is no damage.
func TestEntriesEnd(t *testing.T) {
	e := newEngine(t)
	enough := errors.New("enough")
	found := 0
	_, err := integrity.Entries(t.Context(), e, integrity.Options{
		Found: func(integrity.Finding) { found++ },
		Read:  func(int64) error { return enough },
	})
	if !errors.Is(err, enough) || found != 0 {
		t.Errorf("%v, %d findings", err, found)
	}
}
