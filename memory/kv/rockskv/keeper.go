//go:build cgo && !norocksdb

package rockskv

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/mark"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/rocksfile"
)

const (
	// markEvery bounds how old the durable mark may be while something changes.
	markEvery = time.Second
	// markBytes bounds how many bytes of log are synced before the durable mark
	// follows.
	markBytes = 1 << 20
)

// keeper keeps the mark of an open store. It looks at the log's length behind each
// write, notes it behind each sync, and makes the mark durable in the background. A
// write waits for none of that but a look and a write into the system's memory.
type keeper struct {
	dir   string
	marks *mark.Writer
	// logged says whether commits go to the log at all.
	logged bool
	// firstLog returns the number of the first log that is still needed.
	firstLog func() uint64
	// beat runs with every look at the clock, on the keeper's goroutine.
	beat func()

	mu       sync.Mutex // guards what follows; held during writes to the log
	logs     []logFile  // ascending; the last one is written to
	current  *os.File   // the last log
	torn     bool       // a write has failed: what is behind logs' last size is not known
	manifest mark.File
	behind   int64 // synced bytes of log that the durable mark does not say

	durable mark.Mark // only the goroutine's
	wake    chan struct{}
	stop    chan struct{}
	stopped chan struct{}
}

// logFile is a log as far as this process has written it.
type logFile struct {
	number       uint64
	size, synced int64
}

