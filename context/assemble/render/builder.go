package render

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// Job is what a prompt is written for.
type Job struct {
	Format provider.Format
	// Model chooses the token counter.
	Model string
	// System and Goal are texts of the prompt, for how much room to make.
	System, Goal string
	// MaxTokens is its budget. MaxBytes bounds the text of its messages; 0 is no bound.
	MaxTokens, MaxBytes int
}

// Tools is the tools of a prompt in their final order and form. It never changes.
type Tools struct {
	JSON    []byte // the canonical JSON array of the format
	Counted []tokens.ToolDefinition
	Count   tokens.Count
}

// Written is a prompt as it was written, in the one field that its format has.
type Written struct {
	// Messages and ToolsJSON are the neutral form.
	Messages  []session.Message
	ToolsJSON []byte
	// ChatJSON is a request of OpenAI's chat, Body one of another provider.
	ChatJSON, Body []byte
	Marks          []provider.Mark
	Tokens         tokens.Count
	// Parts are the sections in the order of the prompt.
	Parts []Share
	// Prefix is the hash, in hex, of everything before the goal.
	Prefix string
}

// Share is what a section takes of a prompt.
type Share struct {
	Section string
	Tokens  int
}

// Rendered is the part of a prompt written so far. It must not be changed.
type Rendered struct {
	Tools Tools
	// Messages are those written so far, Origins where each comes from.
	Messages []session.Message
	Origins  []pairing.Origin
	// Text is the bytes of the messages' text.
	Text  int
	Total tokens.Count
	// Parts are tokens by section, Order the sections in the order of the prompt.
	Parts map[string]int
	Order []string
	// Places are the ends of the tools and of each message.
	Places []End
	// Head is how many places stand before the history, Settled the end of what the next
	// prompt begins with.
	Head    int
	Settled End
	// Trail is what the next prompt may begin with; nil for nothing.
	Trail *Trail
	// Edges are where the parts of the prompt end that a provider's cache may keep.
	Edges Edges
}

// Builder writes a prompt from its beginning to its end.
type Builder struct {
	Rendered

	counter *tokens.Counter
	job     Job
	writer  *provider.Writer

	wire bytes.Buffer
	line bytes.Buffer // the message that is written
	hash hash.Cloner  // of everything that was written
	size int64
	// roles are who speaks in the messages, prefix the hash, in hex, of what the next
	// prompt begins with.
	roles  []session.Role
	prefix string
	// blocks is how many content blocks were written.
	blocks int
}

// NewBuilder returns a builder that has written nothing yet.
func NewBuilder(counter *tokens.Counter, r Job, set Tools) *Builder {
	b := &Builder{
		Rendered: Rendered{Tools: set, Parts: make(map[string]int)},
		counter:  counter, job: r, writer: provider.NewWriter(r.Format), hash: sha256.New().(hash.Cloner),
	}
	// What counts an empty text says how texts are counted, and never fails.
	b.Total, _ = counter.Count(r.Model, "")
	b.Total.Tokens += tokens.ReplyTokens
	return b
}

// Format is that of the prompt.
func (b *Builder) Format() provider.Format { return b.job.Format }

// Sum is the hash of everything that was written.
func (b *Builder) Sum() (sum [sha256.Size]byte) {
	b.hash.Sum(sum[:0])
	return sum
}

// grow makes room for messages at once.
func (b *Builder) grow(items []pairing.Item) {
	b.Places, b.roles = slices.Grow(b.Places, len(items)+2), slices.Grow(b.roles, len(items)+2)
	b.Messages, b.Origins = slices.Grow(b.Messages, len(items)+2), slices.Grow(b.Origins, len(items)+2)
	if b.job.Format != provider.OpenAIChat {
		return
	}
	n := len(b.job.System) + len(b.job.Goal)
	for i := range items {
		n += TextBytes(items[i].Message) + messageBytes
	}
	b.wire.Grow(n + n/escapedPart)
}

const (
	// messageBytes is the approximate overhead of a message around its text.
	messageBytes = 100
	// escapedPart: one byte in this many, about, is written as two.
	escapedPart = 16
)

// add appends one message that belongs to a part.
func (b *Builder) add(part string, it pairing.Item) error {
	m := b.job.Format.Renamed(it.Message)
	if err := b.admit(part, &it, m); err != nil {
		return err
	}
	b.line.Reset()
	if err := b.writer.Add(&b.line, m); err != nil {
		return fmt.Errorf("assemble: %w", err)
	}
	b.write(b.line.Bytes())
	b.keep(&it, m)
	b.mark(m.Role)
	return nil
}

