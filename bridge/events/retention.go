package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
)

// Defaults of Retention.
const (
	DefaultMaxAge        = 7 * 24 * time.Hour
	DefaultMaxTopicBytes = 64 << 20
	DefaultMaxBytes      = 1 << 30
	DefaultSweepEvery    = time.Minute
)

const (
	// maxSweptEvents bounds what one commit of a sweep looks at, so that emitters
	// wait for a moment only.
	maxSweptEvents = 256
	// maxSweptBehind is the same where a topic has much to delete: more than its
	// emitters add meanwhile.
	maxSweptBehind = 16 * maxSweptEvents
	// turnCommits bounds the commits that a topic gets before the next has its
	// turn, and maxSweepRounds the turns that all get in one sweep. sweepAgain is
	// the pause before the next when some have more.
	turnCommits    = 4
	maxSweepRounds = 16
	sweepAgain     = time.Second
	// maxOldestTopics bounds the topics in which a sweep searches for the oldest events of
	// a tenant with too many, and the topics it returns to. The next sweep goes on.
	maxOldestTopics = 4096
)

// Retention says how long durable events are kept. Zero fields mean the
// defaults, negative ones no limit. Readers that are behind miss what is
// deleted (Delivery.Dropped). A topic's sequences never begin anew. The answer
// kept for a request id goes with its event.
type Retention struct {
	// MaxAge deletes events that are older. Default DefaultMaxAge.
	MaxAge time.Duration
	// MaxTopicBytes bounds what the events of one topic take in the store; the
	// oldest are deleted. Default DefaultMaxTopicBytes.
	MaxTopicBytes int64
	// MaxBytes bounds what all events of all tenants take. Each tenant has an equal
	// share, and what others leave of theirs: only those over it lose events, their
	// oldest ones. Default DefaultMaxBytes.
	MaxBytes int64
	// Every is the time between two sweeps, which do the deleting. Negative
	// turns them off. Default DefaultSweepEvery.
	Every time.Duration
}

func (r Retention) withDefaults() Retention {
	r.MaxAge = cmp.Or(r.MaxAge, DefaultMaxAge)
	r.MaxTopicBytes = cmp.Or(r.MaxTopicBytes, DefaultMaxTopicBytes)
	r.MaxBytes = cmp.Or(r.MaxBytes, DefaultMaxBytes)
	r.Every = cmp.Or(r.Every, DefaultSweepEvery)
	return r
}

// sweepEvery sweeps until ctx ends, for the first time soon: what expired while no
// process ran, or what new settings no longer keep, must not wait for one that runs
// long enough.
func (b *Bus) sweepEvery(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(min(pause, sweepAgain))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		behind, err := b.sweep(ctx)
		if err != nil && ctx.Err() == nil {
			b.logger.Warn("events: delete old events", "error", err)
		}
		if timer.Reset(pause); behind {
			timer.Reset(min(pause, sweepAgain))
		}
	}
}

// Sweep deletes the events that are older than Retention allows, or too many.
// It works in small commits, each complete in itself, so that it may end at any
// point. The bus calls it by itself; a second one at the same time is harmless.
// A topic that can't be swept does not stop the others; its error is returned.
// Nor does a topic that is emitted on all the time: after its share of commits, the rest is
// left for the next sweep. Tenants whose events another process deletes are left to it.
func (b *Bus) Sweep(ctx context.Context) error {
	_, err := b.sweep(ctx)
	return err
}

// sweep reports whether some topics have more to delete.
func (b *Bus) sweep(ctx context.Context) (behind bool, err error) {
	var done sweepTally
	var left []store.Topic
	for stored, err := range store.Topics(ctx, b.engine, kv.Range{}) {
		if err != nil {
			return false, errors.Join(append(done.failed, err)...)
		}
		switch t, more, err := b.sweepTurn(ctx, stored, maxSweptEvents); {
		case !more || len(left) == maxOldestTopics:
			behind = behind || more
			done.add(t, err)
		default:
			left = append(left, t)
		}
	}
	for range maxSweepRounds {
		kept := left[:0]
		for _, stored := range left {
			t, more, err := b.sweepTurn(ctx, stored, maxSweptBehind)
			if more {
				kept = append(kept, t)
				continue
			}
			done.add(t, err)
		}
		left = kept
	}
	for _, t := range left {
		behind = true
		done.add(t, nil)
	}
	more := b.sweepTenants(ctx, &done)
	return behind || more, errors.Join(done.failed...)
}

// sweepTally is what a sweep found out about the topics.
type sweepTally struct {
	tenants map[string]int64 // what the events of each take
	failed  []error
}

// add takes in a topic that the sweep is through with.
func (d *sweepTally) add(t store.Topic, err error) {
	if err != nil {
		d.failed = append(d.failed, fmt.Errorf("topic %q: %w", t.Scope.Owner, err))
		return
	}
	if d.tenants == nil {
		d.tenants = make(map[string]int64)
	}
	d.tenants[t.Scope.Tenant] += t.Bytes
}

