package mark

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

const (
	// Name is the file's name in the directory of the store.
	Name = "LOOM-MARK"
	// TempName is the name of a file on its way to Name; harmless.
	TempName = Name + ".tmp"
	// MaxLogs bounds the logs of one mark. A store needs no more than some dozen;
	// of more the newest are kept.
	MaxLogs = 250

	slotBytes = 4096
	title     = "LOOMMARK"
	version   = 1
	// headBytes are title, version, counter, manifest, and the number of logs.
	headBytes = 8 + 4 + 8 + 8 + 8 + 4
	logBytes  = 8 + 8
	sumBytes  = 4

	// slots 0 and 1 are synced alternately.
	syncedSlots = 2
	// noteSlot is not synced.
	noteSlot = 2
	slots    = 3
)

// ErrBad: the file holds no mark.
var ErrBad = errors.New("mark: no slot of " + Name + " holds a mark")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// File is a file of the store, and how much of it is on disk.
type File struct {
	Number uint64
	Length int64
}

// Mark is the part of the store known to be on disk.
type Mark struct {
	// Manifest is the current one.
	Manifest File
	// Logs are the logs that are still needed and partly on disk, in the order of their
	// numbers.
	Logs []File
}

// Equal reports whether two marks say the same.
func (m Mark) Equal(other Mark) bool {
	return m.Manifest == other.Manifest && slices.Equal(m.Logs, other.Logs)
}

// Read returns the newest mark in dir. It is an fs.ErrNotExist without the file,
// and ErrBad if none of its slots can be read.
func Read(dir string) (Mark, error) {
	f, err := os.Open(filepath.Join(dir, Name))
	if err != nil {
		return Mark{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, slots*slotBytes))
	if err != nil {
		return Mark{}, err
	}
	newest, best := uint64(0), Mark{}
	for i := range slots {
		if counter, m, ok := decode(data[min(i*slotBytes, len(data)):]); ok && counter > newest {
			newest, best = counter, m
		}
	}
	if newest == 0 {
		return Mark{}, ErrBad
	}
	return best, nil
}

// appendSlot appends the bytes of a slot. The counter is 1 or more.
func appendSlot(dst []byte, counter uint64, m Mark) []byte {
	logs := m.Logs[max(0, len(m.Logs)-MaxLogs):]
	start := len(dst)
	dst = append(dst, title...)
	dst = binary.BigEndian.AppendUint32(dst, version)
	dst = binary.BigEndian.AppendUint64(dst, counter)
	dst = binary.BigEndian.AppendUint64(dst, m.Manifest.Number)
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.Manifest.Length))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(logs)))
	for _, l := range logs {
		dst = binary.BigEndian.AppendUint64(dst, l.Number)
		dst = binary.BigEndian.AppendUint64(dst, uint64(l.Length))
	}
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// decode reads a slot; not ok where there is none.
func decode(slot []byte) (counter uint64, m Mark, ok bool) {
	if len(slot) < headBytes+sumBytes || string(slot[:8]) != title || binary.BigEndian.Uint32(slot[8:]) != version {
		return 0, Mark{}, false
	}
	logs := binary.BigEndian.Uint32(slot[headBytes-4:])
	size := headBytes + int64(logs)*logBytes
	if logs > MaxLogs || size+sumBytes > int64(len(slot)) ||
		binary.BigEndian.Uint32(slot[size:]) != crc32.Checksum(slot[:size], castagnoli) {
		return 0, Mark{}, false
	}
	counter = binary.BigEndian.Uint64(slot[12:])
	m.Manifest = fileAt(slot[20:])
	for i := range int64(logs) {
		m.Logs = append(m.Logs, fileAt(slot[headBytes+i*logBytes:]))
	}
	return counter, m, true
}

func fileAt(b []byte) File {
	return File{binary.BigEndian.Uint64(b), int64(binary.BigEndian.Uint64(b[8:]))}
}

// Writer writes marks. Its methods are safe for concurrent use.
type Writer struct {
	file *os.File

	mu      sync.Mutex
	counter uint64 // guarded by mu
	synced  int    // guarded by mu; how often Sync was called
	note    []byte // guarded by mu; buffer of Note
}

// Create puts a file with one mark in the place of what dir has, whole or not at
// all. It is on disk when Create returns.
func Create(dir string, m Mark) (*Writer, error) {
	temp := filepath.Join(dir, TempName)
	f, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	w := &Writer{file: f, counter: 1, synced: 1}
	// All of it is written, so that no later write needs room.
	all := make([]byte, slots*slotBytes)
	copy(all, appendSlot(nil, 1, m))
	_, err = f.Write(all)
	if err = errors.Join(err, f.Sync()); err == nil {
		err = os.Rename(temp, filepath.Join(dir, Name))
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mark: create: %w", err), f.Close())
	}
	return w, nil
}

// Note writes a mark that need not be on disk.
func (w *Writer) Note(m Mark) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counter++
	w.note = appendSlot(w.note[:0], w.counter, m)
	_, err := w.file.WriteAt(w.note, noteSlot*slotBytes)
	return err
}

// Sync writes a mark, which is on disk when it returns. Calls must not overlap.
func (w *Writer) Sync(m Mark) error {
	w.mu.Lock()
	w.counter++
	slot := appendSlot(nil, w.counter, m)
	place := int64(w.synced % syncedSlots * slotBytes)
	w.synced++
	w.mu.Unlock()
	if _, err := w.file.WriteAt(slot, place); err != nil {
		return err
	}
	return w.file.Sync()
}

// Close closes the file.
func (w *Writer) Close() error { return w.file.Close() }

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
