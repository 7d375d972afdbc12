package blob

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// useGrace is how long a use outlasts its context: the step that names the blob
// is recorded right after the call that read it has ended.
const useGrace = 2 * time.Second

// Use is Lookup for a caller that is about to refer to the blob: it is not
// collected before ctx has ended, and a moment longer. A ctx that never ends
// keeps nothing.
func (s *Store) Use(ctx context.Context, scope kv.Scope, name string) (Entry, error) {
	e, err := s.Lookup(ctx, scope, name)
	if err != nil || ctx.Done() == nil {
		return e, err
	}
	if !s.uses.hold(ctx, useKey{scope, e.Ref}) {
		return Entry{}, fmt.Errorf("%w: %.64q is being collected", ErrNotFound, name)
	}
	// It may have gone between the look and the hold.
	again, err := s.Lookup(ctx, scope, e.Path)
	if err == nil && again.Ref != e.Ref {
		err = errors.New("blob: the path has another blob now")
	}
	return again, err
}

type useKey struct {
	scope kv.Scope
	ref   string
}

// uses are the blobs that must stay although nobody refers to them yet, and
// those that are going.
type uses struct {
	mu     sync.Mutex     // guards the fields below
	held   map[useKey]int // how often each is held
	doomed map[useKey]bool
}

// hold keeps a blob until ctx has ended, unless it is going already.
func (u *uses) hold(ctx context.Context, key useKey) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.doomed[key] {
		return false
	}
	if u.held == nil {
		u.held = make(map[useKey]int)
	}
	u.held[key]++
	context.AfterFunc(ctx, func() { time.AfterFunc(useGrace, func() { u.release(key) }) })
	return true
}

func (u *uses) release(key useKey) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.held[key]--; u.held[key] <= 0 {
		delete(u.held, key)
	}
}

func (u *uses) holds(key useKey) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.held[key] > 0
}

// doom lets nobody hold the blob any more, unless somebody does; spare ends
// that.
func (u *uses) doom(key useKey) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.held[key] > 0 {
		return false
	}
	if u.doomed == nil {
		u.doomed = make(map[useKey]bool)
	}
	u.doomed[key] = true
	return true
}

func (u *uses) spare(key useKey) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.doomed, key)
}
