package kv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// settleAttempts bounds how often Settle asks an engine that gives no clear answer.
const settleAttempts = 5

// Settle finds out the outcome of a commit that ended with ErrUnknownOutcome, and
// makes it if it has not happened. It returns what Commit should have: nil when the
// commit is written, once; an ErrConflict when it never will be; and an
// ErrUnknownOutcome with the cause where that is unknown: the store takes no
// commits any more, or others have raised the sequences of all exact guards since, or
// there are none, or the commit has no token.
func Settle(ctx context.Context, engine Engine, c Commit) error {
	var err error
	for attempt := range settleAttempts {
		if attempt > 0 && !Sleep(ctx, pause(attempt)) {
			break
		}
		var happened, refused bool
		if happened, refused, err = outcome(ctx, engine, c); err != nil {
			continue
		}
		if happened {
			return nil
		}
		if refused {
			return fmt.Errorf("%w: another commit came first", ErrConflict)
		}
		// Nobody has raised the sequences. The commit may still be on its way, so it is
		// made again under the same guards: at most one of the two is written.
		err = engine.Commit(ctx, c)
		if err == nil {
			return nil
		}
		if conflict, ok := errors.AsType[*ConflictError](err); ok && conflict.Key != "" {
			err = errWatched
		}
		// After a conflict the sequences have moved, by the commit or by another one.
		if !errors.Is(err, ErrConflict) && !errors.Is(err, ErrUnknownOutcome) {
			break
		}
	}
	return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
}

// Why the outcome of a commit is unknown.
var (
	errOvertaken = errors.New("later commits hide it")
	errWatched   = errors.New("it can't be made again, a watched key has changed")
	errUnmarked  = errors.New("it has no token and exact guard to be known by")
)

// outcome reports whether a commit is written or can't be any more; neither if no guard
// has moved. An error says why it is unknown.
func outcome(ctx context.Context, engine Engine, c Commit) (happened, refused bool, err error) {
	guards := slices.DeleteFunc(slices.Clone(c.Guards), func(g Guard) bool { return g.Any })
	if len(guards) == 0 || c.Token == 0 {
		return false, false, errUnmarked
	}
	refs := make([]Ref, len(guards))
	for i, g := range guards {
		refs[i] = g.Ref
	}
	last, err := engine.LastCommits(ctx, refs...)
	if err != nil {
		return false, false, err
	}
	moved := false
	for i, g := range guards {
		switch next := g.Sequence + 1; {
		case last[i].Sequence == g.Sequence:
		case last[i].Sequence == next && last[i].Token == c.Token:
			return true, false, nil
		case last[i].Sequence == next:
			refused = true
		default:
			moved = true
		}
	}
	if moved && !refused {
		return false, false, errOvertaken
	}
	return false, refused, nil
}

// Bounds of the pause before a commit that others keep coming before, or that no server
// answers, is tried again.
const (
	// patience is how many conflicts in a row are usual among a few writers.
	patience = 3
	// minPause is about as long as a commit takes, maxPause what a caller does not
	// notice yet.
	minPause = time.Millisecond
	maxPause = 50 * time.Millisecond
)

// pause is how long to wait before the next try, after n in vain: a random time, so
// that waiters do not meet again, up to a bound that doubles.
func pause(n int) time.Duration {
	return rand.N(min(maxPause, minPause<<min(n, 16))) + 1
}

// Sleep reports whether the time passed before ctx ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