// newKeeper makes the first mark of an open store, which is durable when it returns.
// Start begins to keep it.
func newKeeper(dir string, logged bool, firstLog func() uint64, beat func()) (*keeper, error) {
	k := &keeper{
		dir: dir, logged: logged, firstLog: firstLog, beat: beat,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	err := k.findLog()
	if err == nil {
		k.manifest, err = syncManifest(dir, mark.File{})
	}
	if err == nil {
		k.durable = k.mark()
		k.marks, err = mark.Create(dir, k.durable)
	}
	if err != nil {
		return nil, errors.Join(err, k.closeLog())
	}
	return k, nil
}

func (k *keeper) start() { go k.run() }

// findLog begins with the newest log. What is in it may not be synced.
func (k *keeper) findLog() error {
	numbers, err := rocksfile.Logs(k.dir)
	if err != nil || len(numbers) == 0 {
		return err
	}
	return k.follow(numbers[len(numbers)-1:])
}

// follow goes on with newer logs. The caller holds mu, or has k to itself.
func (k *keeper) follow(numbers []uint64) error {
	for _, number := range numbers {
		f, err := os.Open(filepath.Join(k.dir, rocksfile.LogName(number)))
		if err != nil {
			return err
		}
		size, err := f.Seek(0, io.SeekEnd)
		if err != nil {
			return errors.Join(err, f.Close())
		}
		if err := k.closeLog(); err != nil {
			return errors.Join(err, f.Close())
		}
		k.current, k.torn = f, false
		k.logs = append(k.logs, logFile{number: number, size: size})
	}
	return nil
}

func (k *keeper) closeLog() error {
	if k.current == nil {
		return nil
	}
	defer func() { k.current = nil }()
	return k.current.Close()
}

// write runs a write to the log; synced says that it is on disk when it returns
// nil. Nobody else writes to the log meanwhile, so that what a sync covers is known.
func (k *keeper) write(synced bool, write func() error) error {
	if !k.logged {
		return write()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := write(); err != nil {
		k.torn = true
		return err
	}
	k.look(synced)
	return nil
}

// look finds out how long the log is. An error leaves the mark where it was, which
// says too little and never too much. The caller holds mu.
func (k *keeper) look(synced bool) {
	if k.current == nil && k.findLog() != nil || k.current == nil {
		return
	}
	size, err := k.current.Seek(0, io.SeekEnd)
	if err != nil {
		return
	}
	rotated := false
	if last := &k.logs[len(k.logs)-1]; !k.torn && size > last.size {
		last.size = size
	} else if rotated = k.rotated(); !rotated {
		return
	}
	if !synced {
		return
	}
	// One sync covers all logs that had not been synced.
	for i := range k.logs {
		l := &k.logs[i]
		k.behind, l.synced = k.behind+l.size-l.synced, l.size
	}
	_ = k.marks.Note(k.mark())
	if rotated || k.behind >= markBytes {
		k.hurry()
	}
}

// rotated finds the logs that took the place of the last one, to which the last
// write did not go, or goes on with the last one where a write had failed.
func (k *keeper) rotated() bool {
	numbers, err := rocksfile.Logs(k.dir)
	if err != nil {
		return false
	}
	last := &k.logs[len(k.logs)-1]
	newer := slices.DeleteFunc(numbers, func(n uint64) bool { return n <= last.number })
	if len(newer) > 0 {
		return k.follow(newer) == nil
	}
	if !k.torn {
		return false
	}
	// What the failed write left may be whole, or nothing.
	name := rocksfile.LogName(last.number)
	if _, err := k.current.Seek(0, io.SeekStart); err != nil {
		return false
	}
	log, tail, err := rocksfile.ReadLog(name, k.current, 0, nil)
	if err != nil || tail != nil {
		return false
	}
	last.size, k.torn = log.End, false
	return true
}

// mark is the part known to be on disk. The caller holds mu, or has k to itself.
func (k *keeper) mark() mark.Mark {
	m := mark.Mark{Manifest: k.manifest}
	for _, l := range k.logs {
		if l.synced > 0 {
			m.Logs = append(m.Logs, mark.File{Number: l.number, Length: l.synced})
		}
	}
	return m
}

// known is the part known to be on disk. Of the manifest it says what the durable
// mark does.
func (k *keeper) known() mark.Mark {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mark()
}

func (k *keeper) hurry() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// run makes the mark durable, again and again.
func (k *keeper) run() {
	defer close(k.stopped)
	ticker := time.NewTicker(markEvery)
	defer ticker.Stop()
	for {
		select {
		case <-k.stop:
			return
		case <-k.wake:
		case <-ticker.C:
			k.beat()
		}
		// What fails now is tried again; until then the mark says too little.
		_ = k.persist()
	}
}

// persist makes the mark durable if it has changed.
func (k *keeper) persist() error {
	manifest, err := syncManifest(k.dir, k.durable.Manifest)
	first := k.firstLog()
	k.mu.Lock()
	if err == nil {
		k.manifest = manifest
	}
	k.forget(first)
	m := k.mark()
	k.behind = 0
	k.mu.Unlock()
	if m.Equal(k.durable) {
		return err
	}
	if err := k.marks.Sync(m); err != nil {
		return err
	}
	k.durable = m
	return err
}

// forget drops the logs that are not needed any more, whose files may be gone. The
// caller holds mu.
func (k *keeper) forget(first uint64) {
	keep := 0
	for keep < len(k.logs)-1 && k.logs[keep].number < first {
		keep++
	}
	k.logs = slices.Delete(k.logs, 0, keep)
}

// end ends the keeping. RocksDB is still open.
func (k *keeper) end() {
	close(k.stop)
	<-k.stopped
}

// finish makes a last mark, of everything, after RocksDB has let go of its files.
// What only a lazy commit wrote is synced for it.
func (k *keeper) finish() error {
	m, err := k.lastMark()
	if err == nil && !m.Equal(k.durable) {
		err = k.marks.Sync(m)
	}
	return errors.Join(err, k.closeLog(), k.marks.Close())
}

func (k *keeper) lastMark() (m mark.Mark, err error) {
	if k.manifest, err = syncManifest(k.dir, mark.File{}); err != nil {
		return mark.Mark{}, err
	}
	content, err := rocksfile.ReadManifest(k.dir, k.manifest.Number)
	if err != nil {
		return mark.Mark{}, err
	}
	k.logs = slices.DeleteFunc(k.logs, func(l logFile) bool { return l.number < content.FirstLog })
	for i := range k.logs {
		l := &k.logs[i]
		if l.synced == l.size || k.torn && i == len(k.logs)-1 {
			continue
		}
		if err := syncFile(filepath.Join(k.dir, rocksfile.LogName(l.number))); err != nil {
			return mark.Mark{}, err
		}
		l.synced = l.size
	}
	return k.mark(), nil
}

// syncManifest returns the current manifest and how much of it is on disk, which it
// makes all of its records. known is what it returned before.
func syncManifest(dir string, known mark.File) (mark.File, error) {
	number, err := rocksfile.Current(dir)
	if err != nil {
		return known, err
	}
	f, err := os.Open(filepath.Join(dir, rocksfile.ManifestName(number)))
	if err != nil {
		return known, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || (mark.File{Number: number, Length: info.Size()}) == known {
		return known, err
	}
	read := int64(0) // of a manifest that has grown only what is new
	if known.Number == number {
		read = known.Length
	}
	r, err := rocksfile.ResumeLogReader(rocksfile.ManifestName(number), f, read)
	for err == nil {
		_, err = r.Next()
	}
	// A record that is being written is not the manifest's yet.
	if _, torn := errors.AsType[*rocksfile.DamageError](err); !torn && !errors.Is(err, io.EOF) {
		return known, err
	}
	return mark.File{Number: number, Length: r.End()}, f.Sync()
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
