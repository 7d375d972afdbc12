package content

import (
	"encoding/json"
	"strconv"
)

// maxDepth bounds how deep blocks within blocks are read: each level reads what is
// left once more.
const maxDepth = 8

// Parse reads a JSON array of blocks. What is no array has no parts.
func Parse(blocks json.RawMessage) []Block {
	r := newReader()
	parts := r.list(blocks, 0)
	adopt(parts)
	return parts
}

// adopt gives unknown blocks to the dialect of all others, if that is one.
func adopt(parts []Block) {
	own := Shared
	for i := range parts {
		switch d := parts[i].Dialect; {
		case d == Shared || d == own:
		case own != Shared:
			return
		default:
			own = d
		}
	}
	for i := range parts {
		p := &parts[i]
		f := fieldsOf(p.Raw)
		if p.Kind == Other && p.Dialect == Shared && f != nil && (own == Gemini) == (f.get("type") == nil) {
			p.Dialect = own
		}
	}
}

// reader reads the blocks of one message.
type reader struct {
	// calls and results count Gemini's calls and results without an id, by name.
	calls, results map[string]int
}

func (r *reader) list(blocks json.RawMessage, depth int) []Block {
	var raw []json.RawMessage
	if len(blocks) == 0 || depth > maxDepth || json.Unmarshal(blocks, &raw) != nil {
		return nil
	}
	parts := make([]Block, 0, len(raw))
	for _, text := range raw {
		parts = r.add(parts, text, depth)
	}
	return parts
}

// add appends one block. A whole content of Gemini is its parts.
func (r *reader) add(parts []Block, raw json.RawMessage, depth int) []Block {
	f := fieldsOf(raw)
	if inner := f.get("parts"); inner != nil && f.get("type") == nil {
		return append(parts, r.list(inner, depth+1)...)
	}
	p := Block{Raw: raw}
	r.block(&p, f, depth)
	return append(parts, p)
}

func (r *reader) block(p *Block, f fields, depth int) {
	kind := f.text("type")
	p.Type = kind
	if kind == "" {
		r.gemini(p, f, depth)
		return
	}
	for _, read := range []func(*Block, string, fields, int) bool{r.plain, r.anthropic, r.chat, r.responses, r.mcp} {
		if read(p, kind, f, depth) {
			return
		}
	}
	p.Text = f.text("text")
}

// plain reads what several dialects write alike.
func (r *reader) plain(p *Block, kind string, f fields, _ int) bool {
	switch kind {
	case "text":
		p.Kind, p.Text = Text, f.text("text")
		if f.get("citations") != nil {
			p.Dialect = Anthropic
		}
	case "refusal":
		p.Kind, p.Dialect, p.Text = Refusal, Chat, f.text("refusal")
	default:
		return false
	}
	return true
}

// content reads what is a text or blocks.
func (r *reader) content(raw json.RawMessage, depth int) []Block {
	var text string
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if json.Unmarshal(raw, &text) == nil {
		return []Block{{Kind: Text, Text: text}}
	}
	if depth >= maxDepth || raw[0] != '[' {
		return []Block{{Kind: Text, Text: string(raw)}}
	}
	return r.list(raw, depth+1)
}

// called names a call, or its result, that has no id.
func (p *Block) called(id, name string, before map[string]int) {
	if p.ID = id; id == "" {
		before[name]++
		p.ID, p.Unnamed = name+"-"+strconv.Itoa(before[name]), true
	}
}

func newReader() *reader {
	return &reader{calls: make(map[string]int), results: make(map[string]int)}
}
