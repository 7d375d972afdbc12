package kv

import (
	"context"
	"iter"
	"time"
)

// Keyspace names one nature of data. The numbers are part of the on-disk
// format (memory/FORMAT.md).
type Keyspace uint8

// The keyspaces. An engine offers all of them from the start.
const (
	// Records holds long-term memory records.
	Records Keyspace = iota
	// Index holds what can be rebuilt from records: postings, statistics.
	Index
	// Log holds the session logs: steps, messages, tasks, folds.
	Log
	// Blobs holds offloaded content: chunks, manifests, entries.
	Blobs
	// Events holds the durable topics of the bus.
	Events
	// System holds work lists, leases and directories.
	System

	numKeyspaces
)

var keyspaceNames = [numKeyspaces]string{"records", "index", "log", "blobs", "events", "system"}

// Keyspaces returns every keyspace in the order of its number.
func Keyspaces() []Keyspace {
	all := make([]Keyspace, numKeyspaces)
	for i := range all {
		all[i] = Keyspace(i)
	}
	return all
}

// String returns the keyspace's name, which is also its column family.
func (k Keyspace) String() string {
	switch {
	case k.valid():
		return keyspaceNames[k]
	case k == WholeStore:
		return "store"
	}
	return "unknown"
}

func (k Keyspace) valid() bool { return k < numKeyspaces }

// Pair is one key with its value. Both are copies owned by the receiver.
type Pair struct {
	Key   []byte
	Value []byte
}

// Range selects keys from Start (inclusive) to End (exclusive) in byte order.
// A nil Start begins at the first key, a nil End runs to the last one; a Start
// at or behind End selects nothing.
type Range struct {
	Start []byte
	End   []byte
	// Reverse yields the same keys from the last to the first.
	Reverse bool
	// Limit ends the scan after that many pairs; zero means no limit.
	Limit int
}

// Prefix returns the range of all keys that begin with prefix.
func Prefix(prefix []byte) Range {
	return Range{Start: prefix, End: After(prefix)}
}

// Reader reads keys. All methods are safe for concurrent use.
type Reader interface {
	// Get returns one value for each key, in the order asked; nil marks a
	// missing key, an empty non-nil slice an empty value.
	Get(ctx context.Context, ks Keyspace, keys ...[]byte) ([][]byte, error)

	// Scan yields the pairs of a range in order. An error is yielded last, with
	// a zero Pair. What the scan holds is released when the loop ends, however
	// it ends, and no later than at SnapshotLife: a loop that takes longer gets
	// ErrTooOld from a snapshot, while an engine goes on at a later moment. Even then keys
	// come in order and no key twice; keys written meanwhile may be missing. Reserved keys
	// are never yielded.
	Scan(ctx context.Context, ks Keyspace, r Range) iter.Seq2[Pair, error]

	// Sequence returns the sequence of each ref; zero for one never committed.
	Sequence(ctx context.Context, refs ...Ref) ([]uint64, error)
}

// SnapshotLife is how long a snapshot lives unless set otherwise. It
// is far more than a call takes, and little enough for engines that keep what was
// overwritten, or a connection, for each.
const SnapshotLife = 5 * time.Second

// ReadTime is how long a loop that reads one by one on a snapshot goes on before it stops early,
// so that in an engine that reads slowly its last read ends well within SnapshotLife.
const ReadTime = SnapshotLife / 5

// Snapshot is a Reader whose answers do not change. It lives for a bounded time, by
// default SnapshotLife: after that the engine has let go of what it held, without a
// further call, and reading is ErrTooOld. Use View for what is surely shorter and
// ReadLong for what may not be. Close it; closing twice is harmless, reading
// afterwards is ErrClosed.
type Snapshot interface {
	Reader
	// Sequences returns the sequences of the refs that the snapshot was opened
	// with, in their order. It reads nothing and never fails; the slice belongs to
	// the snapshot.
	Sequences() []uint64
	Close() error
}

