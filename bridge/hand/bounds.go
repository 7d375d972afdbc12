package hand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Bounds limit an agent, in addition to the profiles of its calls. The zero Bounds sets no
// limit.
type Bounds struct {
	// Steps is how many steps it may have, and StepTokens how long the text of one may be
	// in prompts; what is longer is cut there, and kept. 0 is no bound.
	Steps, StepTokens int
	// Files and Bytes are how many files, and how much in them, its workspace may hold. 0
	// is no bound.
	Files int
	Bytes int64
	// Tools are the tools that it may call; nil for all.
	Tools []string
	// Ended says why it may do nothing any more; nil while it may.
	Ended error
}

// stepCounts let no agent have more steps than it may, however many calls it makes at
// once. The zero value is ready.
type stepCounts struct {
	mu     sync.Mutex
	agents map[kv.Scope]*stepCount // those with calls under way; guarded by mu
}

// stepCount counts the steps of one agent: recorded ones, and steps that running calls may
// still record.
type stepCount struct {
	calls int // under way; guarded by the mu of the counts

	mu    sync.Mutex // held while the steps are read; only calls of the agent wait
	known bool       // guarded by mu
	taken int        // guarded by mu
}

// take takes a step for a call, out of limit; last says how many steps there are.
func (c *stepCounts) take(scope kv.Scope, limit int, last func() (uint64, error)) error {
	count := c.enter(scope)
	err := count.take(limit, last)
	if err != nil {
		c.leave(scope)
	}
	return err
}

func (c *stepCount) take(limit int, last func() (uint64, error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		n, err := last()
		if err != nil {
			return err
		}
		c.known, c.taken = true, int(min(n, uint64(limit))) //nolint:gosec // it is bounded
	}
	if c.taken >= limit {
		return &tools.AgentLimitError{Limit: tools.LimitSteps, Max: int64(limit)}
	}
	c.taken++
	return nil
}

// done ends what take began; recorded says whether there is a step.
func (c *stepCounts) done(scope kv.Scope, recorded bool) {
	if !recorded {
		c.mu.Lock()
		count := c.agents[scope]
		c.mu.Unlock()
		count.mu.Lock()
		count.taken--
		count.mu.Unlock()
	}
	c.leave(scope)
}

// enter counts a call of an agent.
func (c *stepCounts) enter(scope kv.Scope) *stepCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := c.agents[scope]
	if count == nil {
		if c.agents == nil {
			c.agents = map[kv.Scope]*stepCount{}
		}
		count = &stepCount{}
		c.agents[scope] = count
	}
	count.calls++
	return count
}

// leave forgets an agent with its last call.
func (c *stepCounts) leave(scope kv.Scope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := c.agents[scope]
	if count.calls--; count.calls == 0 {
		delete(c.agents, scope)
	}
}

// bound finds the bounds of a call's agent, and takes a step out of them. The caller calls
// free when the call has ended; it does nothing where there are none.
func (h *Hand) bound(ctx context.Context, c *call) (free func(recorded bool), err error) {
	free = func(bool) {}
	if c.exempt {
		return free, nil
	}
	if c.bounds, err = h.Bounds(ctx, c.Scope); err != nil {
		return nil, fmt.Errorf("hand: bounds of %s: %w", c.Scope, err)
	}
	if c.bounds.Ended != nil {
		return nil, c.bounds.Ended
	}
	if c.bounds.Steps <= 0 {
		return free, nil
	}
	err = h.steps.take(c.Scope, c.bounds.Steps, func() (uint64, error) { return h.Log.LastStep(ctx, c.Scope) })
	if err != nil {
		return nil, fmt.Errorf("hand: %w", err)
	}
	return func(recorded bool) { h.steps.done(c.Scope, recorded) }, nil
}

// forbidden says that the agent was not given the tool; nil when it may call it.
func (c *call) forbidden() *tools.Error {
	if c.bounds.Tools == nil || slices.Contains(c.bounds.Tools, c.name()) {
		return nil
	}
	return tools.Errorf(tools.PermissionDenied, "Permission denied: the agent was not given the tool %s", c.name())
}

// maxMeasured bounds the entries of a workspace that are looked at, to say what is in it.
const maxMeasured = 100_000

// errMeasured ends the measuring of a workspace.
var errMeasured = errors.New("hand: measured enough")

// room is what a call may still put into its workspace; nil for any amount.
func (c *call) room(root *os.Root) *tools.Room {
	b := c.bounds
	if b.Files <= 0 && b.Bytes <= 0 || !c.tool.Descriptor().Mutates {
		return nil
	}
	files, size, seen := 0, int64(0), 0
	err := fs.WalkDir(root.FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		if seen++; seen > maxMeasured {
			return errMeasured
		}
		if err != nil || d.IsDir() {
			return nil // what can't be read counts as nothing
		}
		files++
		if info, err := d.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	room := &tools.Room{Files: -1, Bytes: -1, MaxFiles: b.Files, MaxBytes: b.Bytes}
	if b.Files > 0 {
		room.Files = max(b.Files-files, 0)
	}
	if b.Bytes > 0 {
		room.Bytes = max(b.Bytes-size, 0)
	}
	if err != nil {
		room.Files, room.Bytes = 0, 0
	}
	return room
}

// observed is how much the observations of the call's session say. It is read once.
func (h *Hand) observed(ctx context.Context, c *call) step.ObservationStyle {
	if c.observed == nil {
		style := h.Observed(ctx, c.Scope, c.SessionID)
		c.observed = &style
	}
	return *c.observed
}

// fitted is what a call is reduced to, its inline text within the bound of the agent.
func (h *Hand) fitted(ctx context.Context, c *call, what step.Call) step.Reduced {
	reducer := h.Reducer.In(h.observed(ctx, c))
	reduced := reducer.Reduce(what)
	limit := c.bounds.StepTokens
	for bytes := len(reduced.Inline); limit > 0 && bytes > 0; {
		n := h.Count(reduced.Inline)
		if n <= limit {
			break
		}
		// In proportion, and a little less, so that few rounds are needed.
		const slack = 0.95
		bytes = min(int(float64(bytes)*float64(limit)/float64(n)*slack), bytes-1)
		reduced = reducer.WithInline(bytes).Reduce(what)
	}
	return reduced
}
