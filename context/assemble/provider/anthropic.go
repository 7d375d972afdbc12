package provider

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// encodeAnthropic writes a body of the Messages API.
func encodeAnthropic(p Content) (Body, error) {
	system, rest := leading(read(Anthropic, p.Messages))
	for i := range system {
		system[i].role = session.User // its texts stand apart, and need no tag
	}
	a := anthropic{tools: p.Tools, system: blocksOf(system)}
	a.talk = merge(pair(rest, anthropicID), anthropicBlock)
	for i := range a.talk {
		a.talk[i].thoughtsFirst()
	}
	if last := &a.talk[len(a.talk)-1]; !last.user {
		last.withoutEnd()
	}
	body := Body{Marks: a.mark(p.Marks)}
	body.JSON = a.json()
	return body, nil
}

// anthropic is a body that is written.
type anthropic struct {
	tools  []byte
	system []block
	talk   []exchange
}

// blocksOf are the texts of the instructions that a prompt begins with.
func blocksOf(turns []turn) []block {
	var out []block
	for i := range turns {
		for j := range turns[i].pieces {
			p := &turns[i].pieces[j]
			if s := said(&p.Block); !blank(s) {
				out = append(out, block{newObject("text").text("text", s).end(), content.Text, p.at})
			}
		}
	}
	return out
}

func (a *anthropic) json() []byte {
	o := newObject("")
	if len(a.tools) > 0 {
		o.raw("tools", a.tools)
	}
	if len(a.system) > 0 {
		o.raw("system", blockList(a.system))
	}
	messages := make([][]byte, len(a.talk))
	for i, e := range a.talk {
		role := session.Assistant
		if e.user {
			role = session.User
		}
		messages[i] = newObject("").text("role", role.String()).raw("content", blockList(e.blocks)).end()
	}
	var out bytes.Buffer
	array(&out, messages)
	return o.raw("messages", out.Bytes()).end()
}

func blockList(blocks []block) []byte {
	values := make([][]byte, len(blocks))
	for i := range blocks {
		values[i] = blocks[i].json
	}
	var out bytes.Buffer
	array(&out, values)
	return out.Bytes()
}

// thoughtsFirst leaves the thoughts out of a message that does not begin with one: the
// provider refuses thoughts later in a message.
func (e *exchange) thoughtsFirst() {
	if e.blocks[0].kind != content.Thought {
		e.blocks = slices.DeleteFunc(e.blocks, func(b block) bool { return b.kind == content.Thought })
	}
}

// withoutEnd takes the white space off the end of what the model is to go on with.
func (e *exchange) withoutEnd() {
	last := &e.blocks[len(e.blocks)-1]
	var b struct{ Type, Text string }
	if json.Unmarshal(last.json, &b) == nil && b.Type == "text" {
		if s := strings.TrimRight(b.Text, " \t\r\n"); s != b.Text {
			last.json = newObject("text").text("text", s).end()
		}
	}
}

// anthropicID is an id as Anthropic takes it.
func anthropicID(id string) string { return strings.Map(plain, id) }

// anthropicBlock writes a piece, or nothing where Anthropic takes none.
func anthropicBlock(p *piece, role session.Role) []byte {
	own := p.Dialect == content.Anthropic
	switch {
	case p.Kind == content.Thought:
		if own && signed(p.Raw) {
			return ownBlock(p)
		}
		return nil
	case p.Kind == content.Other && own:
		return ownBlock(p)
	case p.Kind == content.Other && p.Dialect != content.Shared && p.Text == "":
		return nil
	case p.Kind == content.Call && role == session.Assistant:
		return anthropicCall(p)
	case p.Kind == content.Result && role != session.Assistant:
		return anthropicResult(p)
	case role == session.User:
		if media := anthropicMedia(&p.Block); media != nil {
			return media
		}
	}
	if own && p.Kind == content.Text && role == session.Assistant && !blank(p.Text) {
		return ownBlock(p)
	}
	s := spokenText(p, role)
	if blank(s) {
		return nil
	}
	return newObject("text").text("text", s).end()
}

// signed reports whether a thought has what Anthropic signs it with.
func signed(raw json.RawMessage) bool {
	var f struct{ Type, Signature, Data string }
	return json.Unmarshal(raw, &f) == nil && (f.Signature != "" || f.Data != "")
}

// ownBlock returns a block as it came, without its cache marks: a prompt has its own plan
// for the few there may be.
func ownBlock(p *piece) []byte {
	raw := p.Raw
	if p.renamed {
		raw = p.WithID(p.ID)
	}
	if bytes.Contains(raw, []byte(`"cache_control"`)) {
		if v, err := text.DecodeJSON(raw); err == nil {
			return text.CanonicalJSON(unmarked(v))
		}
	}
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return nil
	}
	return out.Bytes()
}

// unmarked is a block, and the blocks of its content, without cache marks.
func unmarked(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "cache_control")
		if inner, ok := v["content"]; ok {
			v["content"] = unmarked(inner)
		}
	case []any:
		for i := range v {
			v[i] = unmarked(v[i])
		}
	}
	return v
}

