package kvtest_test

import (
	"errors"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

func TestFaultyPassesTheSuite(t *testing.T) {
	kvtest.Run(t, func(testing.TB) kv.Engine {
		return kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
	})
}

func commitOf(s kv.Scope, n byte) kv.Commit {
	batch := new(kv.Batch)
	batch.Put(kv.Records, s.Key('k', []byte{n}), []byte("v"))
	return kv.Commit{Guards: []kv.Guard{{Ref: kv.Ref{Keyspace: kv.Records, Scope: s}, Any: true}}, Batch: batch}
}

func TestFaultyCommits(t *testing.T) {
	tests := []struct {
		name string
		plan kvtest.FailurePlan
		want []error // of three commits
		left byte    // how many were written
	}{
		{"none", kvtest.FailurePlan{}, []error{nil, nil, nil}, 3},
		{"second", kvtest.FailurePlan{Commit: 2}, []error{nil, kvtest.ErrFault, nil}, 2},
		{"from the second on", kvtest.FailurePlan{Commit: 2, Repeat: true}, []error{nil, kvtest.ErrFault, kvtest.ErrFault}, 1},
		{"other error", kvtest.FailurePlan{Commit: 1, Err: kv.ErrFull}, []error{kv.ErrFull, nil, nil}, 2},
		{"written", kvtest.FailurePlan{Commit: 1, Err: kv.ErrUnknownOutcome, Written: true}, []error{kv.ErrUnknownOutcome, nil, nil}, 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := kvtest.Faulty(memkv.New(nil), test.plan)
			s := kv.AgentScope("acme", "alpha")
			for i, want := range test.want {
				if err := e.Commit(t.Context(), commitOf(s, byte(i))); !errors.Is(err, want) || (want == nil) != (err == nil) {
					t.Errorf("commit %d: error %v, want %v", i+1, err, want)
				}
			}
			left := byte(0)
			for _, err := range e.Scan(t.Context(), kv.Records, kv.Range{}) {
				if left++; err != nil {
					t.Fatal(err)
				}
			}
			if left != test.left {
				t.Errorf("%d commits were written, want %d", left, test.left)
			}
		})
	}
}

func TestFaultyReads(t *testing.T) {
	e := kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
	snapshot, err := e.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reads := map[string]func() error{
		"get":      func() error { _, err := e.Get(t.Context(), kv.Records); return err },
		"sequence": func() error { _, err := e.Sequence(t.Context()); return err },
		"snapshot": func() error { _, err := e.Snapshot(t.Context()); return err },
		"get of a snapshot": func() error {
			_, err := snapshot.Get(t.Context(), kv.Records)
			return err
		},
		"scan": func() (failed error) {
			for _, err := range e.Scan(t.Context(), kv.Records, kv.Range{}) {
				failed = err
			}
			return failed
		},
	}
	for name, read := range reads {
		e.Replan(kvtest.FailurePlan{Read: 2})
		for i, want := range []error{nil, kvtest.ErrFault, nil} {
			if err := read(); !errors.Is(err, want) {
				t.Errorf("%s %d: error %v, want %v", name, i+1, err, want)
			}
		}
		if _, calls := e.Calls(); calls != 3 {
			t.Errorf("%s: %d reads counted, want 3", name, calls)
		}
	}
}
