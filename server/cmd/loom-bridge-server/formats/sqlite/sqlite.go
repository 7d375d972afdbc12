// Package sqlite reads rows of tables from files of SQLite 3, with what a program that was
// killed or still runs has in its write-ahead log. It knows no SQL: a table is read as a whole,
// or a row by its number.
//
// Files may be hostile: what is read is bounded by their size, and a [FormatError] says on which
// page something is wrong. No locks are taken; [DB.Unchanged] says afterwards whether a program
// wrote meanwhile. Tables without row numbers, and text in UTF-16, are not read.
package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"
)

const (
	// Magic begins each file.
	Magic = "SQLite format 3\x00"
	// MaxValueBytes bounds a row.
	MaxValueBytes = 256 << 20
	// maxDepth bounds how deep the tree of a table is, far above what 2^32 pages take.
	maxDepth = 32
)

// FormatError says where a file is damaged, or is none of SQLite. Pages count from 1.
type FormatError struct {
	Page    uint32
	Problem string
}

func (e *FormatError) Error() string { return fmt.Sprintf("page %d: %s", e.Page, e.Problem) }

// ErrChanged: a program wrote to the file while it was read.
var ErrChanged = errors.New("a program wrote to the database meanwhile; end it, and read it again")

// DB is an open file. It is not safe for concurrent use.
type DB struct {
	file, log *os.File // log is nil without one
	state     state
	size      int // of a page
	usable    int // bytes of a page
	pages     uint32
	logged    map[uint32]int64 // where pages lie in the log
	budget    int64            // overflow pages that may still be read
	tables    map[string]*Table
}

// state is what changes when a program writes.
type state struct {
	size    int64
	time    time.Time
	logHead [32]byte
}

// Open opens a file for reading. Close it.
func Open(path string) (*DB, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	db := &DB{file: file, logged: make(map[uint32]int64), tables: make(map[string]*Table)}
	if err := db.open(path); err != nil {
		_ = db.Close() // it was only read
		return nil, err
	}
	return db, nil
}

func (db *DB) open(path string) (err error) {
	head := make([]byte, 100)
	if _, err := db.file.ReadAt(head, 0); err != nil || string(head[:16]) != Magic {
		return &FormatError{1, "it is no file of SQLite 3"}
	}
	if info, err := os.Stat(path + "-journal"); err == nil && info.Size() > 0 {
		return &FormatError{1, "a program has not ended what it writes; start it and end it, and read it again"}
	}
	db.size = int(binary.BigEndian.Uint16(head[16:]))
	if db.size == 1 {
		db.size = 1 << 16
	}
	db.usable = db.size - int(head[20])
	if db.size < 512 || db.size&(db.size-1) != 0 || db.usable < 480 {
		return &FormatError{1, "its pages have no size that can be"}
	}
	if encoding := binary.BigEndian.Uint32(head[56:]); encoding > 1 {
		return &FormatError{1, "its texts are not in UTF-8"}
	}
	if db.log, err = os.Open(path + "-wal"); errors.Is(err, os.ErrNotExist) {
		db.log = nil
	} else if err != nil {
		return err
	}
	if db.state, err = db.now(); err != nil {
		return err
	}
	stored := db.state.size / int64(db.size)
	db.pages = pageCount(stored)
	if err := db.readLog(); err != nil {
		return err
	}
	db.pages = min(db.pages, pageCount(stored+int64(len(db.logged))))
	if said := binary.BigEndian.Uint32(head[28:]); len(db.logged) == 0 && bytes.Equal(head[24:28], head[92:96]) && said > db.pages {
		return &FormatError{db.pages, "the file is cut off behind it"}
	}
	const readings = 4 // a table is read once or twice
	db.budget = readings * int64(db.pages)
	return db.schema()
}

func pageCount(pages int64) uint32 { return uint32(min(pages, 1<<32-2)) } //nolint:gosec // bounded

// Close closes the file.
func (db *DB) Close() error {
	err := db.file.Close()
	if db.log != nil {
		err = errors.Join(err, db.log.Close())
	}
	return err
}

func (db *DB) now() (s state, err error) {
	info, err := db.file.Stat()
	if err != nil {
		return s, err
	}
	s.size, s.time = info.Size(), info.ModTime()
	if db.log != nil {
		if _, err := db.log.ReadAt(s.logHead[:], 0); err != nil && !errors.Is(err, io.EOF) {
			return s, err
		}
	}
	return s, nil
}

// Unchanged is ErrChanged where what was read may not belong together.
func (db *DB) Unchanged() error {
	s, err := db.now()
	if err == nil && s != db.state {
		err = ErrChanged
	}
	return err
}

