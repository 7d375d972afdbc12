package kvtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Factory makes an empty engine. The suite closes it; tb.TempDir and
// tb.Cleanup serve for the rest.
type Factory func(tb testing.TB) kv.Engine

// Run checks the whole contract. Every case gets its own engine. Time passes in
// bubbles of testing/synctest.
func Run(t *testing.T, factory Factory) {
	t.Helper()
	run(t, factory, func(t *testing.T, c testCase) {
		if c.timed != nil {
			synctest.Test(t, func(t *testing.T) { c.timed(t, open(t, factory), bubble{}) })
		} else {
			c.run(t, open(t, factory))
		}
	})
}

// RunFar is Run for an engine that waits for another process, which no bubble holds. Time
// passes as it does, so short makes engines whose snapshots live for about a second. The
// cases run side by side.
func RunFar(t *testing.T, factory, short Factory) {
	t.Helper()
	run(t, factory, func(t *testing.T, c testCase) {
		t.Parallel()
		switch {
		case c.timed == nil:
			c.run(t, open(t, factory))
		case !c.exact:
			c.timed(t, open(t, short), realTime{})
		}
	})
}

func run(t *testing.T, factory Factory, one func(*testing.T, testCase)) {
	t.Helper()
	groups := map[string][]testCase{
		"read":      readCases(),
		"commit":    commitCases(),
		"limits":    limitCases(),
		"snapshot":  snapshotCases(),
		"lifecycle": lifecycleCases(),
		"together":  togetherCases(),
		"drop":      dropCases(),
		"lists":     listCases(),
	}
	for group, cases := range groups {
		t.Run(group, func(t *testing.T) {
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) { one(t, c) })
			}
		})
	}
	t.Run("random", func(t *testing.T) { RunSeed(t, factory, chance.Seed(t)) })
}

type testCase struct {
	name string
	run  func(t *testing.T, e kv.Engine)
	// timed is the case where time passes in it, in place of run.
	timed func(t *testing.T, e kv.Engine, c clock)
	// exact needs times to the nanosecond, which only bubbles have.
	exact bool
}

// The scopes of the cases. Their names are prefixes of each other on purpose.
func alpha() kv.Scope { return kv.AgentScope("acme", "alpha") }
func alph() kv.Scope  { return kv.AgentScope("acme", "alph") }

func ref(ks kv.Keyspace, s kv.Scope) kv.Ref { return kv.Ref{Keyspace: ks, Scope: s} }

// anyOf is the guard of a blind write, at that of one sequence only.
func anyOf(ks kv.Keyspace, s kv.Scope) kv.Guard { return kv.Guard{Ref: ref(ks, s), Any: true} }

func at(ks kv.Keyspace, s kv.Scope, sequence uint64) kv.Guard {
	return kv.Guard{Ref: ref(ks, s), Sequence: sequence}
}

func key(s kv.Scope, name string) []byte { return s.Key('k', []byte(name)) }

// put returns a commit of "name=value" pairs into one ref under one guard.
func put(g kv.Guard, pairs ...string) kv.Commit {
	batch := new(kv.Batch)
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		batch.Put(g.Keyspace, key(g.Scope, name), []byte(value))
	}
	return kv.Commit{Guards: []kv.Guard{g}, Batch: batch}
}

func open(tb testing.TB, factory Factory) kv.Engine {
	tb.Helper()
	e := factory(tb)
	tb.Cleanup(func() {
		if err := e.Close(); err != nil && !errors.Is(err, kv.ErrClosed) {
			tb.Errorf("close: %v", err)
		}
	})
	return e
}

func mustCommit(tb testing.TB, e kv.Engine, c kv.Commit) {
	tb.Helper()
	if err := e.Commit(tb.Context(), c); err != nil {
		tb.Fatalf("commit: %v", err)
	}
}

// fill commits pairs into the records of alpha.
func fill(tb testing.TB, e kv.Engine, pairs ...string) {
	tb.Helper()
	fillRef(tb, e, ref(kv.Records, alpha()), pairs...)
}

// fillRef commits pairs into a ref and raises its sequence.
func fillRef(tb testing.TB, e kv.Engine, r kv.Ref, pairs ...string) {
	tb.Helper()
	sequences, err := e.Sequence(tb.Context(), r)
	if err != nil {
		tb.Fatalf("sequence of %s: %v", r, err)
	}
	mustCommit(tb, e, put(kv.Guard{Ref: r, Sequence: sequences[0]}, pairs...))
}

// wantScan compares a scan with "name=value" pairs. Keys are shown without
// scope and tag.
func wantScan(tb testing.TB, r kv.Reader, ks kv.Keyspace, of kv.Range, want ...string) {
	tb.Helper()
	var got []string
	for pair, err := range r.Scan(tb.Context(), ks, of) {
		if err != nil {
			tb.Fatalf("scan: %v", err)
		}
		got = append(got, show(tb, pair))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("scan %q..%q (-want +got):\n%s", of.Start, of.End, diff)
	}
}

func show(tb testing.TB, pair kv.Pair) string {
	tb.Helper()
	_, rest, err := kv.SplitKey(pair.Key)
	if err != nil || pair.Value == nil {
		tb.Fatalf("scan yields %q = %v: %v", pair.Key, pair.Value, err)
	}
	return fmt.Sprintf("%s=%s", rest[1:], pair.Value)
}

// wantGet compares the values of named keys of alpha's records; "-" stands for
// a missing one.
func wantGet(tb testing.TB, r kv.Reader, names []string, want ...string) {
	tb.Helper()
	keys := make([][]byte, len(names))
	for i, name := range names {
		keys[i] = key(alpha(), name)
	}
	values, err := r.Get(tb.Context(), kv.Records, keys...)
	if err != nil {
		tb.Fatalf("get %v: %v", names, err)
	}
	got := make([]string, len(values))
	for i, value := range values {
		if got[i] = string(value); value == nil {
			got[i] = "-"
		}
	}
	if !slices.Equal(got, want) {
		tb.Errorf("get %v = %q, want %q", names, got, want)
	}
}

func wantSequence(tb testing.TB, r kv.Reader, of kv.Ref, want uint64) {
	tb.Helper()
	got, err := r.Sequence(tb.Context(), of)
	if err != nil || len(got) != 1 || got[0] != want {
		tb.Errorf("sequence of %s = %v, %v, want %d", of, got, err, want)
	}
}

func wantError(tb testing.TB, what string, err, want error) {
	tb.Helper()
	if !errors.Is(err, want) {
		tb.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// wantEmpty checks that nothing was written into any keyspace of a scope.
func wantEmpty(tb testing.TB, r kv.Reader, s kv.Scope) {
	tb.Helper()
	for _, ks := range kv.Keyspaces() {
		wantScan(tb, r, ks, kv.Prefix(s.AppendPrefix(nil)))
		wantSequence(tb, r, ref(ks, s), 0)
	}
}

// scanError runs a scan to its end and returns its error.
func scanError(seq func(func(kv.Pair, error) bool)) error {
	for _, err := range seq {
		if err != nil {
			return err
		}
	}
	return nil
}
