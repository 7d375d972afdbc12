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

// commitAll stores the durable events of one emitter, one commit for each topic and the
// topics concurrently, so that the engine can join their commits. It returns the topics
// with readers; the caller must leave them.
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

// maxErased bounds the events that one commit of Erase takes out of a topic: they have up to
// 4 MiB each, and an emptied one little.
const maxErased = 64

// Erase takes events out of all topics of a tenant, as store.Erasing says; what it reads is
// the bus's. It works in small commits, so that emitters wait for a moment only. Whoever reads one of the topics behind has what is at hand of them no more;
// what waits in a reader's queue is delivered.
func (b *Bus) Erase(ctx context.Context, tenant string, of store.Erasing) (erased int, err error) {
	of.From = b.engine
	for stored, err := range store.Topics(ctx, b.engine, store.TopicsOf(tenant, "")) {
		if err != nil {
			return erased, fmt.Errorf("events: erase: %w", err)
		}
		var found []uint64
		for sequence, err := range of.Of(ctx, stored.Scope) {
			if err != nil {
				return erased, fmt.Errorf("events: erase in %q: %w", stored.Scope.Owner, err)
			}
			if found = append(found, sequence); len(found) < maxErased {
				continue
			}
			n, err := b.erase(ctx, stored.Scope, of, found)
			if erased += n; err != nil {
				return erased, err
			}
			found = found[:0]
		}
		n, err := b.erase(ctx, stored.Scope, of, found)
		if erased += n; err != nil {
			return erased, err
		}
	}
	return erased, nil
}

func (b *Bus) erase(ctx context.Context, scope kv.Scope, of store.Erasing, sequences []uint64) (int, error) {
	if len(sequences) == 0 {
		return 0, nil
	}
	var gone []uint64
	err := b.writer.Do(ctx, kv.Request{Refs: []kv.Ref{{Keyspace: kv.Events, Scope: scope}}, Stage: func(ctx context.Context, tx *kv.Tx) (err error) {
		gone, err = of.Stage(ctx, tx, scope, sequences)
		return err
	}})
	if err != nil {
		return 0, fmt.Errorf("events: erase in %q: %w", scope.Owner, err)
	}
	if t := b.hold(scope, false); t != nil {
		b.dropHanded(t, gone)
		b.release(t)
	}
	return len(gone), nil
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

// commitInTurn stores runs of events on the same topic one after another: each run begins
// after the previous one was stored. Lazy commits do not wait for the disk, so that costs
// little.
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

// commit stores events of one topic in order and sets the result of each. It returns the
// topic if it has readers; leave it after handing the events out.
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
