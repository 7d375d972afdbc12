package grants

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

const (
	// tagGrants is the tag of the grants of a memory, in its own scope.
	tagGrants = 'g'
	// tagSpace is the tag of the names of a tenant's spaces, tagLeaving of spaces that are
	// being deleted.
	tagSpace   = 'n'
	tagLeaving = 'd'
	// directory is where those names are.
	directory = kv.List("spaces")
)

// Fields of the stored form (memory/FORMAT.md).
const (
	fieldMaker = iota + 1
	fieldMade
	fieldLeaving
	fieldGrant
)

// Fields of a grant.
const (
	fieldPattern = iota + 1
	fieldLevel
	fieldBy
	fieldTime
)

var (
	errOrder = errors.New("grants are out of order")
	errLevel = errors.New("a grant has an unknown level")
)

func keyOf(scope kv.Scope) []byte { return scope.Key(tagGrants) }

func refOf(scope kv.Scope) kv.Ref { return kv.Ref{Keyspace: kv.System, Scope: scope} }

func directoryOf(tenant string) kv.Scope { return directory.Whole(tenant) }

func (m *memory) encode() []byte {
	b := wire.AppendText(nil, fieldMaker, m.maker)
	if !m.made.IsZero() {
		b = wire.AppendTime(b, fieldMade, m.made)
	}
	if m.leaving {
		b = wire.AppendUint(b, fieldLeaving, 1)
	}
	for _, g := range m.grants {
		one := wire.AppendText(nil, fieldPattern, g.Pattern)
		one = wire.AppendUint(one, fieldLevel, uint64(g.Level))
		one = wire.AppendText(one, fieldBy, g.By)
		b = wire.AppendItem(b, fieldGrant, wire.AppendTime(one, fieldTime, g.Time))
	}
	return b
}

// decode reads what encode wrote; of nothing, a memory of which nothing is granted.
func decode(raw []byte) (*memory, error) {
	m := &memory{raw: raw}
	for f, err := range wire.Fields(raw) {
		if err != nil {
			return nil, damaged(err)
		}
		switch f.Number {
		case fieldMaker:
			m.maker = string(f.Bytes)
		case fieldMade:
			m.made = f.Time()
		case fieldLeaving:
			m.leaving = f.Value != 0
		case fieldGrant:
			g, err := decodeGrant(f.Bytes)
			if err != nil {
				return nil, damaged(err)
			}
			m.grants = append(m.grants, g)
		}
	}
	if !slices.IsSortedFunc(m.grants, func(a, b Grant) int { return strings.Compare(a.Pattern, b.Pattern) }) {
		return nil, damaged(errOrder)
	}
	return m, nil
}

func decodeGrant(raw []byte) (g Grant, err error) {
	for f, err := range wire.Fields(raw) {
		if err != nil {
			return g, err
		}
		switch f.Number {
		case fieldPattern:
			g.Pattern = string(f.Bytes)
		case fieldLevel:
			if f.Value < uint64(Read) || f.Value > uint64(Admin) {
				return g, errLevel
			}
			g.Level = Level(f.Value)
		case fieldBy:
			g.By = string(f.Bytes)
		case fieldTime:
			g.Time = f.Time()
		}
	}
	return g, nil
}

func damaged(err error) error { return fmt.Errorf("%w: grants: %w", kv.ErrDamaged, err) }

// Check reads back the grants of a memory. found is called for each fault; the error is
// only why the check could not go on.
func Check(ctx context.Context, from kv.Reader, scope kv.Scope, found func(error)) error {
	if scope.Kind != kv.OwnerUser && scope.Kind != kv.OwnerSpace {
		return nil
	}
	return kv.Walk(ctx, from, kv.System, kv.Prefix(keyOf(scope)), found, func(p kv.Pair) error {
		m, err := decode(p.Value)
		if err == nil && scope.Kind == kv.OwnerSpace && !m.leaving && !m.admins() && !m.orphaned() {
			err = damaged(errors.New("nobody administers the space"))
		}
		return err
	})
}