// readLog finds the pages that stand in the log: those up to the last one that ends a
// transaction, of frames that follow each other without damage.
func (db *DB) readLog() error {
	const headSize, frameHead, noted = 32, 24, 0x377f0682
	head := db.state.logHead[:]
	magic := binary.BigEndian.Uint32(head)
	if db.log == nil || magic&^1 != noted || int(binary.BigEndian.Uint32(head[8:])) != db.size {
		return nil
	}
	var order binary.ByteOrder = binary.LittleEndian
	if magic&1 == 1 {
		order = binary.BigEndian
	}
	sum := checksum{order: order}
	sum.add(head[:24])
	if !sum.is(head[24:]) {
		return nil
	}
	frame := make([]byte, frameHead+db.size)
	pending := make(map[uint32]int64)
	for at := int64(headSize); ; at += int64(len(frame)) {
		switch _, err := db.log.ReadAt(frame, at); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		sum.add(frame[:8])
		sum.add(frame[frameHead:])
		if !bytes.Equal(frame[8:16], head[16:24]) || !sum.is(frame[16:24]) {
			return nil // what stands behind is of an earlier round
		}
		pending[binary.BigEndian.Uint32(frame)] = at + frameHead
		if pages := binary.BigEndian.Uint32(frame[4:]); pages > 0 {
			db.pages = pages
			for page, at := range pending {
				db.logged[page] = at
			}
			clear(pending)
		}
	}
}

// checksum is that of a log.
type checksum struct {
	order binary.ByteOrder
	a, b  uint32
}

func (c *checksum) add(data []byte) {
	for ; len(data) >= 8; data = data[8:] {
		c.a += c.order.Uint32(data) + c.b
		c.b += c.order.Uint32(data[4:]) + c.a
	}
}

func (c *checksum) is(said []byte) bool {
	return binary.BigEndian.Uint32(said) == c.a && binary.BigEndian.Uint32(said[4:]) == c.b
}

// page reads a page.
func (db *DB) page(number uint32) ([]byte, error) {
	if number == 0 || number > db.pages {
		return nil, &FormatError{number, "there is no such page; the file is cut off, or damaged"}
	}
	from, at := db.file, int64(number-1)*int64(db.size)
	if logged, ok := db.logged[number]; ok {
		from, at = db.log, logged
	}
	data := make([]byte, db.size)
	if _, err := from.ReadAt(data, at); err != nil {
		if errors.Is(err, io.EOF) {
			err = &FormatError{number, "the file is cut off in it"}
		}
		return nil, err
	}
	return data, nil
}

// schema reads which tables there are.
func (db *DB) schema() error {
	t := &Table{db: db, root: 1, columns: map[string]int{"type": 0, "name": 1, "rootpage": 3, "sql": 4}}
	for row, err := range t.Rows() {
		if err != nil {
			return err
		}
		var of [4]string
		for i, name := range []string{"type", "name", "rootpage", "sql"} {
			if of[i], err = row.Text(name); err != nil {
				return err
			}
		}
		var root uint32
		if _, err := fmt.Sscan(of[2], &root); err != nil || of[0] != "table" {
			continue // an index, or a table that has no pages of its own
		}
		db.tables[strings.ToLower(of[1])] = &Table{db: db, root: root, columns: columnsOf(of[3])}
	}
	return nil
}

// Table returns a table by its name; nil if there is none.
func (db *DB) Table(name string) *Table { return db.tables[strings.ToLower(name)] }

// columnsOf are the columns that a CREATE TABLE names, and their places in a row.
func columnsOf(sql string) map[string]int {
	columns := make(map[string]int)
	_, sql, _ = strings.Cut(sql, "(")
	depth, quote, from := 0, byte(0), 0
	add := func(definition string) {
		name := strings.TrimSpace(definition)
		if name == "" {
			return
		}
		if end := strings.IndexByte("\"`[", name[0]); end >= 0 {
			name, _, _ = strings.Cut(name[1:], "\"`]"[end:end+1])
		} else {
			name = strings.ToLower(strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(" \t\r\n(", r) })[0])
			switch name {
			case "constraint", "primary", "unique", "check", "foreign":
				return
			}
		}
		columns[strings.ToLower(name)] = len(columns)
	}
	for i := range len(sql) {
		switch b := sql[i]; {
		case quote != 0:
			if b == quote {
				quote = 0
			}
		case b == '"' || b == '\'' || b == '`':
			quote = b
		case b == '[':
			quote = ']'
		case b == '(':
			depth++
		case b == ')' && depth > 0:
			depth--
		case b == ')', b == ',' && depth == 0:
			add(sql[from:i])
			if from = i + 1; b == ')' {
				return columns
			}
		}
	}
	return columns
}

