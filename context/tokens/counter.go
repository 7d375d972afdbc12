package tokens

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"unsafe"
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

// Count is a number of tokens and where it comes from. A count is exact,
// anchored, or else estimated.
type Count struct {
	// Tokens is the number.
	Tokens int
	// Counter names what counted: an Encoding, "anthropic" or "estimate".
	Counter string
	// Exact says that the vocabulary is the model's own and that nothing was
	// guessed.
	Exact bool
	// Anchored says that most of it is the provider's own count, and only later additions
	// were counted here. See Meter.
	Anchored bool
}

// Plus returns the sum of two counts of one model; it is exact when both are.
func (c Count) Plus(other Count) Count {
	c.Tokens += other.Tokens
	c.Exact = c.Exact && other.Exact
	c.Anchored = c.Anchored && other.Anchored
	return c
}

// Options adjusts a Counter. Nil and zero fields mean the defaults.
type Options struct {
	// MemoEntries is how many counts are remembered at least, and twice as many
	// at most. Default DefaultMemoEntries.
	MemoEntries int
	// RecentBytes is how much text is remembered at least with its count, and
	// twice as much at most. Default DefaultRecentBytes.
	RecentBytes int
	// Models says how each model is counted. Default is the table that comes
	// with the package.
	Models *Models
}

// Counter counts for any model. It remembers counts by the hash of the text,
// so that a text counted before costs one pass of SHA-256. Counts of the most recent texts
// and messages are cached by their identity, which costs a tenth of that. All methods are
// safe for concurrent use.
type Counter struct {
	models  *Models
	memo    *memo
	recent  recent
	benches map[Encoding]*bench
	// working has a token for each text that is being counted. A text takes
	// up to five times its size while it is, and more at once than there are
	// processors speeds up no answer.
	working chan struct{}
}

// New returns a counter. It loads nothing yet: a vocabulary is loaded by the
// first count that needs it, which takes a tenth or two of a second.
func New(opts *Options) (*Counter, error) {
	c := &Counter{benches: make(map[Encoding]*bench), working: make(chan struct{}, runtime.GOMAXPROCS(0))}
	for encoding := range engines {
		c.benches[encoding] = &bench{}
	}
	entries, recentBytes := DefaultMemoEntries, DefaultRecentBytes
	if opts != nil {
		c.models = opts.Models
		recentBytes = cmp.Or(opts.RecentBytes, recentBytes)
		if opts.MemoEntries != 0 {
			entries = opts.MemoEntries
		}
	}
	if entries < 0 || recentBytes < 0 {
		return nil, fmt.Errorf("tokens: memo entries and recent bytes must not be negative: %d, %d", entries, recentBytes)
	}
	c.memo, c.recent = newMemo(entries), newRecent(recentBytes)
	if c.models == nil {
		var err error
		if c.models, err = BuiltinModels(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Load loads what counting for a model needs. The first count does the same; a
// server that calls Load in the background at its start saves a caller the wait.
func (c *Counter) Load(model string) error {
	_, err := engineFor(c.models.find(model).Encoding)
	return err
}

// Model returns what the counter's table knows of a model.
func (c *Counter) Model(name string) Model { return *c.models.find(name) }

// Room is how many tokens a prompt for a model may take: its window without what is kept for the
// answer; 0 where that is not known.
func (c *Counter) Room(model string) int {
	m := c.models.find(model)
	return m.Window - m.Reserve
}

// Count counts a text as the model would. ErrTooLarge is for texts over
// MaxTextBytes.
func (c *Counter) Count(model, text string) (Count, error) {
	m := c.models.find(model)
	n, err := c.tokens(m, text)
	if err != nil {
		return Count{}, err
	}
	return m.count(n), nil
}

// Size counts a text for a model without a name. One over MaxTextBytes is taken
// for a token in four bytes.
func (c *Counter) Size(text string) int {
	counted, err := c.Count("", text)
	if err != nil {
		return len(text) / 4
	}
	return counted.Tokens
}

// tokens counts a text by the rule of its model.
func (c *Counter) tokens(m *Model, text string) (int, error) {
	if len(text) > MaxTextBytes {
		return 0, fmt.Errorf("%w: %d bytes, limit %d", ErrTooLarge, len(text), MaxTextBytes)
	}
	n, err := c.encoded(m.Encoding, text)
	if m.Counter == Estimate {
		// Rounded down: names and roles are a token, whatever the model.
		return max(byScripts(text), int(float64(n)*m.Ratio)), err
	}
	return scaled(n, m.Ratio), err
}

// encoded counts a text in an encoding.
func (c *Counter) encoded(encoding Encoding, text string) (int, error) {
	if len(text) >= minMemoBytes {
		if n, ok := c.recent.text(encoding, text); ok {
			return n, nil
		}
	}
	n, known, err := c.measure(memoKey{encoding: encoding}, text)
	if known {
		c.recent.keepText(encoding, text, n)
	}
	return n, err
}

// measure remembers what an engine counts, and reports whether it was known.
func (c *Counter) measure(key memoKey, text string) (n int, known bool, err error) {
	remember := len(text) >= minMemoBytes
	if remember {
		// The hash only reads, so the text need not be copied for it.
		key.sum = sha256.Sum256(unsafe.Slice(unsafe.StringData(text), len(text)))
		if n, known = c.memo.get(key); known {
			return n, true, nil
		}
	}
	e, err := engineFor(key.encoding)
	if err != nil {
		return 0, false, err
	}
	n = c.work(e, key.encoding, text)
	if remember {
		c.memo.put(key, n)
	}
	return n, false, nil
}

// work runs the engine when it is its turn.
func (c *Counter) work(e *engine, encoding Encoding, text string) int {
	c.working <- struct{}{}
	defer func() { <-c.working }()
	bench := c.benches[encoding]
	s := bench.take()
	defer bench.put(s)
	return e.count(text, s)
}
