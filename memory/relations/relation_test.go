package relations_test

import (
	"context"
	"errors"
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
		for _, r := range all {
			if err := relations.Put(ctx, tx, scope, r); err != nil {
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
