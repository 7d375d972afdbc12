package tokens

import (
	"sync"
	"unicode/utf8"
	"unsafe"
)

// scratch is the working memory for counting with one vocabulary. It is for one
// goroutine at a time.
type scratch struct {
	pieces *pieceCache
	seams  []uint64
	tokens []token
	// dead has a bit for each place that no sequence of tokens leads on from.
	dead []uint64
	// repaired is the last text that was not UTF-8.
	repaired []byte
}

// Sizes of a scratch.
const (
	// seamBits makes 4,096 remembered seams of 8 bytes.
	seamBits = 12
	// maxKeptBytes is what a buffer may keep between two counts: one piece of
	// 16 KiB without a space. A longer one is rare, and its buffers are as long
	// as it is.
	maxKeptBytes = 64 << 10
)

func newScratch() *scratch {
	return &scratch{pieces: &pieceCache{make([]pieceSlot, 1<<pieceBits)}, seams: make([]uint64, 1<<seamBits)}
}

// valid returns a text with the replacement character for each byte that is no
// UTF-8. What it returns lives until the next call.
func (s *scratch) valid(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	s.repaired = s.repaired[:0]
	for _, r := range text {
		s.repaired = utf8.AppendRune(s.repaired, r)
	}
	return unsafe.String(unsafe.SliceData(s.repaired), len(s.repaired))
}

// shrink lets go of buffers that a very long text made large.
func (s *scratch) shrink() {
	if cap(s.tokens)*4 > maxKeptBytes {
		s.tokens = nil
	}
	if cap(s.dead)*8 > maxKeptBytes {
		s.dead = nil
	}
	if cap(s.repaired) > maxKeptBytes {
		s.repaired = nil
	}
}

// bench lends out scratches, the last one returned first, because it knows most
// pieces.
type bench struct {
	mu   sync.Mutex // guards free
	free []*scratch
}

func (b *bench) take() *scratch {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.free)
	if n == 0 {
		return newScratch()
	}
	s := b.free[n-1]
	b.free = b.free[:n-1]
	return s
}

func (b *bench) put(s *scratch) {
	s.shrink()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = append(b.free, s)
}
