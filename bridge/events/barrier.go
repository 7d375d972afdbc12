package events

import (
	"context"
	"sync"
)

// barrier lets somebody who changed what emitters look at wait until all who may
// have looked before are through. The zero value is ready.
type barrier struct {
	turns sync.Mutex // held while somebody waits

	mu      sync.Mutex // guards the fields below
	current int        // the group that emitters enter
	inside  [2]int
	empty   chan struct{} // closed when the other group is; nil without a waiter
}

// enter counts an emitter in and returns its group, for leave.
func (g *barrier) enter() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside[g.current]++
	return g.current
}

func (g *barrier) leave(group int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside[group]--; g.inside[group] == 0 && group != g.current && g.empty != nil {
		close(g.empty)
		g.empty = nil
	}
}

// wait returns when everybody has left who entered before the call, or when ctx
// ends.
func (g *barrier) wait(ctx context.Context) error {
	g.turns.Lock()
	defer g.turns.Unlock()
	for changed := false; !changed; {
		var empty <-chan struct{}
		empty, changed = g.turn()
		select {
		case <-empty:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// turn makes emitters enter the other group. It can't while some are still in
// there, left behind by a wait that was given up. Empty is closed when no one is
// left in the group that emitters do not enter.
func (g *barrier) turn() (empty chan struct{}, changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if changed = g.inside[1-g.current] == 0; changed {
		g.current = 1 - g.current
	}
	empty = make(chan struct{})
	if g.inside[1-g.current] == 0 {
		close(empty)
	} else {
		g.empty = empty
	}
	return empty, changed
}
