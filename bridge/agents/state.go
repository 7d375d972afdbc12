package agents

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// MaxStateBytes bounds a state as it is stored: the largest message that a
// client may send, and some room.
const MaxStateBytes = maxStateParts << 20

// maxStateParts bounds the keys of a state; each holds up to 1 MiB.
const maxStateParts = 5

// statePartBytes is what one key of a state holds.
const statePartBytes = 1 << 20

// Tag of a state in the agent's scope (memory/FORMAT.md).
const tagState = 'a' // part (be16): a piece of the encoded state

// State is what an agent wants to have kept.
type State struct {
	// Persistent and Ephemeral are the agent's own bytes. Both are stored.
	Persistent, Ephemeral []byte
	// UpdatedMillis is the agent's own time of the change, in ms since 1970; 0
	// becomes the time of SaveState.
	UpdatedMillis int64
	// Metadata are the agent's own pairs.
	Metadata map[string]string
}

// SaveState stores an agent's state in the place of the one before. It is synced
// when SaveState returns. An empty id, or a state that is too large, is an
// *invalid.Error.
func (d *Directory) SaveState(ctx context.Context, tenant, id string, s State) error {
	ref, err := stateRef(tenant, id)
	if err != nil {
		return err
	}
	if s.UpdatedMillis == 0 {
		s.UpdatedMillis = d.now().UnixMilli()
	}
	encoded := encodeState(s)
	if len(encoded) > MaxStateBytes {
		return invalid.Field(ErrInvalid, "state", "is %d bytes, over the limit of %d", len(encoded), MaxStateBytes)
	}
	err = d.writer.Do(ctx, kv.Request{
		Blind: []kv.Ref{ref},
		Stage: func(_ context.Context, tx *kv.Tx) error {
			stageState(tx, ref, encoded)
			return nil
		},
	})
	if err != nil {
		return fmt.Errorf("agents: save state: %w", err)
	}
	return nil
}

// LoadState returns the stored state; ErrNotFound if there is none.
func (d *Directory) LoadState(ctx context.Context, tenant, id string) (State, error) {
	ref, err := stateRef(tenant, id)
	if err != nil {
		return State{}, err
	}
	var encoded []byte
	parts := 0
	for pair, err := range d.engine.Scan(ctx, ref.Keyspace, kv.Prefix(ref.Scope.Key(tagState))) {
		if err != nil {
			return State{}, fmt.Errorf("agents: load state: %w", err)
		}
		encoded = append(encoded, pair.Value...)
		parts++
	}
	if parts == 0 {
		return State{}, fmt.Errorf("%w: state of agent %s", ErrNotFound, id)
	}
	return decodeState(encoded)
}

// deleteStored deletes state and gap; it reports whether there was a state.
func (d *Directory) deleteStored(ctx context.Context, tenant, id string) (bool, error) {
	if err := d.gaps.forget(ctx, tenant, id); err != nil {
		return false, fmt.Errorf("agents: delete gap: %w", err)
	}
	ref, err := stateRef(tenant, id)
	if err != nil {
		return false, nil // nothing can be stored without an id
	}
	found := false
	err = d.writer.Do(ctx, kv.Request{
		Refs: []kv.Ref{ref},
		Stage: func(ctx context.Context, tx *kv.Tx) error {
			first, err := tx.Get(ctx, ref.Keyspace, statePartKey(ref, 0))
			if err != nil {
				return err
			}
			if found = first[0] != nil; found {
				stageStateEnd(tx, ref, 0)
			}
			return nil
		},
	})
	if err != nil {
		return false, fmt.Errorf("agents: delete state: %w", err)
	}
	return found, nil
}

// unnamed begins the owner of the state of an agent whose id no owner can have.
const unnamed = "state/"

// stateRef is where the state of an agent stands: its own scope or, if no scope
// can have its id, one that its hash names.
func stateRef(tenant, id string) (kv.Ref, error) {
	if id == "" {
		return kv.Ref{}, invalid.Field(ErrInvalid, "agent_id", "cannot be empty")
	}
	scope := kv.AgentScope(tenant, id)
	if scope.Validate() == nil {
		return kv.Ref{Keyspace: kv.System, Scope: scope}, nil
	}
	sum := sha256.Sum256([]byte(id))
	scope = kv.Scope{Tenant: tenant, Kind: kv.OwnerSystem, Owner: unnamed + hex.EncodeToString(sum[:])}
	if scope.Validate() != nil {
		return kv.Ref{}, invalid.Field(ErrInvalid, "tenant", "is refused")
	}
	return kv.Ref{Keyspace: kv.System, Scope: scope}, nil
}

func statePartKey(ref kv.Ref, part int) []byte {
	return ref.Scope.Key(tagState, binary.BigEndian.AppendUint16(nil, uint16(part)))
}

func stageState(tx *kv.Tx, ref kv.Ref, encoded []byte) {
	part := 0
	for {
		size := min(len(encoded), statePartBytes)
		tx.Put(ref.Keyspace, statePartKey(ref, part), encoded[:size])
		part++
		if encoded = encoded[size:]; len(encoded) == 0 {
			break
		}
	}
	stageStateEnd(tx, ref, part)
}

// stageStateEnd deletes the parts from one on.
func stageStateEnd(tx *kv.Tx, ref kv.Ref, from int) {
	for part := from; part < maxStateParts; part++ {
		tx.Delete(ref.Keyspace, statePartKey(ref, part))
	}
}
