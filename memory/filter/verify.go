package filter

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// binding is where a filter reads records, and how many bytes of them it may
// still read.
type binding struct {
	view  kv.Getter
	scope kv.Scope
	left  *int
}

// ordinal returns the ordinal of the record with the id; zero where there is none,
// as for a name longer than any id.
func (b binding) ordinal(ctx context.Context, id string) (uint32, error) {
	if len(id) > record.MaxIDBytes {
		return 0, nil
	}
	r, _, err := record.Read(ctx, b.view, b.scope, id)
	return r.Document.Ordinal, err
}

// maxVerifiedBytes bounds the records that one filter reads in one scope where
// the index keeps too little of their values: reading as much takes a second or
// two, and most filters read nothing.
const maxVerifiedBytes = 64 << 20

// verifier asks the records themselves.
func (b binding) verifier(accept func(record.Record) bool) selection.Verifier {
	return func(ctx context.Context, ids []string) ([]bool, error) {
		accepted := make([]bool, len(ids))
		err := record.Named(ctx, b.view, b.scope, ids, func(i int, r *record.Record, size int) error {
			if *b.left -= size; *b.left < 0 {
				return &Error{Problem: fmt.Sprintf("reads more than %d MiB of records, for values that the index does not have; narrow it by other conditions", maxVerifiedBytes>>20)}
			}
			accepted[i] = accept(*r)
			return nil
		})
		return accepted, err
	}
}
