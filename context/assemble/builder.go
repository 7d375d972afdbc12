package assemble

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// builder writes a prompt from its beginning to its end.
type builder struct {
	counter *tokens.Counter
	request Request
	tools   toolset
	writer  *provider.Writer

	// messages are those written so far, origins where each comes from.
	messages []session.Message
	origins  []pairing.Origin
	wire     bytes.Buffer
	line     bytes.Buffer // the message that is written
	hash     hash.Cloner  // of everything that was written
	text     int          // bytes of the messages' text
	size     int64

	total tokens.Count
	// parts are tokens by section, order the sections in the order of the prompt.
	parts map[string]int
	order []string
	// places are the ends of the tools and of each message, roles who speaks in
	// it.
	places []messageEnd
	roles  []session.Role
	// head is how many places stand before the history. prefix is the hash, in hex, of
	// what the next prompt begins with, and settled its end.
	head    int
	prefix  string
	settled messageEnd
	// trail is what the next prompt may begin with; nil for nothing.
	trail *trail
	// blocks is how many content blocks were written, last how many the last message has.
	blocks int
	// edges are where the parts of the prompt end that a provider's cache may keep.
	edges edges
}

// messageEnd is where a message ends.
type messageEnd struct {
	// sum is the hash of everything up to there.
	sum prefixSum
	// tokens and bytes are what it takes, without the opening of the reply.
	tokens int
	bytes  int64
	// blocks is how many content blocks stand up to there, each tool being one.
	blocks int
}

// prefixSum is a hash long enough to tell the prompts of one session apart.
type prefixSum [12]byte

func (s prefixSum) String() string { return hex.EncodeToString(s[:]) }

func newBuilder(counter *tokens.Counter, r Request, set toolset) *builder {
	b := &builder{counter: counter, request: r, tools: set, writer: provider.NewWriter(r.Format), hash: sha256.New().(hash.Cloner), parts: make(map[string]int)}
	// What counts an empty text says how texts are counted, and never fails.
	b.total, _ = counter.Count(r.Model, "")
	b.total.Tokens += tokens.ReplyTokens
	return b
}

// grow makes room for messages at once.
func (b *builder) grow(items []pairing.Item) {
	b.places, b.roles = slices.Grow(b.places, len(items)+2), slices.Grow(b.roles, len(items)+2)
	b.messages, b.origins = slices.Grow(b.messages, len(items)+2), slices.Grow(b.origins, len(items)+2)
	if b.request.Format != OpenAIChat {
		return
	}
	n := len(b.request.System) + len(b.request.Goal)
	for i := range items {
		n += textBytes(items[i].Message) + messageBytes
	}
	b.wire.Grow(n + n/escapedPart)
}

const (
	// messageBytes is about what is written around the text of a message.
	messageBytes = 100
	// escapedPart: one byte in this many, about, is written as two.
	escapedPart = 16
)

// mark notes that a message ends here.
func (b *builder) mark(role session.Role) {
	var room [sha256.Size]byte
	var sum prefixSum
	copy(sum[:], b.hash.Sum(room[:0]))
	b.markAs(role, sum)
}

// markAs is mark where the hash is known.
func (b *builder) markAs(role session.Role, sum prefixSum) {
	p := messageEnd{sum: sum, tokens: b.total.Tokens - tokens.ReplyTokens, bytes: b.size, blocks: b.blocks}
	b.places, b.roles = append(b.places, p), append(b.roles, role)
}

// add appends one message that belongs to a part.
func (b *builder) add(part string, it pairing.Item) error {
	m := b.request.Format.Renamed(it.Message)
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
func (b *builder) admit(part string, it *pairing.Item, m session.Message) error {
	count, err := b.count(it, m)
	if err != nil {
		return fmt.Errorf("assemble: count %s: %w", it.Label, err)
	}
	b.total = b.total.Plus(count)
	if err := b.share(part, it.Pieces, count.Tokens); err != nil {
		return err
	}
	if b.text += textBytes(m); b.request.MaxBytes > 0 && b.text > b.request.MaxBytes {
		return tooLarge(fmt.Sprintf("it fits %d tokens, but has", b.request.MaxTokens), b.request.MaxBytes)
	}
	return nil
}

func (b *builder) count(it *pairing.Item, m session.Message) (tokens.Count, error) {
	if it.Tokens == 0 {
		return countMessage(b.counter, b.request.Model, counted(m))
	}
	// What counts an empty text says how texts are counted.
	count, err := b.counter.Count(b.request.Model, "")
	count.Tokens = it.Tokens
	return count, err
}

// textBytes is what a message takes at least, in any format.
func textBytes(m session.Message) int {
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
func (b *builder) write(p []byte) {
	b.hash.Write(p)
	b.size += int64(len(p))
	if b.request.Format == OpenAIChat {
		b.wire.Write(p)
	}
}

// keep keeps a message for formats that are written at the end and for the record of the
// prompt, and counts its blocks. renamed has the names of the format.
func (b *builder) keep(it *pairing.Item, renamed session.Message) {
	if b.request.Format == provider.Anthropic || len(it.Message.BlocksJSON) == 0 {
		b.blocks += provider.Blocks(renamed)
	} else {
		// Other providers have no look-back that counts them.
		b.blocks++
	}
	it.Origin.Pieces = it.Pieces
	b.messages, b.origins = append(b.messages, it.Message), append(b.origins, it.Origin)
}

// prompt returns what was built, with cache marks.
func (b *builder) prompt(marks []provider.Mark) (Prompt, error) {
	b.own(settings.Goal, 0)
	p := Prompt{PrefixSHA256: b.prefix, Tokens: b.total, Marks: b.shown(marks)}
	for _, section := range b.order {
		p.Parts = append(p.Parts, Part{Name: section, Tokens: b.parts[section]})
	}
	if b.request.Format == OpenAIChat {
		b.line.Reset()
		b.writer.Close(&b.line)
		b.write(b.line.Bytes())
		b.write([]byte("]}"))
		p.OpenAIChatJSON = b.wire.Bytes()
		return p, nil
	}
	if b.request.Format == Neutral {
		p.Messages, p.ToolsJSON = b.messages, slices.Clone(b.tools.json)
		return p, nil
	}
	var set []byte
	if len(b.tools.counted) > 0 {
		set = b.tools.json
	}
	body, err := provider.Encode(b.request.Format, provider.Prompt{Messages: b.messages, Tools: set, Marks: marks})
	if err != nil {
		return Prompt{}, fmt.Errorf("assemble: %w", err)
	}
	p.Body, p.Marks = body.JSON, body.Marks
	return p, nil
}
