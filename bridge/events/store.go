package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// maxChunkBytes ends the commit of one emitter early; a longer one would make
// others wait.
const maxChunkBytes = 4 << 20

// commitAll stores the durable events of one emitter, those of one topic
// together and the topics beside each other, so that the engine can join
// their commits. It returns the topics that somebody reads; leave them.
func (b *Bus) commitAll(ctx context.Context, tenant string, all []*emission) map[string]*topic {
	byTopic := make(map[string][]*emission)
	durable := slices.DeleteFunc(slices.Clone(all), func(m *emission) bool { return m.err != nil || m.opts.Volatile })
	lazy := true
	for _, m := range durable {
		byTopic[m.event.Topic] = append(byTopic[m.event.Topic], m)
		lazy = lazy && m.opts.Lazy
	}
	if lazy && len(byTopic) > 1 {
		return b.commitInTurn(ctx, tenant, durable)
	}
	defer b.nameAll(durable)()
	topics := make(map[string]*topic, len(byTopic))
	if len(byTopic) == 1 {
		for name, group := range byTopic {
			topics[name] = b.commit(ctx, topicRef(tenant, name), group)
		}
		return topics
	}
	var mu sync.Mutex // guards topics
	var running sync.WaitGroup
	for name, group := range byTopic {
		running.Go(func() {
			t := b.commit(ctx, topicRef(tenant, name), group)
			mu.Lock()
			defer mu.Unlock()
			topics[name] = t
		})
	}
	running.Wait()
	return topics
}

// nameAll names events that are stored together; call stored when they are.
func (b *Bus) nameAll(group []*emission) (stored func()) {
	if len(group) == 0 {
		return func() {}
	}
	at, stored := b.times.begin()
	for i, m := range group {
		if i > 0 {
			at = b.times.next()
		}
		b.name(m, at)
	}
	return stored
}

// commitInTurn stores events one run on a topic after another: each is taken after
// the one before it was stored. As nobody waits for a disk, that costs little.
func (b *Bus) commitInTurn(ctx context.Context, tenant string, all []*emission) map[string]*topic {
	topics := make(map[string]*topic)
	for len(all) > 0 {
		name := all[0].event.Topic
		n := slices.IndexFunc(all, func(m *emission) bool { return m.event.Topic != name })
		if n < 0 {
			n = len(all)
		}
		run := all[:n]
		all = all[n:]
		stored := b.nameAll(run)
		t := b.commit(ctx, topicRef(tenant, name), run)
		stored()
		if topics[name] != nil {
			b.leave(t)
			continue
		}
		topics[name] = t
	}
	return topics
}

// commit stores events of one topic in order and sets what became of each. It
// returns the topic if somebody reads it; leave it after handing them out.
func (b *Bus) commit(ctx context.Context, ref kv.Ref, group []*emission) *topic {
	defer b.emitting.leave(b.emitting.enter())
	t, err := b.prepare(ctx, ref.Scope)
	if err != nil {
		fail(group, fmt.Errorf("events: emit on %q: %w", ref.Scope.Owner, err))
		return nil
	}
	for len(group) > 0 {
		n := chunk(group)
		b.store(ctx, ref, group[:n])
		group = group[n:]
	}
	return t
}

// chunk returns how many events of a group go into its first commit.
func chunk(group []*emission) int {
	size := 0
	for i, m := range group {
		if size += m.event.legacySize(); i > 0 && size > maxChunkBytes {
			return i
		}
	}
	return len(group)
}

func fail(group []*emission, err error) {
	for _, m := range group {
		if m.err == nil {
			m.err = err
		}
	}
}

// store commits events behind the last one of their topic.
func (b *Bus) store(ctx context.Context, ref kv.Ref, group []*emission) {
	lazy := true
	for _, m := range group {
		lazy = lazy && m.opts.Lazy
	}
	// The stage may run again after a conflict; what it returns to counts only
	// from its last run.
	stored := make([]emission, len(group))
	stage := func(ctx context.Context, tx *kv.Tx) error {
		for i, m := range group {
			stored[i] = *m
		}
		return stageEvents(ctx, tx, ref, stored)
	}
	err := b.writer.Do(ctx, kv.Request{Refs: []kv.Ref{ref}, Stage: stage, Lazy: lazy})
	if err != nil {
		fail(group, fmt.Errorf("events: emit on %q: %w", ref.Scope.Owner, err))
		if errors.Is(err, kv.ErrUnknownOutcome) {
			b.moved(context.WithoutCancel(ctx), ref.Scope)
		}
		return
	}
	for i, m := range group {
		*m = stored[i]
		b.times.raise(m.event.Time)
	}
}

// stageEvents gives each event the next sequence of the topic, except those
// whose request was answered before.
func stageEvents(ctx context.Context, tx *kv.Tx, ref kv.Ref, group []emission) error {
	record, err := readTopic(ctx, tx, ref.Scope)
	if err != nil {
		return err
	}
	before := record.last
	for i := range group {
		if err := group[i].stage(ctx, tx, ref, &record); err != nil {
			return err
		}
	}
	if record.last > before {
		tx.Put(kv.Events, topicKey(ref.Scope), encodeTopic(record))
	}
	return nil
}

// stage adds one event to the topic. A refusal of the event is its own; an
// error is the end of the commit.
func (m *emission) stage(ctx context.Context, tx *kv.Tx, ref kv.Ref, record *topicRecord) error {
	answer, replayed, err := kv.LookupOnceOf(ctx, tx, ref, m.event.Source, m.opts.RequestID, m.digest)
	switch {
	case errors.Is(err, kv.ErrRequestReused), errors.Is(err, kv.ErrLimit):
		m.err = fmt.Errorf("events: emit on %q: %w", ref.Scope.Owner, err)
		return nil
	case err != nil:
		return err
	case replayed:
		return decodeAnswer(answer, &m.event)
	}
	m.fresh = true
	m.event.Sequence = record.last + 1
	if !m.event.Time.After(record.lastTime) {
		// Others on this topic were faster, or another process has a faster clock.
		m.event.Time = record.lastTime.Add(time.Microsecond)
	}
	size := stageEvent(tx, ref.Scope, m.event, kv.OnceKey(m.event.Source, m.opts.RequestID))
	record.add(m.event, size)
	kv.StageOnceOf(tx, ref, m.event.Source, m.opts.RequestID, m.digest, encodeAnswer(m.event), m.event.Time)
	return nil
}

// add takes the next event in.
func (r *topicRecord) add(e Event, size int64) {
	if r.empty() {
		r.first, r.bytes, r.oldest = e.Sequence, 0, e.Time
	}
	r.last, r.lastTime = e.Sequence, e.Time
	r.bytes += size
}