// sweepTurn deletes what the topic alone has too much of, for some commits of so
// many events. More says that there is more to delete.
func (b *Bus) sweepTurn(ctx context.Context, t store.Topic, events int) (after store.Topic, more bool, err error) {
	rule := store.Rule{Events: events, MaxBytes: b.retention.MaxTopicBytes}
	if b.retention.MaxAge > 0 {
		rule.Before = b.now().Add(-b.retention.MaxAge)
	}
	if !rule.MayHit(t.Record) {
		return t, false, nil
	}
	err = b.leases.Do(ctx, b.claim(t.Scope.Tenant), func(ctx context.Context) error {
		t, more, err = b.sweepTopic(ctx, t, rule)
		return err
	})
	if errors.Is(err, lease.ErrHeld) { // another process deletes it
		return t, false, nil
	}
	return t, more, err
}

// claim names the lease of a tenant's sweep.
func (b *Bus) claim(tenant string) lease.Name {
	return lease.Tenant(tenant, "events").Every(b.retention.Every)
}

func (b *Bus) sweepTopic(ctx context.Context, t store.Topic, rule store.Rule) (after store.Topic, more bool, err error) {
	for range turnCommits {
		if !rule.MayHit(t.Record) {
			return t, false, nil
		}
		swept, err := b.sweepSome(ctx, t.Scope, rule)
		if err != nil {
			return t, false, err
		}
		if t.Record = swept.Record; !swept.More {
			return t, false, nil
		}
	}
	return t, true, nil
}

// sweepSome deletes the first events of a topic as far as a rule hits them.
func (b *Bus) sweepSome(ctx context.Context, scope kv.Scope, rule store.Rule) (store.Swept, error) {
	var done store.Swept
	stage := func(ctx context.Context, tx *kv.Tx) (err error) {
		done, err = store.Sweep(ctx, tx, scope, rule)
		return err
	}
	// Not synced: a sweep that is lost is done again.
	err := b.writer.Do(ctx, lease.Fence(ctx, kv.Request{Refs: []kv.Ref{{Keyspace: kv.Events, Scope: scope}}, Stage: stage, Lazy: true}))
	return done, err
}

// sweepTenants deletes the oldest events of the tenants that have more than their
// share of Retention.MaxBytes. It reports whether some still have.
func (b *Bus) sweepTenants(ctx context.Context, done *sweepTally) (behind bool) {
	if b.retention.MaxBytes <= 0 {
		return false
	}
	level := share.Level(slices.Collect(maps.Values(done.tenants)), b.retention.MaxBytes)
	for tenant, bytes := range done.tenants {
		if bytes <= level {
			continue
		}
		left := false
		err := b.leases.Do(ctx, b.claim(tenant), func(ctx context.Context) (err error) {
			left, err = b.sweepTenant(ctx, tenant, bytes-level)
			return err
		})
		if err != nil && !errors.Is(err, lease.ErrHeld) {
			done.failed = append(done.failed, fmt.Errorf("tenant %q: %w", tenant, err))
		}
		behind = behind || left && err == nil
	}
	return behind
}

// sweepTenant frees so many bytes of a tenant's oldest events, and reports whether
// there is more to do.
func (b *Bus) sweepTenant(ctx context.Context, tenant string, excess int64) (behind bool, err error) {
	var oldest oldestTopics
	for stored, err := range store.Topics(ctx, b.engine, store.TopicsOf(tenant, "")) {
		if err != nil {
			return false, err
		}
		oldest.add(stored)
	}
	left, err := b.sweepOldest(ctx, oldest.sorted(), excess)
	return left > 0 && oldest.cut, err
}

// sweepOldest deletes from the topics with the oldest events until so many
// bytes are free, and returns how many are not. A topic loses as many as one commit
// takes before the next has its turn.
func (b *Bus) sweepOldest(ctx context.Context, topics []store.Topic, excess int64) (left int64, err error) {
	for len(topics) > 0 && excess > 0 {
		swept, err := b.sweepSome(ctx, topics[0].Scope, store.Rule{Events: eventsToFree(excess), Free: excess})
		if err != nil {
			return excess, err
		}
		excess -= swept.Bytes
		topics[0].Record = swept.Record
		if swept.Record.Empty() || swept.Bytes == 0 {
			topics = topics[1:]
			continue
		}
		// It has its place again by its new oldest event.
		at, _ := slices.BinarySearchFunc(topics[1:], topics[0], byOldest)
		moved := topics[0]
		copy(topics, topics[1:at+1])
		topics[at] = moved
	}
	return excess, nil
}

// eventsToFree is how many events one commit may delete when there is so much to
// free.
func eventsToFree(excess int64) int {
	if excess > store.MaxSweptBytes {
		return maxSweptBehind
	}
	return maxSweptEvents
}

// oldestTopics collects those with the oldest events.
type oldestTopics struct {
	all []store.Topic
	cut bool // there were more
}

func (o *oldestTopics) add(t store.Topic) {
	if t.Empty() {
		return
	}
	if o.all = append(o.all, t); len(o.all) == 2*maxOldestTopics {
		o.all = o.sorted()
	}
}

// sorted returns the oldest first.
func (o *oldestTopics) sorted() []store.Topic {
	slices.SortFunc(o.all, byOldest)
	o.cut = o.cut || len(o.all) > maxOldestTopics
	return slices.Clip(o.all[:min(len(o.all), maxOldestTopics)])
}

func byOldest(a, b store.Topic) int { return a.Oldest.Compare(b.Oldest) }