// Engine is an ordered store with guarded atomic commits. All methods are safe
// for concurrent use. After Close every method answers ErrClosed.
type Engine interface {
	Reader

	// Snapshot returns a view of everything acknowledged before the call. It
	// reads the sequences of refs along, which saves a far engine a round trip.
	Snapshot(ctx context.Context, refs ...Ref) (Snapshot, error)

	// Commit writes all of the batch, and raises each exact guard's sequence by
	// one, if all guards hold and all watched keys have their values; otherwise
	// it writes nothing and returns a *ConflictError (errors.Is ErrConflict)
	// naming the first guard, and failing that the first key, that does not
	// hold. When it returns nil, the commit is as durable as it asked for
	// and visible to every later read. On any other error nothing was written,
	// unless the error says that this is unknown (ErrUnknownOutcome); Settle finds
	// out.
	Commit(ctx context.Context, c Commit) error

	// LastCommits returns of each ref the last commit that raised its sequence; the
	// zero value for one never raised.
	LastCommits(ctx context.Context, refs ...Ref) ([]LastCommit, error)

	// Close waits for running calls, then releases the store.
	Close() error
}

// LastCommit is the last commit that raised a ref's sequence.
type LastCommit struct {
	// Sequence is what the ref has since then.
	Sequence uint64
	// Token is the commit's (Commit.Token); zero if it had none.
	Token uint64
}

// Checkpointer is an Engine that can copy itself while it serves.
type Checkpointer interface {
	// Checkpoint writes a consistent copy that opens like the original into
	// dir, which must not exist yet.
	Checkpoint(ctx context.Context, dir string) error
}

// Notifier is an Engine that other processes write to as well.
type Notifier interface {
	// Moved yields what another process has moved since the call, until ctx ends.
	// It may say more than once that a ref has moved, or that one has that has not.
	Moved(ctx context.Context) iter.Seq[Move]
}

// Move says that the sequence of a ref may have been raised by another process.
type Move struct {
	Ref Ref
	// Any says that every ref may have moved, as after a lost connection or when more
	// moved than the engine keeps for a slow receiver; Ref is zero then. Whoever waits
	// for a ref looks again.
	Any bool
}

// Sweeper is an Engine that can be read from end to end while it is in use.
type Sweeper interface {
	// Sweep is Snapshot for reading everything once: what it reads displaces
	// nothing that the engine keeps in memory for others.
	Sweep(ctx context.Context, refs ...Ref) (Snapshot, error)
}

// Verifier is an Engine that can read back what it has on disk.
type Verifier interface {
	// Verify reads everything that the store has on disk and compares it with its
	// checksums, while the store serves. v says how, and it returns nil when
	// it has come through, however much it found; otherwise the error of v or ctx,
	// or that of a file that can't be read at all.
	Verify(ctx context.Context, v Verification) error
}

// Verification is how a store is read back. Its functions run on the caller's
// goroutine, and an error of theirs ends the reading.
type Verification struct {
	// Found is called for each damage.
	Found func(*DamageError) error
	// Read, unless nil, is called now and then with how many bytes of how many have been
	// read. It may wait, so that the reading leaves the disk to others.
	Read func(done, total int64) error
}

// Reclaimer is an Engine whose files keep deleted and overwritten data until it is asked to
// remove it.
type Reclaimer interface {
	// Reclaim returns when no file of the engine holds data of the ranges that was deleted
	// or overwritten before the call. It may run during reads and writes, waits for readers
	// of the old data, and may be repeated. Keys that the engine notes about its files may
	// stay until it is opened again.
	Reclaim(ctx context.Context, ranges []KeyRange) error
}

// RangeDropper is an Engine that can delete a range physically and cheaply.
type RangeDropper interface {
	// DropRange deletes every key of the range. It is idempotent, not guarded
	// and raises no sequence: only a range that is already hidden may be
	// dropped.
	DropRange(ctx context.Context, ks Keyspace, r Range) error
}
