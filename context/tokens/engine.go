package tokens

import (
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// The vocabularies, each loaded once in the life of the process: one takes
// tens of megabytes, and many counters share it. They never change afterwards.
var (
	loadO200K  = sync.OnceValues(func() (*engine, error) { return load(O200K) })
	loadCL100K = sync.OnceValues(func() (*engine, error) { return load(CL100K) })

	// goOffline makes the library read the vocabularies that are compiled in.
	// Its default is to download them.
	goOffline = sync.OnceFunc(func() { tiktoken.SetBpeLoader(loader.NewOfflineLoader()) })
)

// engine counts with one vocabulary. It is immutable.
type engine struct {
	bpe *tiktoken.Tiktoken
}

func engineFor(encoding Encoding) (*engine, error) {
	switch encoding {
	case O200K:
		return loadO200K()
	case CL100K:
		return loadCL100K()
	}
	return nil, fmt.Errorf("tokens: unknown encoding %q", encoding)
}

func load(encoding Encoding) (*engine, error) {
	goOffline()
	bpe, err := tiktoken.GetEncoding(string(encoding))
	if err != nil {
		return nil, fmt.Errorf("tokens: load %s: %w", encoding, err)
	}
	return &engine{bpe: bpe}, nil
}

// count returns the tokens of text; exact is false when a run was cut.
func (e *engine) count(text string) (n int, exact bool) {
	exact = true
	for piece, whole := range pieces(text) {
		n += len(e.bpe.EncodeOrdinary(piece))
		exact = exact && whole
	}
	return n, exact
}

// ends returns where the first head tokens end and where the last tail tokens
// begin. A text that has no more than both together ends at its end.
func (e *engine) ends(text string, head, tail int) (from, to int) {
	lengths := e.lengths(text)
	if len(lengths) <= head+tail {
		return len(text), len(text)
	}
	for _, n := range lengths[:head] {
		from += n
	}
	to = len(text)
	for _, n := range lengths[len(lengths)-tail:] {
		to -= n
	}
	from = runeStart(text, from, -1)
	return from, max(from, runeStart(text, to, +1))
}

// lengths returns the bytes of each token.
func (e *engine) lengths(text string) []int {
	var lengths []int
	for piece := range pieces(text) {
		for _, token := range e.bpe.EncodeOrdinary(piece) {
			lengths = append(lengths, len(e.bpe.Decode([]int{token})))
		}
	}
	return lengths
}

// runeStart moves at in the given direction to where a code point begins. The
// place is brought into the text first: a replacement character is longer than
// the bytes it stands for. Bytes that are no UTF-8 are cut anywhere.
func runeStart(text string, at, step int) int {
	at = min(max(at, 0), len(text))
	for moved := at; moved > at-utf8.UTFMax && moved < at+utf8.UTFMax; moved += step {
		if moved <= 0 || moved >= len(text) || utf8.RuneStart(text[moved]) {
			return min(max(moved, 0), len(text))
		}
	}
	return at
}
