//go:build cgo && !norocksdb

package tuning

import (
	"slices"

	"github.com/linxGnu/grocksdb"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Settings is what differs from one store to another.
type Settings struct {
	// WriteBufferBytes bounds the memtables of all column families together.
	WriteBufferBytes uint64
	// BlockCacheBytes bounds cached blocks, indexes and filters together.
	BlockCacheBytes uint64
	// Create makes a new database with all its column families.
	Create bool
	// AtomicFlush writes all column families' memtables out together. Without
	// a log nothing else keeps them at the same moment after a crash.
	AtomicFlush bool
	// LogDir is where RocksDB's own LOG goes. Default the database's directory.
	LogDir string
}

const (
	kib = 1 << 10
	mib = 1 << 20

	// bloomBits per key make about one false positive in a hundred.
	bloomBits = 10
	// minBlobBytes is the value size from which the blobs family stores values outside the
	// tree, where compaction does not rewrite them.
	minBlobBytes = 4 * kib
	// blobFileBytes is small against the default of 256 MiB: garbage is given
	// back a whole file at a time.
	blobFileBytes = 64 * mib
	// cacheShardBits divides the cache in eight. What is larger than a part is not kept, and
	// the index of a full table file has a megabyte: with RocksDB's own choice, parts of one
	// megabyte, each read of such a file would read its index anew.
	cacheShardBits = 3
	// maxOpenFiles stays under the customary 1,024 descriptors of a process,
	// which sockets need too.
	maxOpenFiles = 512
	// backgroundJobs lets a flush run during a compaction.
	backgroundJobs = 3
	// memtables per family: one fills while others are written out.
	memtables = 4
	// walBuffers times the write buffer bounds the log, and with it the time
	// an open after a crash takes.
	walBuffers = 4
	// bytesPerSync spreads the writing of table files, so that it does not hit
	// the log's next sync all at once.
	bytesPerSync = 1 * mib
	// headerInfoLogLevel writes the settings into RocksDB's own LOG when the
	// database is opened, and nothing later. Debian's library is built with its
	// assertions on, and one of them ends the process when LOG can't grow: a
	// full disk must not do that.
	headerInfoLogLevel = grocksdb.InfoLogLevel(5)
	// infoLogFiles of the last opens are kept.
	infoLogFiles = 4
)

// Tuning is a set of native options. Destroy frees it, after the database it
// opened is closed.
type Tuning struct {
	// Options are the database's own; they hold its statistics.
	Options  *grocksdb.Options
	families []*grocksdb.Options
	cache    *grocksdb.Cache
	table    *grocksdb.BlockBasedTableOptions
}

// New returns the options for s.
func New(s Settings) *Tuning {
	t := &Tuning{cache: newCache(s.BlockCacheBytes)}
	t.table = tableOptions(t.cache)
	t.Options = databaseOptions(s)
	t.families = append(t.families, t.familyOptions(s))
	for _, ks := range kv.Keyspaces() {
		family := t.familyOptions(s)
		if ks == kv.Blobs {
			keepBlobs(family)
		}
		t.families = append(t.families, family)
	}
	return t
}

// Open opens the database in dir. The handles are in the order of the
// keyspaces' numbers; the caller destroys them before it closes the database.
func (t *Tuning) Open(dir string) (*grocksdb.DB, []*grocksdb.ColumnFamilyHandle, error) {
	db, handles, err := grocksdb.OpenDbColumnFamilies(t.Options, dir, familyNames(), t.families)
	if err != nil {
		return nil, nil, err
	}
	handles[0].Destroy()
	return db, slices.Clone(handles[1:]), nil
}

// OpenReadOnly opens the database in dir and writes nothing there.
func (t *Tuning) OpenReadOnly(dir string) (*grocksdb.DB, []*grocksdb.ColumnFamilyHandle, error) {
	db, handles, err := grocksdb.OpenDbForReadOnlyColumnFamilies(t.Options, dir, familyNames(), t.families, false)
	if err != nil {
		return nil, nil, err
	}
	handles[0].Destroy()
	return db, slices.Clone(handles[1:]), nil
}

// familyNames returns the names of all column families. RocksDB insists on its default one;
// ours stays empty.
func familyNames() []string {
	names := []string{"default"}
	for _, ks := range kv.Keyspaces() {
		names = append(names, ks.String())
	}
	return names
}

// Destroy frees the options.
func (t *Tuning) Destroy() {
	for _, family := range t.families {
		family.Destroy()
	}
	t.Options.Destroy()
	t.table.Destroy()
	t.cache.Destroy()
}

func newCache(bytes uint64) *grocksdb.Cache {
	o := grocksdb.NewLRUCacheOptions()
	defer o.Destroy()
	o.SetCapacity(uint(bytes))
	o.SetNumShardBits(cacheShardBits)
	return grocksdb.NewLRUCacheWithOptions(o)
}

func tableOptions(cache *grocksdb.Cache) *grocksdb.BlockBasedTableOptions {
	o := grocksdb.NewDefaultBlockBasedTableOptions()
	o.SetBlockCache(cache)
	o.SetFilterPolicy(grocksdb.NewBloomFilter(bloomBits))
	// Indexes and filters count against the cache's budget; otherwise memory
	// would grow with the data.
	o.SetCacheIndexAndFilterBlocks(true)
	o.SetPinL0FilterAndIndexBlocksInCache(true)
	return o
}

func databaseOptions(s Settings) *grocksdb.Options {
	o := grocksdb.NewDefaultOptions()
	o.SetCreateIfMissing(s.Create)
	o.SetCreateIfMissingColumnFamilies(s.Create)
	o.SetAtomicFlush(s.AtomicFlush)
	o.SetDbWriteBufferSize(s.WriteBufferBytes)
	o.SetMaxTotalWalSize(walBuffers * s.WriteBufferBytes)
	o.SetMaxOpenFiles(maxOpenFiles)
	o.SetMaxBackgroundJobs(backgroundJobs)
	o.SetBytesPerSync(bytesPerSync)
	o.SetKeepLogFileNum(infoLogFiles)
	o.SetStatsDumpPeriodSec(0)
	o.SetStatsPersistPeriodSec(0)
	o.SetInfoLogLevel(headerInfoLogLevel)
	// What a log lost that was on disk is found before RocksDB opens it (package
	// rockskv). What follows behind that may be torn anywhere, since the system
	// writes pages out in any order: it counts up to the first tear.
	o.SetWALRecoveryMode(grocksdb.PointInTimeRecovery)
	if s.LogDir != "" {
		o.SetDbLogDir(s.LogDir)
	}
	o.EnableStatistics()
	return o
}

func (t *Tuning) familyOptions(s Settings) *grocksdb.Options {
	o := grocksdb.NewDefaultOptions()
	// Half the budget: one busy family may use most of it, and the shared
	// bound still decides.
	o.SetWriteBufferSize(s.WriteBufferBytes / 2)
	o.SetMaxWriteBufferNumber(memtables)
	o.SetLevelCompactionDynamicLevelBytes(true)
	o.SetCompression(grocksdb.LZ4Compression)
	o.SetBottommostCompression(grocksdb.ZSTDCompression)
	o.SetBlockBasedTableFactory(t.table)
	return o
}

// keepBlobs sets a family up for large values. The long ones are compressed
// already, which LZ4 notices at little cost; the short ones are left to it.
func keepBlobs(o *grocksdb.Options) {
	o.SetBottommostCompression(grocksdb.LZ4Compression)
	o.EnableBlobFiles(true)
	o.SetMinBlobSize(minBlobBytes)
	o.SetBlobFileSize(blobFileBytes)
	o.SetBlobCompressionType(grocksdb.LZ4Compression)
	o.EnableBlobGC(true)
}
