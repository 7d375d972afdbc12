//go:build cgo && !norocksdb

package rockskv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/folder"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/mark"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/rocksfile"
)

// inspection compares the files of a store with its mark and with each other. It
// changes nothing.
type inspection struct {
	dir string
	kv.Verification
	ctx func() error // why to stop
	// marked says that the store must have a mark.
	marked bool
	// deep reads tables and blob files whole, not only their ends.
	deep bool
	// live says that the store is open: files that are not needed any more go.
	live bool

	mark        mark.Mark
	manifest    *rocksfile.Manifest
	done, total int64
}

// verify returns the first damage that an open must not pass over, as a
// *kv.DamageError.
func verify(ctx context.Context, dir string, marked bool) error {
	v := kv.Verification{Found: func(damage *kv.DamageError) error { return damage }}
	i := inspection{dir: dir, Verification: v, ctx: ctx.Err, marked: marked}
	return i.run()
}

// Examine is kv.Verifier's Verify for a store that no process has open, and that may be
// damaged so much that it does not open. It changes nothing and needs no more than
// the right to read. The errors are as of Open.
func Examine(ctx context.Context, dir string, v kv.Verification) error {
	s, err := lockStore(dir)
	if err == nil {
		i := inspection{dir: s.dir, Verification: v, ctx: ctx.Err, marked: s.marked, deep: true}
		err = errors.Join(i.run(), folder.Unlock(s.lock))
	}
	if err != nil {
		return fmt.Errorf("examine store %s: %w%s", dir, err, adviceToReader(err))
	}
	return nil
}

// adviceToReader is advice to who has no use for an empty directory.
func adviceToReader(err error) string {
	if errors.Is(err, kv.ErrForeign) {
		return ""
	}
	return advice(err)
}

// lockedStore is a ready store that no other process has open.
type lockedStore struct {
	dir    string // absolute
	marked bool   // it must have a mark
	lock   *os.File
}

// lockStore locks the store in dir. The caller closes the lock.
func lockStore(dir string) (lockedStore, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return lockedStore{}, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return lockedStore{}, err
	}
	found, err := inspect(dir)
	if err == nil {
		err = found.admits("")
	}
	if err == nil && found.state != ready {
		err = fmt.Errorf("%w: there is no store in it", kv.ErrForeign)
	}
	if err != nil {
		return lockedStore{}, errors.Join(err, folder.Unlock(lock))
	}
	return lockedStore{dir, found.format >= markedFormat, lock}, nil
}

// Verify is kv.Verifier's.
func (db *DB) Verify(ctx context.Context, v kv.Verification) error {
	if err := db.enter(ctx); err != nil {
		return err
	}
	defer db.users.Leave()
	i := inspection{dir: db.dir, Verification: v, ctx: ctx.Err, deep: true, live: db.keeper != nil}
	if db.keeper != nil {
		i.mark = db.keeper.known()
	}
	if err := i.run(); err != nil {
		return fmt.Errorf("verify store %s: %w", db.dir, err)
	}
	return nil
}

func (i *inspection) run() error {
	if err := i.readMark(); err != nil {
		return err
	}
	if err := i.readManifest(); err != nil || i.manifest == nil {
		return err
	}
	for _, step := range []func() error{i.tables, i.blobs, i.logs} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// damage reports err if it is a damage, and returns it otherwise. What is damaged holds
// data of ks.
func (i *inspection) damage(err error, ks kv.Keyspace) error {
	damage, ok := errors.AsType[*rocksfile.DamageError](err)
	if !ok {
		return err
	}
	if i.live && i.gone(damage.File) {
		return nil
	}
	repairable := strings.HasSuffix(damage.File, ".log")
	return i.Found(&kv.DamageError{File: damage.File, Problem: damage.Text(), Keyspace: ks, Repairable: repairable})
}

// keyspace is that of a column family.
func (i *inspection) keyspace(family uint32) kv.Keyspace {
	for _, ks := range kv.Keyspaces() {
		if ks.String() == i.manifest.Families[family] {
			return ks
		}
	}
	return kv.WholeStore
}

// gone reports whether the store has ceased to need a file.
func (i *inspection) gone(file string) bool {
	number, err := rocksfile.Current(i.dir)
	if err != nil {
		return false
	}
	m, err := rocksfile.ReadManifest(i.dir, number)
	return err == nil && file != "CURRENT" && !m.Needs(file)
}

// read counts what has been read.
func (i *inspection) read(bytes int64) error {
	if err := i.ctx(); err != nil {
		return err
	}
	if i.done += bytes; i.Read == nil {
		return nil
	}
	return i.Read(min(i.done, i.total), i.total)
}

func (i *inspection) readMark() error {
	if i.live {
		return nil
	}
	m, err := mark.Read(i.dir)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err == nil:
		i.mark = m
		return nil
	case !missing && !errors.Is(err, mark.ErrBad):
		return err
	case !i.marked:
		return nil
	}
	problem := "can't be read, so the length of the logs is unknown"
	if missing {
		problem = "is missing, so the length of the logs is unknown"
	}
	return i.Found(&kv.DamageError{File: mark.Name, Problem: problem, Keyspace: kv.WholeStore, Repairable: true})
}

