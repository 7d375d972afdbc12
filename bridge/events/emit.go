package events

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Event is one thing that happened.
type Event = store.Event

// The payload kinds.
const (
	JSON  = store.JSON
	Bytes = store.Bytes
)

// EmitOptions says how an event is emitted. The zero value emits a durable
// event.
type EmitOptions struct {
	// Volatile hands the event to listeners now and stores nothing.
	Volatile bool
	// RequestID makes a durable emit safe to repeat for as long as its event is
	// kept: the same id with the same event gets the first answer, with another
	// event it is kv.ErrRequestReused. It belongs to the source and the topic: the
	// same id of another source is another request. At most kv.MaxRequestIDBytes. A
	// volatile emit ignores it.
	RequestID string
	// Lazy acknowledges a durable event before it is synced: it survives the
	// death of the process, but perhaps not that of the machine.
	Lazy bool
	// Legacy admits what loom.v1 lets through: any UTF-8 as topic; any number of
	// headers and tags; up to MaxLegacyEventBytes in all. On a topic that the store
	// can't name (empty, too long, with NUL) the event is volatile. Only such
	// emitters wait for subscriptions that are full.
	Legacy bool
	// Emitter is the agent that emits, where that is not the source of the event, which an
	// agent of loom.v1 writes as it likes. Default: the source.
	Emitter string
	// Owns reports whether the emitter may act for an agent. Nil: for all.
	Owns func(agent string) bool
	// Here keeps a volatile event from the other bridges on the store: each emits it
	// itself.
	Here bool
	// Own says that the bridge itself emits the event: Options.Admit is not asked,
	// and it does not count against Options.Rate.
	Own bool
}

// EmitterOf is the agent that emits an event.
func (o *EmitOptions) EmitterOf(e *Event) string { return cmp.Or(o.Emitter, e.Source) }

// Emit takes one event and returns it with its id, time and sequence. A
// durable event is synced when Emit returns, unless it is Lazy; a volatile one
// is queued for listeners. ErrInvalid and what Options.Admit returns refuse
// the event. With kv.ErrUnknownOutcome the event may or may not be stored: repeat
// it under the same request id. The payload, headers and tags stay the
// caller's.
//
// With Legacy, Emit waits where a subscription wants it to (SubscribeOptions.Wait).
// When ctx ends meanwhile, that subscription misses the event, and Emit returns
// the event all the same.
func (b *Bus) Emit(ctx context.Context, tenant string, e Event, opts EmitOptions) (Event, error) {
	if b.isClosed() {
		return Event{}, ErrClosed
	}
	m := emission{store.Emission{Event: e}, opts}
	if m.Err = b.admit(ctx, tenant, &m); m.Err != nil {
		return Event{}, m.Err
	}
	if err := b.pay(ctx, tenant, b.costOf(&m)); err != nil {
		return Event{}, err
	}
	if m.opts.Volatile {
		if err := b.awaitTimes(ctx); err != nil {
			return Event{}, err
		}
		b.name(&m, b.times.next())
		var f fan
		b.handOutVolatile(tenant, &m, &f)
		b.await(ctx, &f)
		return m.Event, nil
	}
	return b.emitDurable(ctx, tenant, m)
}

func (b *Bus) emitDurable(ctx context.Context, tenant string, m emission) (Event, error) {
	if err := b.awaitTimes(ctx); err != nil {
		return Event{}, err
	}
	at, done := b.times.begin()
	b.name(&m, at)
	t := b.commit(ctx, store.Ref(tenant, m.Event.Topic), []*emission{&m})
	done()
	defer b.leave(t)
	if m.Err != nil {
		return Event{}, m.Err
	}
	b.handOut(tenant, t, &m)
	return m.Event, nil
}

// EmitResult is the outcome of one event: what Emit would have returned.
type EmitResult struct {
	Event Event
	Err   error
}

// EmitAll emits the events of one emitter in order, the first option for the
// first event and so on; missing options are zero. Result i is that of event
// i, and an event that is refused does not stop the others. The durable events of one topic
// share a commit. If all are Lazy, only consecutive ones do, so that their times are in
// order between topics, too. All are handed out in order once the durable ones are stored.
// See Emit.
func (b *Bus) EmitAll(ctx context.Context, tenant string, events []Event, opts []EmitOptions) []EmitResult {
	all, room := make([]*emission, len(events)), make([]emission, len(events))
	for i := range events {
		all[i], room[i].Event = &room[i], events[i]
		if i < len(opts) {
			all[i].opts = opts[i]
		}
		if all[i].Err = b.admit(ctx, tenant, all[i]); b.isClosed() {
			all[i].Err = ErrClosed
		}
	}
	cost := int64(0)
	for _, m := range all {
		cost += b.costOf(m)
	}
	if err := b.pay(ctx, tenant, cost); err != nil {
		fail(all, err)
	}
	if err := b.awaitTimes(ctx); err != nil {
		fail(all, err)
	}
	topics := b.commitAll(ctx, tenant, all)
	var f fan
	for _, m := range all {
		switch {
		case m.Err != nil:
		case m.opts.Volatile:
			b.name(m, b.times.next())
			b.handOutVolatile(tenant, m, &f)
		default:
			b.handOut(tenant, topics[m.Event.Topic], m)
		}
	}
	for _, t := range topics {
		b.leave(t)
	}
	b.await(ctx, &f)
	results := make([]EmitResult, len(all))
	for i, m := range all {
		if results[i].Err = m.Err; m.Err == nil {
			results[i].Event = m.Event
		}
	}
	return results
}

