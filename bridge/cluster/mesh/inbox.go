package mesh

import (
	"context"
	"sync"
)

// inbox holds messages until they are handled, one after another.
type inbox struct {
	most, mostBytes int
	handle          func(from Peer, payload []byte)
	ready           chan struct{} // holds a token while something waits

	mu      sync.Mutex // guards the fields below
	waiting []delivery
	bytes   int
}

type delivery struct {
	from    Peer
	payload []byte
}

func newInbox(most, mostBytes int, handle func(from Peer, payload []byte)) *inbox {
	return &inbox{most: most, mostBytes: mostBytes, handle: handle, ready: make(chan struct{}, 1)}
}

// put queues a message; false when there is no room for it.
func (in *inbox) put(from Peer, payload []byte) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.waiting) >= in.most || len(in.waiting) > 0 && in.bytes+len(payload) > in.mostBytes {
		return false
	}
	in.waiting = append(in.waiting, delivery{from, payload})
	in.bytes += len(payload)
	select {
	case in.ready <- struct{}{}:
	default:
	}
	return true
}

func (in *inbox) takeAll() []delivery {
	in.mu.Lock()
	defer in.mu.Unlock()
	all := in.waiting
	in.waiting = nil
	return all
}

// run handles what comes until ctx ends.
func (in *inbox) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-in.ready:
		}
		for _, d := range in.takeAll() {
			if ctx.Err() != nil {
				return
			}
			in.handle(d.from, d.payload)
			in.mu.Lock()
			in.bytes -= len(d.payload)
			in.mu.Unlock()
		}
	}
}
