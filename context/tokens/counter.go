package tokens

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
)

// Limits of counting.
const (
	// MaxTextBytes bounds the text of one call: the largest request a server
	// takes, so that whatever was recorded can be counted.
	MaxTextBytes = 4 << 20
	// DefaultMemoEntries is how many counts are remembered at least. An entry
	// takes about 150 bytes.
	DefaultMemoEntries = 1 << 15
	// minMemoBytes is the size from which a text is cheaper to look up than to
	// count.
	minMemoBytes = 64
)

// ErrTooLarge: a text is over MaxTextBytes.
var ErrTooLarge = errors.New("tokens: text is too large to count")

// Count is a number of tokens and where it comes from.
type Count struct {
	// Tokens is the number.
	Tokens int
	// Encoding is the vocabulary it was counted with.
	Encoding Encoding
	// Exact says that the vocabulary is the model's own and that nothing was
	// counted in pieces or guessed.
	Exact bool
}

// Plus returns the sum of two counts of one model; it is exact when both are.
func (c Count) Plus(other Count) Count {
	c.Tokens += other.Tokens
	c.Exact = c.Exact && other.Exact
	return c
}

// Options adjusts a Counter. Nil and zero fields mean the defaults.
type Options struct {
	// MemoEntries is how many counts are remembered at least, and twice as many
	// at most. Default DefaultMemoEntries.
	MemoEntries int
}

// Counter counts for any model. It remembers counts by the hash of the text,
// so that a text counted before costs one pass of SHA-256. All methods are
// safe for concurrent use.
type Counter struct {
	memo *memo
	// working has a token for each text that is being counted. A megabyte takes
	// the engine some seventy of them, and more at once than there are
	// processors gets nobody an answer sooner.
	working chan struct{}
}

// New returns a counter. It loads nothing yet: a vocabulary is loaded by the
// first count that needs it, which takes some tenths of a second.
func New(opts *Options) (*Counter, error) {
	entries := DefaultMemoEntries
	if opts != nil && opts.MemoEntries != 0 {
		entries = opts.MemoEntries
	}
	if entries < 0 {
		return nil, fmt.Errorf("tokens: memo entries must not be negative: %d", entries)
	}
	return &Counter{memo: newMemo(entries), working: make(chan struct{}, runtime.GOMAXPROCS(0))}, nil
}

// Count counts a text as the model would. ErrTooLarge is for texts over
// MaxTextBytes.
func (c *Counter) Count(model, text string) (Count, error) {
	encoding, own := EncodingFor(model)
	found, err := c.measure(memoKey{encoding: encoding}, text, func(e *engine) measured {
		n, exact := e.count(text)
		return measured{first: n, exact: exact}
	})
	return Count{Tokens: found.first, Encoding: encoding, Exact: own && found.exact}, err
}

// Ends returns the beginning of text with about head tokens and the end with
// about tail tokens, cut between code points. A text of at most head + tail
// tokens is returned whole as first. Counted by itself, an end may differ by a
// token from what it was within the text.
func (c *Counter) Ends(model, text string, head, tail int) (first, last string, err error) {
	encoding, _ := EncodingFor(model)
	head, tail = max(head, 0), max(tail, 0)
	key := memoKey{encoding: encoding, head: head + 1, tail: tail + 1}
	found, err := c.measure(key, text, func(e *engine) measured {
		from, to := e.ends(text, head, tail)
		return measured{first: from, second: to}
	})
	if err != nil {
		return "", "", err
	}
	return text[:found.first], text[found.second:], nil
}

// measure remembers what work finds out about a text.
func (c *Counter) measure(key memoKey, text string, work func(*engine) measured) (measured, error) {
	if len(text) > MaxTextBytes {
		return measured{}, fmt.Errorf("%w: %d bytes, limit %d", ErrTooLarge, len(text), MaxTextBytes)
	}
	remember := len(text) >= minMemoBytes
	if remember {
		key.sum = sha256.Sum256([]byte(text))
		if found, ok := c.memo.get(key); ok {
			return found, nil
		}
	}
	e, err := engineFor(key.encoding)
	if err != nil {
		return measured{}, err
	}
	c.working <- struct{}{}
	defer func() { <-c.working }()
	found := work(e)
	if remember {
		c.memo.put(key, found)
	}
	return found, nil
}
