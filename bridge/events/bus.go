package events

import (
	"context"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
)

const (
	// DefaultMaxSubscriptions bounds the open subscriptions of a bus.
	DefaultMaxSubscriptions = 8192
	// DefaultMaxQueuedBytes bounds the volatile events that wait for readers.
	DefaultMaxQueuedBytes = 256 << 20
	// DefaultMaxEmitWait is how long emitters wait for a full subscription.
	DefaultMaxEmitWait = 5 * time.Second
)

// Options adjusts a Bus. Nil and zero fields mean the defaults.
type Options struct {
	// MaxSubscriptions bounds the open subscriptions; one more is a
	// *share.LimitError. Default DefaultMaxSubscriptions.
	MaxSubscriptions int
	// MaxEmitWait bounds how long emitters wait for room in a subscription that
	// wants them to (SubscribeOptions.Wait), in sum since nothing waited for it.
	// Default DefaultMaxEmitWait.
	MaxEmitWait time.Duration
	// MaxQueuedBytes bounds the volatile events that wait for the readers of all
	// tenants, each counted once, and 64 bytes for each that it waits for. Tenants
	// share it. Where a tenant's share is used up, the subscription that has most
	// waiting ends with ErrSlowSubscriber. Default DefaultMaxQueuedBytes.
	MaxQueuedBytes int64
	// OneTenant keeps nothing of it for other tenants: there are none.
	OneTenant bool
	// Retention says how long durable events are kept.
	Retention Retention
	// Admit is asked about each event that was found valid, on its emitter's
	// goroutine and before anything of it is stored. It may refuse the event with
	// any error, and make it volatile. Default nil: all pass.
	Admit func(ctx context.Context, tenant string, e *Event, opts *EmitOptions) error
	// Rate divides the bytes of events that are emitted and delivered among the
	// tenants that are there. Emitters and readers of a tenant over its share wait. Default
	// nil: no limit.
	Rate *share.Rate
	// Quota knows which tenants store too much; their durable events are refused.
	// Default nil: none.
	Quota *share.Quota
	// Elsewhere takes what other bridges on the store should hear. Default nil: there are
	// none.
	Elsewhere Elsewhere
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger takes what goes wrong in the background. Default: silence.
	Logger *slog.Logger
}

// tenantIndex finds the selections of one tenant.
type tenantIndex struct {
	*pattern.Index[*selection]
	users  int          // the tenant's subscriptions; guarded by the bus
	queued *share.Meter // the volatile events that wait for them
}

// Bus takes events in and hands them out. All methods are safe for concurrent
// use.
type Bus struct {
	engine           kv.Engine
	writer           *kv.Writer
	leases           *lease.Holder // of the deleting
	maxSubscriptions int
	maxEmitWait      time.Duration
	retention        Retention
	rules            func(ctx context.Context, tenant string, e *Event, opts *EmitOptions) error
	rate             *share.Rate
	quota            *share.Quota
	queued           *share.Pool // bytes of volatile events that wait
	elsewhere        Elsewhere
	now              func() time.Time
	logger           *slog.Logger

	ended      chan struct{} // closed by Close
	stop       context.CancelFunc
	background sync.WaitGroup

	counts      *counts
	emitting    barrier       // emitters from their look at the index until their commit
	changes     atomic.Uint64 // numbers the additions to all indexes
	times       times
	timesKnown  chan struct{} // closed when times knows the times of stored events
	handedBytes atomic.Int64  // what all topics hold at hand
	seed        maphash.Seed
	shards      [topicShards]topicShard

	mu            sync.RWMutex // guards the fields below
	closed        bool
	tenants       map[string]*tenantIndex
	subscriptions map[*Subscription]struct{}
}

