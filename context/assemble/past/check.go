package past

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Check reads the records of an agent back: each must be readable, and each text have
// its hash. found is called for each fault; the error is only why the check could not go
// on. A text that a record names may be missing: records are not synced.
func Check(ctx context.Context, from kv.Reader, scope kv.Scope, found func(error)) error {
	err := kv.Walk(ctx, from, kv.Log, kv.Prefix(scope.Key(tagRecord)), found, func(p kv.Pair) error {
		if _, err := decodeRecord(p.Value); err != nil {
			return fmt.Errorf("%c %q: %w", tagRecord, p.Key, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = kv.Walk(ctx, from, kv.Log, kv.Prefix(scope.Key(tagState)), found, func(p kv.Pair) error {
		if _, err := decodeState(p.Value); err != nil {
			return fmt.Errorf("%c %q: %w", tagState, p.Key, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	var text []byte
	err = kv.Walk(ctx, from, kv.Log, kv.Prefix(scope.Key(tagText)), found, func(p kv.Pair) error {
		const numbered = 2 // bytes of the part's number
		if len(p.Value) == 0 || len(p.Key) < len(hash{})+numbered {
			return fmt.Errorf("%c %q: %w", tagText, p.Key, errDamaged)
		}
		text = append(text, p.Value[1:]...)
		if p.Value[0] == goesOn {
			return nil
		}
		whole := text
		text = nil
		if want := hash(p.Key[len(p.Key)-numbered-len(hash{}):]); hashOf(whole) != want {
			return fmt.Errorf("%c %q: %w: it has another hash", tagText, p.Key, errDamaged)
		}
		return nil
	})
	if len(text) > 0 {
		found(fmt.Errorf("%c: %w: the last text has no end", tagText, errDamaged))
	}
	return err
}
