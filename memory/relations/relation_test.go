package relations_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/relations"
)

var scope = kv.AgentScope("default", "a")

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// stage runs one commit.
func stage(tb testing.TB, writer *kv.Writer, do func(ctx context.Context, tx *kv.Tx) error) error {
	tb.Helper()
	return writer.Do(tb.Context(), kv.Request{Refs: []kv.Ref{{Keyspace: kv.Records, Scope: scope}}, Stage: do})
}

// Names are letters, digits and four signs, and begin with a letter.
func TestNames(t *testing.T) {
	for _, good := range []string{"a", "PART_OF", "rdf:type", "v2.1-x", strings.Repeat("x", record.MaxRelationName)} {
		if problem := record.RelationProblem(good); problem != "" {
			t.Errorf("%q %s", good, problem)
		}
	}
	for _, bad := range []string{"", "1st", "_a", "a b", "ä", "aä", "a\x00", "a/b", strings.Repeat("x", record.MaxRelationName+1)} {
		if record.RelationProblem(bad) == "" {
			t.Errorf("%q is taken", bad)
		}
	}
}

// What is put is read from both ends, whatever ids the records have; one id that begins as
// another has nothing of it.
func TestRelationsAreReadFromBothEnds(t *testing.T) {
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	t.Cleanup(func() { must(t, writer.Close()); must(t, engine.Close()) })
	at := time.UnixMicro(1_700_000_000_123_456).UTC()
	ids := []string{"a", "ab", "a b", "ä\"\\", strings.Repeat("x", record.MaxIDBytes)}
	var all []relations.Relation
	for _, from := range ids {
		for _, to := range ids {
			if from != to {
				all = append(all, relations.Relation{From: from, Name: "n", To: to, Time: at}, relations.Relation{From: from, Name: "n.2", To: to, Time: at})
			}
		}
	}
	must(t, stage(t, writer, func(ctx context.Context, tx *kv.Tx) error {
		counts := relations.Counts{}
		for _, r := range all {
			if err := relations.Put(ctx, tx, scope, r, counts); err != nil {
				return err
			}
		}
		return nil
	}))
	for _, id := range ids {
		found, looked, err := relations.Of(t.Context(), engine, scope, id, relations.Selection{})
		must(t, err)
		must(t, relations.Complete(t.Context(), engine, scope, found))
		var want []relations.Relation
		for _, r := range all {
			if r.From == id || r.To == id {
				want = append(want, r)
			}
		}
		slices.SortFunc(found, record.CompareRelations)
		slices.SortFunc(want, record.CompareRelations)
		if !slices.Equal(found, want) || looked != len(want) {
			t.Errorf("of %q: %v of %d, want %v", id, found, looked, want)
		}
		some, looked, err := relations.Of(t.Context(), engine, scope, id, relations.Selection{Names: []string{"n"}, Limit: 3})
		if must(t, err); looked != 3 || len(some) == 0 || len(some) > 3 {
			t.Errorf("of %q at most 3: %v, looked at %d", id, some, looked)
		}
	}
	must(t, stage(t, writer, func(_ context.Context, tx *kv.Tx) error {
		for _, r := range all {
			relations.Drop(tx, scope, r)
		}
		return nil
	}))
	for pair, err := range engine.Scan(t.Context(), kv.Records, kv.Prefix(scope.AppendPrefix(nil))) {
		t.Fatalf("%x is left (%v)", pair.Key, err)
	}
}

