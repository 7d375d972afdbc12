package memory

import (
	"context"
	"iter"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// Records yields all records of a scope as they are stored, in the order of their
// ids, those that have expired or were superseded included. It needs no Store and
// writes nothing. Vectors are left out: the index has them. What is written while it
// runs may be among them or not.
func Records(ctx context.Context, from kv.Reader, scope kv.Scope) iter.Seq2[record.Record, error] {
	return storedRecords(ctx, from, scope.Key(record.Tag))
}

// EarlierVersions yields what the records of a scope were before they changed, by
// record, the oldest first, as Records does.
func EarlierVersions(ctx context.Context, from kv.Reader, scope kv.Scope) iter.Seq2[record.Record, error] {
	return storedRecords(ctx, from, scope.Key(record.TagVersion))
}

func storedRecords(ctx context.Context, from kv.Reader, prefix []byte) iter.Seq2[record.Record, error] {
	return func(yield func(record.Record, error) bool) {
		for pair, err := range from.Scan(ctx, kv.Records, kv.Prefix(prefix)) {
			if err != nil {
				yield(record.Record{}, wrap("memory: read records", err))
				return
			}
			r, err := record.Decode(pair.Value)
			if err != nil {
				err = wrap("memory: read records", err)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}
