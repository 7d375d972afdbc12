package builtin

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The file begins with a head: the magic, a checksum (CRC-32) of all that follows the
// head, and the lengths of its parts in bytes. Each part begins at a multiple of
// alignment. Numbers are little-endian.
const (
	magic     = "LOOMUSE1"
	alignment = 64
)

// Parts of the file, in their order.
const (
	partTable  = iota // 512 bytes a piece
	partValues        // float32: what newWeights reads
	partLabels        // the byte of each node of the tree of pieces
	partFirst         // uint32: its first child; one more at the end
	partFound         // int32: the piece that ends there, or -1
	partScores        // float32 a piece
	partUnits         // uint32: the double array of the map of characters
	partTexts         // what characters become, each ended by a zero
	partCount
)

type head struct {
	checksum uint32
	lengths  [partCount]int64
}

// size is how long a file with the head is.
func (h head) size() int64 {
	size := int64(alignment)
	for _, length := range h.lengths {
		size += aligned(length)
	}
	return size
}

func aligned(length int64) int64 { return (length + alignment - 1) / alignment * alignment }

// readHead reads the head of a file and compares it with the file's size.
func readHead(file *os.File) (head, error) {
	var raw [alignment]byte
	if _, err := file.ReadAt(raw[:], 0); err != nil {
		return head{}, fmt.Errorf("%w: %s: %w", ErrFile, file.Name(), err)
	}
	h := head{checksum: binary.LittleEndian.Uint32(raw[len(magic):])}
	for i := range h.lengths {
		h.lengths[i] = int64(binary.LittleEndian.Uint32(raw[len(magic)+4*(i+1):]))
	}
	info, err := file.Stat()
	if err != nil {
		return head{}, fmt.Errorf("%w: %w", ErrFile, err)
	}
	nodes := h.lengths[partLabels]
	if string(raw[:len(magic)]) != magic || info.Size() != h.size() || h.lengths[partValues] != 4*valueCount ||
		h.lengths[partTable] != tableRows*Dimensions || h.lengths[partScores] != 4*pieceCount || h.lengths[partFirst] != 4*(nodes+1) || h.lengths[partFound] != 4*nodes {
		return head{}, fmt.Errorf("%w: %s is damaged or of another version", ErrFile, file.Name())
	}
	return h, nil
}

// openFile maps a file and returns its parts. It stays mapped until the process ends.
func openFile(path string) ([partCount][]byte, error) {
	var parts [partCount][]byte
	file, err := os.Open(path)
	if err != nil {
		return parts, fmt.Errorf("%w: %w", ErrFile, err)
	}
	defer file.Close()
	h, err := readHead(file)
	if err != nil {
		return parts, err
	}
	// Read rather than looked at through the map, so that what no text needs takes no memory.
	sum := crc32.NewIEEE()
	if _, err := io.Copy(sum, io.NewSectionReader(file, alignment, h.size())); err != nil {
		return parts, fmt.Errorf("%w: %w", ErrFile, err)
	}
	if sum.Sum32() != h.checksum {
		return parts, fmt.Errorf("%w: %s is damaged", ErrFile, path)
	}
	content, err := unix.Mmap(int(file.Fd()), 0, int(h.size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return parts, fmt.Errorf("%w: map %s: %w", ErrFile, path, err)
	}
	at := int64(alignment)
	for i, length := range h.lengths {
		parts[i] = content[at : at+length : at+length]
		at += aligned(length)
	}
	return parts, nil
}

// view returns bytes of the file as the numbers that they are, in place: parts begin at
// multiples of alignment, and every machine that the server runs on is little-endian.
func view[T float32 | uint32 | int32](part []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(part))), len(part)/4)
}
