package embeddings

import (
	"context"
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

// TagMarked, in the system keyspace's scope MarkedOwner, marks a store in which each record
// has a vector or waits for one. Records that are saved without an embedder do neither, so
// that a server without one takes the mark away, and the next one with an embedder looks at
// all.
const (
	TagMarked   = 'm'
	MarkedOwner = "embedded"
)

// markedScope holds the mark, one for the whole store. No tenant has such a name.
var markedScope = kv.Scope{Tenant: "*", Kind: kv.OwnerSystem, Owner: MarkedOwner}

// unmark says that records may be saved that wait for no vector.
func (e *Embeddings) unmark(ctx context.Context) {
	values, err := e.engine.Get(ctx, kv.System, markedScope.Key(TagMarked))
	if err == nil && values[0] != nil {
		err = e.writer.Do(ctx, kv.Request{Blind: []kv.Ref{{Keyspace: kv.System, Scope: markedScope}}, Stage: func(_ context.Context, tx *kv.Tx) error {
			tx.Delete(kv.System, markedScope.Key(TagMarked))
			return nil
		}})
	}
	if err != nil {
		e.report(ctx, "note that records get no vectors", err)
	}
}

// markOlder has each record wait for a vector that was saved while there was no embedder.
// It looks at every record, once after such a time.
func (b *backfill) markOlder(ctx context.Context) error {
	values, err := b.engine.Get(ctx, kv.System, markedScope.Key(TagMarked))
	if err != nil || values[0] != nil {
		return err
	}
	var failed error
	for scope, err := range kv.Scopes(ctx, b.engine, kv.Records) {
		if err != nil {
			return err
		}
		// A scope that can't be read keeps no other waiting.
		failed = errors.Join(failed, b.markScope(ctx, scope))
	}
	if failed != nil {
		return failed
	}
	return b.writer.Do(ctx, kv.Request{Blind: []kv.Ref{{Keyspace: kv.System, Scope: markedScope}}, Lazy: true, Stage: func(_ context.Context, tx *kv.Tx) error {
		tx.Put(kv.System, markedScope.Key(TagMarked), nil)
		return nil
	}})
}

func (b *backfill) markScope(ctx context.Context, scope kv.Scope) error {
	for records, err := range recordBatches(ctx, b.engine, scope, backfillBatch) {
		if err == nil {
			records, err = b.bare(ctx, b.engine, scope, records)
		}
		if err == nil && len(records) > 0 {
			err = b.mark(ctx, scope, records)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", scope, err)
		}
	}
	return nil
}

// mark has records wait that have no vector, and are what they were when they were read.
func (b *backfill) mark(ctx context.Context, scope kv.Scope, records []record.Record) error {
	err := b.writer.Do(ctx, kv.Request{Refs: vector.Refs(scope), Blind: b.Blind(scope), Lazy: true, Stage: func(ctx context.Context, tx *kv.Tx) error {
		bare, err := b.bare(ctx, tx, scope, records)
		if err != nil {
			return err
		}
		for _, r := range bare {
			now, ok, err := record.Read(ctx, tx, scope, r.ID)
			if err != nil {
				return err
			}
			if ok && now.Document.Ordinal == r.Document.Ordinal {
				stageWaiting(tx, scope, r)
			}
		}
		return nil
	}})
	if err == nil {
		b.Saved(scope)
	}
	return err
}

// bare returns those of a scope's records that have no vector in any space.
func (b *backfill) bare(ctx context.Context, view kv.Getter, scope kv.Scope, records []record.Record) ([]record.Record, error) {
	spaces, err := b.index.Spaces(ctx, view, scope)
	for _, space := range spaces {
		ordinals := make([]uint32, len(records))
		for i, r := range records {
			ordinals[i] = r.Document.Ordinal
		}
		vectors, err := b.index.Vectors(ctx, view, scope, space.Name, ordinals)
		if err != nil {
			return nil, err
		}
		var without []record.Record
		for i, r := range records {
			if vectors[i] == nil {
				without = append(without, r)
			}
		}
		records = without
	}
	return records, err
}