// emission is an event on its way.
type emission struct {
	store.Emission
	opts EmitOptions
}

// admit refuses what may not be emitted, and what may not be stored.
func (b *Bus) admit(ctx context.Context, tenant string, m *emission) error {
	if err := m.check(tenant); err != nil {
		return err
	}
	if b.rules != nil && !m.opts.Own {
		if err := b.rules(ctx, tenant, &m.Event, &m.opts); err != nil {
			return err
		}
	}
	if m.complete(tenant); m.opts.Volatile {
		return nil
	}
	if err := b.quota.Check(tenant); err != nil {
		return fmt.Errorf("events: emit on %q: %w", m.Event.Topic, err)
	}
	return nil
}

// complete fills in what the emitter left out.
func (m *emission) complete(tenant string) {
	e := &m.Event
	if e.PayloadKind == JSON && len(e.Payload) == 0 {
		e.Payload = []byte(store.NullPayload)
	}
	e.Sequence, e.Time = 0, time.Time{}
	m.opts.Volatile = m.opts.Volatile || m.opts.Legacy && store.Ref(tenant, e.Topic).Scope.Validate() != nil
}

func (m *emission) check(tenant string) error {
	if err := checkTenant(tenant); err != nil {
		return err
	}
	if m.opts.Legacy {
		return m.Event.CheckLegacy()
	}
	return m.Event.Check()
}

// someTopic is the name of any topic, to check the rest of a scope with.
const someTopic = "t"

func checkTenant(tenant string) error {
	if err := store.Ref(tenant, someTopic).Scope.Validate(); err != nil {
		return invalid.Field(ErrInvalid, "tenant", "is refused: %s", err.Error())
	}
	return nil
}

// name gives the event its time, and an id if it has none.
func (b *Bus) name(m *emission, at time.Time) {
	if m.RequestID = m.opts.RequestID; m.RequestID != "" {
		m.Digest = m.Event.Digest()
	}
	m.Event.Time = at
	if m.Event.ID == "" {
		m.Event.ID = ulid.MustNew(uint64(max(0, at.UnixMilli())), rand.Reader).String()
	}
}

// Now is a time of this bus: every event that is not stored yet gets a later one. It
// never goes back, and is ahead of the clock while that was set back. Who wants all
// events from a moment on keeps the bus's time of that moment. It fails only when ctx ends
// while the bus reads how far the times of stored events have come.
func (b *Bus) Now(ctx context.Context) (time.Time, error) {
	if err := b.awaitTimes(ctx); err != nil {
		return time.Time{}, err
	}
	return b.times.settled(), nil
}

// times gives events their times, each later than that of every event before, so that
// events of several topics can be ordered by time. The times are the clock's as long as it
// rises.
type times struct {
	now func() time.Time

	mu   sync.Mutex
	last int64 // guarded by mu; the last one given, in µs since 1970
	// unstored are those given to events that are being stored, the first one of
	// each commit. Guarded by mu.
	unstored map[int64]struct{}
}

// next returns the time of an event that is not stored.
func (t *times) next() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.give()
}

// begin returns the time of the first event of some that are stored together; done
// says that they are.
func (t *times) begin() (at time.Time, done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at = t.give()
	key := at.UnixMicro()
	t.unstored[key] = struct{}{}
	return at, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.unstored, key)
	}
}

// give is next for who holds mu.
func (t *times) give() time.Time {
	t.last = max(t.last+1, t.now().UnixMicro())
	return time.UnixMicro(t.last).UTC()
}

// raise lets all later times be later than one that was met.
func (t *times) raise(to time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last, to.UnixMicro())
}

// settled returns a time up to which every event is stored, and behind which no event
// is yet.
func (t *times) settled() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last, t.now().UnixMicro())
	at := t.last
	for unstored := range t.unstored {
		at = min(at, unstored-1)
	}
	return time.UnixMicro(at).UTC()
}

// learnTimes finds out how far the times of stored events have come.
func (b *Bus) learnTimes(ctx context.Context) {
	defer close(b.timesKnown)
	for stored, err := range store.Topics(ctx, b.engine, kv.Range{}) {
		if err != nil {
			if ctx.Err() == nil {
				b.logger.ErrorContext(ctx, "the times of stored events are not known: after a restart with the clock set back, later ones may have earlier times", "error", err)
			}
			return
		}
		b.times.raise(stored.LastTime)
	}
}

// awaitTimes waits for learnTimes, which reads two keys of each topic when the bus is
// made, or for the end of ctx.
func (b *Bus) awaitTimes(ctx context.Context) error {
	select {
	case <-b.timesKnown:
		return nil
	default:
	}
	select {
	case <-b.timesKnown:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("events: the times of stored events are being read: %w", ctx.Err())
	}
}
