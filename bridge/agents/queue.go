package agents

import (
	"errors"
	"slices"
	"sync"
)

// Why a queue takes nothing.
var (
	errFull  = errors.New("agents: queue is full")
	errEnded = errors.New("agents: stream has ended")
)

// atHand is the room of a queue's channel. Few streams ever have more waiting,
// and each pays for the room whether it is used or not.
const atHand = 8

// queue is a bounded channel that takes memory for what is in it, not for what
// it could hold. Where the channel is full, a goroutine carries the rest over
// and ends with it.
type queue[T any] struct {
	out   chan T
	limit int // of the backlog

	mu       sync.Mutex // guards the fields below
	backlog  []T
	carrying bool
	ended    bool
	ending   chan struct{}
	held     []T // what the carrier had in hand at the end; read after carrier
	carrier  sync.WaitGroup
}

func newQueue[T any](limit int) *queue[T] {
	return &queue[T]{out: make(chan T, min(atHand, limit)), limit: max(0, limit-atHand), ending: make(chan struct{})}
}

// push adds an item without waiting; errFull or errEnded say why it can't.
func (q *queue[T]) push(item T) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return errEnded
	}
	if !q.carrying {
		select {
		case q.out <- item:
			return nil
		default:
		}
	}
	if len(q.backlog) >= q.limit {
		return errFull
	}
	q.backlog = append(q.backlog, item)
	if !q.carrying {
		q.carrying = true
		q.carrier.Go(q.carry)
	}
	return nil
}

func (q *queue[T]) carry() {
	for {
		item, ok := q.first()
		if !ok {
			return
		}
		select {
		case q.out <- item:
		case <-q.ending:
			q.held = append(q.held, item)
			return
		}
	}
}

// first takes the first item of the backlog; false when there is none.
func (q *queue[T]) first() (item T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.backlog) == 0 || q.ended {
		q.backlog, q.carrying = nil, false
		return item, false
	}
	item = q.backlog[0]
	q.backlog = slices.Delete(q.backlog, 0, 1)
	return item, true
}

// drop takes items out of the backlog. Those at hand stay.
func (q *queue[T]) drop(unwanted func(T) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.backlog = slices.DeleteFunc(q.backlog, unwanted)
}

// end takes out the remaining calls, in no order, and returns it. Nothing is
// put into the channel any more when it returns. Call it once.
func (q *queue[T]) end() (left []T) {
	q.mu.Lock()
	left = q.backlog
	q.ended, q.backlog = true, nil
	close(q.ending)
	q.mu.Unlock()
	q.carrier.Wait()
	left = append(left, q.held...)
	for {
		select {
		case item := <-q.out:
			left = append(left, item)
		default:
			return left
		}
	}
}
