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

// encodeResponses writes a body of Responses. The first system message, if it is
// plain text, is the instructions.
func encodeResponses(p Content) (Body, error) {
	turns := pair(read(OpenAIResponses, p.Messages), func(id string) string { return id })
	o := newObject("")
	if len(p.Tools) > 0 {
		o.raw("tools", p.Tools)
	}
	if s, ok := instructions(turns); ok {
		o.text("instructions", s)
		turns = turns[1:]
	}
	items := responses{}
	for i := range turns {
		items.turn(&turns[i])
	}
	var out bytes.Buffer
	values := make([][]byte, len(items.items))
	for i := range items.items {
		values[i] = items.items[i].json
	}
	array(&out, values)
	return Body{JSON: o.raw("input", out.Bytes()).end(), Marks: items.place(p.Marks)}, nil
}

// instructions are the text of a first message of the role system.
func instructions(turns []turn) (string, bool) {
	if len(turns) == 0 || turns[0].role != session.System {
		return "", false
	}
	var texts []string
	for i := range turns[0].pieces {
		texts = append(texts, said(&turns[0].pieces[i].Block))
	}
	s := strings.Join(texts, "\n\n")
	return s, !blank(s)
}

// responses are the items that are written.
type responses struct {
	items []block
	// blocks are the content of the message that is written, and at where it begins.
	blocks []any
	at     BlockPlace
}

func (r *responses) add(json []byte, p *piece) {
	r.items = append(r.items, block{json, p.Kind, p.at})
}

// turn writes the items of a turn. The results of a message of the user stand before
// what else it says.
func (r *responses) turn(t *turn) {
	if t.role == session.User {
		slices.SortStableFunc(t.pieces, func(a, b piece) int {
			return boolOrder(b.Kind == content.Result) - boolOrder(a.Kind == content.Result)
		})
	}
	for i := range t.pieces {
		p := &t.pieces[i]
		switch {
		case p.Kind == content.Thought:
			// OpenAI wants what was thought about behind a thought.
			if p.Dialect == content.Responses && followed(t.pieces[i+1:]) {
				r.own(p, t.role)
			}
		case p.Kind == content.Said, p.Kind == content.Other && p.Dialect == content.Responses:
			r.own(p, t.role)
		case p.Kind == content.Other && p.Dialect != content.Shared && p.Text == "":
		case p.Kind == content.Call:
			r.flush(t.role)
			r.add(responsesCall(p), p)
		case p.Kind == content.Result:
			r.flush(t.role)
			r.add(responsesResult(p), p)
		default:
			r.speak(p, t.role)
		}
	}
	r.flush(t.role)
}

func boolOrder(b bool) int {
	if b {
		return 1
	}
	return 0
}

// followed reports whether something else than thoughts follows.
func followed(pieces []piece) bool {
	return slices.ContainsFunc(pieces, func(p piece) bool { return p.Kind != content.Thought })
}

// own writes an item as it came.
func (r *responses) own(p *piece, role session.Role) {
	r.flush(role)
	if raw := ownItem(p); raw != nil {
		r.add(raw, p)
	}
}

func ownItem(p *piece) []byte {
	raw := p.Raw
	if p.renamed {
		raw = p.WithID(p.ID)
	}
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return nil
	}
	return out.Bytes()
}

// speak adds to the content of the message that is written.
func (r *responses) speak(p *piece, role session.Role) {
	var b any
	if role == session.User {
		b = responsesMedia(&p.Block)
		if p.Dialect == content.Responses && p.Kind == content.Text && strings.Contains(string(p.Raw), `"input_text"`) {
			b = p.Raw
		}
	}
	if s := said(&p.Block); isNil(b) {
		if s == "" {
			return
		}
		b = map[string]any{"type": "input_text", "text": s}
	}
	if len(r.blocks) == 0 {
		r.at = p.at
	}
	r.blocks, r.at = append(r.blocks, b), p.at
}

func isNil(b any) bool {
	m, isMap := b.(map[string]any)
	return b == nil || isMap && m == nil
}