// Table is a table of a file.
type Table struct {
	db      *DB
	root    uint32
	columns map[string]int
}

// Rows yields the rows in the order of their numbers. The first error ends it.
func (t *Table) Rows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		left := t.db.pages
		if _, err := t.walk(t.root, 0, &left, yield); err != nil {
			yield(Row{}, err)
		}
	}
}

// walk yields the rows below a page, of which so many are left at most.
func (t *Table) walk(number uint32, depth int, left *uint32, yield func(Row, error) bool) (goOn bool, err error) {
	n, err := t.node(number)
	switch {
	case err != nil:
		return false, err
	case *left == 0 || depth == maxDepth:
		return false, &FormatError{number, "the tree of the table goes in a circle"}
	}
	*left--
	for i := range n.cells {
		if n.leaf {
			row, err := t.row(n, i)
			if err != nil || !yield(row, nil) {
				return false, err
			}
			continue
		}
		child, _, err := n.child(i)
		if err != nil {
			return false, err
		}
		if goOn, err := t.walk(child, depth+1, left, yield); err != nil || !goOn {
			return false, err
		}
	}
	if n.leaf {
		return true, nil
	}
	return t.walk(n.last, depth+1, left, yield)
}

// Row returns the row of a number, and whether there is one.
func (t *Table) Row(id int64) (Row, bool, error) {
	number := t.root
next:
	for range maxDepth {
		n, err := t.node(number)
		if err != nil {
			return Row{}, false, err
		}
		for i := range n.cells {
			if n.leaf {
				row, err := t.row(n, i)
				if err != nil || row.ID == id {
					return row, err == nil, err
				}
				continue
			}
			child, key, err := n.child(i)
			if err != nil {
				return Row{}, false, err
			}
			if id <= key {
				number = child
				continue next
			}
		}
		if n.leaf {
			return Row{}, false, nil
		}
		number = n.last
	}
	return Row{}, false, &FormatError{number, "the tree of the table is too deep"}
}

// node is a page of the tree of a table.
type node struct {
	number uint32
	data   []byte
	head   int // where its header begins
	leaf   bool
	cells  int
	last   uint32 // the child behind all cells
}

func (t *Table) node(number uint32) (n node, err error) {
	n.number = number
	if n.data, err = t.db.page(number); err != nil {
		return n, err
	}
	n.data = n.data[:t.db.usable]
	if number == 1 {
		n.head = 100
	}
	const leafHead, head = 8, 12
	size := leafHead
	switch kind := n.data[n.head]; kind {
	case 0x0d:
		n.leaf = true
	case 0x05:
		size = head
		n.last = binary.BigEndian.Uint32(n.data[n.head+leafHead:])
	default:
		return n, &FormatError{number, fmt.Sprintf("a page of kind %d stands where rows are expected", kind)}
	}
	n.cells = int(binary.BigEndian.Uint16(n.data[n.head+3:]))
	n.head += size
	if n.head+2*n.cells > len(n.data) {
		return n, &FormatError{number, "it has more cells than there is room"}
	}
	return n, nil
}

// cell is what begins where a cell does.
func (n node) cell(i int) ([]byte, error) {
	at := int(binary.BigEndian.Uint16(n.data[n.head+2*i:]))
	if at < n.head || at >= len(n.data) {
		return nil, &FormatError{n.number, "a cell lies outside of it"}
	}
	return n.data[at:], nil
}

// child is the page below a cell, and the highest number of a row there.
func (n node) child(i int) (page uint32, key int64, err error) {
	cell, err := n.cell(i)
	if err != nil {
		return 0, 0, err
	}
	if len(cell) > 4 {
		if number, size := varint(cell[4:]); size > 0 {
			return binary.BigEndian.Uint32(cell), int64(number), nil //nolint:gosec // numbers of rows are signed
		}
	}
	return 0, 0, &FormatError{n.number, "a cell is cut off"}
}

// varint reads a number of 1 to 9 bytes, and returns how many they were; 0: it is cut off.
func varint(data []byte) (number uint64, size int) {
	for i, b := range data {
		if i == 8 {
			return number<<8 | uint64(b), 9
		}
		if number = number<<7 | uint64(b&0x7f); b < 0x80 {
			return number, i + 1
		}
	}
	return 0, 0
}
