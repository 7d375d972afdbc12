package rocksfile

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Table is a table file that belongs to the store.
type Table struct {
	Number uint64
	Size   int64
	// Family is the number of its column family.
	Family uint32
	// Level is 0 for a table that was flushed and not compacted since. RocksDB reads
	// more of those when it opens.
	Level uint64
	// oldestBlob is the first blob file that it refers to; 0 for none.
	oldestBlob uint64
}

// Blob is a blob file that belongs to the store and holds something that is not
// garbage.
type Blob struct {
	Number uint64
	Size   int64
	// Family is the number of its column family.
	Family uint32
}

// Manifest is what a store consists of.
type Manifest struct {
	Number uint64
	// End is the offset behind the last good record of its file.
	End int64
	// Tail says what follows there, such as a torn record; nil for nothing.
	Tail *DamageError
	// FirstLog is the number of the first log that is still needed.
	FirstLog uint64
	// Tables and Blobs are in the order of their numbers.
	Tables []Table
	Blobs  []Blob
	// Families are the names of the column families by number.
	Families map[uint32]string
}

// Needs reports whether a file belongs to the store: a table, a blob file, a log, or
// the manifest itself.
func (m *Manifest) Needs(file string) bool {
	for _, t := range m.Tables {
		if TableName(t.Number) == file {
			return true
		}
	}
	for _, b := range m.Blobs {
		if BlobName(b.Number) == file {
			return true
		}
	}
	var number uint64
	if n, err := fmt.Sscanf(file, "%d.log", &number); n == 1 && err == nil {
		return number >= m.FirstLog
	}
	return file == ManifestName(m.Number)
}

