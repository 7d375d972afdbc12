package events

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// DefaultMaxSubscriptions bounds the open subscriptions of a bus.
const DefaultMaxSubscriptions = 1024

// Options adjusts a Bus. Nil and zero fields mean the defaults.
type Options struct {
	// MaxSubscriptions bounds the open subscriptions; one more is a
	// *LimitError. Default DefaultMaxSubscriptions.
	MaxSubscriptions int
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Bus takes events in and hands them out. All methods are safe for concurrent
// use.
type Bus struct {
	engine           kv.Engine
	writer           *kv.Writer
	maxSubscriptions int
	now              func() time.Time

	ended    chan struct{} // closed by Close
	stop     context.CancelFunc
	watching sync.WaitGroup

	mu            sync.Mutex // guards the fields below and all topics
	closed        bool
	topics        map[kv.Scope]*topic
	subscriptions int
	handedBytes   int
}

// New returns a bus that keeps its events in engine and writes through writer.
// Both stay the caller's; close the bus before them.
func New(engine kv.Engine, writer *kv.Writer, opts *Options) *Bus {
	b := &Bus{
		engine:           engine,
		writer:           writer,
		maxSubscriptions: DefaultMaxSubscriptions,
		now:              time.Now,
		ended:            make(chan struct{}),
		topics:           make(map[kv.Scope]*topic),
	}
	if opts != nil && opts.MaxSubscriptions > 0 {
		b.maxSubscriptions = opts.MaxSubscriptions
	}
	if opts != nil && opts.Now != nil {
		b.now = opts.Now
	}
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	if n, ok := engine.(kv.Notifier); ok {
		b.watching.Go(func() { b.watch(ctx, n) })
	}
	return b
}

// watch follows what other processes write to the same store.
func (b *Bus) watch(ctx context.Context, n kv.Notifier) {
	for ref := range n.Moved(ctx) {
		if ref.Keyspace == kv.Events {
			b.moved(ref.Scope)
		}
	}
}

// Close ends all subscriptions with ErrClosed; later calls get it too. Events
// that are being emitted are still stored. Closing twice is harmless.
func (b *Bus) Close() error {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.ended)
	}
	b.mu.Unlock()
	b.stop()
	b.watching.Wait()
	return nil
}

func (b *Bus) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// EmitOptions says how an event is emitted. The zero value emits a durable
// event.
type EmitOptions struct {
	// Volatile hands the event to those who listen now and stores nothing.
	Volatile bool
	// RequestID makes a durable emit safe to repeat: the same id with the same
	// event gets the first answer, with another event it is
	// kv.ErrRequestReused. At most kv.MaxRequestIDBytes. A volatile emit
	// ignores it.
	RequestID string
	// AllowReserved lets the event pass on a topic that belongs to the bridge.
	AllowReserved bool
}

// Emit takes one event and returns it with its id, time and sequence. A
// durable event is synced when Emit returns; a volatile one is queued for
// those who listen. ErrInvalid and ErrReservedTopic refuse the event. With
// kv.ErrUnknownOutcome the event may or may not be stored: repeat it under the
// same request id. The payload and headers stay the caller's.
func (b *Bus) Emit(ctx context.Context, tenant string, e Event, opts EmitOptions) (Event, error) {
	if b.isClosed() {
		return Event{}, ErrClosed
	}
	ref := topicRef(tenant, e.Topic)
	if err := admit(ref, e, opts); err != nil {
		return Event{}, err
	}
	if e.PayloadKind == JSON && len(e.Payload) == 0 {
		e.Payload = []byte(nullPayload)
	}
	e.Sequence, e.Time = 0, time.Time{}
	if opts.Volatile {
		e = b.named(e)
		b.handOutVolatile(ref.Scope, e)
		return e, nil
	}
	stored, fresh, err := b.store(ctx, ref, e, opts.RequestID)
	switch {
	case errors.Is(err, kv.ErrUnknownOutcome):
		b.moved(ref.Scope)
		return Event{}, err
	case err != nil:
		return Event{}, err
	case fresh:
		b.handOut(ref.Scope, stored)
	}
	return stored, nil
}

// admit refuses what may not be emitted.
func admit(ref kv.Ref, e Event, opts EmitOptions) error {
	if err := e.check(); err != nil {
		return err
	}
	if reserved(e.Topic) && !opts.AllowReserved {
		return &ReservedTopicError{Topic: e.Topic}
	}
	return checkTenant(ref.Scope)
}

func checkTenant(scope kv.Scope) error {
	if err := scope.Validate(); err != nil {
		return &InvalidError{Field: "tenant", Reason: "is refused: " + err.Error()}
	}
	return nil
}

// named gives the event its time, and an id if it has none.
func (b *Bus) named(e Event) Event {
	now := b.now().UTC()
	e.Time = now.Truncate(time.Microsecond)
	if e.ID == "" {
		e.ID = ulid.MustNew(ulid.Timestamp(now), rand.Reader).String()
	}
	return e
}

// store commits the event behind the last one of its topic. Fresh is false
// when the request was answered before.
func (b *Bus) store(ctx context.Context, ref kv.Ref, e Event, requestID string) (stored Event, fresh bool, err error) {
	digest := sha256.Sum256(encodeEvent(e, true))
	e = b.named(e)
	stage := func(ctx context.Context, tx *kv.Tx) error {
		stored, fresh = e, true
		answer, replayed, err := kv.LookupOnce(ctx, tx, ref, requestID, digest)
		if err != nil {
			return err
		}
		if replayed {
			fresh = false
			return decodeAnswer(answer, &stored)
		}
		last, err := lastSequence(ctx, tx, ref.Scope)
		if err != nil {
			return err
		}
		stored.Sequence = last + 1
		stageEvent(tx, ref.Scope, stored)
		kv.StageOnce(tx, ref, requestID, digest, encodeAnswer(stored), stored.Time)
		return nil
	}
	if err := b.writer.Do(ctx, kv.Request{Refs: []kv.Ref{ref}, Stage: stage}); err != nil {
		return Event{}, false, fmt.Errorf("events: emit on %q: %w", e.Topic, err)
	}
	return stored, fresh, nil
}

// getter is what lastSequence needs of a transaction or an engine.
type getter interface {
	Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error)
}

// lastSequence returns the sequence of the topic's last event; 0 for none.
func lastSequence(ctx context.Context, from getter, scope kv.Scope) (uint64, error) {
	values, err := from.Get(ctx, kv.Events, topicKey(scope))
	if err != nil {
		return 0, err
	}
	return decodeTopic(values[0])
}
