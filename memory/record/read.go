package record

import (
	"context"
	"fmt"
	"iter"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Read returns the record with that id; false when there is none.
func Read(ctx context.Context, from kv.Getter, scope kv.Scope, id string) (Record, bool, error) {
	values, err := from.Get(ctx, kv.Records, Key(scope, id))
	if err != nil || values[0] == nil {
		return Record{}, false, err
	}
	r, err := Decode(values[0])
	return r, err == nil, err
}

// ReadNamed returns the record that has the key; false when there is none.
func ReadNamed(ctx context.Context, from kv.Getter, scope kv.Scope, key string) (Record, bool, error) {
	values, err := from.Get(ctx, kv.Records, NameKey(scope, key))
	if err != nil || values[0] == nil {
		return Record{}, false, err
	}
	r, ok, err := Read(ctx, from, scope, string(values[0]))
	if err == nil && !ok {
		err = fmt.Errorf("%w: key %q names record %q, which does not exist", ErrDamaged, key, values[0])
	}
	return r, ok, err
}

// Each reads the records of keys at once and calls visit for each in their order,
// with its stored size in bytes; with nil for a missing record.
func Each(ctx context.Context, from kv.Getter, keys [][]byte, visit func(i int, r *Record, size int) error) error {
	if len(keys) == 0 {
		return nil
	}
	values, err := from.Get(ctx, kv.Records, keys...)
	if err != nil {
		return err
	}
	for i, value := range values {
		var r *Record
		if value != nil {
			decoded, err := Decode(value)
			if err != nil {
				return err
			}
			r = &decoded
		}
		if err := visit(i, r, len(value)); err != nil {
			return err
		}
	}
	return nil
}

// Named reads the records that the index names, as Each does. One that is not there is ErrDamaged.
func Named(ctx context.Context, from kv.Getter, scope kv.Scope, ids []string, visit func(i int, r *Record, size int) error) error {
	return Each(ctx, from, Keys(scope, ids), func(i int, r *Record, size int) error {
		if r == nil {
			return Missing(ids[i])
		}
		return visit(i, r, size)
	})
}

// Missing is the error for a record that the index names and that is not there.
func Missing(id string) error {
	return fmt.Errorf("%w: the index names record %q, which does not exist", ErrDamaged, id)
}

// All yields the records of a scope in the order of their ids, those expired or
// superseded included, without their vectors: the index has them.
func All(ctx context.Context, from kv.Reader, scope kv.Scope) iter.Seq2[Record, error] {
	return stored(ctx, from, scope.Key(Tag))
}

// EarlierVersions yields what the records of a scope were before they changed, by
// record, the oldest first.
func EarlierVersions(ctx context.Context, from kv.Reader, scope kv.Scope) iter.Seq2[Record, error] {
	return stored(ctx, from, scope.Key(TagVersion))
}

func stored(ctx context.Context, from kv.Reader, prefix []byte) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for pair, err := range from.Scan(ctx, kv.Records, kv.Prefix(prefix)) {
			var r Record
			if err == nil {
				if r, err = Decode(pair.Value); err != nil {
					err = fmt.Errorf("%w: that of %q", err, pair.Key[len(prefix):])
				}
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
