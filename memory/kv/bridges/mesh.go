package bridges

import (
	"context"
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Tags of what the bridges' mesh keeps in the registry's scope (memory/FORMAT.md).
const (
	tagMesh   = 'm' // id: where the mesh of a bridge is reached
	tagSecret = 's' // what only bridges on this store know
)

// secretBytes is the length of the secret, and of the id of a store.
const secretBytes = 32

func meshKey(id string) []byte { return scope.Key(tagMesh, []byte(id)) }

// Secret returns random bytes that all bridges on the store share, and nobody else knows
// who can't read the store. The first one makes them.
func (r *Registry) Secret(ctx context.Context) ([]byte, error) {
	secret, err := once(ctx, r.engine, tagSecret)
	if errors.Is(err, kv.ErrConflict) {
		err = fmt.Errorf("bridges: secret of the mesh: %w", err)
	}
	return secret, err
}

// SetMesh says where the mesh of this bridge is reached, in this and later registrations.
func (r *Registry) SetMesh(ctx context.Context, address string) error {
	if err := check("", address, ""); err != nil {
		return err
	}
	r.mu.Lock()
	r.mesh = address
	self := r.self
	self.Mesh = address
	r.set(self, r.all)
	r.mu.Unlock()
	c := kv.Commit{Guards: []kv.Guard{{Ref: ref, Any: true}}, Batch: new(kv.Batch)}
	c.Batch.Put(kv.System, meshKey(r.id), []byte(address))
	if err := r.engine.Commit(ctx, c); err != nil {
		return fmt.Errorf("bridges: address of the mesh: %w", err)
	}
	_, err := r.read(ctx)
	return err
}
