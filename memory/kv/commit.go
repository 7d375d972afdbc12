package kv

import (
	"fmt"
	"slices"
)

// Limits of the contract. Every engine keeps them, and refuses a commit over
// one with a *LimitError before anything is written.
const (
	// MaxKeyBytes bounds one key, its scope included.
	MaxKeyBytes = 1 << 10
	// ValueHeaderBytes is the room a value has in addition to its payload.
	ValueHeaderBytes = 4 << 10
	// MaxValueBytes bounds one value: 4 MiB of payload and a header.
	MaxValueBytes = 4<<20 + ValueHeaderBytes
	// MaxBatchBytes bounds the total size of the keys and values of a commit; MaxLargeBytes
	// bounds it for a commit marked Large.
	MaxBatchBytes = 16 << 20
	MaxLargeBytes = 128 << 20
	// MaxWatchBytes bounds the keys and values that one commit watches.
	MaxWatchBytes = 64 << 20
)

// Guard names a ref that a commit writes to. An exact guard holds while the ref
// has the expected sequence, and the commit raises that by one.
type Guard struct {
	Ref
	// Sequence is what the ref must have; ignored with Any.
	Sequence uint64
	// Any accepts every sequence and leaves it as it is: for blind writes, which
	// read nothing. They never conflict, and no exact guard notices them. Who
	// must notice one watches the key (Commit.Watched).
	Any bool
}

// Watch is a key that must have a value.
type Watch struct {
	Keyspace Keyspace
	Key      []byte
	// Value is what the key must have; nil means that it must be missing.
	Value []byte
}

// Op is one change: a put, or a delete when Delete is set. Deleting a missing
// key is no error.
type Op struct {
	Keyspace Keyspace
	Key      []byte
	Value    []byte
	Delete   bool
}

// Batch collects changes in order; of two changes to one key the later wins.
// The zero value is empty and ready. A batch is not safe for concurrent use
// and keeps the slices given to it until it is reset.
type Batch struct {
	ops           []Op
	size          int
	puts, deletes bool // there are some
}

// Put sets key to value.
func (b *Batch) Put(ks Keyspace, key, value []byte) {
	b.add(Op{Keyspace: ks, Key: key, Value: value})
}

// Delete removes key.
func (b *Batch) Delete(ks Keyspace, key []byte) {
	b.add(Op{Keyspace: ks, Key: key, Delete: true})
}

// usualOps is how many changes most commits make, or more.
const usualOps = 16

// Grow makes room for so many changes more, and a few.
func (b *Batch) Grow(n int) { b.ops = slices.Grow(b.ops, n+usualOps) }

func (b *Batch) add(op Op) {
	if b.ops == nil {
		b.ops = make([]Op, 0, usualOps)
	}
	b.ops = append(b.ops, op)
	b.size += len(op.Key) + len(op.Value)
	b.puts, b.deletes = b.puts || !op.Delete, b.deletes || op.Delete
}

// Append adds all changes of another batch behind its own.
func (b *Batch) Append(other *Batch) {
	b.ops = append(b.ops, other.ops...)
	b.size += other.size
	b.puts, b.deletes = b.puts || other.puts, b.deletes || other.deletes
}

// Ops returns the changes in order; the slice belongs to the batch.
func (b *Batch) Ops() []Op { return b.ops }

// Len is the number of changes.
func (b *Batch) Len() int { return len(b.ops) }

// Size is the bytes of all keys and values.
func (b *Batch) Size() int { return b.size }

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	clear(b.ops)
	*b = Batch{ops: b.ops[:0]}
}

// Commit is what an Engine writes at once.
type Commit struct {
	// Guards name every ref the batch touches, each once.
	Guards []Guard
	// Watched are keys of guarded refs whose values the commit relies on although
	// blind writes may change them. They are compared when the commit is made.
	Watched []Watch
	// Batch is what to write; a commit may hold guards alone.
	Batch *Batch
	// Token, unless zero, is kept with the sequence of each exact guard until another
	// commit raises that, so that Settle can say the outcome of the commit. It is a
	// random number of this commit's own.
	Token uint64
	// Lazy acknowledges before the commit is on disk. It survives the death of
	// the process, and any later commit that is not lazy makes it durable.
	Lazy bool
	// Large lets the commit have up to MaxLargeBytes: it is rare, and others wait for it.
	Large bool
	// Unfenced lets the commit through the fence of its process (Shared.Fence): it
	// registers the process anew.
	Unfenced bool
}

// Check returns an error unless the commit keeps the contract: valid guards
// named once, every key inside a guarded ref and not reserved, all limits
// kept. Engines call it first.
func (c Commit) Check() error {
	if len(c.Guards) == 0 {
		return ErrUnguarded
	}
	guarded := make(map[Keyspace][][]byte, len(c.Guards))
	for i, g := range c.Guards {
		if err := checkGuard(c.Guards[:i], g); err != nil {
			return err
		}
		guarded[g.Keyspace] = append(guarded[g.Keyspace], g.Scope.AppendPrefix(nil))
	}
	if err := checkWatched(guarded, c.Watched); err != nil {
		return err
	}
	if c.Batch == nil {
		return nil
	}
	limit := MaxBatchBytes
	if c.Large {
		limit = MaxLargeBytes
	}
	if c.Batch.Size() > limit {
		return &LimitError{What: "batch", Size: c.Batch.Size(), Limit: limit}
	}
	for _, op := range c.Batch.Ops() {
		if err := checkOp(guarded[op.Keyspace], op); err != nil {
			return err
		}
	}
	return nil
}

func checkGuard(before []Guard, g Guard) error {
	if !g.Keyspace.valid() {
		return fmt.Errorf("%w: keyspace %d", ErrBadScope, g.Keyspace)
	}
	for _, b := range before {
		if b.Ref == g.Ref {
			return fmt.Errorf("%w: guard %s is named twice", ErrUnguarded, g.Ref)
		}
	}
	return g.Scope.Validate()
}

func checkWatched(guarded map[Keyspace][][]byte, watched []Watch) error {
	size := 0
	for _, w := range watched {
		if size += len(w.Key) + len(w.Value); size > MaxWatchBytes {
			return &LimitError{What: "watched bytes", Size: size, Limit: MaxWatchBytes}
		}
		if err := checkOp(guarded[w.Keyspace], Op{Keyspace: w.Keyspace, Key: w.Key}); err != nil {
			return err
		}
	}
	return nil
}

func checkOp(prefixes [][]byte, op Op) error {
	if len(op.Key) > MaxKeyBytes {
		return &LimitError{What: "key", Size: len(op.Key), Limit: MaxKeyBytes}
	}
	if len(op.Value) > MaxValueBytes {
		return &LimitError{What: "value", Size: len(op.Value), Limit: MaxValueBytes}
	}
	for _, p := range prefixes {
		if len(op.Key) <= len(p) || string(op.Key[:len(p)]) != string(p) {
			continue
		}
		if op.Key[len(p)] == reservedTag {
			return fmt.Errorf("%w: reserved key in %s", ErrBadKey, op.Keyspace)
		}
		return nil
	}
	return fmt.Errorf("%w: key %q of %s lies in no guarded scope", ErrUnguarded, op.Key, op.Keyspace)
}
