//go:build cgo && !norocksdb

package rocksfile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/rocksfile"
)

var scope = kv.AgentScope("acme", "alpha")

// fill writes rows of some kilobytes to every keyspace.
func fill(db *rockskv.DB, from, rows int) error {
	random := rand.New(rand.NewPCG(uint64(from), 0))
	for row := from; row < from+rows; row++ {
		c := kv.Commit{Batch: new(kv.Batch)}
		for _, ks := range kv.Keyspaces() {
			c.Guards = append(c.Guards, kv.Guard{Ref: kv.Ref{Keyspace: ks, Scope: scope}, Any: true})
			value := make([]byte, random.IntN(12_000))
			for i := range value {
				value[i] = byte(random.Uint32N(64))
			}
			c.Batch.Put(ks, scope.Key('k', fmt.Appendf(nil, "%06d", row)), value)
		}
		c.Lazy = row%8 != 0
		if err := db.Commit(context.Background(), c); err != nil {
			return err
		}
	}
	return nil
}

// made are the files of a store with tables, some of them compacted, blob files and a
// log. It takes a second or two to make.
var made = sync.OnceValues(func() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "rocksfile")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for opened := range 7 {
		if err := open(dir, opened); err != nil {
			return nil, err
		}
	}
	entries, err := os.ReadDir(dir)
	files := make(map[string][]byte)
	for _, e := range entries {
		data, readErr := os.ReadFile(filepath.Join(dir, e.Name()))
		files[e.Name()], err = data, errors.Join(err, readErr)
	}
	return files, err
})

// open opens the store for another time, writes to it and closes it.
func open(dir string, opened int) error {
	db, err := rockskv.Open(dir, nil)
	if err != nil {
		return err
	}
	err = fill(db, opened*50, 200) // most of it over what is there
	if err == nil && opened == 1 {
		err = db.DropRange(context.Background(), kv.Index, kv.Range{Start: scope.Key('k'), End: scope.Key('k', []byte("000020"))})
	}
	return errors.Join(err, db.Close())
}