// ReadManifest reads the manifest of a number in dir. A missing file, and a record
// that is whole but makes no sense, are a *DamageError.
func ReadManifest(dir string, number uint64) (*Manifest, error) {
	name := ManifestName(number)
	f, err := os.Open(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, damaged(name, -1, "is missing, and CURRENT names it")
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readManifest(number, f)
}

func readManifest(number uint64, from io.Reader) (*Manifest, error) {
	name := ManifestName(number)
	s := newStoreState()
	r := NewLogReader(name, from)
	var tail *DamageError
	for tail == nil {
		record, err := r.Next()
		if damage, torn := errors.AsType[*DamageError](err); torn {
			tail = damage
			break
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		e, ok := decodeEdit(record)
		if !ok {
			return nil, damaged(name, r.End(), "the record before can't be understood")
		}
		s.add(e)
	}
	m := s.manifest()
	m.Number, m.End, m.Tail = number, r.End(), tail
	return m, nil
}

// storeState is what the records of a manifest so far have come to.
type storeState struct {
	families map[uint32]*familyState
	firstLog uint64
	// group are the edits of a group that count only together.
	group []edit
}

type familyState struct {
	name   string
	log    uint64
	tables map[uint64]Table
	blobs  map[uint64]*blobState
}

type blobState struct {
	size           int64
	blobs, garbage uint64
}

func newStoreState() *storeState {
	s := &storeState{families: make(map[uint32]*familyState)}
	s.family(0).name = "default"
	return s
}

func (s *storeState) family(number uint32) *familyState {
	f := s.families[number]
	if f == nil {
		f = &familyState{tables: make(map[uint64]Table), blobs: make(map[uint64]*blobState)}
		s.families[number] = f
	}
	return f
}

func (s *storeState) add(e edit) {
	if !e.grouped {
		s.apply(e)
		return
	}
	s.group = append(s.group, e)
	if e.remaining > 0 {
		return
	}
	for _, e := range s.group {
		s.apply(e)
	}
	s.group = nil
}

func (s *storeState) apply(e edit) {
	if e.dropped {
		delete(s.families, e.family)
		return
	}
	f := s.family(e.family)
	if e.added {
		f.name = e.name
	}
	f.log = max(f.log, e.log)
	s.firstLog = max(s.firstLog, e.firstLog)
	for _, number := range e.gone {
		delete(f.tables, number)
	}
	for _, t := range e.tables {
		t.Family = e.family
		f.tables[t.Number] = t
	}
	maps.Copy(f.blobs, e.blobs)
	for number, blobs := range e.garbage {
		if b := f.blobs[number]; b != nil {
			b.garbage += blobs
		}
	}
}

// manifest sums up. A log is needed if it is not older than what all families have
// in tables. A blob file is needed if not all of it is garbage and a table may
// refer to it.
func (s *storeState) manifest() *Manifest {
	m := &Manifest{Families: make(map[uint32]string)}
	oldest := ^uint64(0)
	for number, f := range s.families {
		m.Families[number] = f.name
		oldest = min(oldest, f.log)
		firstBlob := ^uint64(0)
		for _, t := range f.tables {
			m.Tables = append(m.Tables, t)
			if t.oldestBlob > 0 {
				firstBlob = min(firstBlob, t.oldestBlob)
			}
		}
		for n, b := range f.blobs {
			if n >= firstBlob && b.garbage < b.blobs {
				m.Blobs = append(m.Blobs, Blob{Number: n, Size: b.size, Family: number})
			}
		}
	}
	m.FirstLog = max(s.firstLog, oldest)
	slices.SortFunc(m.Tables, func(a, b Table) int { return cmp.Compare(a.Number, b.Number) })
	slices.SortFunc(m.Blobs, func(a, b Blob) int { return cmp.Compare(a.Number, b.Number) })
	return m
}

// edit is one record of a manifest, as far as it matters here.
type edit struct {
	family         uint32
	name           string
	added, dropped bool
	log, firstLog  uint64
	gone           []uint64
	tables         []Table
	blobs          map[uint64]*blobState
	garbage        map[uint64]uint64
	grouped        bool
	remaining      uint64
}

// Tags of the fields of an edit. Those from tagIgnorable on that are not known
// have a length and can be passed over.
const (
	tagComparator   = 1
	tagLog          = 2
	tagNextFile     = 3
	tagLastSequence = 4
	tagCursor       = 5
	tagGone         = 6
	tagPreviousLog  = 9
	tagFirstLog     = 10
	tagTable        = 103
	tagFamily       = 200
	tagFamilyAdded  = 201
	tagFamilyGone   = 202
	tagLastFamily   = 203
	tagGroup        = 300
	tagBlobs        = 400
	tagGarbage      = 401
	tagIgnorable    = 1 << 13

	// Tags of the custom fields of a table.
	tableEnd        = 1
	tableFirstLog   = 3
	tableOldestBlob = 4
	// tableMustKnow is a bit that marks those which may not be passed over.
	tableMustKnow = 1 << 6
)

func decodeEdit(record []byte) (edit, bool) {
	var e edit
	f := fields{rest: record, ok: true}
	for f.ok && len(f.rest) > 0 {
		switch tag := f.uint(); tag {
		case tagLog:
			e.log = max(e.log, f.uint())
		case tagFirstLog:
			e.firstLog = max(e.firstLog, f.uint())
		case tagNextFile, tagLastSequence, tagPreviousLog, tagLastFamily:
			f.uint()
		case tagComparator:
			f.bytes()
		case tagCursor:
			f.uint()
			f.bytes()
		case tagGone:
			f.uint() // level
			e.gone = append(e.gone, f.uint())
		case tagTable:
			e.table(&f)
		case tagFamily:
			e.family = uint32(f.uint())
		case tagFamilyAdded:
			e.added, e.name = true, string(f.bytes())
		case tagFamilyGone:
			e.dropped = true
		case tagGroup:
			e.grouped, e.remaining = true, f.uint()
		case tagBlobs:
			e.blobFile(&f)
		case tagGarbage:
			e.blobGarbage(&f)
		default:
			if tag&tagIgnorable == 0 {
				return edit{}, false
			}
			f.bytes()
		}
	}
	return e, f.ok
}

func (e *edit) table(f *fields) {
	t := Table{Level: f.uint(), Number: f.uint(), Size: int64(f.uint())}
	f.bytes() // first and last key
	f.bytes()
	f.uint() // first and last sequence
	f.uint()
	for f.ok {
		tag := f.uint()
		if tag == tableEnd {
			break
		}
		value := fields{rest: f.bytes(), ok: f.ok}
		switch {
		case tag == tableOldestBlob:
			t.oldestBlob = value.uint()
		case tag == tableFirstLog && len(value.rest) == 8:
			e.firstLog = max(e.firstLog, binary.LittleEndian.Uint64(value.rest))
		case tag&tableMustKnow != 0:
			f.ok = false
		}
		f.ok = f.ok && value.ok
	}
	f.ok = f.ok && t.Size >= 0
	e.tables = append(e.tables, t)
}

func (e *edit) blobFile(f *fields) {
	number, blobs, bytes := f.uint(), f.uint(), f.uint()
	f.bytes() // method and value of a checksum that is not made
	f.bytes()
	f.custom()
	if e.blobs == nil {
		e.blobs = make(map[uint64]*blobState)
	}
	f.ok = f.ok && bytes <= 1<<62
	e.blobs[number] = &blobState{size: int64(bytes) + blobHeaderBytes + blobFooterBytes, blobs: blobs}
}

func (e *edit) blobGarbage(f *fields) {
	number, blobs := f.uint(), f.uint()
	f.uint() // bytes
	f.custom()
	if e.garbage == nil {
		e.garbage = make(map[uint64]uint64)
	}
	e.garbage[number] += blobs
}

// fields reads RocksDB's varints and texts; ok is false from the first on that is
// not whole.
type fields struct {
	rest []byte
	ok   bool
}

func (f *fields) uint() uint64 {
	value, n := binary.Uvarint(f.rest)
	if n <= 0 || n > 1 && f.rest[n-1] == 0 { // RocksDB writes no zeros in front: a bit was flipped
		f.ok, f.rest = false, nil
		return 0
	}
	f.rest = f.rest[n:]
	return value
}

func (f *fields) bytes() []byte {
	length := f.uint()
	if length > uint64(len(f.rest)) {
		f.ok, f.rest = false, nil
		return nil
	}
	value := f.rest[:length]
	f.rest = f.rest[length:]
	return value
}

// custom passes over the custom fields of a blob file.
func (f *fields) custom() {
	for f.ok {
		tag := f.uint()
		if tag == 0 {
			return
		}
		f.ok = f.ok && tag&tableMustKnow == 0
		f.bytes()
	}
}
