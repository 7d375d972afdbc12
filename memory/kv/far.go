package kv

import (
	"context"
	"sync"
)

// Far is an Engine to which each read is a round trip. It combines several reads into one
// round trip when the caller announces them.
type Far interface {
	// SnapshotWith is Snapshot that reads along, in the same round trip, what will be
	// read of it: then that costs no further one, and answers as it would have. What is
	// over MaxAlong is not read along.
	SnapshotWith(ctx context.Context, refs []Ref, along Reads) (Snapshot, error)
	// SnapshotLater is Snapshot at the moment of the first read, which opens it and
	// reads along.
	SnapshotLater(ctx context.Context, along Reads) (Snapshot, error)
}

// MaxAlong bounds the keys, ranges and refs that are read along.
const MaxAlong = 256

// Reads is what will surely be read. The zero value is empty and ready.
type Reads struct {
	refs   []Ref
	keys   [numKeyspaces][][]byte
	ranges []KeyRange
	size   int
}

// KeyRange is a range of a keyspace.
type KeyRange struct {
	Keyspace Keyspace
	Range    Range
}

// Get adds keys that will be read. They stay as they are.
func (r *Reads) Get(ks Keyspace, keys ...[]byte) {
	if ks.valid() && r.take(len(keys)) {
		r.keys[ks] = append(r.keys[ks], keys...)
	}
}

// Scan adds a range that will be scanned, just as it will be.
func (r *Reads) Scan(ks Keyspace, of Range) {
	if ks.valid() && r.take(1) {
		r.ranges = append(r.ranges, KeyRange{ks, of})
	}
}

// Sequence adds refs whose sequences will be read.
func (r *Reads) Sequence(refs ...Ref) {
	if r.take(len(refs)) {
		r.refs = append(r.refs, refs...)
	}
}

func (r *Reads) take(n int) bool {
	if r.size+n > MaxAlong {
		return false
	}
	r.size += n
	return true
}

// Keys returns the keys of a keyspace, Ranges the ranges, and Refs the refs; the slices
// belong to the reads.
func (r *Reads) Keys(ks Keyspace) [][]byte { return r.keys[ks] }

// Ranges returns the ranges.
func (r *Reads) Ranges() []KeyRange { return r.ranges }

// Refs returns the refs.
func (r *Reads) Refs() []Ref { return r.refs }

// Foresight says what will be read. Only a Far engine asks; nil foresees nothing.
type Foresight func(along *Reads)

func (f Foresight) reads() (along Reads) {
	if f != nil {
		f(&along)
	}
	return along
}

// SnapshotWith returns a snapshot opened with refs; a Far engine also gets the foreseen
// reads.
func SnapshotWith(ctx context.Context, engine Opener, refs []Ref, foresee Foresight) (Snapshot, error) {
	if far, ok := engine.(Far); ok {
		return far.SnapshotWith(ctx, refs, foresee.reads())
	}
	return engine.Snapshot(ctx, refs...)
}

// Opener opens snapshots, as an Engine does.
type Opener interface {
	Snapshot(ctx context.Context, refs ...Ref) (Snapshot, error)
}

type readerKey struct{}

// Within has what reads through a Current with ctx read from a view: that of a prompt, so
// that all of it is of one moment.
func Within(ctx context.Context, view Reader) context.Context {
	return context.WithValue(ctx, readerKey{}, view)
}

// Current reads from the view of its caller (Within), and without one from a reader.
func Current(ctx context.Context, from Reader) Reader {
	if view, ok := ctx.Value(readerKey{}).(Reader); ok {
		return view
	}
	return from
}

// Ahead returns a context within a view that is opened by the first read, and with what is
// foreseen, where the engine is Far: what a call reads before it commits takes one round
// trip then. Elsewhere it is ctx. The caller calls done when it has read all of that.
func Ahead(ctx context.Context, engine Reader, foresee Foresight) (_ context.Context, done func()) {
	far, ok := engine.(Far)
	if !ok {
		return ctx, func() {}
	}
	view, err := far.SnapshotLater(ctx, foresee.reads())
	if err != nil {
		return ctx, func() {} // the reader gets the error
	}
	return Within(ctx, view), func() { _ = view.Close() } // nothing was written to it
}

// Remembering returns a context in which GetOnce reads a key once: for what a call needs
// several times within moments, such as the settings of its session.
func Remembering(ctx context.Context) context.Context {
	if _, already := ctx.Value(rememberedKey{}).(*remembered); already {
		return ctx
	}
	return context.WithValue(ctx, rememberedKey{}, &remembered{values: make(map[string][]byte)})
}

type rememberedKey struct{}

type remembered struct {
	mu     sync.Mutex
	values map[string][]byte // by the keyspace and the key; guarded by mu
}

// GetOnce returns the value of a key as Current reads it, or as it was when it was read first
// in the context of Remembering; nil for a missing key. The value must not be changed.
func GetOnce(ctx context.Context, from Reader, ks Keyspace, key []byte) ([]byte, error) {
	r, _ := ctx.Value(rememberedKey{}).(*remembered)
	name := string(append([]byte{byte(ks)}, key...))
	if r != nil {
		r.mu.Lock()
		value, known := r.values[name]
		r.mu.Unlock()
		if known {
			return value, nil
		}
	}
	values, err := Current(ctx, from).Get(ctx, ks, key)
	if err != nil {
		return nil, err
	}
	if r != nil {
		r.mu.Lock()
		r.values[name] = values[0]
		r.mu.Unlock()
	}
	return values[0], nil
}