// store lays such a store out in a directory of the test's own.
func store(tb testing.TB) string {
	tb.Helper()
	files, err := made()
	if err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

func manifestOf(tb testing.TB, dir string) *rocksfile.Manifest {
	tb.Helper()
	number, err := rocksfile.Current(dir)
	if err != nil {
		tb.Fatal(err)
	}
	m, err := rocksfile.ReadManifest(dir, number)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// TestReadsWhatRocksDBWrites wants every file of a store to be understood, and
// none to be left over.
func TestReadsWhatRocksDBWrites(t *testing.T) {
	dir := store(t)
	m := manifestOf(t, dir)
	if m.Tail != nil || len(m.Families) != len(kv.Keyspaces())+1 || m.Families[0] != "default" {
		t.Errorf("manifest %+v", m)
	}
	var want, got int64
	report := func(n int64) error { got += n; return nil }
	for _, table := range m.Tables {
		if err := errors.Join(rocksfile.CheckTableEnds(dir, table), rocksfile.CheckTable(dir, table, report)); err != nil {
			t.Error(err)
		}
		want += table.Size - 53
	}
	for _, blob := range m.Blobs {
		if err := rocksfile.CheckBlobFile(dir, blob, report); err != nil {
			t.Error(err)
		}
		want += blob.Size - 30 - 32
	}
	if got != want || len(m.Tables) < len(kv.Keyspaces()) || len(m.Blobs) == 0 {
		t.Errorf("%d bytes of %d were read in %d tables and %d blob files", got, want, len(m.Tables), len(m.Blobs))
	}
	for pattern, n := range map[string]int{"*.sst": len(m.Tables), "*.blob": len(m.Blobs)} {
		if found, _ := filepath.Glob(filepath.Join(dir, pattern)); len(found) != n {
			t.Errorf("%d files %s, the manifest has %d", len(found), pattern, n)
		}
	}
	logs, err := rocksfile.Logs(dir)
	if err != nil || len(logs) != 1 || logs[0] < m.FirstLog {
		t.Fatalf("logs %v, %v; the first needed is %d", logs, err, m.FirstLog)
	}
	name := rocksfile.LogName(logs[0])
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	log, tail, err := rocksfile.ReadLog(name, bytes.NewReader(data), 0, nil)
	if err != nil || tail != nil || log.End != int64(len(data)) || log.Records != 200 {
		t.Errorf("log of %d bytes: %+v, %v, %v", len(data), log, tail, err)
	}
}

// flips is how many bits of a file are flipped, one after another.
const flips = 400

// TestEveryFlippedBitIsFound flips single bits all over every file.
func TestEveryFlippedBitIsFound(t *testing.T) {
	dir := store(t)
	m := manifestOf(t, dir)
	logs, err := rocksfile.Logs(dir)
	if err != nil {
		t.Fatal(err)
	}
	seed := chance.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	whole := func(name string, read func() (int64, error)) func() error {
		end, err := read()
		if info, e := os.Stat(filepath.Join(dir, name)); err != nil || e != nil || info.Size() != end {
			t.Fatalf("%s: %d bytes were read: %v", name, end, errors.Join(err, e))
		}
		return func() error {
			now, err := read()
			if err == nil && now < end {
				err = &rocksfile.DamageError{}
			}
			return err
		}
	}
	checks := map[string]func() error{
		rocksfile.ManifestName(m.Number): whole(rocksfile.ManifestName(m.Number), func() (int64, error) {
			m, err := rocksfile.ReadManifest(dir, m.Number)
			if err != nil {
				return 0, err
			}
			return m.End, nil
		}),
		rocksfile.LogName(logs[0]): whole(rocksfile.LogName(logs[0]), func() (int64, error) {
			f, err := os.Open(filepath.Join(dir, rocksfile.LogName(logs[0])))
			if err != nil {
				return 0, err
			}
			defer f.Close()
			log, _, err := rocksfile.ReadLog(rocksfile.LogName(logs[0]), f, 0, nil)
			return log.End, err
		}),
	}
	for _, table := range m.Tables {
		checks[rocksfile.TableName(table.Number)] = func() error { return rocksfile.CheckTable(dir, table, nil) }
	}
	for _, blob := range m.Blobs {
		checks[rocksfile.BlobName(blob.Number)] = func() error { return rocksfile.CheckBlobFile(dir, blob, nil) }
	}
	for name, check := range checks {
		if err := check(); err != nil {
			t.Fatalf("%s before anything happened: %v", name, err)
		}
		flipEach(t, random, filepath.Join(dir, name), flips/len(checks)+1, check)
	}
}

// No checksum covers the footer of a table: its bits are flipped one and all.
func TestEveryBitOfAFooter(t *testing.T) {
	const footer = 53
	dir := store(t)
	table := manifestOf(t, dir).Tables[0]
	f, err := os.OpenFile(filepath.Join(dir, rocksfile.TableName(table.Number)), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for bit := range 8 * footer {
		at, b := table.Size-footer+int64(bit/8), make([]byte, 1)
		_, failed := f.ReadAt(b, at)
		for flips := range 2 { // there and back
			b[0] ^= 1 << (bit % 8)
			if _, err := f.WriteAt(b, at); err != nil || failed != nil {
				t.Fatal(failed, err)
			}
			var damage *rocksfile.DamageError
			if err := rocksfile.CheckTable(dir, table, nil); errors.As(err, &damage) != (flips == 0) {
				t.Errorf("%d flips of bit %d of byte %d of %d: %v", flips+1, bit%8, at, table.Size, err)
			}
		}
	}
}

// flipEach flips one bit at a time, wants a *DamageError, and puts it back.
func flipEach(t *testing.T, random *rand.Rand, path string, times int, check func() error) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for n := range times {
		at := random.Int64N(info.Size())
		if near := int64(2000); n%2 == 0 && info.Size() > near { // where the small blocks are
			at = info.Size() - 1 - random.Int64N(near)
		}
		was := make([]byte, 1)
		if _, err := f.ReadAt(was, at); err != nil {
			t.Fatal(err)
		}
		bit := byte(1) << random.IntN(8)
		if _, err := f.WriteAt([]byte{was[0] ^ bit}, at); err != nil {
			t.Fatal(err)
		}
		if damage, ok := errors.AsType[*rocksfile.DamageError](check()); !ok || damage == nil {
			t.Errorf("%s: bit %#x of byte %d of %d flipped, and nothing is found", filepath.Base(path), bit, at, info.Size())
		}
		if _, err := f.WriteAt(was, at); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMissingAndShortFiles(t *testing.T) {
	dir := store(t)
	m := manifestOf(t, dir)
	table, blob := m.Tables[0], m.Blobs[0]
	for name, check := range map[string]func() error{
		rocksfile.TableName(table.Number): func() error { return rocksfile.CheckTableEnds(dir, table) },
		rocksfile.BlobName(blob.Number):   func() error { return rocksfile.CheckBlobFileEnds(dir, blob) },
		rocksfile.ManifestName(m.Number):  func() error { _, err := rocksfile.ReadManifest(dir, m.Number); return err },
		"CURRENT":                         func() error { _, err := rocksfile.Current(dir); return err },
	} {
		path := filepath.Join(dir, name)
		if name != rocksfile.ManifestName(m.Number) { // the mark says how long that has to be
			if err := os.Truncate(path, 10); err != nil {
				t.Fatal(err)
			}
			wantDamage(t, name, check())
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		wantDamage(t, name, check())
	}
}

func wantDamage(t *testing.T, file string, err error) {
	t.Helper()
	if damage, ok := errors.AsType[*rocksfile.DamageError](err); !ok || damage.File != file {
		t.Errorf("error %v, want a damage of %s", err, file)
	}
}

// TestLogOfALog wants a log that goes on with a copy of itself refused.
func TestLogOfALog(t *testing.T) {
	dir := store(t)
	logs, err := rocksfile.Logs(dir)
	if err != nil {
		t.Fatal(err)
	}
	name := rocksfile.LogName(logs[0])
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	// Whole blocks, so that the copy reads as well as the log does.
	data = data[:len(data)/(32<<10)*(32<<10)]
	log, tail, err := rocksfile.ReadLog(name, bytes.NewReader(data), 0, nil)
	if err != nil {
		t.Fatalf("%+v, %v, %v", log, tail, err)
	}
	_, _, err = rocksfile.ReadLog(name, bytes.NewReader(data), log.Next, nil)
	wantDamage(t, name, err)
}

// TestResume reads a log in two pieces, cut behind each of its records.
func TestResume(t *testing.T) {
	dir := store(t)
	logs, err := rocksfile.Logs(dir)
	if err != nil {
		t.Fatal(err)
	}
	name := rocksfile.LogName(logs[0])
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	records, ends := [][]byte{}, []int64{0}
	r := rocksfile.NewLogReader(name, bytes.NewReader(data))
	for record, err := r.Next(); err == nil; record, err = r.Next() {
		records, ends = append(records, bytes.Clone(record)), append(ends, r.End())
	}
	for n, end := range ends {
		r, err := rocksfile.ResumeLogReader(name, bytes.NewReader(data), end)
		if err != nil {
			t.Fatal(err)
		}
		for i := n; i < len(records); i++ {
			record, err := r.Next()
			if err != nil || !bytes.Equal(record, records[i]) || r.End() != ends[i+1] {
				t.Fatalf("behind %d: record %d of %d bytes ends at %d, %v; want %d bytes up to %d", end, i, len(record), r.End(), err, len(records[i]), ends[i+1])
			}
			if i > n+2 {
				break
			}
		}
		if n == len(records) {
			if _, err := r.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("behind the last record: %v", err)
			}
		}
	}
}

// FuzzManifest, FuzzBlock and FuzzLog want no bytes to bring the readers down.
func FuzzManifest(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, content := range [][]byte{data, rocksfile.LogRecord(data)} {
			if m, err := rocksfile.ManifestFrom(bytes.NewReader(content)); err == nil && m.End > int64(len(content)) {
				t.Errorf("%d bytes of %d were read", m.End, len(content))
			}
		}
	})
}

func FuzzBlock(f *testing.F) {
	f.Add(byte(0), []byte{0, 1, 1, 'k', 'v', 0, 0, 0, 0, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, packing byte, stored []byte) {
		block, err := rocksfile.Unpack(packing, stored)
		if err != nil || len(block) > 1<<20 {
			return
		}
		for _, index := range []bool{false, true} {
			n := 0
			for key, value := range rocksfile.Entries(block, index) {
				if n++; key == nil {
					break
				}
				if len(key)+len(value) > 2*len(block) {
					t.Errorf("a key of %d bytes and a value of %d in a block of %d", len(key), len(value), len(block))
				}
			}
			if n > len(block) {
				t.Errorf("%d entries in %d bytes", n, len(block))
			}
		}
	})
}

func FuzzLog(f *testing.F) {
	f.Add([]byte("a record"), []byte{0, 0, 0})
	f.Fuzz(func(t *testing.T, record, rest []byte) {
		data := append(rocksfile.LogRecord(record), rest...)
		r := rocksfile.NewLogReader("log", bytes.NewReader(data))
		got, err := r.Next()
		if err != nil || !bytes.Equal(got, record) {
			t.Fatalf("a record of %d bytes is read as one of %d: %v", len(record), len(got), err)
		}
		for err == nil {
			_, err = r.Next()
		}
		if r.End() > int64(len(data)) {
			t.Errorf("%d bytes of %d were read", r.End(), len(data))
		}
	})
}
