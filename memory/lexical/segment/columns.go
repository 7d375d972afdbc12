package segment

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Row is what the index knows of a document in addition to its id and terms.
type Row struct {
	Body, Header uint32 // lengths in words
	Session      uint64 // digest; 0 for none
	Author       string // folded
	Event        int64
	Create       int64
	Expires      int64
	Superseded   int64
	Supersedes   uint32
	Importance   float32
	Tier         uint8
	Flags        Flags
	Place        uint32 // 0: its own
}

// RowsPerBlock is how many rows share a key. Packing writes the last block
// again, so small ones write less; starting cold reads all of them, so large
// ones read fewer.
const RowsPerBlock = 1024

// The fields of a block of columns.
const (
	columnsFormat     = 1
	columnsCount      = 2
	columnsBody       = 3
	columnsHeader     = 4
	columnsSessions   = 5 // the table
	columnsSession    = 6
	columnsName       = 7 // the table
	columnsAuthor     = 8
	columnsEvent      = 9
	columnsCreate     = 10
	columnsExpires    = 11
	columnsSuperseded = 12
	columnsSupersedes = 13
	columnsImportance = 14
	columnsTier       = 15
	columnsFlags      = 16
	columnsPlace      = 17
	columnsKept       = 18
)

// keptShare: of a block with that many times more rows of nothing than others,
// only the others are stored.
const keptShare = 3

// EncodeRows packs the rows of neighbouring ordinals from first. Columns of only zeros are
// left out, and so are long runs of empty rows, such as rows of deleted documents.
func EncodeRows(rows []Row, first uint32) []byte {
	const usualRowBytes = 16
	b := wire.AppendUint(make([]byte, 0, usualRowBytes*len(rows)), columnsFormat, Format)
	b = wire.AppendUint(b, columnsCount, uint64(len(rows)))
	kept := keptRows(rows)
	if len(kept) < len(rows) {
		b = wire.AppendItem(b, columnsKept, encodeKept(kept))
	}
	sessions, names := newTable[uint64](), newTable[string]()
	columns := []struct {
		number int
		value  func(i int, r Row) uint64
	}{
		{columnsBody, func(_ int, r Row) uint64 { return uint64(r.Body) }},
		{columnsHeader, func(_ int, r Row) uint64 { return uint64(r.Header) }},
		{columnsSession, func(_ int, r Row) uint64 { return sessions.number(r.Session) }},
		{columnsAuthor, func(_ int, r Row) uint64 { return names.number(r.Author) }},
		{columnsEvent, steps(func(r Row) int64 { return r.Event })},
		{columnsCreate, steps(func(r Row) int64 { return r.Create })},
		{columnsExpires, steps(func(r Row) int64 { return r.Expires })},
		{columnsSuperseded, steps(func(r Row) int64 { return r.Superseded })},
		{columnsSupersedes, func(i int, r Row) uint64 { return before(r.Supersedes, first, i) }},
		{columnsImportance, func(_ int, r Row) uint64 { return uint64(math.Float32bits(r.Importance)) }},
		{columnsTier, func(_ int, r Row) uint64 { return uint64(r.Tier) }},
		{columnsFlags, func(_ int, r Row) uint64 { return uint64(r.Flags) }},
		{columnsPlace, func(i int, r Row) uint64 { return before(r.Place, first, i) }},
	}
	var scratch []byte
	for _, c := range columns {
		scratch = scratch[:0]
		used := false
		for _, i := range kept {
			v := c.value(i, rows[i])
			used = used || v != 0
			scratch = binary.AppendUvarint(scratch, v)
		}
		if used {
			b = wire.AppendItem(b, c.number, scratch)
		}
	}
	scratch = scratch[:0]
	for _, digest := range sessions.values {
		scratch = binary.BigEndian.AppendUint64(scratch, digest)
	}
	b = wire.AppendText(b, columnsSessions, scratch)
	for _, name := range names.values {
		b = wire.AppendItem(b, columnsName, name)
	}
	return b
}

// keptRows are the places of the rows that are stored.
func keptRows(rows []Row) []int {
	kept := make([]int, 0, len(rows))
	for i, r := range rows {
		if (r != Row{}) {
			kept = append(kept, i)
		}
	}
	if len(kept)*(keptShare+1) <= len(rows) && len(kept) > 0 {
		return kept
	}
	kept = kept[:0]
	for i := range rows {
		kept = append(kept, i)
	}
	return kept
}

// encodeKept packs the places of rows as steps from -1.
func encodeKept(kept []int) (b []byte) {
	last := -1
	for _, i := range kept {
		b = binary.AppendUvarint(b, uint64(i-last))
		last = i
	}
	return b
}

// table numbers different values from 1; the zero value is number 0.
type table[T comparable] struct {
	numbers map[T]uint64
	values  []T
}

func newTable[T comparable]() *table[T] {
	var zero T
	return &table[T]{numbers: map[T]uint64{zero: 0}}
}

func (t *table[T]) number(v T) uint64 {
	n, ok := t.numbers[v]
	if !ok {
		t.values = append(t.values, v)
		n = uint64(len(t.values))
		t.numbers[v] = n
	}
	return n
}

