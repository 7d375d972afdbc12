package embeddings

import (
	"context"
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

// reembedBatch is how many records Reembed looks at before it says how far it
// is.
const reembedBatch = 128

// Reembed makes vectors in the embedder's space for all records of a scope that
// have none there, as memory.Store.Reembed says. ErrNone, ErrFailed.
func (e *Embeddings) Reembed(ctx context.Context, scope kv.Scope, progress func(space string, done, total int64) error) error {
	if e.embedder == nil {
		return ErrNone
	}
	if progress == nil {
		progress = func(string, int64, int64) error { return nil }
	}
	run := &reembedding{Embeddings: e, scope: scope, space: e.embedder.Space(), progress: progress}
	err := run.all(ctx)
	return errors.Join(err, e.leases.Release(context.WithoutCancel(ctx), claim(scope)))
}

// reembedding is a run of Reembed.
type reembedding struct {
	*Embeddings
	scope       kv.Scope
	space       string
	progress    func(space string, done, total int64) error
	done, total int64
}

func (r *reembedding) all(ctx context.Context) error {
	if err := r.count(ctx); err != nil {
		return err
	}
	for records, err := range recordBatches(ctx, r.engine, r.scope, reembedBatch) {
		if err == nil {
			err = r.leased(ctx, func(ctx context.Context) error { return r.embed(ctx, records) })
		}
		if err == nil {
			r.done += int64(len(records))
			r.total = max(r.total, r.done)
			err = r.progress(r.space, r.done, r.total)
		}
		if err != nil {
			return err
		}
	}
	if err := r.leased(ctx, r.dropOthers); err != nil {
		return err
	}
	return r.progress(r.space, r.total, r.total)
}

// leased does some work when no other process makes vectors of the scope. Work that has
// lost its lease is done again: it looks for what is missing.
func (r *reembedding) leased(ctx context.Context, work func(context.Context) error) error {
	for {
		err := r.leases.Do(ctx, claim(r.scope), work)
		if !errors.Is(err, lease.ErrHeld) && !errors.Is(err, lease.ErrLost) {
			return err
		}
		if kv.Sleep(ctx, heldPause); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// count sets the total; records that come later have it raised.
func (r *reembedding) count(ctx context.Context) error {
	for _, err := range r.engine.Scan(ctx, kv.Records, kv.Prefix(r.scope.Key(record.Tag))) {
		if err != nil {
			return err
		}
		r.total++
	}
	return nil
}

// embed gives vectors to the records without one in the space.
func (r *reembedding) embed(ctx context.Context, records []record.Record) error {
	ordinals := make([]uint32, len(records))
	for i, r := range records {
		ordinals[i] = r.Document.Ordinal
	}
	have, err := r.index.Vectors(ctx, r.engine, r.scope, r.space, ordinals)
	if err != nil {
		return err
	}
	texts := make([]string, 0, len(records))
	missing := make([]waiting, 0, len(records))
	for i, record := range records {
		if have[i] == nil {
			texts, missing = append(texts, embeddedText(&record)), append(missing, waiting{record.Document.Ordinal, record.ID})
		}
	}
	if len(missing) == 0 {
		return nil
	}
	vectors, err := r.embedAll(ctx, texts)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	if err := r.storeNew(ctx, missing, vectors); err != nil {
		return err
	}
	r.Saved(r.scope)
	return nil
}

// storeNew commits vectors of records that still have the same number.
func (r *reembedding) storeNew(ctx context.Context, marks []waiting, vectors [][]float32) error {
	err := r.writer.Do(ctx, lease.Fence(ctx, kv.Request{Refs: vector.Refs(r.scope), Stage: func(ctx context.Context, tx *kv.Tx) error {
		for i, mark := range marks {
			if vectors[i] == nil {
				continue
			}
			current, ok, err := record.Read(ctx, tx, r.scope, mark.id)
			if err != nil {
				return err
			}
			if !ok || current.Document.Ordinal != mark.ordinal {
				continue
			}
			if err := r.index.Add(ctx, tx, r.scope, r.space, mark.ordinal, vectors[i]); err != nil {
				return err
			}
			if err := dropWaiting(ctx, tx, r.scope, mark.ordinal); err != nil {
				return err
			}
		}
		return nil
	}}))
	return ofEmbedder(err)
}

// dropOthers deletes the vectors of other spaces that stand next to a new one,
// and spaces that are empty then.
func (r *reembedding) dropOthers(ctx context.Context) error {
	spaces, err := r.index.Spaces(ctx, r.engine, r.scope)
	if err != nil {
		return err
	}
	for _, other := range spaces {
		if other.Name == r.space {
			continue
		}
		if err := r.index.RemoveReplaced(ctx, r.engine, r.writer, r.scope, other.Name, r.space); err != nil {
			return err
		}
	}
	return nil
}

// recordBatches yields the records of a scope in the order of their ids, so many
// at once, each batch from its own view.
func recordBatches(ctx context.Context, engine kv.Engine, scope kv.Scope, size int) func(yield func([]record.Record, error) bool) {
	return func(yield func([]record.Record, error) bool) {
		all := kv.Prefix(scope.Key(record.Tag))
		all.Limit = size
		for {
			var records []record.Record
			for pair, err := range engine.Scan(ctx, kv.Records, all) {
				var r record.Record
				if err == nil {
					r, err = record.Decode(pair.Value)
				}
				if err != nil {
					yield(nil, err)
					return
				}
				records = append(records, r)
				all.Start = append(pair.Key, 0)
			}
			if len(records) == 0 || !yield(records, nil) {
				return
			}
		}
	}
}
