package lexical

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// Outdate has the index of a scope be made anew when it is used next: Rebuild does so. So no
// segment keeps the words of documents that were deleted.
func (x *Index) Outdate(ctx context.Context, writer *kv.Writer, scope kv.Scope) error {
	err := writer.Do(ctx, kv.Request{Refs: []kv.Ref{Ref(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		h, err := readHead(ctx, tx, scope, false)
		if err != nil || h.Incarnation == 0 || h.Outdated {
			return err
		}
		h.Analysis = "" // which no analysis has
		tx.Put(kv.Index, segment.HeadKey(scope), h.Encode())
		return nil
	}})
	if err != nil {
		return fmt.Errorf("lexical: outdate %s: %w", scope, err)
	}
	return nil
}

// Sweep deletes what a rebuilt index of a scope has replaced, all of it.
func (x *Index) Sweep(ctx context.Context, engine kv.Engine, writer *kv.Writer, scope kv.Scope) error {
	for more := true; more; {
		var h scopeHead
		err := kv.View(ctx, engine, nil, func(view kv.Snapshot) (err error) {
			h, err = readHead(ctx, view, scope, true)
			return err
		})
		if err == nil {
			more, err = sweep(ctx, writer, h)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