// A key that is none is damage, not a relation.
func FuzzKeys(f *testing.F) {
	f.Add([]byte("a\x00\x01n\x00\x01b"), []byte{8, 2})
	f.Add([]byte("a\x00\x01\x00\x01b"), []byte(nil))
	f.Add([]byte("a"), []byte("x"))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		if len(key) > 300 {
			return
		}
		engine := memkv.New(nil)
		defer func() { must(t, engine.Close()) }()
		var batch kv.Batch
		batch.Put(kv.Records, scope.Key('o', key), value)
		batch.Put(kv.Records, scope.Key('i', key), nil)
		must(t, engine.Commit(t.Context(), kv.Commit{Guards: []kv.Guard{{Ref: kv.Ref{Keyspace: kv.Records, Scope: scope}, Any: true}}, Batch: &batch}))
		for _, way := range []relations.Way{relations.Out, relations.In} {
			err := relations.Each(t.Context(), engine, scope, way, func(r relations.Relation) error {
				if r.Name == "" || r.From == "" && r.To == "" {
					t.Errorf("read %v", r)
				}
				return nil
			})
			if err != nil && !errors.Is(err, record.ErrDamaged) {
				t.Errorf("%v", err)
			}
		}
	})
}

// What has ended is read from both ends as of a moment at which it stood, and under either
// no more than its limit is kept: the one that ended first goes from both, and both say so.
func TestEndedRelations(t *testing.T) {
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	t.Cleanup(func() { must(t, writer.Close()); must(t, engine.Close()) })
	at := func(n int) time.Time { return time.UnixMicro(int64(n) - 3).UTC() } // some before 1970
	const kept = record.MaxRelationsFrom
	must(t, stage(t, writer, func(ctx context.Context, tx *kv.Tx) error {
		for i := range kept + 2 {
			r := relations.Relation{From: "a", Name: fmt.Sprint("n", i), To: fmt.Sprint("b", i%2), Time: at(i), End: at(i + 2)}
			for range 2 { // again is the same
				if err := relations.Keep(ctx, tx, scope, r); err != nil {
					return err
				}
			}
		}
		return relations.Keep(ctx, tx, scope, relations.Relation{From: "a", Name: "never", To: "b0", Time: at(9), End: at(9)})
	}))
	names := func(id string, n int) (all []string) {
		found, _, err := relations.Of(t.Context(), engine, scope, id, relations.Selection{At: at(n)})
		must(t, err)
		for _, r := range found {
			if r.Time.After(at(n)) || !r.End.After(at(n)) || r.From != "a" {
				t.Errorf("%v as of %v", r, at(n))
			}
			all = append(all, r.Name)
		}
		return all
	}
	for _, test := range []struct {
		id   string
		at   int
		want []string
	}{
		{"a", 2, []string{"n2"}}, // n1 is forgotten
		{"a", 3, []string{"n2", "n3"}},
		{"b1", 4, []string{"n3"}},
		{"b0", 4, []string{"n4"}},
		{"a", kept + 2, []string{fmt.Sprint("n", kept+1)}},
		{"a", kept + 3, nil},
		{"a", 0, nil},
		{"b", 4, nil},
	} {
		if got := names(test.id, test.at); !slices.Equal(got, test.want) {
			t.Errorf("%s as of %d: %q, want %q", test.id, test.at, got, test.want)
		}
	}
	for id, want := range map[string]time.Time{"a": at(3), "b0": at(2), "b1": at(3), "b": {}} {
		until, err := relations.Forgotten(t.Context(), engine, scope, id)
		if must(t, err); !until.Equal(want) {
			t.Errorf("of %s those are forgotten that ended until %v, want %v", id, until, want)
		}
	}
	must(t, stage(t, writer, func(ctx context.Context, tx *kv.Tx) error {
		for _, id := range []string{"b0", "a"} {
			if _, err := relations.DropAll(ctx, tx, scope, id); err != nil {
				return err
			}
		}
		return nil
	}))
	left := 0
	for pair, err := range engine.Scan(t.Context(), kv.Records, kv.Range{}) {
		must(t, err)
		if left++; !bytes.Contains(pair.Key, []byte("b1")) {
			t.Errorf("left: %q", pair.Key)
		}
	}
	if left != 1 { // that some of b1 are forgotten
		t.Errorf("%d keys are left", left)
	}
}
