package memory

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
)

// binding is where a filter reads records, and how many bytes of them it may
// still read.
type binding struct {
	view  getter
	scope kv.Scope
	left  *int
}

// ordinal returns the ordinal of the record with the id; zero when nobody has
// it. A name longer than any can be is nobody's.
func (b binding) ordinal(ctx context.Context, id string) (uint32, error) {
	if len(id) > MaxIDBytes {
		return 0, nil
	}
	r, _, err := readRecord(ctx, b.view, b.scope, id)
	return r.ordinal, err
}

// maxVerifiedBytes bounds the records that one filter reads in one scope where
// the index keeps too little of their values: reading as much takes a second or
// two, and most filters read nothing.
const maxVerifiedBytes = 64 << 20

// verifier asks the records themselves.
func (b binding) verifier(accept func(Record) bool) selection.Verifier {
	return func(ctx context.Context, ids []string) ([]bool, error) {
		keys := make([][]byte, len(ids))
		for i, id := range ids {
			keys[i] = recordKey(b.scope, id)
		}
		values, err := b.view.Get(ctx, kv.Records, keys...)
		if err != nil {
			return nil, err
		}
		accepted := make([]bool, len(ids))
		for i, value := range values {
			if value == nil {
				return nil, fmt.Errorf("%w: the index names record %q, which is not there", ErrDamaged, ids[i])
			}
			r, err := decodeRecord(value)
			if err != nil {
				return nil, err
			}
			if *b.left -= len(value); *b.left < 0 {
				return nil, &FilterError{Problem: fmt.Sprintf("reads more than %d MiB of records, for values that the index does not have; narrow it by other conditions", maxVerifiedBytes>>20)}
			}
			accepted[i] = accept(r)
		}
		return accepted, nil
	}
}
