package sqlite

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// Row is a row of a table. Its values are read when they are asked for.
type Row struct {
	// ID is its number in the table.
	ID    int64
	table *Table
	page  uint32
	data  []byte // what was read of it so far
	whole int    // bytes of all of it
	next  uint32 // the page on which it goes on
}

// row is the row of a cell of a leaf.
func (t *Table) row(n node, i int) (r Row, err error) {
	cell, err := n.cell(i)
	if err != nil {
		return r, err
	}
	whole, size := varint(cell)
	id, more := varint(cell[size:])
	switch cell = cell[size+more:]; {
	case size == 0 || more == 0:
		return r, &FormatError{n.number, "a cell is cut off"}
	case whole > MaxValueBytes || whole > uint64(t.db.pages)*uint64(t.db.usable): //nolint:gosec // sizes are positive
		return r, &FormatError{n.number, fmt.Sprintf("a row of %d bytes is longer than the file, or than %d bytes", whole, MaxValueBytes)}
	}
	r = Row{ID: int64(id), table: t, page: n.number, whole: int(whole)} //nolint:gosec // numbers of rows are signed, and the size is bounded
	here := r.whole
	if most := t.db.usable - 35; r.whole > most { // the rest lies on pages of its own
		least := (t.db.usable-12)*32/255 - 23
		if here = least + (r.whole-least)%(t.db.usable-4); here > most {
			here = least
		}
		if here+4 <= len(cell) {
			r.next = binary.BigEndian.Uint32(cell[here:])
		}
	}
	if here > len(cell) || here < r.whole && r.next == 0 {
		return r, &FormatError{n.number, "a row is cut off"}
	}
	r.data = cell[:here:here]
	return r, nil
}

// read reads until so many bytes are there.
func (r *Row) read(most int) error {
	if most > r.whole {
		return &FormatError{r.page, "a row is cut off"}
	}
	db := r.table.db
	for len(r.data) < most {
		if db.budget--; db.budget < 0 {
			return &FormatError{r.next, "rows share the pages on which they go on"}
		}
		data, err := db.page(r.next)
		if err != nil {
			return err
		}
		r.next = binary.BigEndian.Uint32(data)
		data = data[4:db.usable]
		r.data = append(r.data, data[:min(len(data), r.whole-len(r.data))]...)
	}
	return nil
}

// Text returns the value of a column: a text or bytes as they are, and a number in digits. It is
// empty for NULL, and for a column that the row or the table does not have.
func (r *Row) Text(column string) (string, error) {
	place, ok := r.table.columns[column]
	if !ok {
		return "", nil
	}
	kind, at, err := r.find(place)
	if err != nil {
		return "", err
	}
	size := sizeOf(kind)
	if size > uint64(r.whole) { //nolint:gosec // a size is positive
		return "", &FormatError{r.page, "a value is longer than its row"}
	}
	if err := r.read(at + int(size)); err != nil { //nolint:gosec // bounded by whole
		return "", err
	}
	data := r.data[at : at+int(size)] //nolint:gosec // bounded by whole
	switch {
	case kind >= 12:
		return string(data), nil
	case kind == 0:
		return "", nil
	case kind == 7:
		return strconv.FormatFloat(math.Float64frombits(binary.BigEndian.Uint64(data)), 'g', -1, 64), nil
	case kind == 8 || kind == 9:
		return strconv.FormatUint(kind-8, 10), nil
	case kind > 9:
		return "", &FormatError{r.page, "a value is of no kind that there is"}
	}
	number := int64(int8(data[0])) //nolint:gosec // the first byte has the sign
	for _, b := range data[1:] {
		number = number<<8 | int64(b)
	}
	return strconv.FormatInt(number, 10), nil
}

// find is the kind of the value of a place, and where it begins. A missing one is NULL.
func (r *Row) find(place int) (kind uint64, at int, err error) {
	const longest = 9 // of a varint
	if err := r.read(min(longest, r.whole)); err != nil {
		return 0, 0, err
	}
	head, size := varint(r.data)
	if size == 0 || head > uint64(r.whole) { //nolint:gosec // a size is positive
		return 0, 0, &FormatError{r.page, "a row has no head"}
	}
	if err := r.read(int(head)); err != nil { //nolint:gosec // bounded by whole
		return 0, 0, err
	}
	kinds, before := r.data[size:max(size, int(head))], head //nolint:gosec // bounded by whole
	for range place + 1 {
		if len(kinds) == 0 {
			return 0, r.whole, nil
		}
		kind, size = varint(kinds)
		if size == 0 || before > uint64(r.whole) { //nolint:gosec // a size is positive
			return 0, 0, &FormatError{r.page, "the head of a row is damaged"}
		}
		at, before, kinds = int(before), before+sizeOf(kind), kinds[size:] //nolint:gosec // bounded by whole
	}
	return kind, at, nil
}

// sizeOf is how many bytes a value of a kind takes.
func sizeOf(kind uint64) uint64 {
	if kind >= 12 {
		return (kind - 12) / 2
	}
	return [...]uint64{0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0}[kind]
}
