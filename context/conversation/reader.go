package conversation

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// tasksAtOnce is how many tasks are read at a time; each may take 128 KiB.
const tasksAtOnce = 32

// Reader reads conversations of all agents. Its methods are safe for concurrent
// use.
type Reader struct{ log *session.Log }

// New returns a reader of a log.
func New(log *session.Log) *Reader { return &Reader{log} }

// Entry is a message, a step or a task: exactly one of the three is set. It belongs
// to the receiver.
type Entry struct {
	session.Entry
	// Task is a unit of work; Position is that of the entry before it then, 0 for
	// none, and Time is when it was taken up.
	Task *session.Task
	// Batch is the batch of folds by which prompts show it, 0 where they show it in
	// full.
	Batch uint64
	// Place is where a reading goes on behind it.
	Place Cursor
}

// Cursor is a place in a reading: the last entry and the last task that it has met.
// The zero Place is before all of it.
type Cursor struct{ Position, Task uint64 }

// Sessions yields a summary of each session of the scope that has an entry or a
// task and comes behind an id, in byte order of the ids; closed ones only if closed is set.
// An empty id comes before all. An error comes last, with a zero Summary.
func (r *Reader) Sessions(ctx context.Context, scope kv.Scope, after string, closed bool) iter.Seq2[session.Summary, error] {
	return func(yield func(session.Summary, error) bool) {
		if err := scope.Validate(); err != nil {
			yield(session.Summary{}, err)
			return
		}
		for id, err := range union(r.log.Sessions(ctx, scope, after), r.log.TaskSessions(ctx, scope, after)) {
			sum := session.Summary{}
			if err == nil {
				sum, err = r.log.Summary(ctx, scope, id)
			}
			if err == nil && sum.Closed && !closed {
				continue
			}
			if !yield(sum, err) || err != nil {
				return
			}
		}
	}
}

// union yields the ids of two ascending sequences in order, each once.
func union(one, other iter.Seq2[string, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		a, b := newPeek(one), newPeek(other)
		defer a.stop()
		defer b.stop()
		for a.ok || b.ok {
			from := a
			if !a.ok || b.ok && b.value < a.value {
				from = b
			}
			id, err := from.value, from.err
			if !yield(id, err) || err != nil {
				return
			}
			for _, p := range []*peek[string]{a, b} {
				if p.ok && p.err == nil && p.value == id {
					p.next()
				}
			}
		}
	}
}

// Items yields what is in a session behind a place, oldest first, or newest first.
// An error comes last, with a zero Item.
func (r *Reader) Items(ctx context.Context, scope kv.Scope, sessionID string, newestFirst bool, from Cursor) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		folds, err := r.log.Folds(ctx, scope, sessionID)
		if err == nil && newestFirst && from == (Cursor{}) {
			from, err = r.end(ctx, scope, sessionID)
		}
		if err != nil {
			yield(Entry{}, err)
			return
		}
		entries, tasks := newPeek(r.entries(ctx, scope, sessionID, newestFirst, from)), newPeek(r.tasks(ctx, scope, sessionID, newestFirst, from))
		defer entries.stop()
		defer tasks.stop()
		batches := batchesOf(folds.Live)
		for place := from; entries.ok || tasks.ok; {
			if err := cmp.Or(entries.err, tasks.err); err != nil {
				yield(Entry{}, fmt.Errorf("conversation: %w", err))
				return
			}
			var item Entry
			if taskNext(entries, tasks, newestFirst) {
				task := tasks.next()
				place.Task = task.Number
				item = Entry{Entry: session.Entry{Position: task.After, Time: task.CreateTime}, Task: &task}
			} else {
				item.Entry = entries.next()
				place.Position, item.Batch = item.Position, batches[item.Position]
			}
			if item.Place = place; !yield(item, nil) {
				return
			}
		}
	}
}

// end returns the place behind the whole session: later additions do not appear in a
// reading from there.
func (r *Reader) end(ctx context.Context, scope kv.Scope, sessionID string) (Cursor, error) {
	sum, err := r.log.Summary(ctx, scope, sessionID)
	if err != nil {
		return Cursor{}, err
	}
	tally, err := r.log.Tally(ctx, scope, sessionID)
	return Cursor{Position: sum.Last + 1, Task: tally.Last + 1}, err
}

// taskNext reports whether a task comes next, and not an entry.
func taskNext(entries *peek[session.Entry], tasks *peek[session.Task], newestFirst bool) bool {
	switch {
	case !tasks.ok || !entries.ok:
		return tasks.ok
	case newestFirst:
		return tasks.value.After >= entries.value.Position
	}
	return tasks.value.After < entries.value.Position
}

func (r *Reader) entries(ctx context.Context, scope kv.Scope, sessionID string, newestFirst bool, from Cursor) iter.Seq2[session.Entry, error] {
	if !newestFirst {
		return r.log.Range(ctx, scope, sessionID, from.Position+1, math.MaxUint64)
	}
	return r.log.Before(ctx, scope, sessionID, from.Position)
}

// tasks yields the tasks behind a place.
func (r *Reader) tasks(ctx context.Context, scope kv.Scope, sessionID string, newestFirst bool, from Cursor) iter.Seq2[session.Task, error] {
	read := r.log.TasksAfter
	if newestFirst {
		read = r.log.TasksBefore
	}
	return func(yield func(session.Task, error) bool) {
		for number := from.Task; ; {
			some, err := read(ctx, scope, sessionID, number, tasksAtOnce)
			if err != nil {
				yield(session.Task{}, err)
				return
			}
			for _, task := range some {
				if number = task.Number; !yield(task, nil) {
					return
				}
			}
			if len(some) < tasksAtOnce {
				return
			}
		}
	}
}

// batchesOf says of each folded position which batch folded it.
func batchesOf(folds []history.Fold) map[uint64]uint64 {
	batches := make(map[uint64]uint64)
	for i := range folds {
		for _, s := range folds[i].Spans {
			for p := s.First; p <= s.Last; p++ {
				batches[p] = folds[i].Batch
			}
		}
	}
	return batches
}
