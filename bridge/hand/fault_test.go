package hand_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func TestFullDiskKeepsTheResult(t *testing.T) {
	// P10
	content := strings.Repeat("line\n", 500_000) // three chunks, two written ahead
	for commit := 1; commit <= 4; commit++ {
		w := MustWorld(t, map[string]string{"a": content}, nil)
		w.engine.Replan(kvtest.FailurePlan{Commit: commit, Err: kv.ErrFull, Repeat: true})
		a, err := w.Call(t.Context(), request("fs:read_file", map[string]any{"path": "a"}))
		if err != nil {
			t.Fatal(err)
		}
		shown, _ := field(t, a.Output, "content").(string)
		if !a.Success || len(shown) < 500_000 || !strings.HasPrefix(content, shown) {
			t.Errorf("commit %d: success %v, %d bytes shown", commit, a.Success, len(shown))
		}
		commits, _ := w.engine.Calls()
		if failed := commits >= commit; a.Recorded == failed || failed != errors.Is(a.RecordError, kv.ErrFull) {
			t.Errorf("commit %d of %d failed: recorded %v, %v", commit, commits, a.Recorded, a.RecordError)
		}
		if a.Recorded {
			continue
		}
		if a.Step != nil || a.Blob != nil || a.Position != 0 || strings.Contains(a.Observation, "Saved to") {
			t.Errorf("commit %d: the answer refers to what is not there: %+v", commit, a)
		}
		if _, err := w.blobs.Lookup(t.Context(), agent, "step_001"); !errors.Is(err, blob.ErrNotFound) || len(w.steps("default")) != 0 {
			t.Errorf("commit %d: half of it was written: %v", commit, err)
		}
		w.engine.Replan(kvtest.FailurePlan{})
		if a := w.must(request("fs:read_file", map[string]any{"path": "a"})); a.Step.Number != 1 || w.content("step_001") != content {
			t.Errorf("commit %d: afterwards step %d", commit, a.Step.Number)
		}
	}
}

func TestNothingMutatesWithoutItsIntent(t *testing.T) {
	var runs atomic.Int64
	w := MustWorld(t, nil, nil)
	w.add(tools.Descriptor{Name: "count:write", Mutates: true}, counted(&runs, nil))
	w.engine.Replan(kvtest.FailurePlan{Commit: 1, Err: kv.ErrFull})
	if _, err := w.Call(t.Context(), request("count:write", nil)); !errors.Is(err, kv.ErrFull) || runs.Load() != 0 {
		t.Errorf("got %v after %d runs, want kv.ErrFull and none", err, runs.Load())
	}
}

func TestReadsFailBeforeTheToolRuns(t *testing.T) {
	var runs atomic.Int64
	w := MustWorld(t, nil, nil)
	w.add(tools.Descriptor{Name: "count:read"}, counted(&runs, nil))
	req := request("count:read", nil)
	req.RequestID = "r"
	w.engine.Replan(kvtest.FailurePlan{Read: 1})
	if _, err := w.Call(t.Context(), req); !errors.Is(err, kvtest.ErrFault) || runs.Load() != 0 {
		t.Errorf("got %v after %d runs", err, runs.Load())
	}
}

// waiting is a tool that waits for its context, or for release if stubborn.
func waiting(release <-chan struct{}, stubborn bool) tools.Func {
	return func(ctx context.Context, _ tools.Input) (tools.Output, error) {
		if stubborn {
			<-release
			return tools.Output{Values: map[string]any{"late": true}}, nil
		}
		<-ctx.Done()
		return tools.Output{}, ctx.Err()
	}
}

func TestDeadlines(t *testing.T) {
	tests := []struct {
		name              string
		stubborn, mutates bool
		timeout, took     time.Duration
		code              tools.Code
		outcome           step.Outcome
	}{
		{"default", false, false, 0, hand.DefaultTimeout, tools.Timeout, step.Failed},
		{"given", false, false, time.Second, time.Second, tools.Timeout, step.Failed},
		{"at most", false, false, time.Hour, hand.MaxTimeout, tools.Timeout, step.Failed},
		{"a tool that does not stop", true, false, time.Second, 1500 * time.Millisecond, tools.Timeout, step.Failed},
		{"one that changes something", true, true, time.Second, 1500 * time.Millisecond, tools.OutcomeUnknown, step.Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := MustWorld(t, nil, nil)
				release := make(chan struct{})
				w.add(tools.Descriptor{Name: "slow", Mutates: tt.mutates}, waiting(release, tt.stubborn))
				req := request("slow", nil)
				req.Timeout = tt.timeout
				start := time.Now()
				a := w.must(req)
				if took := time.Since(start); took != tt.took || a.ErrorCode != tt.code || a.Step.Outcome != tt.outcome {
					t.Errorf("%s after %v, outcome %v", a.ErrorCode, took, a.Step.Outcome)
				}
				if !strings.HasPrefix(a.ErrorMessage, "Timeout") || a.Step.ErrorCode != string(tt.code) {
					t.Errorf("message %q, step code %s", a.ErrorMessage, a.Step.ErrorCode)
				}
				if left := w.intents(); len(left) != 0 {
					t.Errorf("intents are left: %v", left)
				}
				if tt.stubborn {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					if err := w.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("Close does not wait for the tool that still runs: %v", err)
					}
				}
				close(release)
			})
		})
	}
}

