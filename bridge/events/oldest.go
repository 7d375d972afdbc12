package events

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/loom-bridge/loom-bridge/bridge/share"
)

// sweepTenants deletes the oldest events of the tenants that have more than their
// share of Retention.MaxBytes. It tells whether some still have.
func (b *Bus) sweepTenants(ctx context.Context, done *sweepTally) (behind bool) {
	if b.retention.MaxBytes <= 0 {
		return false
	}
	level := share.Level(slices.Collect(maps.Values(done.tenants)), b.retention.MaxBytes)
	for tenant, bytes := range done.tenants {
		if bytes <= level {
			continue
		}
		left, err := b.sweepTenant(ctx, tenant, bytes-level)
		if err != nil {
			done.failed = append(done.failed, fmt.Errorf("tenant %q: %w", tenant, err))
		}
		behind = behind || left && err == nil
	}
	return behind
}

// sweepTenant frees so many bytes of a tenant's oldest events, and tells whether
// there is more to do.
func (b *Bus) sweepTenant(ctx context.Context, tenant string, excess int64) (behind bool, err error) {
	var oldest oldestTopics
	for stored, err := range b.storedTopics(ctx, topicsOf(tenant, "")) {
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
func (b *Bus) sweepOldest(ctx context.Context, topics []storedTopic, excess int64) (left int64, err error) {
	for len(topics) > 0 && excess > 0 {
		swept, err := b.sweepSome(ctx, topics[0].scope, sweepRule{events: eventsToFree(excess), free: excess})
		if err != nil {
			return excess, err
		}
		excess -= swept.bytes
		topics[0].topicRecord = swept.record
		if swept.record.empty() || swept.bytes == 0 {
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
	if excess > maxSweptBytes {
		return maxSweptBehind
	}
	return maxSweptEvents
}

// oldestTopics collects those with the oldest events.
type oldestTopics struct {
	all []storedTopic
	cut bool // there were more
}

func (o *oldestTopics) add(t storedTopic) {
	if t.empty() {
		return
	}
	if o.all = append(o.all, t); len(o.all) == 2*maxOldestTopics {
		o.all = o.sorted()
	}
}

// sorted returns the oldest first.
func (o *oldestTopics) sorted() []storedTopic {
	slices.SortFunc(o.all, byOldest)
	o.cut = o.cut || len(o.all) > maxOldestTopics
	return slices.Clip(o.all[:min(len(o.all), maxOldestTopics)])
}

func byOldest(a, b storedTopic) int { return a.oldest.Compare(b.oldest) }
