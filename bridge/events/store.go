package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/loom-bridge/loom-bridge/bridge/events/store"
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
	durable := slices.DeleteFunc(slices.Clone(all), func(m *emission) bool { return m.Err != nil || m.opts.Volatile })
	lazy := true
	for _, m := range durable {
		byTopic[m.Event.Topic] = append(byTopic[m.Event.Topic], m)
		lazy = lazy && m.opts.Lazy
	}
	if lazy && len(byTopic) > 1 {
		return b.commitInTurn(ctx, tenant, durable)
	}
	defer b.nameAll(durable)()
	topics := make(map[string]*topic, len(byTopic))
	if len(byTopic) == 1 {
		for name, group := range byTopic {
			topics[name] = b.commit(ctx, store.Ref(tenant, name), group)
		}
		return topics
	}
	var mu sync.Mutex // guards topics
	var running sync.WaitGroup
	for name, group := range byTopic {
		running.Go(func() {
			t := b.commit(ctx, store.Ref(tenant, name), group)
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
		name := all[0].Event.Topic
		n := slices.IndexFunc(all, func(m *emission) bool { return m.Event.Topic != name })
		if n < 0 {
			n = len(all)
		}
		run := all[:n]
		all = all[n:]
		stored := b.nameAll(run)
		t := b.commit(ctx, store.Ref(tenant, name), run)
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
		if size += m.Event.LegacySize(); i > 0 && size > maxChunkBytes {
			return i
		}
	}
	return len(group)
}

func fail(group []*emission, err error) {
	for _, m := range group {
		if m.Err == nil {
			m.Err = err
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
	stored := make([]store.Emission, len(group))
	stage := func(ctx context.Context, tx *kv.Tx) error {
		for i, m := range group {
			stored[i] = m.Emission
		}
		return store.Stage(ctx, tx, ref, stored)
	}
	err := b.writer.Do(ctx, kv.Request{Refs: []kv.Ref{ref}, Stage: stage, Lazy: lazy, Foresee: func(along *kv.Reads) {
		for _, m := range group {
			m.Foresee(along, ref)
		}
	}})
	if err != nil {
		fail(group, fmt.Errorf("events: emit on %q: %w", ref.Scope.Owner, err))
		if errors.Is(err, kv.ErrUnknownOutcome) {
			b.moved(context.WithoutCancel(ctx), ref.Scope)
		}
		return
	}
	for i, m := range group {
		m.Emission = stored[i]
		b.times.raise(m.Event.Time)
	}
}
