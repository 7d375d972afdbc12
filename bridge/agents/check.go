package agents

import (
	"context"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Check reads the stored state of an agent back, or the gaps of a tenant's agents,
// whichever stand in the scope. found is called for each fault; the error is only why
// the check could not go on.
func Check(ctx context.Context, from kv.Reader, scope kv.Scope, found func(error)) error {
	var state []byte
	parts := 0
	err := kv.Walk(ctx, from, kv.System, kv.Prefix(scope.Key(tagState)), found, func(p kv.Pair) error {
		state = append(state, p.Value...)
		parts++
		return nil
	})
	if err != nil {
		return err
	}
	if parts > 0 {
		if _, err := decodeState(state); err != nil {
			found(err)
		}
	}
	if scope != gapRef(scope.Tenant).Scope {
		return nil
	}
	return kv.Walk(ctx, from, kv.System, kv.Prefix(scope.Key(tagGap)), found, func(p kv.Pair) error {
		_, err := decodeGap(p.Value)
		return err
	})
}