func TestStepOfACallerThatHasGone(t *testing.T) {
	w := MustWorld(t, nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	w.add(tools.Descriptor{Name: "write", Mutates: true}, func(context.Context, tools.Input) (tools.Output, error) {
		cancel() // the client goes away while the tool runs
		return tools.Output{Values: map[string]any{"done": true}}, nil
	})
	w.add(tools.Descriptor{Name: "wait"}, func(ctx context.Context, _ tools.Input) (tools.Output, error) {
		cancel()
		<-ctx.Done()
		return tools.Output{}, ctx.Err()
	})
	if a, err := w.Call(ctx, request("write", nil)); err != nil || !a.Recorded || !a.Success {
		t.Errorf("a tool that ended: %+v, %v", a, err)
	}
	if _, err := w.Call(ctx, request("write", nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that had gone before: got %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	if a, err := w.Call(ctx, request("wait", nil)); err != nil || !a.Recorded || a.ErrorCode != tools.Failed {
		t.Errorf("a tool that was told to stop: %+v, %v", a, err)
	}
	if got := w.steps("default"); len(got) != 2 || !got[0].Success() || got[1].Error != "the caller gave up" {
		t.Errorf("steps: %+v", got)
	}
}

func TestPanicsAreFailures(t *testing.T) {
	var log bytes.Buffer
	w := MustWorld(t, nil, &hand.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	w.add(tools.Descriptor{Name: "crash", Mutates: true}, func(context.Context, tools.Input) (tools.Output, error) { panic("secret text") })
	a := w.must(request("crash", nil))
	if a.Success || a.ErrorMessage != "Internal error: the tool crashed" || a.Step.Outcome != step.Failed {
		t.Errorf("got %+v", a)
	}
	if !strings.Contains(log.String(), "secret text") {
		t.Errorf("the log does not hold the panic: %s", log.String())
	}
}

// breaking is a body that fails, or panics, in the middle, and notes that it was
// closed.
type breaking struct {
	err    error
	sent   bool
	closed *atomic.Bool
}

func (b *breaking) Read(p []byte) (int, error) {
	if b.sent {
		if b.err == nil {
			panic("broken body")
		}
		return 0, b.err
	}
	b.sent = true
	return copy(p, "half of it"), nil
}

func (b *breaking) Close() error {
	b.closed.Store(true)
	return nil
}

func TestBodiesThatBreak(t *testing.T) {
	for _, broken := range []error{io.ErrUnexpectedEOF, tools.Errorf(tools.TooLarge, "grew"), nil} {
		var closed atomic.Bool
		w := MustWorld(t, nil, nil)
		w.add(tools.Descriptor{Name: "body"}, func(context.Context, tools.Input) (tools.Output, error) {
			return tools.Output{BodyKey: "content", Body: &breaking{err: broken, closed: &closed}}, nil
		})
		a := w.must(request("body", nil))
		if a.Success || a.Output != nil || a.Blob != nil || !closed.Load() {
			t.Errorf("%v: got %+v, closed %v", broken, a, closed.Load())
		}
	}
}

// parting is a body whose caller goes away as its last byte is read.
type parting struct {
	gone context.CancelFunc
	left int
}

func (p *parting) Read(b []byte) (int, error) {
	if p.left == 0 {
		p.gone()
		return 0, io.EOF
	}
	n := min(len(b), p.left)
	p.left -= n
	return n, nil
}

func (*parting) Close() error { return nil }

func TestStepOfACallerThatGoesDuringTheBody(t *testing.T) {
	for size, success := range map[int]bool{10: true, 3 << 20: false} { // the longer one is cut while it is written ahead
		w := MustWorld(t, nil, nil)
		ctx, cancel := context.WithCancel(t.Context())
		w.add(tools.Descriptor{Name: "body"}, func(context.Context, tools.Input) (tools.Output, error) {
			return tools.Output{BodyKey: "content", Body: &parting{cancel, size}}, nil
		})
		a, err := w.Call(ctx, request("body", nil))
		if err != nil || !a.Recorded || len(w.steps("default")) != 1 || a.Success != success {
			t.Errorf("%d bytes: recorded %v, success %v, %v, %v", size, a.Recorded, a.Success, a.RecordError, err)
		}
	}
}

func TestOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := MustWorld(t, nil, &hand.Options{MaxRunning: 2, MaxWaiting: 2, OneTenant: true})
		release := make(chan struct{})
		w.add(tools.Descriptor{Name: "slow"}, waiting(release, true))
		answers := make(chan error, 4)
		call := func(ctx context.Context, scope kv.Scope) {
			req := request("slow", nil)
			req.Scope = scope
			_, err := w.Call(ctx, req)
			answers <- err
		}
		ctx, cancel := context.WithCancel(t.Context())
		go call(t.Context(), agent) // runs
		synctest.Wait()
		go call(ctx, agent) // waits: the agent has its share
		go call(t.Context(), other)
		synctest.Wait() // the other agent runs
		go call(t.Context(), kv.AgentScope("default", "third"))
		synctest.Wait() // waits: two run
		if _, err := w.Call(t.Context(), request("slow", nil)); !errors.Is(err, share.ErrExhausted) {
			t.Errorf("one too many: got %v", err)
		}
		cancel()
		if err := <-answers; !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that gave up waiting: got %v", err)
		}
		close(release)
		for range 3 {
			if err := <-answers; err != nil {
				t.Errorf("a call that could run: %v", err)
			}
		}
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := w.Call(t.Context(), request("slow", nil)); !errors.Is(err, hand.ErrClosed) {
			t.Errorf("after Close: got %v", err)
		}
	})
}