// flush writes the message. What a model said is plain text there: blocks of its
// output have ids that only OpenAI makes.
func (r *responses) flush(role session.Role) {
	if len(r.blocks) == 0 {
		return
	}
	o := newObject("message").text("role", role.String())
	var texts []string
	for _, b := range r.blocks {
		if m, ok := b.(map[string]any); ok && m["type"] == "input_text" {
			s, _ := m["text"].(string)
			texts = append(texts, s)
		}
	}
	if len(texts) == len(r.blocks) && (role != session.User || len(texts) == 1) {
		o.text("content", strings.Join(texts, "\n\n"))
	} else {
		o.raw("content", text.CanonicalJSON(r.blocks))
	}
	r.items = append(r.items, block{json: o.end(), kind: content.Text, at: r.at})
	r.blocks = nil
}

func responsesCall(p *piece) []byte {
	if p.Dialect == content.Responses {
		return ownItem(p)
	}
	if p.Custom {
		return newObject("custom_tool_call").text("call_id", p.ID).text("name", OpenAIResponses.name(p.Name)).text("input", p.Arguments).end()
	}
	args := p.Arguments
	if p.Dialect != content.Shared {
		args = arguments(&p.Block)
	}
	return newObject("function_call").text("call_id", p.ID).text("name", OpenAIResponses.name(p.Name)).text("arguments", args).end()
}

func responsesResult(p *piece) []byte {
	kind := "function_call_output"
	if p.custom {
		kind = "custom_tool_call_output"
	}
	if p.Dialect == content.Responses && p.Type == kind {
		return ownItem(p)
	}
	o := newObject(kind).text("call_id", p.ID)
	var texts []string
	var blocks []any
	for i := range p.Parts {
		if b := responsesMedia(&p.Parts[i]); b != nil {
			blocks = append(blocks, b)
		} else if s := said(&p.Parts[i]); s != "" {
			texts = append(texts, s)
			blocks = append(blocks, map[string]any{"type": "input_text", "text": s})
		}
	}
	if len(texts) == len(blocks) {
		return o.text("output", strings.Join(texts, "\n")).end()
	}
	return o.raw("output", text.CanonicalJSON(blocks)).end()
}

// responsesMedia is a block for an image or a file; nil where Responses takes none.
func responsesMedia(p *content.Block) map[string]any {
	m := p.Media()
	switch {
	case p.Kind == content.Image && (m.Data != "" && m.Type != "" || isWeb(m.URL)):
		return withDetail(map[string]any{"type": "input_image", "image_url": address(m)}, m)
	case p.Kind == content.Image && m.FileID != "" && isOpenAI(p.Dialect):
		return withDetail(map[string]any{"type": "input_image", "file_id": m.FileID}, m)
	case p.Kind == content.File && m.FileID != "" && isOpenAI(p.Dialect):
		return map[string]any{"type": "input_file", "file_id": m.FileID}
	case p.Kind == content.File && m.Data != "" && m.Type == pdf:
		return map[string]any{"type": "input_file", "file_data": address(m), "filename": fileName(m)}
	case p.Kind == content.File && isWeb(m.URL):
		return map[string]any{"type": "input_file", "file_url": m.URL}
	}
	return nil
}

func withDetail(b map[string]any, m content.Media) map[string]any {
	b["detail"] = "auto"
	if m.Detail != "" {
		b["detail"] = m.Detail
	}
	return b
}

// place returns the marks with the items that they stand behind.
func (r *responses) place(marks []Mark) []Mark {
	var out []Mark
	for _, m := range marks {
		at := BlockPlace{Message: BehindSystem}
		if m.Message < 0 {
			at = m.BlockPlace
		}
		for i := range r.items {
			if m.Message >= 0 && r.items[i].at.upTo(m.BlockPlace) {
				at = BlockPlace{Message: i}
			}
		}
		m.BlockPlace = at
		out = append(out, m)
	}
	return out
}
