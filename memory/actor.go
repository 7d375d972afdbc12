package memory

import (
	"context"
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/record"
)

// ErrNotOwned: the record was saved by an agent that the caller may not act for. It
// comes as an *OwnedError.
var ErrNotOwned = errors.New("memory: record of another agent")

// OwnedError names a record and the agent that saved it. It is an ErrNotOwned.
type OwnedError struct{ ID, Agent string }

func (e *OwnedError) Error() string {
	return fmt.Sprintf("memory: record %q was saved by agent %q, which the caller may not act for", e.ID, e.Agent)
}

// Is makes errors.Is(err, ErrNotOwned) true.
func (e *OwnedError) Is(target error) bool { return target == ErrNotOwned }

// Actor is an agent that works in a memory which several agents share. What it saves
// is its own, and so are its request ids.
type Actor struct {
	// Agent is its id.
	Agent string
	// Acts tells which other agents' records it may change, supersede and delete.
	// Nil: those of all.
	Acts func(agent string) bool
}

type actorKey struct{}

// As returns a context in which a Store works for an actor. Without one the memory
// has one owner, to whom everything in it belongs.
func As(ctx context.Context, a Actor) context.Context { return context.WithValue(ctx, actorKey{}, a) }

func actorOf(ctx context.Context) Actor {
	a, _ := ctx.Value(actorKey{}).(Actor)
	return a
}

// may returns an *OwnedError if the actor may not change a record.
func (a Actor) may(r *record.Record) error {
	if r.SavedBy == "" || r.SavedBy == a.Agent || a.Acts == nil || a.Acts(r.SavedBy) {
		return nil
	}
	return &OwnedError{ID: r.ID, Agent: r.SavedBy}
}