// admit counts a message, as the format has it, and refuses what is too large.
func (b *Builder) admit(part string, it *pairing.Item, m session.Message) error {
	count, err := b.count(it, m)
	if err != nil {
		return fmt.Errorf("assemble: count %s: %w", it.Label, err)
	}
	b.Total = b.Total.Plus(count)
	if err := b.share(part, it.Pieces, count.Tokens); err != nil {
		return err
	}
	if b.Text += TextBytes(m); b.job.MaxBytes > 0 && b.Text > b.job.MaxBytes {
		return &TooLargeError{
			What: fmt.Sprintf("it fits %d tokens, but has", b.job.MaxTokens), Limit: b.job.MaxBytes,
			Advice: "give fewer max_tokens, or let the server send larger answers",
		}
	}
	return nil
}

func (b *Builder) count(it *pairing.Item, m session.Message) (tokens.Count, error) {
	if it.Tokens == 0 {
		return CountMessage(b.counter, b.job.Model, Counted(m))
	}
	// What counts an empty text says how texts are counted.
	count, err := b.counter.Count(b.job.Model, "")
	count.Tokens = it.Tokens
	return count, err
}

// TextBytes is what a message takes at least, in any format.
func TextBytes(m session.Message) int {
	n := len(m.Content)
	if len(m.BlocksJSON) > 0 {
		n = len(m.BlocksJSON)
	}
	n += len(m.ExtraJSON)
	for _, call := range m.ToolCalls {
		n += len(call.Arguments) + len(call.Extra)
	}
	return n
}

// write adds bytes of the layout that all formats share, for the hash.
func (b *Builder) write(p []byte) {
	b.hash.Write(p)
	b.size += int64(len(p))
	if b.job.Format == provider.OpenAIChat {
		b.wire.Write(p)
	}
}

// keep keeps a message for formats that are written at the end and for the record of the
// prompt, and counts its blocks. renamed has the names of the format.
func (b *Builder) keep(it *pairing.Item, renamed session.Message) {
	if b.job.Format == provider.Anthropic || len(it.Message.BlocksJSON) == 0 {
		b.blocks += provider.Blocks(renamed)
	} else {
		// Other providers have no look-back that counts them.
		b.blocks++
	}
	it.Origin.Pieces = it.Pieces
	b.Messages, b.Origins = append(b.Messages, it.Message), append(b.Origins, it.Origin)
}

// Finish returns what was built, with cache marks.
func (b *Builder) Finish(marks []provider.Mark) (Written, error) {
	b.own(settings.Goal, 0)
	p := Written{Prefix: b.prefix, Tokens: b.Total, Marks: b.shown(marks)}
	for _, section := range b.Order {
		p.Parts = append(p.Parts, Share{section, b.Parts[section]})
	}
	if b.job.Format == provider.OpenAIChat {
		b.line.Reset()
		b.writer.Close(&b.line)
		b.write(b.line.Bytes())
		b.write([]byte("]}"))
		p.ChatJSON = b.wire.Bytes()
		return p, nil
	}
	if b.job.Format == provider.Neutral {
		p.Messages, p.ToolsJSON = b.Messages, b.Tools.JSON
		return p, nil
	}
	var set []byte
	if len(b.Tools.Counted) > 0 {
		set = b.Tools.JSON
	}
	body, err := provider.Encode(b.job.Format, provider.Content{Messages: b.Messages, Tools: set, Marks: marks})
	if err != nil {
		return Written{}, fmt.Errorf("assemble: %w", err)
	}
	p.Body, p.Marks = body.JSON, body.Marks
	return p, nil
}

// ErrTooLarge: the prompt has more bytes than are taken.
var ErrTooLarge = errors.New("assemble: prompt too large")

// TooLargeError says what of a prompt has more bytes than are taken, and what to do about
// it. It is an ErrTooLarge.
type TooLargeError struct {
	// What has more than Limit bytes.
	What  string
	Limit int
	// Advice says what would help.
	Advice string
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%v: %s more than %d bytes: %s", ErrTooLarge, e.What, e.Limit, e.Advice)
}

// Is makes errors.Is(err, ErrTooLarge) true.
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }
