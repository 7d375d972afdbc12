package kv_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// marked returns a commit of a value to counterRef at a sequence, with a token.
func marked(sequence, token uint64, value string) kv.Commit {
	batch := new(kv.Batch)
	batch.Put(kv.Log, counterRef.Scope.Key('v'), []byte(value))
	return kv.Commit{Guards: []kv.Guard{{Ref: counterRef, Sequence: sequence}}, Batch: batch, Token: token}
}

func TestSettle(t *testing.T) {
	unknown := kvtest.FailurePlan{Commit: 1, Err: kv.ErrUnknownOutcome}
	written := unknown
	written.Written = true
	for name, c := range map[string]struct {
		plan   kvtest.FailurePlan
		commit kv.Commit
		after  []kv.Commit        // by others, before anybody asks
		later  kvtest.FailurePlan // when it is asked
		want   error              // nil: written
		value  string
	}{
		"it was written":                 {plan: written, commit: marked(0, 7, "mine"), value: "mine"},
		"it was not, and is written now": {plan: unknown, commit: marked(0, 7, "mine"), value: "mine"},
		"another came first": {
			plan: unknown, commit: marked(0, 7, "mine"), after: []kv.Commit{marked(0, 8, "other")},
			want: kv.ErrConflict, value: "other",
		},
		"another without a token came first": {
			plan: unknown, commit: marked(0, 7, "mine"), after: []kv.Commit{marked(0, 0, "other")},
			want: kv.ErrConflict, value: "other",
		},
		"others came since": {
			plan: written, commit: marked(0, 7, "mine"), after: []kv.Commit{marked(1, 8, "other")},
			want: kv.ErrUnknownOutcome, value: "other",
		},
		"without a token": {plan: written, commit: marked(0, 0, "mine"), want: kv.ErrUnknownOutcome, value: "mine"},
		"blind": {
			plan: written, want: kv.ErrUnknownOutcome, value: "mine",
			commit: kv.Commit{Token: 7, Batch: marked(0, 7, "mine").Batch, Guards: []kv.Guard{{Ref: counterRef, Any: true}}},
		},
		"the store takes no commits any more": {
			plan: unknown, commit: marked(0, 7, "mine"), later: kvtest.FailurePlan{Commit: 1, Repeat: true, Err: kv.ErrFailed},
			want: kv.ErrUnknownOutcome,
		},
		"nobody answers": {
			plan: unknown, commit: marked(0, 7, "mine"), later: kvtest.FailurePlan{Read: 1, Repeat: true},
			want: kv.ErrUnknownOutcome,
		},
		"the next tries end so, too": {
			plan: unknown, commit: marked(0, 7, "mine"), later: kvtest.FailurePlan{Commit: 1, Err: kv.ErrUnknownOutcome, Written: true},
			value: "mine",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				behind := memkv.New(nil)
				defer behind.Close()
				engine := kvtest.Faulty(behind, c.plan)
				if err := engine.Commit(t.Context(), c.commit); !errors.Is(err, kv.ErrUnknownOutcome) {
					t.Fatalf("commit: %v", err)
				}
				for _, other := range c.after {
					if err := behind.Commit(t.Context(), other); err != nil {
						t.Fatal(err)
					}
				}
				engine.Replan(c.later)
				err := kv.Settle(t.Context(), engine, c.commit)
				if !errors.Is(err, c.want) {
					t.Errorf("settle: %v, want %v", err, c.want)
				}
				values, err := behind.Get(t.Context(), kv.Log, counterRef.Scope.Key('v'))
				if err != nil || string(values[0]) != c.value {
					t.Errorf("value %q, %v, want %q", values[0], err, c.value)
				}
			})
		})
	}
}

// A writer whose engine gives no clear answer has one for its caller, and the update
// is neither lost nor made twice.
func TestAWriterSettlesUnknownOutcomes(t *testing.T) {
	for _, written := range []bool{false, true} {
		engine := kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
		w := newWriter(t, engine, nil)
		for n := range 20 {
			engine.Replan(kvtest.FailurePlan{Commit: 1, Err: kv.ErrUnknownOutcome, Written: written})
			if n%3 == 0 { // somebody else comes in between
				engine.Replan(kvtest.FailurePlan{Commit: 1, Err: kv.ErrUnknownOutcome, Written: written, Before: func(behind kv.Engine, _ kv.Commit) {
					if commits, _ := engine.Calls(); commits > 1 {
						return
					}
					err := kv.NewWriter(behind, nil).Do(context.Background(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: increment(counterRef)})
					if err != nil {
						t.Error(err)
					}
				}})
			}
			if err := w.Do(t.Context(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: increment(counterRef)}); err != nil {
				t.Fatalf("written %v, call %d: %v", written, n, err)
			}
		}
		if got := mustCount(t, engine, counterRef); got != 27 {
			t.Errorf("written %v: counter = %d, want 27", written, got)
		}
	}
}

// conflicting is an engine that somebody else always comes before, so many times.
type conflicting struct {
	kv.Engine
	left int
}

func (c *conflicting) Commit(ctx context.Context, commit kv.Commit) error {
	if c.left--; c.left >= 0 {
		return &kv.ConflictError{Guard: commit.Guards[0]}
	}
	return c.Engine.Commit(ctx, commit)
}

func TestAWriterPausesFromTheFourthConflictOn(t *testing.T) {
	for name, c := range map[string]struct {
		conflicts int
		deadline  time.Duration
		least     time.Duration
		most      time.Duration
		want      error
	}{
		"three":            {3, time.Hour, 0, 0, nil},
		"four":             {4, time.Hour, 1, 3 * time.Millisecond, nil},
		"ten":              {10, time.Hour, 7, 7 * 50 * time.Millisecond, nil},
		"always":           {1 << 30, time.Hour, 60, 61 * 50 * time.Millisecond, kv.ErrConflict},
		"the context ends": {1 << 30, 1, 1, 1, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := memkv.New(nil)
				defer engine.Close()
				w := kv.NewWriter(&conflicting{engine, c.conflicts}, nil)
				ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
				defer cancel()
				begun := time.Now()
				err := w.Do(ctx, kv.Request{Refs: []kv.Ref{counterRef}, Stage: increment(counterRef)})
				if took := time.Since(begun); !errors.Is(err, c.want) || took < c.least || took > c.most {
					t.Errorf("%v after %v, want %v after %v to %v", err, took, c.want, c.least, c.most)
				}
			})
		})
	}
}
