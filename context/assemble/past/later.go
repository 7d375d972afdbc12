package past

import (
	"context"
	"sync"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// What waits to be written.
const (
	// maxWaiting bounds the records of one agent that wait, and maxWaitingBytes the texts
	// of all that do. One more is written by who saves it.
	maxWaiting      = 16
	maxWaitingBytes = 64 << 20
)

// Later is a record that is made when it is written.
type Later struct {
	Prompt Kept
	// Messages returns the prompt's messages. It is called once, on another goroutine.
	Messages func() []Message
	// Bytes is about what the texts of the messages take.
	Bytes int

	session string
	written chan struct{}
}

// waiting are the records of all agents that are not written yet. The records of an agent
// are written in their order, by one goroutine.
type waiting struct {
	running sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	lines map[kv.Scope][]*Later
	bytes int
}

// SaveLater keeps a record as Save does, soon after it returns. Whoever writes to the
// session's log calls Settle first: so a record that the death of the process takes along
// is one that nothing was recorded after.
func (s *Store) SaveLater(ctx context.Context, scope kv.Scope, sessionID string, l *Later) {
	l.session, l.written = sessionID, make(chan struct{})
	w := &s.waiting
	w.mu.Lock()
	line, busy := w.lines[scope]
	if len(line) >= maxWaiting || w.bytes+l.Bytes > maxWaitingBytes {
		w.mu.Unlock()
		s.Settle(ctx, scope)
		_ = s.Save(ctx, scope, sessionID, l.Prompt, l.Messages()) // the prompt is none the worse
		return
	}
	w.lines[scope] = append(line, l)
	w.bytes += l.Bytes
	if !busy {
		w.running.Add(1)
	}
	w.mu.Unlock()
	if !busy {
		go s.write(scope)
	}
}

// write writes what waits of an agent until nothing does.
func (s *Store) write(scope kv.Scope) {
	w := &s.waiting
	defer w.running.Done()
	for {
		w.mu.Lock()
		line := w.lines[scope]
		if len(line) == 0 {
			delete(w.lines, scope)
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		l := line[0]
		_ = s.Save(context.Background(), scope, l.session, l.Prompt, l.Messages()) // the prompt is none the worse
		w.mu.Lock()
		w.lines[scope] = w.lines[scope][1:]
		w.bytes -= l.Bytes
		w.mu.Unlock()
		close(l.written)
	}
}

// Settle returns when the records of an agent that wait now are written, or ctx is done.
func (s *Store) Settle(ctx context.Context, scope kv.Scope) {
	w := &s.waiting
	w.mu.Lock()
	line := w.lines[scope]
	if len(line) == 0 {
		w.mu.Unlock()
		return
	}
	last := line[len(line)-1]
	w.mu.Unlock()
	select {
	case <-last.written:
	case <-ctx.Done():
	}
}

// Close waits until all records are written. Save nothing afterwards.
func (s *Store) Close() error {
	s.waiting.running.Wait()
	return nil
}
