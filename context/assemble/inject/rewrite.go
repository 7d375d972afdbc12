package inject

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/session"
)

var (
	// planBlock is a goal block with a plan, wherever it stands.
	planBlock = regexp.MustCompile(`(?m)(?:^|\n\n)` + goalHead + `.*\n` + progressHead + `\d+/\d+` + progressEnd + `\n` + nextHead + `.*$`)
	// bareBlock is one without a plan. It is one only at the end of a message, as a
	// paragraph of its own: elsewhere it may be the user's own words.
	bareBlock = regexp.MustCompile(`(?:^|\n\n)` + goalHead + `[^\n]*\n*$`)
)

// Strip is a text of a user's message without the goal blocks that earlier prompts put
// there.
func Strip(s string) string {
	for strings.Contains(s, goalHead) {
		short := bareBlock.ReplaceAllString(planBlock.ReplaceAllString(s, ""), "")
		if short == s {
			return s
		}
		if strings.HasPrefix(s, goalHead) {
			short = strings.TrimLeft(short, "\n")
		}
		s = short
	}
	return s
}

// Rewrite puts the goal block at the end of messages: behind the text of the last one if
// the user says that, else as a message of its own. Earlier blocks leave all messages of
// the user first, and what says nothing without them leaves, too: no provider takes an
// empty text. An empty block only takes those away.
//
// Neither all nor what its messages hold is changed, and Rewrite of what it returned
// returns the same.
func Rewrite(all []session.Message, block string) []session.Message {
	out := make([]session.Message, 0, len(all)+1)
	for _, m := range all {
		if m.Role == session.User {
			var left bool
			if m, left = stripped(m); left {
				continue
			}
		}
		out = append(out, m)
	}
	if block == "" {
		return out
	}
	return ended(out, func(s string) string { return behind(s, block) })
}

// ended puts what end makes of what the user said last in its place: in the last message
// if that is the user's, else in one more.
func ended(all []session.Message, end func(said string) string) []session.Message {
	last := len(all) - 1
	if last < 0 || all[last].Role != session.User {
		return append(all, session.Message{Role: session.User, Content: end("")})
	}
	all[last] = withText(all[last], end)
	return all
}

// stripped is a user's message without goal blocks. left says that nothing is left of it.
func stripped(m session.Message) (_ session.Message, left bool) {
	if len(m.BlocksJSON) == 0 {
		m.Content = Strip(m.Content)
		return m, m.Content == ""
	}
	if !bytes.Contains(m.BlocksJSON, []byte(goalHead)) && !bytes.Contains(m.BlocksJSON, []byte(`""`)) {
		return m, false // most are so, and some hold images
	}
	blocks, changed := decodeBlocks(m.BlocksJSON), false
	for i := len(blocks) - 1; i >= 0; i-- {
		before, isText := blocks[i].text()
		short := Strip(before)
		switch {
		case isText && short == "":
			blocks, changed = slices.Delete(blocks, i, i+1), true
		case short != before:
			blocks[i], changed = blocks[i].with(short), true
		}
	}
	if changed {
		m.BlocksJSON = encodeBlocks(blocks)
	}
	return m, changed && len(blocks) == 0
}

// withText is a message with another text at its end: that of its last text block if it
// has blocks, or a block more if none of them is text.
func withText(m session.Message, end func(said string) string) session.Message {
	if len(m.BlocksJSON) == 0 {
		m.Content = end(m.Content)
		return m
	}
	blocks := decodeBlocks(m.BlocksJSON)
	for i := len(blocks) - 1; i >= 0; i-- {
		if said, isText := blocks[i].text(); isText {
			blocks[i] = blocks[i].with(end(said))
			m.BlocksJSON = encodeBlocks(blocks)
			return m
		}
	}
	m.BlocksJSON = encodeBlocks(append(blocks, rawBlock(`{"type":"text","text":`+quoted(end(""))+`}`)))
	return m
}

// behind puts a block behind a text, with a blank line between them.
func behind(s, block string) string {
	if s == "" || block == "" {
		return s + block
	}
	return s + between + block
}

// rawBlock is the JSON of a provider's content block. Its unknown fields and their order
// stay as they came.
type rawBlock json.RawMessage

// decodeBlocks are the blocks of an array; none of what is no array.
func decodeBlocks(array json.RawMessage) []rawBlock {
	var raw []json.RawMessage
	if json.Unmarshal(array, &raw) != nil {
		return nil
	}
	blocks := make([]rawBlock, len(raw), len(raw)+1)
	for i := range raw {
		blocks[i] = rawBlock(raw[i])
	}
	return blocks
}

func encodeBlocks(blocks []rawBlock) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, block := range blocks {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(block)
	}
	b.WriteByte(']')
	return b.Bytes()
}

// text is what a block of the type text says, and whether it is one.
func (b rawBlock) text() (string, bool) {
	var block struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if json.Unmarshal(b, &block) != nil || block.Type != "text" && block.Type != "input_text" || block.Text == nil {
		return "", false
	}
	return *block.Text, true
}

// with is a block of the type text with another text.
func (b rawBlock) with(s string) rawBlock {
	from, to := valueOf(b, "text")
	out := make(rawBlock, 0, len(b)+len(s))
	out = append(out, b[:from]...)
	out = append(out, quoted(s)...)
	return append(out, b[to:]...)
}

// valueOf is where the value of a member stands in a JSON object; of members of the same
// name, where the last one does, which is the one that counts.
func valueOf(object []byte, name string) (from, to int) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	_, _ = decoder.Token() // the brace; the object was decoded before
	for decoder.More() {
		key, _ := decoder.Token()
		begin := int(decoder.InputOffset())
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			break
		}
		if s, ok := key.(string); ok && strings.EqualFold(s, name) {
			to = int(decoder.InputOffset())
			from = begin + bytes.LastIndex(object[begin:to], value)
		}
	}
	return from, to
}

// quoted is a text as JSON, with no more escapes than it needs.
func quoted(s string) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // a string never fails
	return strings.TrimSuffix(b.String(), "\n")
}
