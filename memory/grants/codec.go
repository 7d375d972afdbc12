package grants

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
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

var (
	errOrder = errors.New("grants are out of order")
	errLevel = errors.New("a grant has an unknown level")
)

func keyOf(scope kv.Scope) []byte { return scope.Key(tagGrants) }

func refOf(scope kv.Scope) kv.Ref { return kv.Ref{Keyspace: kv.System, Scope: scope} }

func directoryOf(tenant string) kv.Scope { return directory.Whole(tenant) }

func (m *memory) encode() []byte {
	stored := &storev1.MemoryGrants{Maker: m.maker, Time: wire.Micros(m.made), Deleting: m.leaving}
	for _, g := range m.grants {
		stored.Grants = append(stored.Grants, &storev1.MemoryGrant{Pattern: g.Pattern, Level: uint64(g.Level), By: g.By, Time: wire.Micros(g.Time)})
	}
	return wire.Marshal(stored)
}

// decode reads what encode wrote; of nothing, a memory of which nothing is granted.
func decode(raw []byte) (*memory, error) {
	var stored storev1.MemoryGrants
	if err := wire.Unmarshal(raw, &stored); err != nil {
		return nil, damaged(err)
	}
	m := &memory{raw: raw, maker: stored.Maker, made: wire.TimeOf(stored.Time), leaving: stored.Deleting}
	for _, g := range stored.Grants {
		if g.Level > uint64(Admin) {
			return nil, damaged(errLevel)
		}
		m.grants = append(m.grants, Grant{Pattern: g.Pattern, Level: Level(g.Level), By: g.By, Time: wire.TimeOf(g.Time)})
	}
	if !slices.IsSortedFunc(m.grants, func(a, b Grant) int { return strings.Compare(a.Pattern, b.Pattern) }) {
		return nil, damaged(errOrder)
	}
	return m, nil
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
			err = damaged(errors.New("the space has no admin"))
		}
		return err
	})
}
