package pgkv

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Limits of one join.
const (
	// maxJoinBytes bounds the memory of a join; one commit may fill it alone.
	maxJoinBytes = kv.MaxBatchBytes
	// maxJoinCommits bounds how long the first of a join waits for the last.
	maxJoinCommits = 64
	// commitAttempts bounds how often a join that wrote nothing is tried.
	commitAttempts = 8
)

// joiner makes one transaction of the commits that wait, on several lanes. The first to
// come to a free lane leads it: on its own goroutine it takes all that wait and can go
// together, itself first, writes them and answers them. Those who come meanwhile wait,
// and the first of them leads next. So a lone client pays for no hand-over.
type joiner struct {
	db    *DB
	lanes int

	mu      sync.Mutex
	waiting []*waiter           // guarded by mu
	leading int                 // guarded by mu; lanes that are led, or will be
	busy    map[kv.Ref]struct{} // guarded by mu; exact guards that are on their way
}

// waiter is one commit on its way.
type waiter struct {
	commit kv.Commit
	bytes  int
	err    error // set by the leader before it answers

	signal chan bool // gets one value: true to lead, false when answered
	lead   bool      // guarded by the joiner's mu; true was sent to signal
}

func newJoiner(db *DB, lanes int) *joiner {
	return &joiner{db: db, lanes: lanes, busy: make(map[kv.Ref]struct{})}
}

// commit returns when c is written or refused.
func (j *joiner) commit(ctx context.Context, c kv.Commit) error {
	w := &waiter{commit: c, signal: make(chan bool, 1)}
	if c.Batch != nil {
		w.bytes = c.Batch.Size()
	}
	if join := j.enqueue(w); join != nil {
		j.write(join, w)
		return w.err
	}
	select {
	case lead := <-w.signal:
		return j.proceed(w, lead)
	case <-ctx.Done():
		if j.withdraw(w) {
			return ctx.Err()
		}
		return j.proceed(w, <-w.signal)
	}
}

func (j *joiner) proceed(w *waiter, lead bool) error {
	if lead {
		j.mu.Lock()
		join := j.take(w)
		j.mu.Unlock()
		j.write(join, w)
	}
	return w.err
}

// enqueue returns the join that w must lead, or nil where it has to wait.
func (j *joiner) enqueue(w *waiter) []*waiter {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.waiting = append(j.waiting, w)
	if j.leading == j.lanes || j.blocked(w) {
		return nil
	}
	j.leading++
	return j.take(w)
}

// blocked reports whether an exact guard of w is on its way in another lane. There it
// would wait with a connection in hand. The caller holds mu.
func (j *joiner) blocked(w *waiter) bool {
	for _, g := range w.commit.Guards {
		if _, on := j.busy[g.Ref]; on && !g.Any {
			return true
		}
	}
	return false
}

// take takes the leader and all that can go with it out of the queue. The caller holds
// mu.
func (j *joiner) take(leader *waiter) []*waiter {
	if alone(leader) {
		j.waiting = slices.DeleteFunc(j.waiting, func(w *waiter) bool { return w == leader })
		j.occupy(leader)
		return []*waiter{leader}
	}
	join, keys, bytes := []*waiter{leader}, newKeySet(), leader.bytes
	keys.add(leader.commit)
	j.occupy(leader)
	j.waiting = slices.DeleteFunc(j.waiting, func(w *waiter) bool {
		switch {
		case w == leader:
			return true
		case w.lead || len(join) == maxJoinCommits || bytes+w.bytes > maxJoinBytes || alone(w),
			j.blocked(w) || keys.meets(w.commit):
			return false
		}
		keys.add(w.commit)
		bytes += w.bytes
		j.occupy(w)
		join = append(join, w)
		return true
	})
	return join
}

// alone reports whether the failure of a commit would be that of all it goes with, or its
// fence is not theirs.
func alone(w *waiter) bool { return len(w.commit.Watched) > 0 || w.commit.Unfenced }

func (j *joiner) occupy(w *waiter) {
	for _, g := range w.commit.Guards {
		if !g.Any {
			j.busy[g.Ref] = struct{}{}
		}
	}
}

// keySet are the keys that a join writes.
type keySet map[kv.Keyspace]map[string]struct{}

func newKeySet() keySet { return make(keySet) }

func (s keySet) add(c kv.Commit) {
	if c.Batch == nil {
		return
	}
	for _, op := range c.Batch.Ops() {
		if s[op.Keyspace] == nil {
			s[op.Keyspace] = make(map[string]struct{})
		}
		s[op.Keyspace][string(op.Key)] = struct{}{}
	}
}

func (s keySet) meets(c kv.Commit) bool {
	if c.Batch == nil {
		return false
	}
	for _, op := range c.Batch.Ops() {
		if _, ok := s[op.Keyspace][string(op.Key)]; ok {
			return true
		}
	}
	return false
}

// withdraw takes w out of the queue. It returns false when that is too late.
func (j *joiner) withdraw(w *waiter) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	at := slices.Index(j.waiting, w)
	if at < 0 || w.lead {
		return false
	}
	j.waiting = slices.Delete(j.waiting, at, at+1)
	return true
}

// write writes a join, answers it, and hands the lane over.
func (j *joiner) write(join []*waiter, leader *waiter) {
	j.attempt(join)
	j.mu.Lock()
	for _, w := range join {
		for _, g := range w.commit.Guards {
			if !g.Any {
				delete(j.busy, g.Ref)
			}
		}
	}
	j.handOver()
	j.mu.Unlock()
	for _, w := range join {
		if w != leader {
			w.signal <- false
		}
	}
}

// handOver lets waiting commits that can go lead, as long as there are lanes. The
// caller holds mu.
func (j *joiner) handOver() {
	j.leading--
	for _, w := range j.waiting {
		if j.leading == j.lanes {
			return
		}
		if w.lead || j.blocked(w) {
			continue
		}
		w.lead = true
		j.leading++
		w.signal <- true
		return
	}
}

// attempt gives every waiter of a join its answer in err.
func (j *joiner) attempt(join []*waiter) {
	for n := range commitAttempts {
		if n > 0 {
			time.Sleep(time.Duration(rand.Int64N(int64(time.Millisecond) << n)))
		}
		from := time.Now()
		err := j.db.writeJoin(join)
		if err == nil {
			j.db.counts.note(join, refused, nil, time.Since(from))
			j.db.health.Recover()
			return
		}
		what, kind := writing(err)
		j.db.counts.note(join, what, err, time.Since(from))
		if what == again && n+1 < commitAttempts && !errors.Is(kind, kv.ErrUnreachable) {
			continue
		}
		for _, w := range join {
			w.err = kind
		}
		j.db.noteFailure(kind)
		return
	}
}
