package children

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// MaxWaited bounds the children that one Wait names.
const MaxWaited = 1024

// lookEvery is how often a wait reads the store by itself: what another bridge says of a
// result may be lost.
const lookEvery = 5 * time.Second

// WaitOutcome is what came of several children.
type WaitOutcome struct {
	// Children are those waited for, in the order in which they were spawned. Those
	// without a Result have not returned.
	Children []Child
	// Complete reports whether all of them have.
	Complete bool
}

// Wait waits until some children of a parent have their results, or ctx ends, or timeout
// has passed; 0 does not wait. None named means all that the parent has in a session, or
// in all of them where that is empty. ErrNotChild: one of them is no child of the parent.
func (s *Spawner) Wait(ctx context.Context, parent kv.Scope, sessionID string, ids []string, timeout time.Duration) (WaitOutcome, error) {
	if len(ids) > MaxWaited {
		return WaitOutcome{}, refuse("child_ids", fmt.Sprintf("are %d, more than %d", len(ids), MaxWaited))
	}
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	over := time.NewTimer(timeout)
	defer over.Stop()
	if timeout <= 0 {
		over.Stop()
	}
	for {
		out, again, err := s.look(ctx, parent, sessionID, ids, timeout > 0, again.C, over.C)
		if !again {
			return out, err
		}
	}
}

// look returns what came of some children, and otherwise waits until that may have changed:
// again is true then.
func (s *Spawner) look(
	ctx context.Context, parent kv.Scope, sessionID string, ids []string, wait bool, tick, over <-chan time.Time,
) (out WaitOutcome, again bool, err error) {
	// Before reading, so that nothing is missed in between.
	w, err := s.await(parent)
	if err != nil {
		return WaitOutcome{}, false, err
	}
	defer s.leaveWait(parent, w)
	out, err = s.Outcome(ctx, parent, sessionID, ids)
	if err != nil || out.Complete || !wait {
		return out, false, err
	}
	select {
	case <-w.done:
	case <-tick:
	case <-over:
		out, err = s.Outcome(ctx, parent, sessionID, ids)
		return out, false, err
	case <-ctx.Done():
		return WaitOutcome{}, false, ctx.Err()
	}
	return WaitOutcome{}, true, nil
}

// waiters are the calls that wait for children of one parent.
type waiters struct {
	done  chan struct{} // closed when a child of the parent gets its result
	calls int           // guarded by the spawner's mu
}

// await joins waiters for children of a parent; leaveWait ends that.
func (s *Spawner) await(parent kv.Scope) (*waiters, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, kv.ErrClosed
	}
	w, ok := s.changed[parent]
	if !ok {
		w = &waiters{done: make(chan struct{})}
		s.changed[parent] = w
	}
	w.calls++
	return w, nil
}

func (s *Spawner) leaveWait(parent kv.Scope, w *waiters) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.calls--; w.calls == 0 && s.changed[parent] == w {
		delete(s.changed, parent)
	}
}

// Outcome is what came of some children up to now; see Wait.
func (s *Spawner) Outcome(ctx context.Context, parent kv.Scope, sessionID string, ids []string) (WaitOutcome, error) {
	out := WaitOutcome{Complete: true}
	var err error
	if len(ids) == 0 {
		out.Children, err = s.Store.List(ctx, parent)
		out.Children = slices.DeleteFunc(out.Children, func(c Child) bool { return sessionID != "" && c.ParentSession != sessionID })
	}
	for _, id := range ids {
		c, getErr := s.Store.Get(ctx, kv.AgentScope(parent.Tenant, id))
		if getErr == nil && c.Parent != parent.Owner {
			getErr = fmt.Errorf("%w: %q", ErrNotChild, id)
		}
		if getErr != nil {
			return WaitOutcome{}, getErr
		}
		if !slices.ContainsFunc(out.Children, func(other Child) bool { return other.ID == id }) {
			out.Children = append(out.Children, c)
		}
	}
	slices.SortFunc(out.Children, func(a, b Child) int { return int(int64(a.Number) - int64(b.Number)) }) //nolint:gosec // counters
	for i := range out.Children {
		out.Complete = out.Complete && out.Children[i].Result != nil
	}
	return out, err
}

// Pending are the ids of the children that have not returned.
func (o WaitOutcome) Pending() []string {
	var ids []string
	for i := range o.Children {
		if o.Children[i].Result == nil {
			ids = append(ids, o.Children[i].ID)
		}
	}
	return ids
}

// MaxOutcomeBytes bounds the text of an outcome: more than any window holds, and with room
// next to it in an answer.
const MaxOutcomeBytes = 1 << 20

// between stands between the paragraphs of an outcome.
const between = "\n\n"

// Text is what the children returned, for the prompt of their parent: a paragraph each, in
// the order in which they were spawned. Equal results stand once, with the names of all
// who gave them. Of children that have not returned it says nothing. It has at most
// MaxOutcomeBytes: long paragraphs are cut to the same length then, and name the step that
// has all of the result.
func (o WaitOutcome) Text() (all string, cut bool) {
	var paragraphs, steps []string
	for i := range o.Children {
		r := o.Children[i].Result
		switch {
		case r == nil:
			continue
		case !r.Success:
			paragraphs = append(paragraphs, fmt.Sprintf("[%s] ✗ %s", o.Children[i].ID, r.Error))
		case !slices.ContainsFunc(o.Children[:i], func(c Child) bool { return o.Children[i].same(&c) }):
			paragraphs = append(paragraphs, fmt.Sprintf("[%s] %s", strings.Join(o.who(i), ", "), r.Text))
		default:
			continue
		}
		steps = append(steps, step.ID(r.Step))
	}
	limit := share(paragraphs, MaxOutcomeBytes)
	for i, p := range paragraphs {
		if len(p) > limit {
			rest := fmt.Sprintf("\n[... the rest of %d bytes is cut; full text: %s]", len(p), steps[i])
			paragraphs[i], cut = text.Head(p, max(limit-len(rest), 0))+rest, true
		}
	}
	return strings.Join(paragraphs, between), cut
}

// share is how long a paragraph may be so that all of them fit a limit together: what short
// ones leave is for the others.
func share(paragraphs []string, limit int) int {
	lengths := make([]int, len(paragraphs))
	for i, p := range paragraphs {
		lengths[i] = len(p) + len(between)
	}
	slices.Sort(lengths)
	for i, n := range lengths {
		each := limit / (len(lengths) - i)
		if n > each {
			return each - len(between)
		}
		limit -= n
	}
	return math.MaxInt
}

// who are the ids of the children that gave the result of the i-th.
func (o WaitOutcome) who(i int) []string {
	var ids []string
	for k := range o.Children {
		if o.Children[i].same(&o.Children[k]) {
			ids = append(ids, o.Children[k].ID)
		}
	}
	return ids
}

func (c *Child) same(other *Child) bool {
	return other.Result != nil && other.Result.Success && other.Result.Text == c.Result.Text
}