// New returns a bus that keeps its events in engine and writes through writer.
// Both stay the caller's; close the bus before them.
func New(engine kv.Engine, writer *kv.Writer, opts *Options) *Bus {
	if opts == nil {
		opts = &Options{}
	}
	b := &Bus{
		engine:           engine,
		writer:           writer,
		leases:           lease.NewHolder(engine, writer, nil),
		maxSubscriptions: positive(opts.MaxSubscriptions, DefaultMaxSubscriptions),
		maxEmitWait:      positive(opts.MaxEmitWait, DefaultMaxEmitWait),
		retention:        opts.Retention.withDefaults(),
		rules:            opts.Admit,
		rate:             opts.Rate,
		quota:            opts.Quota,
		queued: share.New(share.Options{
			Name: "bytes of events that wait for readers", Setting: "--max-message-bytes",
			Total: positive(opts.MaxQueuedBytes, DefaultMaxQueuedBytes), OneTenant: opts.OneTenant,
		}),
		elsewhere:     opts.Elsewhere,
		now:           opts.Now,
		logger:        opts.Logger,
		ended:         make(chan struct{}),
		counts:        newCounts(),
		seed:          maphash.MakeSeed(),
		tenants:       make(map[string]*tenantIndex),
		subscriptions: make(map[*Subscription]struct{}),
	}
	if b.now == nil {
		b.now = time.Now
	}
	if b.logger == nil {
		b.logger = slog.New(slog.DiscardHandler)
	}
	b.times = times{now: b.now, unstored: make(map[int64]struct{})}
	b.begin()
	return b
}

// positive returns given, or otherwise if it is not set.
func positive[T ~int | ~int64](given, otherwise T) T {
	if given > 0 {
		return given
	}
	return otherwise
}

// begin starts what runs until Close.
func (b *Bus) begin() {
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.timesKnown = make(chan struct{})
	b.background.Go(func() { b.learnTimes(ctx) })
	if n, ok := b.engine.(kv.Notifier); ok {
		b.background.Go(func() {
			for move := range n.Moved(ctx) {
				switch {
				case move.Any:
					b.anyMoved(ctx)
				case move.Ref.Keyspace == kv.Events:
					b.moved(ctx, move.Ref.Scope)
				}
			}
		})
	}
	if b.retention.Every > 0 {
		b.background.Go(func() { b.sweepEvery(ctx, b.retention.Every) })
	}
}

// Close ends all subscriptions with ErrClosed; later calls get it too. Events
// that are being emitted are still stored. Closing twice is harmless.
func (b *Bus) Close() error {
	for _, s := range b.shut() {
		s.end(ErrClosed)
	}
	b.stop()
	b.background.Wait()
	if err := b.leases.Close(); err != nil {
		b.logger.Warn("events: leases not given back, they run out", "error", err)
	}
	return nil
}

// shut refuses new subscriptions and returns those there are.
func (b *Bus) shut() []*Subscription {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		close(b.ended)
	}
	open := make([]*Subscription, 0, len(b.subscriptions))
	for s := range b.subscriptions {
		open = append(open, s)
	}
	return open
}

func (b *Bus) isClosed() bool {
	select {
	case <-b.ended:
		return true
	default:
		return false
	}
}

// indexOf returns the index of a tenant; nil if the tenant has no subscriber.
func (b *Bus) indexOf(tenant string) *tenantIndex {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.tenants[tenant]
}

// enter counts a subscription in and gives it the index of its tenant.
func (b *Bus) enter(s *Subscription) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return ErrClosed
	case len(b.subscriptions) >= b.maxSubscriptions:
		return &share.LimitError{What: "subscriptions", Limit: b.maxSubscriptions}
	}
	x := b.tenants[s.tenant]
	if x == nil {
		x = &tenantIndex{Index: pattern.NewIndex[*selection]()}
		x.queued = share.NewMeter(b.queued, share.Owner{Tenant: s.tenant}, queuedStep, queuedSteps)
		b.tenants[s.tenant] = x
	}
	x.users++
	b.subscriptions[s] = struct{}{}
	s.index = x
	return nil
}

// exit counts a subscription out.
func (b *Bus) exit(s *Subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.subscriptions, s)
	if s.index.users--; s.index.users == 0 {
		s.index.queued.Close()
		delete(b.tenants, s.tenant)
	}
}
