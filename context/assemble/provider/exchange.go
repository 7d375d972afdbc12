package provider

import (
	"bytes"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/session"
)

// block is a content block as the provider takes it.
type block struct {
	json []byte
	kind content.Kind
	at   BlockPlace
}

// exchange is what one side says until the other does: the messages of one role that
// stand next to each other, as one.
type exchange struct {
	user   bool
	blocks []block
}

// opening is what the user says where a prompt does not begin with the user:
// providers want that.
const opening = "The conversation begins here."

// merge puts turns that stand next to each other and have the same role together.
// encode writes a piece, or returns nil to leave it out.
func merge(turns []turn, encode func(p *piece, role session.Role) []byte) []exchange {
	var out []exchange
	for i := range turns {
		t := &turns[i]
		user := t.role != session.Assistant
		for j := range t.pieces {
			p := &t.pieces[j]
			text := encode(p, t.role)
			if text == nil {
				continue
			}
			if len(out) == 0 || out[len(out)-1].user != user {
				out = append(out, exchange{user: user})
			}
			last := &out[len(out)-1]
			last.blocks = append(last.blocks, block{text, p.Kind, p.at})
		}
	}
	for i := range out {
		if out[i].user {
			out[i].resultsFirst()
		}
	}
	if len(out) == 0 || !out[0].user {
		text := piece{Block: content.Block{Kind: content.Text, Text: opening}}
		begin := block{json: encode(&text, session.User), kind: content.Text, at: BlockPlace{Message: -1}}
		out = slices.Insert(out, 0, exchange{user: true, blocks: []block{begin}})
	}
	return out
}

// resultsFirst moves the results before all else.
func (e *exchange) resultsFirst() {
	slices.SortStableFunc(e.blocks, func(a, b block) int {
		switch {
		case a.kind == content.Result && b.kind != content.Result:
			return -1
		case a.kind != content.Result && b.kind == content.Result:
			return 1
		}
		return 0
	})
}

// leading splits turns behind the instructions that they begin with.
func leading(turns []turn) (system, rest []turn) {
	n := 0
	for n < len(turns) && turns[n].instructs() {
		n++
	}
	return turns[:n], turns[n:]
}

// The tag of instructions that stand within the conversation, where a provider has
// no role for them.
const (
	systemOpen  = "<system_message>"
	systemClose = "</system_message>"
)

// instruction is a text of instructions within the conversation.
func instruction(s string) string { return systemOpen + "\n" + untagged(s) + "\n" + systemClose }

// untagged is a text that cannot open or close the tag, however it is written.
func untagged(s string) string {
	var out strings.Builder
	from := 0
	for at := strings.IndexByte(s, '<'); at >= 0; {
		if opensTag(s[at+1:]) {
			out.WriteString(s[from:at] + "&lt;")
			from = at + 1
		}
		next := strings.IndexByte(s[at+1:], '<')
		if next < 0 {
			break
		}
		at += 1 + next
	}
	if from == 0 {
		return s
	}
	return out.String() + s[from:]
}

// opensTag reports whether what follows a bracket is the tag.
func opensTag(rest string) bool {
	const name = "system_message"
	rest = strings.TrimLeft(rest[:min(len(rest), maxTagBytes)], "/ \t\r\n")
	return len(rest) >= len(name) && strings.EqualFold(rest[:len(name)], name)
}

// maxTagBytes is how far behind a bracket the name of a tag is looked for.
const maxTagBytes = 64

// spokenText is what a piece of a role says.
func spokenText(p *piece, role session.Role) string {
	s := said(&p.Block)
	switch {
	case blank(s) || role == session.Assistant:
		return s
	case role == session.User:
		return untagged(s)
	}
	return instruction(s)
}

// object builds a JSON object, field by field.
type object struct{ bytes.Buffer }

func newObject(kind string) *object {
	o := &object{}
	o.WriteByte('{')
	if kind != "" {
		o.text("type", kind)
	}
	return o
}

func (o *object) text(name, value string) *object {
	field(&o.Buffer, name)
	quote(&o.Buffer, value)
	return o
}

func (o *object) raw(name string, value []byte) *object {
	field(&o.Buffer, name)
	o.Write(value)
	return o
}

func (o *object) end() []byte {
	o.WriteByte('}')
	return o.Bytes()
}
