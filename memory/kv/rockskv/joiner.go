//go:build cgo && !norocksdb

package rockskv

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Limits of one join.
const (
	// maxJoinBytes bounds the memory of a join; one commit may fill it alone.
	maxJoinBytes = kv.MaxBatchBytes
	// maxJoinCommits bounds how long the first of a join waits for the last.
	maxJoinCommits = 1024
	// guardBytes is what a guard counts for in maxJoinBytes: a key of the size
	// most have.
	guardBytes = 64
)

// joiner makes one write of the commits that wait. The first to come to an
// idle joiner leads: on its own goroutine it takes all that wait, itself
// first, writes them and answers them. Those who come meanwhile wait, and the
// first of them leads next. So a lone client pays for no hand-over, and no client
// ever waits for more company.
type joiner struct {
	writer *joinWriter

	mu      sync.Mutex
	waiting []*waiter // guarded by mu
	leading bool      // guarded by mu; there is a leader, or one was chosen

	commits, conflicts, joins atomic.Uint64
}

// waiter is one commit on its way.
type waiter struct {
	commit kv.Commit
	bytes  int
	err    error // set by the leader before it answers

	signal chan bool // gets one value: true to lead, false when answered
	lead   bool      // guarded by the joiner's mu; true was sent to signal
}

func newJoiner(db *DB) *joiner {
	return &joiner{writer: newJoinWriter(db)}
}

// commit returns when c is written or refused.
func (j *joiner) commit(ctx context.Context, c kv.Commit) error {
	w := &waiter{commit: c, bytes: joinBytes(c), signal: make(chan bool, 1)}
	if j.enqueue(w) {
		j.lead()
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
		j.lead()
	}
	return w.err
}

// joinBytes is what a commit adds to a join.
func joinBytes(c kv.Commit) int {
	size := len(c.Guards) * guardBytes
	for _, w := range c.Watched {
		size += len(w.Key) + len(w.Value)
	}
	if c.Batch != nil {
		size += c.Batch.Size() + c.Batch.Len()*recordBytes
	}
	return size
}

// enqueue reports whether w must lead; if so it is the only one waiting.
func (j *joiner) enqueue(w *waiter) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.waiting = append(j.waiting, w)
	first := !j.leading
	j.leading = true
	return first
}

// withdraw takes w out of the queue. It returns false when that is too late:
// a leader has taken w, or w leads itself.
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

// lead writes one join, whose first commit is the caller's own.
func (j *joiner) lead() {
	join := j.take()
	j.writer.write(join)
	j.count(join)
	// The next join may start at once; the answers run next to it.
	j.handOver()
	for _, w := range join[1:] {
		w.signal <- false
	}
}

// take removes the next join from the queue: as many as fit, at least one.
func (j *joiner) take() []*waiter {
	j.mu.Lock()
	defer j.mu.Unlock()
	n, size := 0, 0
	for _, w := range j.waiting {
		if size += w.bytes; n > 0 && (size > maxJoinBytes || n == maxJoinCommits) {
			break
		}
		n++
	}
	join := slices.Clone(j.waiting[:n])
	j.waiting = slices.Delete(j.waiting, 0, n)
	return join
}

// handOver makes the first that waits the leader, or goes idle.
func (j *joiner) handOver() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.waiting) == 0 {
		j.leading = false
		return
	}
	j.waiting[0].lead = true
	j.waiting[0].signal <- true
}

func (j *joiner) count(join []*waiter) {
	written := uint64(0)
	for _, w := range join {
		if w.err == nil {
			written++
		}
		if errors.Is(w.err, kv.ErrConflict) {
			j.conflicts.Add(1)
		}
	}
	j.commits.Add(written)
	if written > 0 {
		j.joins.Add(1)
	}
}
