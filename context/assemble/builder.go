package assemble

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// The names of the parts.
const (
	partSystem  = "system"
	partTools   = "tools"
	partHistory = "history"
	partGoal    = "goal"
)

// goalPrefix stands before the goal, which follows as it came.
const goalPrefix = "Goal: "

// builder collects a prompt from its beginning to its end. Once it is over the
// budget it only counts, so that a long history takes no memory.
type builder struct {
	counter *tokens.Counter
	request Request

	messages  []session.Message
	toolsJSON []byte
	wire      bytes.Buffer
	prefix    hash.Hash
	written   int // messages
	bytes     int // of the messages' text

	total tokens.Count
	parts map[string]int
	// largest is the largest single piece so far, current the piece that the
	// last message belongs to.
	largest, current piece
}

// piece is what an overflow may name.
type piece struct {
	label  string
	tokens int
}

// newBuilder begins a prompt with its tools.
func newBuilder(counter *tokens.Counter, r Request) (*builder, error) {
	set, err := newToolset(r.Tools, r.Format)
	if err != nil {
		return nil, err
	}
	count, err := counter.Tools(r.Model, set.counted)
	if err != nil {
		return nil, fmt.Errorf("assemble: count tools: %w", err)
	}
	b := &builder{
		counter:   counter,
		request:   r,
		prefix:    sha256.New(),
		total:     count,
		parts:     map[string]int{partTools: count.Tokens},
		toolsJSON: set.json,
	}
	b.total.Tokens += tokens.ReplyTokens
	b.weigh(partTools, count.Tokens)
	b.write([]byte("{"))
	if len(set.counted) > 0 {
		b.write([]byte(`"tools":`))
		b.write(set.json)
		b.write([]byte(","))
	}
	b.write([]byte(`"messages":[`))
	return b, nil
}

// add appends one message that belongs to a part.
func (b *builder) add(part string, it item) error {
	m := renamed(it.message, b.request.Format)
	count, err := b.counter.Message(b.request.Model, counted(m))
	if err != nil {
		return fmt.Errorf("assemble: count %s: %w", it.label, err)
	}
	b.total = b.total.Plus(count)
	b.parts[part] += count.Tokens
	b.weigh(it.label, count.Tokens)
	if b.over() {
		b.messages, b.wire = nil, bytes.Buffer{}
		return nil
	}
	if b.bytes += textBytes(m); b.request.MaxBytes > 0 && b.bytes > b.request.MaxBytes {
		return fmt.Errorf("%w: it fits %d tokens, but has more than %d bytes; ask for fewer tokens",
			ErrTooLarge, b.request.MaxTokens, b.request.MaxBytes)
	}
	line, err := encode(m)
	if err != nil {
		return err
	}
	if b.written > 0 {
		line = append([]byte(","), line...)
	}
	b.written++
	b.write(line)
	if b.request.Format == Neutral {
		b.messages = append(b.messages, it.message)
	}
	return nil
}

// textBytes is what a message takes at least, in any format.
func textBytes(m session.Message) int {
	n := len(m.Content)
	if len(m.BlocksJSON) > 0 {
		n = len(m.BlocksJSON)
	}
	for _, call := range m.ToolCalls {
		n += len(call.Arguments)
	}
	return n
}

func (b *builder) over() bool { return b.total.Tokens > b.request.MaxTokens }

// weigh keeps the largest piece. A step takes two messages, which count
// together.
func (b *builder) weigh(label string, n int) {
	if b.current.label != label {
		b.current = piece{label: label}
	}
	b.current.tokens += n
	if b.current.tokens > b.largest.tokens {
		b.largest = b.current
	}
}

// write adds bytes of the layout that all formats share, for the hash.
func (b *builder) write(p []byte) {
	b.prefix.Write(p)
	if b.request.Format == OpenAIChat {
		b.wire.Write(p)
	}
}

// finish adds the goal and returns the prompt.
func (b *builder) finish(goal string) (Prompt, error) {
	p := Prompt{PrefixSHA256: hex.EncodeToString(b.prefix.Sum(nil))}
	if goal != "" {
		m := session.Message{Role: session.User, Content: goalPrefix + goal}
		if err := b.add(partGoal, item{partGoal, m}); err != nil {
			return Prompt{}, err
		}
	}
	for _, name := range []string{partSystem, partTools, partHistory, partGoal} {
		p.Parts = append(p.Parts, Part{Name: name, Tokens: b.parts[name]})
	}
	if b.over() {
		return Prompt{}, b.overflow(p.Parts)
	}
	p.Tokens = b.total
	if b.request.Format == OpenAIChat {
		b.write([]byte("]}"))
		p.OpenAIChatJSON = b.wire.Bytes()
		return p, nil
	}
	p.Messages, p.ToolsJSON = b.messages, b.toolsJSON
	return p, nil
}

func (b *builder) overflow(parts []Part) error {
	detail := ""
	for i, part := range parts {
		if i > 0 {
			detail += ", "
		}
		detail += fmt.Sprintf("%s %d", part.Name, part.Tokens)
	}
	return &OverflowError{
		Part:        b.largest.label,
		PartTokens:  b.largest.tokens,
		TotalTokens: b.total.Tokens,
		MaxTokens:   b.request.MaxTokens,
		Detail:      detail,
	}
}
