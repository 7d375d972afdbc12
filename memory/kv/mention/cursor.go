package mention

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// rules is the number of the rules by which names are found (memory/FORMAT.md).
const rules = 1

// Fields of a tenant's cursor (memory/FORMAT.md).
const (
	fieldRules = iota + 1
	fieldKey
	fieldSource
	fieldComplete
)

// cursor is how far the back-fill of a tenant is: it goes on at a key of a source.
type cursor struct {
	source, key []byte
	complete    bool
}

func cursorKey(tenant string) []byte { return ListRef(tenant).Scope.Key(tagBackfill) }

func (c cursor) encode() []byte {
	b := wire.AppendUint(nil, fieldRules, rules)
	b = wire.AppendText(b, fieldKey, c.key)
	b = wire.AppendText(b, fieldSource, c.source)
	if c.complete {
		b = wire.AppendUint(b, fieldComplete, 1)
	}
	return b
}

// cursor reads the cursor of a tenant. That of other rules counts for nothing.
func (b *Backfill) cursor(ctx context.Context, tenant string) (cursor, error) {
	values, err := b.engine.Get(ctx, kv.System, cursorKey(tenant))
	if err != nil {
		return cursor{}, fmt.Errorf("mention: read the cursor of tenant %q: %w", tenant, err)
	}
	var at cursor
	found := uint64(0)
	for f, err := range wire.Fields(values[0]) {
		if err != nil {
			return cursor{}, nil // it begins anew
		}
		switch f.Number {
		case fieldRules:
			found = f.Value
		case fieldKey:
			at.key = f.Bytes
		case fieldSource:
			at.source = f.Bytes
		case fieldComplete:
			at.complete = f.Value != 0
		}
	}
	if found != rules {
		return cursor{}, nil
	}
	return at, nil
}
