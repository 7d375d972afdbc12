package mention

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// rules is the number of the rules by which names are found (memory/FORMAT.md).
const rules = 1

// progress is how far the back-fill of a tenant is: it goes on at a key of a source.
type progress struct {
	source, key []byte
	complete    bool
}

func progressKey(tenant string) []byte { return ListRef(tenant).Scope.Key(tagBackfill) }

func (c progress) encode() []byte {
	return wire.Marshal(&storev1.Backfill{Rules: rules, After: c.key, Place: c.source, Complete: c.complete})
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
func decodeProgress(value []byte) progress {
	var m storev1.Backfill
	if wire.Unmarshal(value, &m) != nil || m.Rules != rules {
		return progress{}
	}
	return progress{source: m.Place, key: m.After, complete: m.Complete}
}
