package auth

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"
)

// grant is what one credential gives: an identity, for as long as it counts.
type grant struct {
	Identity
	expires time.Time // zero for never
	*lifetime
}

// lifetime ends the streams of a credential together with it. It outlives a
// reading of the file in which the credential stays.
type lifetime struct {
	over context.Context // done when the credential stops to count; its cause says why
	stop context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer // guarded by mu; nil without an expiry
}

// begin gives a lifetime to each grant that has none, and to all their expiries.
func (c *callers) begin() {
	for g := range c.all() {
		if g.lifetime == nil {
			over, stop := context.WithCancelCause(context.Background())
			g.lifetime = &lifetime{over: over, stop: stop}
		}
		g.endAt(g.expires)
	}
}

// takeOver lets credentials live on that were there before, and give as much.
func (c *callers) takeOver(before *callers) {
	for hash, g := range c.tokens {
		g.takeOver(before.tokens[hash])
	}
	for subject, g := range c.subjects {
		g.takeOver(before.subjects[subject])
	}
}

func (g *grant) takeOver(before *grant) {
	if before != nil && before.tenant == g.tenant && before.over.Err() == nil && g.covers(before.Identity) {
		g.lifetime = before.lifetime
	}
}

// covers reports whether every pattern of another identity stands here, too: of whom it may
// act for, of whose calls it may approve, and of whose memories it has access to; and whether
// it runs the server, if that does.
func (i Identity) covers(other Identity) bool {
	missing := func(here []string) func(string) bool {
		return func(p string) bool { return !slices.Contains(here, p) }
	}
	for level, patterns := range other.users {
		if slices.ContainsFunc(patterns, missing(i.users[level])) {
			return false
		}
	}
	if len(other.users) == 0 && len(i.users) > 0 {
		return false // agents = ["*"] gave it everybody
	}
	return (i.operates || !other.operates) && !slices.ContainsFunc(other.patterns, missing(i.patterns)) && !slices.ContainsFunc(other.approves, missing(i.approves))
}

func (c *callers) all() iter.Seq[*grant] {
	return func(yield func(*grant) bool) {
		for _, g := range c.tokens {
			if !yield(g) {
				return
			}
		}
		for _, g := range c.subjects {
			if !yield(g) {
				return
			}
		}
	}
}

// endAt ends the lifetime at a time; zero is never.
func (l *lifetime) endAt(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if !at.IsZero() {
		l.timer = time.AfterFunc(time.Until(at), func() { l.stop(expired(at)) })
	}
}

func expired(at time.Time) error {
	return fmt.Errorf("%w: the credential expired at %s", ErrUnauthenticated, at.UTC().Format(time.RFC3339))
}

// identity returns who has the credential and when that is over, unless the
// credential counts no more.
func (g *grant) identity() (Identity, context.Context, error) {
	// The timer may be late, such as after the machine has slept.
	if !g.expires.IsZero() && !time.Now().Before(g.expires) {
		return Identity{}, nil, expired(g.expires)
	}
	if err := context.Cause(g.over); err != nil {
		return Identity{}, nil, err
	}
	return g.Identity, g.over, nil
}
