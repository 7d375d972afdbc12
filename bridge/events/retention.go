package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	// maxSweptBehind is the same where a topic has much to delete: more than its
	// emitters add meanwhile.
	maxSweptBehind = 16 * maxSweptEvents
	// turnCommits bounds the commits that a topic gets before the next has its
	// turn, and maxSweepRounds the turns that all get in one sweep. sweepAgain is
	// the pause before the next when some have more.
	turnCommits    = 4
	maxSweepRounds = 16
	sweepAgain     = time.Second
	// maxOldestTopics bounds the topics of a tenant among which a sweep looks for the
	// oldest events when the tenant has too many, and those that it returns to. The
	// next sweep goes on.
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
// Nor does one that is emitted on all the time: what is left of it after its turns
// is for the next sweep.
func (b *Bus) Sweep(ctx context.Context) error {
	_, err := b.sweep(ctx)
	return err
}

// sweep tells whether some topics have more to delete.
func (b *Bus) sweep(ctx context.Context) (behind bool, err error) {
	var done sweepTally
	var left []storedTopic
	for stored, err := range b.storedTopics(ctx, kv.Range{}) {
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
func (d *sweepTally) add(t storedTopic, err error) {
	if err != nil {
		d.failed = append(d.failed, fmt.Errorf("topic %q: %w", t.scope.Owner, err))
		return
	}
	if d.tenants == nil {
		d.tenants = make(map[string]int64)
	}
	d.tenants[t.scope.Tenant] += t.bytes
}

// sweepTurn deletes what the topic alone has too much of, for some commits of so
// many events. More says that there is more to delete.
func (b *Bus) sweepTurn(ctx context.Context, t storedTopic, events int) (after storedTopic, more bool, err error) {
	rule := sweepRule{events: events, maxBytes: b.retention.MaxTopicBytes}
	if b.retention.MaxAge > 0 {
		rule.before = b.now().Add(-b.retention.MaxAge)
	}
	for range turnCommits {
		if !rule.mayHit(t.topicRecord) {
			return t, false, nil
		}
		swept, err := b.sweepSome(ctx, t.scope, rule)
		if err != nil {
			return t, false, err
		}
		if t.topicRecord = swept.record; !swept.more {
			return t, false, nil
		}
	}
	return t, true, nil
}

// sweepRule says which of a topic's oldest events go.
type sweepRule struct {
	events   int       // so many at most
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
		if done.more = seen == rule.events || size > maxSweptBytes; done.more || !rule.hits(&e, done.record, done.bytes) {
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