// steps returns the differences between a column's numbers, in zigzag. Zero
// stays zero, and is no step.
func steps(of func(Row) int64) func(int, Row) uint64 {
	last := int64(0)
	return func(_ int, r Row) uint64 {
		v := of(r)
		if v == 0 {
			return 0
		}
		step := v - last
		last = v
		return 1 + (uint64(step)<<1 ^ uint64(step>>63))
	}
}

// before returns how far ordinal o lies before row i; zero is no ordinal.
func before(o, first uint32, i int) uint64 {
	if o == 0 {
		return 0
	}
	return uint64(first) + uint64(i) - uint64(o)
}

// DecodeRows reads what encodeRows wrote; at most rowsPerBlock rows.
func DecodeRows(b []byte, first uint32) ([]Row, error) {
	d := rowDecoder{first: first}
	format := uint64(0)
	for f, err := range wire.Fields(b) {
		if err != nil {
			return nil, fmt.Errorf("%w: columns: %w", ErrDamaged, err)
		}
		switch f.Number {
		case columnsFormat:
			format = f.Value
		case columnsCount:
			if d.rows != nil || f.Value > RowsPerBlock {
				return nil, fmt.Errorf("%w: columns of %d rows", ErrDamaged, f.Value)
			}
			d.rows = make([]Row, f.Value)
			d.kept = make([]int, f.Value)
			for i := range d.kept {
				d.kept[i] = i
			}
		case columnsKept:
			// Reads what encodeKept wrote. It stands before the columns.
			d.kept = d.kept[:0]
			p := parser{bytes: f.Bytes}
			for at := -1; !p.done(); {
				step := p.uint()
				if step == 0 || step >= uint64(len(d.rows)-at) {
					p.fail()
					break
				}
				at += int(step)
				d.kept = append(d.kept, at)
			}
			d.bad = d.bad || p.bad
		case columnsName:
			d.names = append(d.names, string(f.Bytes))
		case columnsSessions:
			d.sessions = f.Bytes
		default:
			d.column(f)
		}
	}
	if err := checkFormat("columns", format); err != nil {
		return nil, err
	}
	d.resolve()
	if d.bad {
		return nil, fmt.Errorf("%w: columns", ErrDamaged)
	}
	return d.rows, nil
}

// rowDecoder is one block under way.
type rowDecoder struct {
	first    uint32
	rows     []Row
	kept     []int // the places of the rows that are stored
	sessions []byte
	names    []string
	authors  []uint32 // index in names, from 1
	bad      bool
}

// column reads one column; one with an unknown number is passed over.
func (d *rowDecoder) column(f wire.Field) {
	p := parser{bytes: f.Bytes}
	last := int64(0)
	step := func() int64 {
		n := p.uint()
		if n == 0 {
			return 0
		}
		n--
		last += int64(n>>1) ^ -int64(n&1)
		return last
	}
	ordinal := func(i int) uint32 {
		n := p.uint32()
		if n == 0 {
			return 0
		}
		if n >= d.first+uint32(i) {
			p.fail()
			return 0
		}
		return d.first + uint32(i) - n
	}
	var set func(i int, r *Row)
	switch f.Number {
	case columnsBody:
		set = func(_ int, r *Row) { r.Body = p.uint32() }
	case columnsHeader:
		set = func(_ int, r *Row) { r.Header = p.uint32() }
	case columnsSession:
		set = func(_ int, r *Row) { r.Session = uint64(p.uint32()) }
	case columnsAuthor:
		d.authors = make([]uint32, len(d.rows))
		set = func(i int, _ *Row) { d.authors[i] = p.uint32() }
	case columnsEvent:
		set = func(_ int, r *Row) { r.Event = step() }
	case columnsCreate:
		set = func(_ int, r *Row) { r.Create = step() }
	case columnsExpires:
		set = func(_ int, r *Row) { r.Expires = step() }
	case columnsSuperseded:
		set = func(_ int, r *Row) { r.Superseded = step() }
	case columnsSupersedes:
		set = func(i int, r *Row) { r.Supersedes = ordinal(i) }
	case columnsImportance:
		set = func(_ int, r *Row) { r.Importance = math.Float32frombits(p.uint32()) }
	case columnsTier:
		set = func(_ int, r *Row) { r.Tier = uint8(p.uint32()) }
	case columnsFlags:
		set = func(_ int, r *Row) { r.Flags = Flags(p.uint32()) }
	case columnsPlace:
		set = func(i int, r *Row) { r.Place = ordinal(i) }
	default:
		return
	}
	for _, i := range d.kept {
		set(i, &d.rows[i])
	}
	d.bad = d.bad || p.bad || !p.done()
}

// resolve converts the numbers of sessions and authors into what they stand for.
func (d *rowDecoder) resolve() {
	for i := range d.rows {
		r := &d.rows[i]
		if n := r.Session; n > 0 {
			if n*8 > uint64(len(d.sessions)) {
				d.bad = true
				return
			}
			r.Session = binary.BigEndian.Uint64(d.sessions[(n-1)*8:])
		}
		if i < len(d.authors) && d.authors[i] > 0 {
			if int(d.authors[i]) > len(d.names) {
				d.bad = true
				return
			}
			r.Author = d.names[d.authors[i]-1]
		}
	}
}