func anthropicCall(p *piece) []byte {
	if p.Dialect == content.Anthropic && Anthropic.name(p.Name) == p.Name && isObject(p.Arguments) {
		return ownBlock(p)
	}
	return newObject("tool_use").text("id", p.ID).text("name", Anthropic.name(p.Name)).raw("input", argumentsObject(p)).end()
}

func anthropicResult(p *piece) []byte {
	if p.Dialect == content.Anthropic && len(p.Parts) > 0 { // a content of null is refused
		return ownBlock(p)
	}
	o := newObject("tool_result").text("tool_use_id", p.ID)
	if blocks := anthropicContent(p.Parts); len(blocks) == 1 && p.Parts[0].Kind == content.Text {
		o.text("content", said(&p.Parts[0]))
	} else if len(blocks) > 0 {
		var out bytes.Buffer
		array(&out, blocks)
		o.raw("content", out.Bytes())
	}
	if p.Failed {
		o.raw("is_error", []byte("true"))
	}
	return o.end()
}

// anthropicContent are the blocks of a result.
func anthropicContent(parts []content.Block) [][]byte {
	var out [][]byte
	for i := range parts {
		b := anthropicMedia(&parts[i])
		if s := said(&parts[i]); b == nil && !blank(s) {
			b = newObject("text").text("text", s).end()
		}
		if b != nil {
			out = append(out, b)
		}
	}
	return out
}

// anthropicMedia is a block for an image or a document, or nil where Anthropic takes
// none.
func anthropicMedia(p *content.Block) []byte {
	m := p.Media()
	if p.Dialect == content.Anthropic && (p.Kind == content.Image || p.Kind == content.File) {
		return ownBlock(&piece{Block: *p})
	}
	switch p.Kind {
	case content.Image:
		switch {
		case m.Data != "" && isPicture(m.Type):
			return newObject("image").raw("source", sourceOf("base64", m)).end()
		case m.Data == "" && isWeb(m.URL):
			return newObject("image").raw("source", sourceOf("url", m)).end()
		}
	case content.File:
		switch s, plain := documentText(m); {
		case plain && !blank(s):
			source := newObject("text").text("media_type", "text/plain").text("data", s).end()
			return document(source, m.Name)
		case m.Data != "" && m.Type == pdf:
			return document(sourceOf("base64", m), m.Name)
		case m.Data == "" && isWeb(m.URL) && (m.Type == "" || m.Type == pdf):
			return document(sourceOf("url", m), m.Name)
		}
	}
	return nil
}

func sourceOf(kind string, m content.Media) []byte {
	if kind == "url" {
		return newObject(kind).text("url", m.URL).end()
	}
	return newObject(kind).text("media_type", m.Type).text("data", m.Data).end()
}

func document(source []byte, title string) []byte {
	o := newObject("document").raw("source", source)
	if title != "" {
		o.text("title", title)
	}
	return o.end()
}

// mark sets the cache marks, and returns where they stand in the body.
func (a *anthropic) mark(marks []Mark) []Mark {
	var out []Mark
	for _, m := range marks {
		b, at := a.find(m.BlockPlace)
		switch {
		case m.Message < 0 && len(a.tools) > 2:
			a.tools = append(withMark(a.tools[:len(a.tools)-1]), ']')
			at = BlockPlace{Message: BehindTools}
		case b == nil:
			continue
		case len(out) > 0 && out[len(out)-1].BlockPlace == at:
			continue // it stands there already
		default:
			b.json = withMark(b.json)
		}
		m.BlockPlace = at
		out = append(out, m)
	}
	return out
}

// withMark is an object with a cache mark.
func withMark(object []byte) []byte {
	return append(slices.Clone(object[:len(object)-1]), cacheControl...)
}

// find returns the last block at or before a place that can have a mark, and where
// it stands in the body.
func (a *anthropic) find(place BlockPlace) (found *block, at BlockPlace) {
	if place.Message < 0 {
		return nil, at
	}
	look := func(blocks []block, message int) {
		for i := range blocks {
			if b := &blocks[i]; b.at.upTo(place) && b.kind != content.Thought && b.at.Message >= 0 {
				found, at = b, BlockPlace{message, i}
			}
		}
	}
	look(a.system, BehindSystem)
	for i := range a.talk {
		look(a.talk[i].blocks, i)
	}
	return found, at
}

// isObject reports whether the arguments of a call are a JSON object.
func isObject(arguments string) bool {
	var f map[string]json.RawMessage
	return json.Unmarshal([]byte(arguments), &f) == nil && f != nil
}

// argumentsObject are the arguments of a call as the JSON object that a provider
// wants. Others are kept as the text that they are.
func argumentsObject(p *piece) []byte {
	var out bytes.Buffer
	switch {
	case isObject(p.Arguments) && json.Compact(&out, []byte(p.Arguments)) == nil:
		return out.Bytes()
	case blank(p.Arguments):
		return []byte("{}")
	}
	return newObject("").text("arguments", p.Arguments).end()
}
