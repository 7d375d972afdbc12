package lease

import (
	"context"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// held is the lease that some work runs under.
type held struct {
	name   Name
	holder string
	epoch  uint64
}

// heldKey is the key of a held in a context.
type heldKey struct{}

// Fence returns the request with the condition that the lease is still held under
// which ctx was made (Holder.Do); otherwise the request is an ErrLost and writes
// nothing, whatever the clocks say. Without a lease it returns the request as it is.
func Fence(ctx context.Context, req kv.Request) kv.Request {
	l, ok := ctx.Value(heldKey{}).(held)
	if !ok {
		return req
	}
	stage := req.Stage
	req.Blind = append(slices.Clip(req.Blind), l.name.ref())
	req.Stage = func(ctx context.Context, tx *kv.Tx) error {
		s, err := l.name.read(ctx, tx.Watch)
		if err != nil {
			return err
		}
		if s.holder != l.holder || s.epoch != l.epoch {
			return fmt.Errorf("%w: %s has another holder", ErrLost, l.name.owner)
		}
		return stage(ctx, tx)
	}
	return req
}

// stored reads a lease in a request that names it exactly.
func (n Name) stored(ctx context.Context, tx *kv.Tx) (state, error) {
	return n.read(ctx, func(ctx context.Context, ks kv.Keyspace, key []byte) ([]byte, error) {
		values, err := tx.Get(ctx, ks, key)
		if err != nil {
			return nil, err
		}
		return values[0], nil
	})
}
