package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Defaults of Retention.
const (
	DefaultMaxAge        = 7 * 24 * time.Hour
	DefaultMaxTopicBytes = 64 << 20
	DefaultMaxBytes      = 1 << 30
	DefaultSweepEvery    = time.Minute
)

const (
	// maxSweptEvents and maxSweptBytes bound what one commit of a sweep looks
	// at, so that emitters wait for a moment only.
	maxSweptEvents = 256
	maxSweptBytes  = 4 << 20
	// maxOldestTopics bounds the topics among which a sweep looks for the oldest
	// events when all together are too large. The next sweep goes on.
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
	// MaxBytes bounds what all events of all tenants take. Default
	// DefaultMaxBytes.
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

// sweepEvery sweeps until ctx ends.
func (b *Bus) sweepEvery(ctx context.Context, pause time.Duration) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := b.Sweep(ctx); err != nil && ctx.Err() == nil {
			b.logger.Warn("events: delete old events", "error", err)
		}
	}
}

// Sweep deletes the events that are older than Retention allows, or too many.
// It works in small commits, each complete in itself, so that it may end at any
// point. The bus calls it by itself; a second one at the same time is harmless.
// A topic that can't be swept does not stop the others; its error is returned.
func (b *Bus) Sweep(ctx context.Context) error {
	oldest := oldestTopics{}
	var total int64
	var failed []error
	for stored, err := range b.storedTopics(ctx, kv.Range{}) {
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
		record, err := b.sweepTopic(ctx, stored)
		if err != nil {
			failed = append(failed, fmt.Errorf("topic %q: %w", stored.scope.Owner, err))
			continue
		}
		total += record.bytes
		oldest.add(storedTopic{stored.scope, record})
	}
	if b.retention.MaxBytes > 0 {
		failed = append(failed, b.sweepOldest(ctx, oldest.sorted(), total-b.retention.MaxBytes))
	}
	return errors.Join(failed...)
}

// sweepTopic deletes what the topic alone has too much of.
func (b *Bus) sweepTopic(ctx context.Context, t storedTopic) (topicRecord, error) {
	rule := sweepRule{maxBytes: b.retention.MaxTopicBytes}
	if b.retention.MaxAge > 0 {
		rule.before = b.now().Add(-b.retention.MaxAge)
	}
	record := t.topicRecord
	for rule.mayHit(record) {
		swept, err := b.sweepSome(ctx, t.scope, rule)
		if err != nil {
			return record, err
		}
		if record = swept.record; !swept.more {
			break
		}
	}
	return record, nil
}

// sweepOldest deletes from the topics with the oldest events until so many
// bytes are free. A topic loses as many as one commit takes before the next has
// its turn.
func (b *Bus) sweepOldest(ctx context.Context, topics []storedTopic, excess int64) error {
	for len(topics) > 0 && excess > 0 {
		swept, err := b.sweepSome(ctx, topics[0].scope, sweepRule{free: excess})
		if err != nil {
			return err
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
	return nil
}

// sweepRule says which of a topic's oldest events go.
type sweepRule struct {
	before   time.Time // those taken before it
	maxBytes int64     // so many that the rest takes no more; not positive: none
	free     int64     // so many as to free this much
}

// mayHit tells whether there may be something to delete.
func (r sweepRule) mayHit(t topicRecord) bool {
	return !t.empty() && (r.maxBytes > 0 && t.bytes > r.maxBytes || t.oldest.Before(r.before))
}

// hits tells whether the oldest event goes, after so much was freed.
func (r sweepRule) hits(e *storedEvent, t topicRecord, freed int64) bool {
	return e.Time.Before(r.before) || r.maxBytes > 0 && t.bytes > r.maxBytes || freed < r.free
}

// swept is what a commit of a sweep did.
type swept struct {
	record topicRecord
	bytes  int64
	more   bool // it ended because it looked at enough
}

// sweepSome deletes the first events of a topic as far as a rule hits them.
func (b *Bus) sweepSome(ctx context.Context, scope kv.Scope, rule sweepRule) (swept, error) {
	var done swept
	stage := func(ctx context.Context, tx *kv.Tx) (err error) {
		done, err = stageSweep(ctx, tx, scope, rule)
		return err
	}
	// Not synced: a sweep that is lost is done again.
	err := b.writer.Do(ctx, kv.Request{Refs: []kv.Ref{{Keyspace: kv.Events, Scope: scope}}, Stage: stage, Lazy: true})
	return done, err
}

func stageSweep(ctx context.Context, tx *kv.Tx, scope kv.Scope, rule sweepRule) (swept, error) {
	before, err := readTopic(ctx, tx, scope)
	if err != nil || before.empty() {
		return swept{record: before}, err
	}
	done := swept{record: before}
	seen, size := 0, 0
	r := kv.Range{Start: sequenceKey(scope, eventTag, before.first), End: kv.After(scope.Key(eventTag))}
	for pair, err := range tx.Scan(ctx, kv.Events, r) {
		if err != nil {
			return swept{}, err
		}
		sequence, e, err := decodePair(pair)
		if err != nil {
			return swept{}, err
		}
		done.record.oldest = e.Time
		if done.more = seen == maxSweptEvents || size > maxSweptBytes; done.more || !rule.hits(&e, done.record, done.bytes) {
			break
		}
		seen, size = seen+1, size+len(pair.Value)
		freed := stageDelete(tx, scope, sequence, &e) + int64(len(pair.Value))
		done.bytes += freed
		done.record.bytes = max(done.record.bytes-freed, 0)
		done.record.first = sequence + 1
	}
	if done.record.empty() {
		done.record.bytes, done.record.oldest = 0, time.Time{}
	}
	if done.record != before {
		tx.Put(kv.Events, topicKey(scope), encodeTopic(done.record))
	}
	return done, nil
}

func decodePair(pair kv.Pair) (uint64, storedEvent, error) {
	sequence, err := sequenceOf(pair.Key)
	if err != nil {
		return 0, storedEvent{}, err
	}
	e, err := decodeEvent(pair.Value)
	return sequence, e, err
}

// stageDelete deletes an event and what belongs to it. It returns the bytes
// that lay beside the event's own value.
func stageDelete(tx *kv.Tx, scope kv.Scope, sequence uint64, e *storedEvent) int64 {
	tx.Delete(kv.Events, sequenceKey(scope, eventTag, sequence))
	if e.elsewhere {
		tx.Delete(kv.Events, sequenceKey(scope, payloadTag, sequence))
	}
	for part := range min(e.parts, maxParts) {
		tx.Delete(kv.Events, partKey(scope, sequence, part))
	}
	if e.requestID != "" {
		tx.Delete(kv.Events, scope.Key(answerTag, []byte(e.requestID)))
	}
	return e.beside
}

// oldestTopics collects those with the oldest events.
type oldestTopics struct{ all []storedTopic }

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
	return slices.Clip(o.all[:min(len(o.all), maxOldestTopics)])
}

func byOldest(a, b storedTopic) int { return a.oldest.Compare(b.oldest) }
