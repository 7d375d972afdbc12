package blob

import (
	"cmp"
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Naming is how the blobs of steps are called. A blob keeps the path it was made
// with, whatever the naming is later.
type Naming uint8

// The namings, each with the path of the search that step 3 made and that is the
// first one. Numbers have at least three digits.
const (
	// defaultNaming is whatever else says.
	defaultNaming Naming = iota
	// NamingKindStep has the kind and the number of the step: search_003.json. The
	// default.
	NamingKindStep
	// NamingKindSeq has the kind and how many of that kind the owner has had:
	// search_001.json.
	NamingKindSeq
	// NamingStepID has the id of the step: step_003.json. A blob that is not found
	// by the step's id is named as by NamingKindStep.
	NamingStepID
	// NamingRef has the beginning of the ref: 9c41d07be2aa.json.
	NamingRef
)

// Namer says how the blobs of a session's steps are called; 0 if it has nothing
// to say. It may be called while others wait, so it should be quick.
type Namer func(ctx context.Context, scope kv.Scope, sessionID string) (Naming, error)

// namings are the names of the namings, in the order of their numbers.
func namings() []string { return []string{"", "kind_step", "kind_seq", "step_id", "ref"} }

// String returns "kind_step", "kind_seq", "step_id" or "ref".
func (n Naming) String() string {
	if all := namings(); int(n) < len(all) {
		return all[n]
	}
	return ""
}

// ParseNaming returns the naming that a text names; false for any other text.
func ParseNaming(text string) (Naming, bool) {
	for i, name := range namings() {
		if name == text && text != "" {
			return Naming(i), true
		}
	}
	return 0, false
}

// Name says what the path of a step's blob is made of.
type Name struct {
	// Kind is what sort of call made it, such as "search". Required.
	Kind string
	// Step is the number of the step. Required.
	Step uint64
	// Ext is the ending, without its dot. Required.
	Ext string
	// Naming says how the path is made of them. Default that of the store, without
	// one that of the session, and without that NamingKindStep.
	Naming Naming
}

// StageNamed is Stage for a blob of a step whose path follows from its name;
// e.Path is not looked at. A path that is taken gets _2, _3 … before its ending.
func (s *Store) StageNamed(ctx context.Context, tx *kv.Tx, scope kv.Scope, stored Stored, e Entry, n Name) (Entry, error) {
	naming, err := s.naming(ctx, scope, e.SessionID, n)
	if err != nil {
		return Entry{}, err
	}
	if naming == NamingStepID && e.StepID == "" {
		naming = NamingKindStep
	}
	switch naming {
	case NamingKindSeq:
		number, err := nextOfKind(ctx, tx, scope, n.Kind)
		if err != nil {
			return Entry{}, err
		}
		e.Path = Path(n.Kind, number, n.Ext)
	case NamingStepID:
		e.Path = Folder + step.ID(n.Step) + "." + n.Ext
	case NamingRef:
		e.Path = Folder + stored.Ref()[:MinRefDigits] + "." + n.Ext
	default:
		e.Path = Path(n.Kind, n.Step, n.Ext)
	}
	return s.Stage(ctx, tx, scope, stored, e)
}

// naming is how a blob is called.
func (s *Store) naming(ctx context.Context, scope kv.Scope, sessionID string, n Name) (Naming, error) {
	naming := cmp.Or(n.Naming, s.opts.Naming)
	if naming != defaultNaming || s.opts.Namer == nil {
		return naming, nil
	}
	naming, err := s.opts.Namer(ctx, scope, sessionID)
	if err != nil {
		return 0, fmt.Errorf("blob: naming of session: %w", err)
	}
	return naming, nil
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
