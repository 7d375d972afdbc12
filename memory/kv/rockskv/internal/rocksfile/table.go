package rocksfile

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"

	"github.com/zeebo/xxh3"
)

// The form of a table: blocks without a gap, each followed by a trailer, then a
// footer; all little-endian.
//
//	trailer  1 compression, 4 checksum of block and compression
//	footer   1 kind of checksum, 40 handles of metaindex and index and zeros,
//	         4 version, 8 magic
//
// A handle is the offset and the length of a block without its trailer, both
// varints. The index has the handles of the data blocks, the metaindex the handles of all
// other blocks by name.
const (
	tableTrailerBytes = 5
	tableFooterBytes  = 53
	tableHandlesBytes = 40
	tableMagic        = 0x88e241b785f4cff7
	tableVersion      = 5

	checksumCRC  = 1
	checksumXXH3 = 4

	propertiesBlock = "rocksdb.properties"
	rangesBlock     = "rocksdb.range_del"
)

// handle is where a block lies.
type handle struct{ offset, length int64 }

// end is the offset behind the block's trailer.
func (h handle) end() int64 { return h.offset + h.length + tableTrailerBytes }

// tableFile is a table that is being checked.
type tableFile struct {
	name             string
	file             *os.File
	size             int64
	checksum         byte
	metaindex, index handle
	// meta are the handles of the metaindex by name.
	meta map[string]handle
}

// CheckTableEnds looks whether a table file is there and has its size, and compares
// with their checksums the blocks that say how to read the others. RocksDB reads a
// table whose properties are damaged without them, and then finds other keys.
func CheckTableEnds(dir string, t Table) error {
	f, err := openTable(dir, t)
	if err != nil {
		return err
	}
	err = f.checkMeta()
	if err == nil && t.Level == 0 {
		err = f.checkPinned()
	}
	return errors.Join(err, f.file.Close())
}

// CheckTable compares every block of a table with its checksum. report, unless nil,
// is called with the number of bytes read, and its error ends the check.
func CheckTable(dir string, t Table, report func(bytes int64) error) error {
	f, err := openTable(dir, t)
	if err != nil {
		return err
	}
	return errors.Join(f.checkAll(report), f.file.Close())
}

