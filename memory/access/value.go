package access

import (
	"context"
	"math"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Tag begins the keys of accesses in the keyspace of records (memory/FORMAT.md).
const Tag = 'a'

// HalfLife is the age at which an access counts half.
const HalfLife = 30 * 24 * time.Hour

// Fields of a stored value.
//
// By hand: the generated message takes 2.5 times as long to read and write; a query reads one for each hit.
const (
	fieldHeat = iota + 1
	fieldCount
	fieldLast
)

// Value describes a record's accesses. The zero value: there were none.
type Value struct {
	// Heat is their sum, each counting less the older it is, as of Last.
	Heat float64
	// Count is how many there were.
	Count uint64
	// Last is when the last one was written.
	Last time.Time
}

// Key is where the accesses of a record stand.
func Key(scope kv.Scope, id string) []byte { return scope.Key(Tag, []byte(id)) }

// At is the heat at a moment.
func (v Value) At(now time.Time) float64 {
	if v.Heat == 0 {
		return 0
	}
	return v.Heat * math.Exp2(-max(0, now.Sub(v.Last).Hours())/HalfLife.Hours())
}

// Strength is how much in use a record is, from 0 to 1: one access is .29, two .5, six .88,
// and the same again later less.
func (v Value) Strength(now time.Time) float64 {
	const half = 2 // accesses
	return 1 - math.Exp2(-v.At(now)/half)
}

// with adds accesses.
func (v Value) with(n uint64, now time.Time) Value {
	return Value{Heat: v.At(now) + float64(n), Count: v.Count + n, Last: now}
}

func (v Value) encode() []byte {
	dst := wire.AppendFixed64(nil, fieldHeat, math.Float64bits(v.Heat))
	dst = wire.AppendUint(dst, fieldCount, v.Count)
	return wire.AppendTime(dst, fieldLast, v.Last)
}

// decode reads a value; one that can't be read is none, as counts are no truth.
func decode(stored []byte) (v Value) {
	for f, err := range wire.Fields(stored) {
		if err != nil {
			return Value{}
		}
		switch f.Number {
		case fieldHeat:
			v.Heat = math.Float64frombits(f.Value)
		case fieldCount:
			v.Count = f.Value
		case fieldLast:
			v.Last = f.Time()
		}
	}
	if !(v.Heat >= 0 && v.Heat <= math.MaxUint32) {
		return Value{}
	}
	return v
}

// Read returns the accesses of records of a scope, in order.
func Read(ctx context.Context, from kv.Getter, scope kv.Scope, ids []string) ([]Value, error) {
	keys := make([][]byte, len(ids))
	for i, id := range ids {
		keys[i] = Key(scope, id)
	}
	stored, err := from.Get(ctx, kv.Records, keys...)
	if err != nil {
		return nil, err
	}
	values := make([]Value, len(ids))
	for i, one := range stored {
		values[i] = decode(one)
	}
	return values, nil
}
