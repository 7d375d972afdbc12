package events

import (
	"context"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// TopicStats is what happened on one topic since the process started.
type TopicStats struct {
	// Total is how many events were emitted.
	Total int64
	// Delivered is how many were handed to readers, each counted for each.
	Delivered int64
	// Dropped is how many were dropped for readers that were full, each counted
	// for each.
	Dropped int64
	// Subscriptions is how many selections have exactly this pattern now.
	Subscriptions int
	// Backlog is how many events wait for readers now, each counted for each.
	Backlog int
	// PerSecond is how many were emitted per second, on average of the last
	// ten.
	PerSecond float64
}

const (
	// rateSeconds is the time that TopicStats.PerSecond looks back.
	rateSeconds = 10
	// statShards keep emitters of different topics out of each other's way.
	statShards = 64
	// maxStatsPerShard bounds the topics that are remembered: 4,096 in all.
	// Those that were used longest ago are forgotten.
	maxStatsPerShard = 64
	// maxStatTopicBytes bounds the name of a topic that is counted.
	maxStatTopicBytes = 4 << 10
)

// Stats returns what happened on a topic; Subscriptions and Backlog are of this
// moment. It counts some 4,000 topics: one that was forgotten begins at zero.
func (b *Bus) Stats(tenant, topic string) TopicStats {
	var out TopicStats
	if c := b.counts.find(tenant, topic); c != nil {
		out = c.read(b.now())
	}
	if x := b.indexOf(tenant); x != nil {
		out.Subscriptions = x.Count(topic)
	}
	scope := store.Ref(tenant, topic).Scope
	if t := b.hold(scope, false); t != nil {
		for _, c := range t.readers() {
			out.Backlog += c.backlog()
		}
		b.release(t)
	}
	return out
}

// counts holds the counters of each topic.
type counts struct {
	seed   maphash.Seed
	shards [statShards]countShard
}

type countShard struct {
	mu     sync.Mutex
	topics map[countKey]*count
}

type countKey struct{ tenant, topic string }

// count is of one topic. A nil count counts nothing.
type count struct {
	delivered, dropped, waiting atomic.Int64

	mu     sync.Mutex // guards the fields below
	total  int64
	recent [rateSeconds]struct{ second, events int64 }
	used   int64 // when it was last counted, in seconds since 1970
}

func newCounts() *counts { return &counts{seed: maphash.MakeSeed()} }

func (all *counts) shard(k countKey) *countShard {
	return &all.shards[maphash.String(all.seed, k.topic)%statShards]
}

func (all *counts) find(tenant, topic string) *count {
	k := countKey{tenant, topic}
	shard := all.shard(k)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	return shard.topics[k]
}

// of returns the count of a topic, and makes it if need be.
func (all *counts) of(tenant, topic string) *count {
	if len(topic) > maxStatTopicBytes {
		return nil
	}
	k := countKey{tenant, topic}
	shard := all.shard(k)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	c := shard.topics[k]
	if c == nil {
		if shard.topics == nil {
			shard.topics = make(map[countKey]*count)
		}
		if len(shard.topics) >= maxStatsPerShard {
			var oldest countKey
			least := int64(-1)
			for k, c := range shard.topics {
				c.mu.Lock()
				if least < 0 || c.used < least {
					oldest, least = k, c.used
				}
				c.mu.Unlock()
			}
			delete(shard.topics, oldest)
		}
		c = &count{}
		shard.topics[k] = c
	}
	return c
}

func (c *count) emitted(now time.Time) {
	if c == nil {
		return
	}
	second := max(now.Unix(), 0)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total++
	c.used = second
	slot := &c.recent[second%rateSeconds]
	if slot.second != second {
		slot.second, slot.events = second, 0
	}
	slot.events++
}

func (c *count) lost(n int64) {
	if c != nil {
		c.dropped.Add(n)
	}
}

// queued counts volatile events into the backlog, or out of it.
func (c *count) queued(n int64) {
	if c != nil {
		c.waiting.Add(n)
	}
}

func (c *count) read(now time.Time) TopicStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := TopicStats{
		Total: c.total, Delivered: c.delivered.Load(), Dropped: c.dropped.Load(), Backlog: int(c.waiting.Load()),
	}
	var events int64
	for _, slot := range c.recent {
		if now.Unix()-slot.second < rateSeconds {
			events += slot.events
		}
	}
	out.PerSecond = float64(events) / rateSeconds
	return out
}

// Totals are what is kept of all topics.
type Totals struct {
	// Topics is how many topics have had a durable event, Events how many events are
	// kept, Bytes what they take as Retention counts it.
	Topics, Events, Bytes int64
}

// Totals counts the durable events of all topics. It reads two keys of each topic.
func (b *Bus) Totals(ctx context.Context) (Totals, error) {
	var totals Totals
	for stored, err := range store.Topics(ctx, b.engine, kv.Range{}) {
		if err != nil {
			return Totals{}, err
		}
		totals.Topics++
		if !stored.Empty() {
			totals.Events += int64(stored.Last - stored.First + 1)
		}
		totals.Bytes += stored.Bytes
	}
	return totals, nil
}

// Readers are the subscriptions of this moment.
type Readers struct {
	// Subscriptions is how many are open.
	Subscriptions int
	// Backlog is how many events wait for all of them, MaxBacklog for the one that
	// is furthest behind.
	Backlog, MaxBacklog int64
}

// Readers counts the open subscriptions and what waits for them. It reads nothing
// from the store.
func (b *Bus) Readers() Readers {
	b.mu.RLock()
	open := slices.Collect(maps.Keys(b.subscriptions))
	b.mu.RUnlock()
	readers := Readers{Subscriptions: len(open)}
	for _, s := range open {
		waiting := s.backlog()
		readers.Backlog += waiting
		readers.MaxBacklog = max(readers.MaxBacklog, waiting)
	}
	return readers
}

// backlog is how many events wait for the subscription: durable ones in the store,
// volatile ones in its queue.
func (s *Subscription) backlog() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := int64(s.queue.Len() - s.listed)
	for _, c := range s.cursors {
		waiting += c.waiting()
	}
	return waiting
}
