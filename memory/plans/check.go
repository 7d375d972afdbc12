package plans

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Check reads what a scope keeps of a session back, if it has one: the rings must be
// whole and readable. found is called for each fault; the error is only why the check could not go
// on.
func Check(ctx context.Context, from kv.Reader, scope kv.Scope, found func(error)) error {
	var h counters
	err := kv.Walk(ctx, from, kv.Records, kv.Prefix(scope.Key(tagCounters)), found, func(p kv.Pair) (err error) {
		h, err = decodeCounters(p.Value)
		return err
	})
	if err != nil {
		return err
	}
	for r, read := range map[ring]func([]byte) error{
		plans:      func(value []byte) error { _, err := decodePlan(value); return err },
		executions: func(value []byte) error { _, err := decodeExecution(value); return err },
		lines:      func(value []byte) error { _, err := decodeLine(value); return err },
	} {
		if err := checkRing(ctx, from, scope, r, *h.last(r), found, read); err != nil {
			return err
		}
	}
	return nil
}

func checkRing(ctx context.Context, from kv.Reader, scope kv.Scope, r ring, last uint64, found func(error), read func([]byte) error) error {
	next := r.oldest(last)
	prefix := scope.Key(byte(r))
	err := kv.Walk(ctx, from, kv.Records, kv.Prefix(prefix), found, func(p kv.Pair) error {
		rest := p.Key[len(prefix):]
		if len(rest) != 8 || binary.BigEndian.Uint64(rest) != next {
			return fmt.Errorf("%w: %c %x stands where number %d should", ErrDamaged, r, rest, next)
		}
		next++
		return read(p.Value)
	})
	if err == nil && next != last+1 {
		found(fmt.Errorf("%w: %c ends at %d, and should at %d", ErrDamaged, r, next-1, last))
	}
	return err
}
