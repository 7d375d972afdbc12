package registry

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Tags of what the bridges' mesh keeps in the registry's scope (memory/FORMAT.md).
const (
	tagMesh   = 'm' // id: where the mesh of a bridge is reached
	tagSecret = 's' // what only bridges on this store know
)

// secretBytes is the length of the secret.
const secretBytes = 32

func meshKey(id string) []byte { return scope.Key(tagMesh, []byte(id)) }

// Secret returns random bytes that all bridges on the store share, unknown to anybody
// who can't read the store. The first one makes them.
func (r *Registry) Secret(ctx context.Context) ([]byte, error) {
	key := scope.Key(tagSecret)
	for range registerAttempts {
		sequences, err := r.engine.Sequence(ctx, ref)
		if err != nil {
			return nil, err
		}
		values, err := r.engine.Get(ctx, kv.System, key)
		if err != nil || len(values[0]) == secretBytes {
			return bytes.Clone(values[0]), err
		}
		made := make([]byte, secretBytes)
		_, _ = rand.Read(made) // never fails
		c := kv.Commit{Guards: []kv.Guard{{Ref: ref, Sequence: sequences[0]}}, Batch: new(kv.Batch)}
		c.Batch.Put(kv.System, key, made)
		if err = r.engine.Commit(ctx, c); err != nil && !errors.Is(err, kv.ErrConflict) && !errors.Is(err, kv.ErrUnknownOutcome) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("registry: secret of the mesh: %w", kv.ErrConflict)
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
		return fmt.Errorf("registry: address of the mesh: %w", err)
	}
	_, err := r.read(ctx)
	return err
}
