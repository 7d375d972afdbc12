package memory

import (
	"context"
	"iter"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Records yields all records of a scope as they are stored, in the order of their
// ids, those that have expired or were superseded included. It needs no Store and
// writes nothing. Vectors are left out: the index has them. What is written while it
// runs may be among them or not.
func Records(ctx context.Context, from kv.Reader, scope kv.Scope) iter.Seq2[Record, error] {
	return storedRecords(ctx, from, scope.Key(tagRecord))
}

// EarlierVersions yields what the records of a scope were before they changed, by
// record, the oldest first, as Records does.
func EarlierVersions(ctx context.Context, from kv.Reader, scope kv.Scope) iter.Seq2[Record, error] {
	return storedRecords(ctx, from, scope.Key(tagVersion))
}

func storedRecords(ctx context.Context, from kv.Reader, prefix []byte) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for pair, err := range from.Scan(ctx, kv.Records, kv.Prefix(prefix)) {
			if err != nil {
				yield(Record{}, wrap("memory: read records", err))
				return
			}
			r, err := decodeRecord(pair.Value)
			if err != nil {
				err = wrap("memory: read records", err)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}
