package memory_test

import (
	"bufio"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// MustLoadGeneration1 puts what version 0.1 left on disk into an engine: 13
// records of the scope agent, packed, merged and in the tail.
func MustLoadGeneration1(tb testing.TB, engine kv.Engine) {
	tb.Helper()
	file, err := os.Open("testdata/generation1.txt")
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	keyspaces := map[string]kv.Keyspace{"records": kv.Records, "index": kv.Index}
	b := &kv.Batch{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		parts := strings.Split(lines.Text()+" ", " ")
		key, err := hex.DecodeString(parts[1])
		if err != nil {
			tb.Fatal(err)
		}
		value, err := hex.DecodeString(parts[2])
		if err != nil {
			tb.Fatal(err)
		}
		b.Put(keyspaces[parts[0]], key, value)
	}
	guards := []kv.Guard{{Ref: kv.Ref{Keyspace: kv.Records, Scope: agent}, Any: true}, {Ref: lexical.Ref(agent), Any: true}}
	if err := engine.Commit(tb.Context(), kv.Commit{Guards: guards, Batch: b}); err != nil {
		tb.Fatal(err)
	}
}

func wantGeneration1(tb testing.TB, r *rig) {
	tb.Helper()
	for query, want := range map[string]string{
		"green tea": "rec-03", "deploy script": "rec-05", "getUserName": "rec-06", "東京タワー": "rec-07", "bitcoin price closed": "rec-12",
	} {
		hits := ids(r.MustQuery(tb, question.Question{Text: query, Limit: 1}))
		if len(hits) != 1 || hits[0] != want {
			tb.Errorf("query %q finds %q, want %s", query, hits, want)
		}
	}
	if hits := ids(r.MustQuery(tb, question.Question{Text: "bitcoin", Filter: `tags:t0 AND author = "Ann"`})); len(hits) == 0 || hits[0] != "rec-12" {
		tb.Errorf("filtered query finds %q", hits)
	}
}

// keysOfGeneration counts the index keys of a generation.
func keysOfGeneration(tb testing.TB, engine kv.Engine, generation byte) (n int) {
	tb.Helper()
	for pair, err := range engine.Scan(tb.Context(), kv.Index, kv.Range{}) {
		if err != nil {
			tb.Fatal(err)
		}
		_, rest, err := kv.SplitKey(pair.Key)
		if err != nil {
			tb.Fatal(err)
		}
		if strings.IndexByte("lfigcxn", rest[0]) >= 0 && rest[1] == 0 && rest[2] == generation {
			n++
		}
	}
	return n
}

// A directory of version 0.1 is served as before, whatever is asked first.
func TestGeneration1IsRebuilt(t *testing.T) {
	first := map[string]func(testing.TB, *rig){
		"query": func(tb testing.TB, r *rig) { wantGeneration1(tb, r) },
		"check": func(tb testing.TB, r *rig) { r.MustCheck(tb, agent) },
		"save": func(tb testing.TB, r *rig) {
			r.MustSave(tb, record.Record{ID: "new", Text: "The tea is out of stock", Supersedes: "rec-03"})
		},
		"stats": func(tb testing.TB, r *rig) {
			if s, err := r.Stats(tb.Context(), agent); err != nil || s.Records != 13 {
				tb.Errorf("%+v, %v", s, err)
			}
		},
	}
	for name, ask := range first {
		t.Run(name, func(t *testing.T) {
			engine := memkv.New(nil)
			MustLoadGeneration1(t, engine)
			r := MustRig(t, engine)
			ask(t, r)
			r.MustCheck(t, agent)
			if name != "save" {
				wantGeneration1(t, r)
			}
			saved := r.MustSave(t, record.Record{Text: "A zebra crossed the road"})
			if hits := ids(r.MustQuery(t, question.Question{Text: "zebra"})); len(hits) != 1 || hits[0] != saved.ID {
				t.Errorf("found %q", hits)
			}
			r.MustPack(t)
			for range 50 {
				r.MustPack(t)
			}
			if n := keysOfGeneration(t, engine, 1); n > 0 {
				t.Errorf("%d keys of generation 1 are left", n)
			}
		})
	}
}

// A rebuilding that dies at any commit is finished by the next process.
func TestRebuildingSurvivesFaults(t *testing.T) {
	for fail := 1; ; fail++ {
		engine := kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
		MustLoadGeneration1(t, engine)
		engine.Replan(kvtest.FailurePlan{Commit: fail, Repeat: true})
		dying := &rig{engine: engine, clock: &clock{now: start}}
		dying.open()
		_, err := dying.Query(t.Context(), agent, question.Question{Text: "green tea"})
		dying.close()
		commits, _ := engine.Calls()
		engine.Replan(kvtest.FailurePlan{})
		if err != nil && !errors.Is(err, kvtest.ErrFault) {
			t.Fatal(err)
		}
		r := MustRig(t, engine)
		wantGeneration1(t, r)
		if err == nil && commits < fail {
			if fail < 3 {
				t.Errorf("rebuilding took %d commits", commits)
			}
			return
		}
	}
}

// Those who come while a scope is rebuilt wait, and find everything.
func TestManyMeetGeneration1(t *testing.T) {
	engine := memkv.New(nil)
	MustLoadGeneration1(t, engine)
	r := MustRig(t, engine)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if i%2 == 0 {
				wantGeneration1(t, r)
				return
			}
			if _, err := r.Save(t.Context(), agent, record.Record{Text: "Another walrus"}, ""); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if hits := ids(r.MustQuery(t, question.Question{Text: "walrus", Limit: 20})); len(hits) != 8 {
		t.Errorf("%d of 8 saves found", len(hits))
	}
}
