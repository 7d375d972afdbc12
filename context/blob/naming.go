package blob

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Namer reports whether the blobs of a session's steps are called by their kind and how
// many of that kind the owner has had, search_001.json, and not by the kind and the number
// of the step, search_003.json. Numbers have at least three digits. A blob keeps the path
// it was made with. Namer may be called while others wait, so it should be quick.
type Namer func(ctx context.Context, scope kv.Scope, sessionID string) (byKind bool, err error)

// Name says what the path of a step's blob is made of.
type Name struct {
	// Kind is what sort of call made it, such as "search". Required.
	Kind string
	// Step is the number of the step. Required.
	Step uint64
	// Ext is the ending, without its dot. Required.
	Ext string
}

// StageNamed is Stage for a blob of a step whose path follows from its name;
// e.Path is not looked at. A path that is taken gets _2, _3 … before its ending.
func (s *Store) StageNamed(ctx context.Context, tx *kv.Tx, scope kv.Scope, stored Stored, e Entry, n Name) (Entry, error) {
	number, byKind := n.Step, false
	var err error
	if s.opts.Namer != nil {
		if byKind, err = s.opts.Namer(ctx, scope, e.SessionID); err != nil {
			return Entry{}, fmt.Errorf("blob: naming of session: %w", err)
		}
	}
	if byKind {
		if number, err = nextOfKind(ctx, tx, scope, n.Kind); err != nil {
			return Entry{}, err
		}
	}
	e.Path = Path(n.Kind, number, n.Ext)
	return s.Stage(ctx, tx, scope, stored, e)
}

// fieldLastOfKind is the field of a counter of one kind (memory/FORMAT.md).
const fieldLastOfKind = 1

// nextOfKind counts one more blob of a kind and returns its number, from 1.
func nextOfKind(ctx context.Context, tx *kv.Tx, scope kv.Scope, kind string) (uint64, error) {
	key := kindKey(scope, kind)
	values, err := tx.Get(ctx, kv.Blobs, key)
	if err != nil {
		return 0, fmt.Errorf("blob: count blobs of kind %s: %w", kind, err)
	}
	number := uint64(1)
	for f, err := range wire.Fields(values[0]) {
		if err != nil {
			return 0, fmt.Errorf("%w: the number of blobs of kind %s can't be read", ErrDamaged, kind)
		}
		if f.Number == fieldLastOfKind {
			number = f.Value + 1
		}
	}
	tx.Put(kv.Blobs, key, wire.AppendUint(nil, fieldLastOfKind, number))
	return number, nil
}
