package kv

import "bytes"

// overlay holds the writes of a batch that are not in the snapshot yet. Only one
// goroutine reads it at a time.
type overlay struct {
	batch *Batch
	index overlayIndex
}

func (o *overlay) empty() bool { return o == nil || o.batch.Len() == 0 }

// overlayIndex finds the last write of each key in a batch that grows. Most batches are
// small and few of their keys are read again, so it is made when it is needed.
type overlayIndex struct {
	indexed int // how many writes of the batch are in byKey
	byKey   map[overlayKey]overlayValue
}

type overlayKey struct {
	keyspace Keyspace
	key      string
}

// overlayValue is a put, or a delete when value is nil.
type overlayValue struct{ value []byte }

// fewWrites is how many writes are searched one by one: that takes less time than
// putting them into a map.
const fewWrites = 16

// find returns the last write of a key.
func (x *overlayIndex) find(b *Batch, ks Keyspace, key []byte) (overlayValue, bool) {
	if len(b.ops) > fewWrites {
		v, ok := x.all(b)[overlayKey{ks, string(key)}]
		return v, ok
	}
	for i := len(b.ops) - 1; i >= 0; i-- {
		if op := &b.ops[i]; op.Keyspace == ks && bytes.Equal(op.Key, key) {
			return overlayValue{op.Value}, true
		}
	}
	return overlayValue{}, false
}

// all returns the last write of every key.
func (x *overlayIndex) all(b *Batch) map[overlayKey]overlayValue {
	if x.byKey == nil {
		x.byKey = make(map[overlayKey]overlayValue, len(b.ops))
	}
	for _, op := range b.ops[x.indexed:] {
		x.byKey[overlayKey{op.Keyspace, string(op.Key)}] = overlayValue{op.Value}
	}
	x.indexed = len(b.ops)
	return x.byKey
}