// openTable opens a table and reads its footer.
func openTable(dir string, t Table) (*tableFile, error) {
	name := TableName(t.Number)
	file, err := openSized(dir, name, t.Size)
	if err != nil {
		return nil, err
	}
	f := &tableFile{name: name, file: file, size: t.Size, meta: make(map[string]handle)}
	if err := f.readFooter(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

func (f *tableFile) readFooter() error {
	start := f.size - tableFooterBytes
	if start < 0 {
		return damaged(f.name, 0, "is too short for a table")
	}
	var footer [tableFooterBytes]byte
	if _, err := f.file.ReadAt(footer[:], start); err != nil {
		return err
	}
	version, magic := binary.LittleEndian.Uint32(footer[41:]), binary.LittleEndian.Uint64(footer[45:])
	if magic != tableMagic || version != tableVersion {
		return damaged(f.name, start, "does not end as a table")
	}
	f.checksum = footer[0]
	handles := fields{rest: footer[1 : 1+tableHandlesBytes], ok: true}
	f.metaindex, f.index = f.handle(&handles), f.handle(&handles)
	for _, b := range handles.rest {
		handles.ok = handles.ok && b == 0
	}
	if !handles.ok || f.checksum != checksumCRC && f.checksum != checksumXXH3 {
		return damaged(f.name, start, "the footer makes no sense")
	}
	return nil
}

// handle reads one; ok of from becomes false if it does not lie in the file.
func (f *tableFile) handle(from *fields) handle {
	offset, length := from.uint(), from.uint()
	room := uint64(f.size - tableFooterBytes)
	if offset > room || length > room || offset+length+tableTrailerBytes > room {
		from.ok = false
		return handle{}
	}
	return handle{int64(offset), int64(length)}
}

// checkMeta reads the metaindex, and compares the small blocks that it names with
// their checksums.
func (f *tableFile) checkMeta() error {
	if err := f.readMetaindex(); err != nil {
		return err
	}
	for _, name := range []string{propertiesBlock, rangesBlock} {
		h, ok := f.meta[name]
		if !ok {
			if name == propertiesBlock {
				return damaged(f.name, f.metaindex.offset, "the table has no properties")
			}
			continue
		}
		if _, err := f.block(h); err != nil {
			return err
		}
	}
	return nil
}

// checkPinned verifies the checksums of the blocks that RocksDB reads at once from tables
// of level 0: all but data blocks.
func (f *tableFile) checkPinned() error {
	blocks := []handle{f.index}
	for _, h := range f.meta {
		blocks = append(blocks, h)
	}
	for _, h := range blocks {
		if _, err := f.stored(h); err != nil {
			return err
		}
	}
	return nil
}

func (f *tableFile) readMetaindex() error {
	block, err := f.block(f.metaindex)
	if err != nil {
		return err
	}
	for name, value := range entries(block, false) {
		from := fields{rest: value, ok: name != nil}
		h := f.handle(&from)
		if !from.ok {
			return damaged(f.name, f.metaindex.offset, "the list of blocks makes no sense")
		}
		f.meta[string(name)] = h
	}
	return nil
}

// block reads a block, compares it with its checksum and unpacks it.
func (f *tableFile) block(h handle) ([]byte, error) {
	stored, err := f.stored(h)
	if err != nil {
		return nil, err
	}
	block, err := unpack(stored[h.length], stored[:h.length])
	if err != nil {
		return nil, damaged(f.name, h.offset, "a block can't be unpacked: %v", err)
	}
	return block, nil
}

// stored reads a block with its trailer and compares it with its checksum.
func (f *tableFile) stored(h handle) ([]byte, error) {
	stored := make([]byte, h.length+tableTrailerBytes)
	if _, err := f.file.ReadAt(stored, h.offset); err != nil {
		return nil, err
	}
	return stored, f.compare(h, stored)
}

// compare compares a block, its trailer included, with its checksum.
func (f *tableFile) compare(h handle, stored []byte) error {
	block, packing := stored[:h.length], stored[h.length]
	var sum uint32
	if f.checksum == checksumCRC {
		sum = masked(crc32.Checksum(stored[:h.length+1], castagnoli))
	} else {
		const lastByte = 0x6b9083d9
		sum = uint32(xxh3.Hash(block)) ^ uint32(packing)*lastByte
	}
	if sum != binary.LittleEndian.Uint32(stored[h.length+1:]) {
		return damaged(f.name, h.offset, "a block of %d bytes does not match its checksum", h.length)
	}
	return nil
}

// checkAll reads all blocks in the order of the file.
func (f *tableFile) checkAll(report func(bytes int64) error) error {
	if err := f.checkMeta(); err != nil {
		return err
	}
	blocks, err := f.dataBlocks()
	if err != nil {
		return err
	}
	blocks = append(blocks, f.metaindex, f.index)
	for _, h := range f.meta {
		blocks = append(blocks, h)
	}
	slices.SortFunc(blocks, func(a, b handle) int { return cmp.Compare(a.offset, b.offset) })
	from := bufio.NewReaderSize(io.NewSectionReader(f.file, 0, f.size), readAhead)
	at := int64(0)
	var stored []byte
	for _, h := range blocks {
		if h.offset != at {
			return damaged(f.name, at, "there is something else than a block")
		}
		stored = slices.Grow(stored[:0], int(h.length)+tableTrailerBytes)[:h.length+tableTrailerBytes]
		if _, err := io.ReadFull(from, stored); err != nil {
			return err
		}
		if err := f.compare(h, stored); err != nil {
			return err
		}
		at = h.end()
		if report != nil {
			if err := report(int64(len(stored))); err != nil {
				return err
			}
		}
	}
	if at != f.size-tableFooterBytes {
		return damaged(f.name, at, "there is something else than a block")
	}
	return nil
}

// dataBlocks returns the handles of the blocks that the index names.
func (f *tableFile) dataBlocks() ([]handle, error) {
	block, err := f.block(f.index)
	if err != nil {
		return nil, err
	}
	var all []handle
	for key, value := range entries(block, true) {
		from := fields{rest: value, ok: key != nil}
		h := f.handle(&from)
		if !from.ok {
			return nil, damaged(f.name, f.index.offset, "the index makes no sense")
		}
		all = append(all, h)
	}
	return all, nil
}

// entries yields the entries of a block, and a nil key where it makes no sense. An
// entry is the number of bytes that its key shares with the key before, the number
// of those it adds, the length of the value, which an index leaves out, then bytes
// and value. Behind the entries is a list of offsets and its length.
//
// The value of an index is yielded with all that follows it. Its keys share
// nothing, and so its handles are whole.
func entries(block []byte, index bool) func(yield func(key, value []byte) bool) {
	return func(yield func(key, value []byte) bool) {
		f := fields{rest: contents(block), ok: true}
		var key []byte
		for len(f.rest) > 0 {
			shared, added := f.uint(), f.uint()
			length := uint64(0)
			if !index {
				length = f.uint()
			}
			room := uint64(len(f.rest))
			if !f.ok || shared > uint64(len(key)) || added > room || length > room-added || index && shared > 0 {
				yield(nil, nil)
				return
			}
			key = append(key[:shared], f.rest[:added]...)
			value := f.rest[added:]
			if index {
				handle := fields{rest: value, ok: true}
				handle.uint()
				handle.uint()
				length = uint64(len(value) - len(handle.rest))
			}
			f.rest = value[length:]
			if !yield(append([]byte{}, key...), value) {
				return
			}
		}
	}
}

// contents is a block without the list of offsets at its end.
func contents(block []byte) []byte {
	const width = 4
	if len(block) < width {
		return nil
	}
	list := uint64(binary.LittleEndian.Uint32(block[len(block)-width:]))*width + width
	if list > uint64(len(block)) {
		return nil
	}
	return block[:uint64(len(block))-list]
}

// Ways in which a block is packed.
const (
	packedNot  = 0
	packedLZ4  = 4
	packedZSTD = 7
)

// maxUnpacked bounds a block of an index: a table of 64 MiB has one of about one
// MiB.
const maxUnpacked = 256 << 20

var errPacking = errors.New("unknown packing")

// unpack returns what is in a block.
func unpack(packing byte, stored []byte) ([]byte, error) {
	if packing == packedNot {
		return stored, nil
	}
	size, n := binary.Uvarint(stored)
	if n <= 0 || size > maxUnpacked {
		return nil, fmt.Errorf("its length is not known or over %d", maxUnpacked)
	}
	switch packing {
	case packedLZ4:
		return unpackLZ4(stored[n:], int(size))
	case packedZSTD:
		return unpackZSTD(stored[n:], int(size))
	}
	return nil, errPacking
}
