//go:build cgo && !norocksdb

package rockskv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linxGnu/grocksdb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func mustOpenHere(tb testing.TB) *DB {
	tb.Helper()
	db, err := Open(tb.TempDir(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// The lock ends with Close, though a process that is just being started still shares the
// descriptor.
func TestCloseUnlocks(t *testing.T) {
	db := mustOpenHere(t)
	shared, err := syscall.Dup(int(db.lock.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(shared)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(db.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestBatchForm compares batches built here with those RocksDB builds from the
// same changes, byte for byte.
func TestBatchForm(t *testing.T) {
	db := mustOpenHere(t)
	seed := chance.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	// Lengths around the steps of the varints.
	lengths := []int{0, 1, 127, 128, 1000, 16383, 16384, 70_000}
	blob := func() []byte { return make([]byte, lengths[random.IntN(len(lengths))]) }
	var ours batch
	for range 50 {
		ours.reset()
		native := grocksdb.NewWriteBatch()
		for range random.IntN(300) {
			ks := random.IntN(len(db.families))
			k, v := blob(), blob()
			if random.IntN(3) == 0 {
				ours.delete(db.families[ks].ID(), k)
				native.DeleteCF(db.families[ks], k)
			} else {
				ours.put(db.families[ks].ID(), k, v)
				native.PutCF(db.families[ks], k, v)
			}
		}
		if !bytes.Equal(ours.finished(), native.Data()) {
			t.Fatal("batch differs from RocksDB's own")
		}
		native.Destroy()
	}
}

// TestBatchIsRead writes a batch built here and reads it by ordinary reads.
func TestBatchIsRead(t *testing.T) {
	db := mustOpenHere(t)
	var b batch
	b.reset()
	family := db.families[kv.Log]
	for i := range 300 {
		b.put(family.ID(), fmt.Appendf(nil, "%03d", i), make([]byte, i))
	}
	b.delete(family.ID(), []byte("007"))
	native := grocksdb.WriteBatchFrom(b.finished())
	defer native.Destroy()
	if native.Count() != 301 {
		t.Errorf("RocksDB counts %d records, want 301", native.Count())
	}
	if err := db.rocks.Write(db.eager, native); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		value, err := db.rocks.GetCF(db.latest.reads, family, fmt.Appendf(nil, "%03d", i))
		if err != nil || value.Exists() != (i != 7) || (i != 7 && value.Size() != i) {
			t.Errorf("key %d: %d bytes, %v", i, value.Size(), err)
		}
		value.Free()
	}
}

func newWaiter(n byte, guards ...kv.Guard) *waiter {
	c := kv.Commit{Guards: guards, Batch: new(kv.Batch)}
	for _, g := range guards {
		c.Batch.Put(g.Keyspace, g.Scope.Key('k'), []byte{n})
	}
	return &waiter{commit: c, bytes: joinBytes(c)}
}

// TestGuardsInsideJoin writes one join whose commits depend on each other.
func TestGuardsInsideJoin(t *testing.T) {
	db := mustOpenHere(t)
	a := kv.Ref{Keyspace: kv.Records, Scope: kv.AgentScope("acme", "a")}
	b := kv.Ref{Keyspace: kv.Log, Scope: kv.AgentScope("acme", "b")}
	join := []*waiter{
		newWaiter(1, kv.Guard{Ref: a, Sequence: 0}),
		newWaiter(2, kv.Guard{Ref: a, Sequence: 0}),                                // conflict: the first raised a
		newWaiter(3, kv.Guard{Ref: b, Sequence: 0}, kv.Guard{Ref: a, Sequence: 0}), // conflict: b stays
		newWaiter(4, kv.Guard{Ref: a, Sequence: 1}, kv.Guard{Ref: b, Sequence: 0}),
		newWaiter(5, kv.Guard{Ref: b, Any: true}),
	}
	before := db.Stats()
	db.joiner.writer.write(join)
	for i, conflict := range []bool{false, true, true, false, false} {
		if got := errors.Is(join[i].err, kv.ErrConflict); got != conflict || (join[i].err != nil) != conflict {
			t.Errorf("commit %d: error %v", i+1, join[i].err)
		}
	}
	var named *kv.ConflictError
	if !errors.As(join[2].err, &named) || named.Guard.Ref != a || named.Found != 1 {
		t.Errorf("conflict %+v, want one of %s at 1", named, a)
	}
	sequences, err := db.Sequence(t.Context(), a, b)
	if err != nil || !slices.Equal(sequences, []uint64{2, 1}) {
		t.Errorf("sequences %v, %v, want [2 1]", sequences, err)
	}
	for ref, want := range map[kv.Ref]byte{a: 4, b: 5} {
		values, err := db.Get(t.Context(), ref.Keyspace, ref.Scope.Key('k'))
		if err != nil || !bytes.Equal(values[0], []byte{want}) {
			t.Errorf("%s = %v, %v, want %d", ref, values, err, want)
		}
	}
	if after := db.Stats(); after.WALSyncs != before.WALSyncs+1 {
		t.Errorf("%d syncs for one join", after.WALSyncs-before.WALSyncs)
	}
}

// TestSequencesForgotten overfills the memory of sequences.
func TestSequencesForgotten(t *testing.T) {
	db := mustOpenHere(t)
	w := db.joiner.writer
	ref := kv.Ref{Keyspace: kv.Records, Scope: kv.AgentScope("acme", "a")}
	for i := range maxKnown + 10 {
		w.known[kv.Ref{Keyspace: kv.Log, Scope: kv.AgentScope("acme", fmt.Sprint(i))}] = 0
	}
	for n := range uint64(3) {
		if err := db.Commit(t.Context(), newWaiter(1, kv.Guard{Ref: ref, Sequence: n}).commit); err != nil {
			t.Fatal(err)
		}
		if len(w.known) > maxKnown {
			t.Errorf("%d sequences remembered, want at most %d", len(w.known), maxKnown)
		}
		delete(w.known, ref)
	}
}

func TestTakeBoundsJoin(t *testing.T) {
	tests := []struct {
		name  string
		sizes []int
		want  []int // how many each take gets
	}{
		{"fits", []int{1, 2, 3}, []int{3}},
		{"one too big alone", []int{maxJoinBytes + 1, 1}, []int{1, 1}},
		{"too big together", []int{maxJoinBytes / 2, maxJoinBytes / 2, 1}, []int{2, 1}},
		{"too many", make([]int, maxJoinCommits+1), []int{maxJoinCommits, 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			j := new(joiner)
			for _, size := range test.sizes {
				j.waiting = append(j.waiting, &waiter{bytes: size})
			}
			var got []int
			for len(j.waiting) > 0 {
				got = append(got, len(j.take()))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("takes %v, want %v", got, test.want)
			}
		})
	}
}

// TestWithdraw ends the contexts of waiters behind a leader that does not come
// to an end.
func TestWithdraw(t *testing.T) {
	j := &joiner{leading: true}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.commit(ctx, kv.Commit{}); !errors.Is(err, context.Canceled) || len(j.waiting) != 0 {
		t.Errorf("error %v with %d left waiting, want a withdrawal", err, len(j.waiting))
	}
	// One told to lead must, whatever its context says.
	w := &waiter{signal: make(chan bool, 1)}
	j.waiting = []*waiter{w}
	j.handOver()
	if j.withdraw(w) || !<-w.signal {
		t.Error("the next leader has withdrawn")
	}
}

func FuzzIsReserved(f *testing.F) {
	s := kv.AgentScope("acme", "alpha")
	for _, key := range [][]byte{nil, kv.SequenceKey(s), s.Key('k'), s.AppendPrefix(nil), {0}, {0, 0, 0, 0}, {'a', 0, 'a'}} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key []byte) {
		// Only keys of valid scopes get into the database.
		_, _, err := kv.SplitKey(key)
		if got := isReserved(key); err == nil && got != kv.IsReserved(key) {
			t.Errorf("isReserved(%q) = %v", key, got)
		}
	})
}

// Flush writes what is in memory out as tables.
func (db *DB) Flush() error {
	o := grocksdb.NewDefaultFlushOptions()
	defer o.Destroy()
	for _, family := range db.families {
		if err := db.rocks.FlushCF(family, o); err != nil {
			return err
		}
	}
	return nil
}

// TestReleases wants nothing of a broken-off scan or of a closed snapshot to
// stay in RocksDB.
func TestReleases(t *testing.T) {
	db := mustOpenHere(t)
	ref := kv.Ref{Keyspace: kv.Records, Scope: kv.AgentScope("acme", "a")}
	commit := newWaiter(1, kv.Guard{Ref: ref, Any: true}).commit
	// Fewer flushes than start a compaction, which would hold a version itself.
	for range 3 {
		if err := db.Commit(t.Context(), commit); err != nil {
			t.Fatal(err)
		}
		s, err := db.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range s.Scan(t.Context(), kv.Records, kv.Range{}) {
			if err != nil {
				t.Error(err)
			}
			_ = s.Close() // released when the loop is left
			break
		}
		for _, err := range db.Scan(t.Context(), kv.Records, kv.Range{}) {
			if err != nil {
				t.Error(err)
			}
			break
		}
		flush := grocksdb.NewDefaultFlushOptions()
		if err := db.rocks.FlushCF(db.families[kv.Records], flush); err != nil {
			t.Fatal(err)
		}
		flush.Destroy()
	}
	// A flush is done before its thread lets go of the version it worked on.
	db.rocks.CancelAllBackgroundWork(true)
	for property, want := range map[string]string{"rocksdb.num-snapshots": "0", "rocksdb.num-live-versions": "1"} {
		if got := db.rocks.GetPropertyCF(property, db.families[kv.Records]); got != want {
			t.Errorf("%s = %s, want %s", property, got, want)
		}
	}
	if n := db.open.Len(); n != 0 {
		t.Errorf("%d snapshots and scans are held", n)
	}
}

// What a snapshot and a scan hold goes at the end of their life, without a further
// call, also while the scan's loop stands still.
func TestWhatIsTooOldIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := Open(t.TempDir(), &Options{SnapshotLife: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for i := range 3 {
			commitPair(t, db, i)
		}
		left, err := db.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		scanned, err := db.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range scanned.Scan(t.Context(), kv.Records, kv.Range{}) {
			if err != nil {
				break
			}
			for _, err := range db.Scan(t.Context(), kv.Records, kv.Range{}) {
				if err != nil {
					t.Fatal(err)
				}
				commitPair(t, db, 9)
				wantHeld(t, db, "2", 4)
				time.Sleep(time.Minute - time.Nanosecond)
				wantHeld(t, db, "2", 4)
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				wantHeld(t, db, "0", 0)
				break
			}
		}
		for _, s := range []kv.Snapshot{left, scanned} {
			if _, err := s.Get(t.Context(), kv.Records, []byte("x")); !errors.Is(err, kv.ErrTooOld) {
				t.Errorf("get: error %v, want ErrTooOld", err)
			}
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
	})
}

func commitPair(t *testing.T, db *DB, n int) {
	t.Helper()
	scope := kv.AgentScope("acme", "a")
	batch := new(kv.Batch)
	batch.Put(kv.Records, scope.Key('k', []byte{byte(n)}), nil)
	guards := []kv.Guard{{Ref: kv.Ref{Keyspace: kv.Records, Scope: scope}, Any: true}}
	if err := db.Commit(t.Context(), kv.Commit{Guards: guards, Batch: batch}); err != nil {
		t.Fatal(err)
	}
}

// wantHeld checks how many snapshots RocksDB has, and how many entries are open.
func wantHeld(t *testing.T, db *DB, snapshots string, open int) {
	t.Helper()
	if got := db.rocks.GetProperty("rocksdb.num-snapshots"); got != snapshots || db.open.Len() != open {
		t.Errorf("RocksDB has %s snapshots and %d are open, want %s and %d", got, db.open.Len(), snapshots, open)
	}
}

func TestErrorKinds(t *testing.T) {
	cause := errors.New("IO error: No space left on device: While fdatasync: /d/000004.log: No space left on device")
	if err := writeError(cause); !errors.Is(err, kv.ErrUnknownOutcome) || !errors.Is(err, cause) {
		t.Errorf("no room while syncing: %v", err)
	}
	for text, want := range map[string]error{
		"IO error: While lock file: /d/LOCK: Resource temporarily unavailable":             kv.ErrLocked,
		"IO error: While open a file for random read: /d/1.sst: Permission denied":         fs.ErrPermission,
		"IO error: No space left on device: While appending to file: /d/LOG: No space ...": kv.ErrFull,
		"Corruption: no meta-nextfile entry in descriptor":                                 kv.ErrDamaged,
	} {
		if err := openError(errors.New(text)); !errors.Is(err, want) {
			t.Errorf("open: %v, want %v", err, want)
		}
	}
	if err := openError(errors.New("IO error: x: Too many open files")); errors.Is(err, kv.ErrDamaged) {
		t.Errorf("a lack of descriptors is no damage: %v", err)
	}
	for _, text := range []string{
		"Corruption: block checksum mismatch",
		"IO error: No such file or directory: While open a file for random read: /d/000020.blob: No such file or directory",
	} {
		if err := readError(errors.New(text)); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("read: %v, want ErrDamaged", err)
		}
	}
}

// What a store writes to see whether its disk has room again does not stay in a log for which
// Reclaim would wait.
func TestReclaimAfterAProbe(t *testing.T) {
	db := mustOpenHere(t)
	for range 3 {
		if err := db.probe(); err != nil {
			t.Fatal(err)
		}
	}
	if logs := logBytes(t, db.dir); logs == 0 {
		t.Fatal("a probe writes nothing")
	}
	if err := db.Reclaim(t.Context(), []kv.KeyRange{{Keyspace: kv.Records}}); err != nil {
		t.Fatal(err)
	}
	if logs := logBytes(t, db.dir); logs != 0 {
		t.Errorf("%d bytes of probes are left in logs", logs)
	}
}

func logBytes(t *testing.T, dir string) (n int64) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

// What RocksDB has yet to compact is kept back with the buffers, on a disk that is large enough.
func TestPendingCompactionIsReserved(t *testing.T) {
	db := mustOpenHere(t)
	family := db.families[kv.Records]
	if err := db.rocks.SetOptionsCF(family, []string{"disable_auto_compactions"}, []string{"true"}); err != nil {
		t.Fatal(err)
	}
	const large, flushes = 1 << 40, 8 // more than start a compaction
	before := db.reserved(large)
	writing, flush := grocksdb.NewDefaultWriteOptions(), grocksdb.NewDefaultFlushOptions()
	defer writing.Destroy()
	defer flush.Destroy()
	value := make([]byte, 64<<10)
	for i := range flushes {
		for at := range value { // which does not compress
			value[at] = byte(rand.Uint32())
		}
		if err := db.rocks.PutCF(writing, family, []byte("key"), value); err != nil {
			t.Fatal(err)
		}
		if err := db.rocks.FlushCF(family, flush); err != nil {
			t.Fatal(i, err)
		}
	}
	if kept, most := db.reserved(large)-before, int64(2*flushes*len(value)); kept < int64(flushes*len(value))/2 || kept > most {
		t.Errorf("%d bytes are kept back for %d", kept, flushes*len(value))
	}
	if kept := db.reserved(1 << 10); kept != 256 {
		t.Errorf("%d bytes of 1024 are kept back", kept)
	}
}