// readManifest leaves manifest nil if there is no use in going on.
func (i *inspection) readManifest() error {
	number, err := rocksfile.Current(i.dir)
	if err != nil {
		return i.damage(err, kv.WholeStore)
	}
	if number < i.mark.Manifest.Number {
		return i.Found(&kv.DamageError{File: "CURRENT", Keyspace: kv.WholeStore, Problem: fmt.Sprintf("names %s, and %s was in use",
			rocksfile.ManifestName(number), rocksfile.ManifestName(i.mark.Manifest.Number))})
	}
	m, err := rocksfile.ReadManifest(i.dir, number)
	if err != nil {
		return i.damage(err, kv.WholeStore)
	}
	if number == i.mark.Manifest.Number && m.End < i.mark.Manifest.Length {
		return i.damage(i.short(rocksfile.ManifestName(number), m.Tail, m.End, i.mark.Manifest.Length), kv.WholeStore)
	}
	i.manifest = m
	if i.total, err = i.size(); err != nil {
		return err
	}
	return i.read(m.End)
}

// short says that a file reads up to end only, although length bytes were on disk.
func (i *inspection) short(name string, tail *rocksfile.DamageError, end, length int64) error {
	info, err := os.Stat(filepath.Join(i.dir, name))
	if err != nil {
		return err
	}
	if size := info.Size(); size < length {
		return &rocksfile.DamageError{File: name, Offset: -1, Problem: fmt.Sprintf("has %d bytes, and %d were on disk", size, length)}
	}
	if tail == nil {
		tail = &rocksfile.DamageError{File: name, Offset: end, Problem: "the records end"}
	}
	return &rocksfile.DamageError{
		File: name, Offset: tail.Offset,
		Problem: fmt.Sprintf("%s; all was well up to byte %d", tail.Problem, length),
	}
}

// size is about how many bytes there are to read.
func (i *inspection) size() (total int64, err error) {
	total = i.manifest.End
	if i.deep {
		for _, t := range i.manifest.Tables {
			total += t.Size
		}
		for _, b := range i.manifest.Blobs {
			total += b.Size
		}
	}
	logs, err := neededLogs(i.dir, i.manifest)
	for _, number := range logs {
		if info, err := os.Stat(filepath.Join(i.dir, rocksfile.LogName(number))); err == nil {
			total += info.Size()
		}
	}
	return total, err
}

func (i *inspection) tables() error {
	for _, t := range i.manifest.Tables {
		err := rocksfile.CheckTableEnds(i.dir, t)
		if err == nil && i.deep {
			err = rocksfile.CheckTable(i.dir, t, i.read)
		}
		if err := errors.Join(i.damage(err, i.keyspace(t.Family)), i.ctx()); err != nil {
			return err
		}
	}
	return nil
}

func (i *inspection) blobs() error {
	for _, b := range i.manifest.Blobs {
		err := rocksfile.CheckBlobFileEnds(i.dir, b)
		if err == nil && i.deep {
			err = rocksfile.CheckBlobFile(i.dir, b, i.read)
		}
		if err := errors.Join(i.damage(err, i.keyspace(b.Family)), i.ctx()); err != nil {
			return err
		}
	}
	return nil
}

// logs reads the logs that are still needed, up to where each one ends.
func (i *inspection) logs() error {
	found, err := neededLogs(i.dir, i.manifest)
	if err != nil {
		return err
	}
	lengths := make(map[uint64]int64)
	for _, l := range i.mark.Logs {
		if l.Number >= i.manifest.FirstLog {
			lengths[l.Number] = l.Length
		}
	}
	next := uint64(0)
	for _, number := range found {
		log, err := i.log(number, lengths[number], next)
		if err := i.damage(err, kv.WholeStore); err != nil {
			return err
		}
		delete(lengths, number)
		next = log.Next
	}
	for _, l := range i.mark.Logs {
		if length, missing := lengths[l.Number]; missing {
			err := i.damage(&rocksfile.DamageError{
				File: rocksfile.LogName(l.Number), Offset: -1,
				Problem: fmt.Sprintf("is missing, and %d bytes of it were on disk", length),
			}, kv.WholeStore)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// neededLogs are the numbers of the logs that RocksDB would read, in order.
func neededLogs(dir string, m *rocksfile.Manifest) ([]uint64, error) {
	all, err := rocksfile.Logs(dir)
	if err != nil {
		return nil, err
	}
	for len(all) > 0 && all[0] < m.FirstLog {
		all = all[1:]
	}
	return all, nil
}

// log reads one log, which was that long at least.
func (i *inspection) log(number uint64, length int64, next uint64) (rocksfile.Log, error) {
	name := rocksfile.LogName(number)
	f, err := os.Open(filepath.Join(i.dir, name))
	if i.live && errors.Is(err, fs.ErrNotExist) {
		err = &rocksfile.DamageError{File: name, Offset: -1, Problem: "is missing"}
	}
	if err != nil {
		return rocksfile.Log{Next: next}, err
	}
	defer f.Close()
	log, tail, err := rocksfile.ReadLog(name, f, next, i.read)
	if err == nil && log.End < length {
		err = i.short(name, tail, log.End, length)
	}
	return log, err
}
