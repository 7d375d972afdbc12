package mention

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// rules is the number of the rules by which names are found (memory/FORMAT.md).
const rules = 1

// Fields of a tenant's progress (memory/FORMAT.md).
const (
	fieldRules = iota + 1
	fieldKey
	fieldSource
	fieldComplete
)

// progress is how far the back-fill of a tenant is: it goes on at a key of a source.
type progress struct {
	source, key []byte
	complete    bool
}

func progressKey(tenant string) []byte { return ListRef(tenant).Scope.Key(tagBackfill) }

func (c progress) encode() []byte {
	b := wire.AppendUint(nil, fieldRules, rules)
	b = wire.AppendText(b, fieldKey, c.key)
	b = wire.AppendText(b, fieldSource, c.source)
	if c.complete {
		b = wire.AppendUint(b, fieldComplete, 1)
	}
	return b
}

// progress reads the progress of a tenant.
func (b *Backfill) progress(ctx context.Context, tenant string) (progress, error) {
	values, err := b.engine.Get(ctx, kv.System, progressKey(tenant))
	if err != nil {
		return progress{}, fmt.Errorf("mention: read the progress of tenant %q: %w", tenant, err)
	}
	return decodeProgress(values[0]), nil
}

// decodeProgress returns the start if the value can't be read or is of other rules.
func decodeProgress(value []byte) (at progress) {
	found := uint64(0)
	for f, err := range wire.Fields(value) {
		if err != nil {
			return progress{}
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
		return progress{}
	}
	return at
}
