package rockskv

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Default memory budgets, in bytes.
const (
	DefaultWriteBufferBytes = 64 << 20
	DefaultBlockCacheBytes  = 64 << 20
)

// MinWriteBufferBytes is the least write buffer a store opens with: one batch
// of the greatest size has to fit into half of it.
const MinWriteBufferBytes = 36 << 20

// ErrOptions: an option is out of its range.
var ErrOptions = errors.New("rockskv: bad option")

// Durability says what is true when a commit returns.
type Durability int

const (
	// Sync: the commit is on disk. It survives a loss of power.
	Sync Durability = iota
	// WAL: the commit is in the log, which the system writes out when it likes.
	// It survives the death of the process.
	WAL
	// None: the commit is in memory only. Close, and a full buffer, write it
	// out; a crash loses what came last, in all keyspaces back to one moment.
	None
)

var durabilityNames = []string{Sync: "sync", WAL: "wal", None: "none"}

// String returns "sync", "wal" or "none".
func (d Durability) String() string {
	if d.valid() {
		return durabilityNames[d]
	}
	return fmt.Sprintf("durability(%d)", int(d))
}

func (d Durability) valid() bool { return d >= Sync && d <= None }

// ParseDurability is the inverse of String. An unknown name is an ErrOptions.
func ParseDurability(name string) (Durability, error) {
	for d, known := range durabilityNames {
		if name == known {
			return Durability(d), nil
		}
	}
	return Sync, fmt.Errorf("%w: durability %q is not sync, wal or none", ErrOptions, name)
}

// Options is how a store is opened. Nil is the same as the zero value.
type Options struct {
	// Durability is what a commit waits for. Default Sync.
	Durability Durability
	// WriteBufferBytes bounds the memory for committed data that is not yet in table files,
	// all keyspaces together. Default DefaultWriteBufferBytes, at least
	// MinWriteBufferBytes.
	WriteBufferBytes int64
	// BlockCacheBytes bounds the memory of cached blocks, indexes and filters.
	// Default DefaultBlockCacheBytes.
	BlockCacheBytes int64
	// SnapshotLife is how long a snapshot lives. Default kv.SnapshotLife.
	SnapshotLife time.Duration
	// Fill, unless empty, is the name of another store that is to be copied into this
	// one: Open makes a store that no other process opens until Finish (kv.ErrUnfinished),
	// or goes on with one that was begun under that name. Where there is another store
	// it is kv.ErrOccupied.
	Fill string
}

// withDefaults returns a filled-in copy, or an ErrOptions.
func (o *Options) withDefaults() (Options, error) {
	filled := *cmp.Or(o, &Options{})
	filled.WriteBufferBytes = cmp.Or(filled.WriteBufferBytes, DefaultWriteBufferBytes)
	filled.BlockCacheBytes = cmp.Or(filled.BlockCacheBytes, DefaultBlockCacheBytes)
	filled.SnapshotLife = cmp.Or(filled.SnapshotLife, kv.SnapshotLife)
	switch {
	case !filled.Durability.valid():
		return filled, fmt.Errorf("%w: %v", ErrOptions, filled.Durability)
	case filled.WriteBufferBytes < MinWriteBufferBytes:
		return filled, fmt.Errorf("%w: write buffer of %d bytes is under %d", ErrOptions, filled.WriteBufferBytes, MinWriteBufferBytes)
	case filled.BlockCacheBytes < 0:
		return filled, fmt.Errorf("%w: block cache of %d bytes", ErrOptions, filled.BlockCacheBytes)
	case filled.SnapshotLife < 0:
		return filled, fmt.Errorf("%w: snapshot life of %v", ErrOptions, filled.SnapshotLife)
	}
	return filled, nil
}

// Stats counts what a store did since it was opened.
type Stats struct {
	// WALSyncs is how often RocksDB has synced its log.
	WALSyncs uint64
	// WALBytes is the bytes RocksDB has written to its log.
	WALBytes uint64
	// KeysWritten counts keys put and deleted, including sequence keys.
	KeysWritten uint64
	// Commits counts acknowledged commits, Conflicts those a guard refused.
	Commits   uint64
	Conflicts uint64
	// Joins counts RocksDB batches; Commits/Joins is how well joining works.
	Joins uint64
	// SyncTime is how long the syncs of the log took together.
	SyncTime time.Duration
}

// ErrNotDamaged: a repair found nothing to do.
var ErrNotDamaged = errors.New("rockskv: nothing in the store is damaged that keeps it from opening")

// Repaired is what a repair did.
type Repaired struct {
	// Damage is why it was needed.
	Damage *kv.DamageError
	// Kept is the directory, inside that of the store, that holds the damaged files
	// as they were.
	Kept string
	// Cut are the logs that were cut or taken away, and LostBytes what they held
	// from there on.
	Cut       []string
	LostBytes int64
}
