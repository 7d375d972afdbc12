package provider

import (
	"bytes"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/session"
)

// foreignSignature stands in for the thoughtSignature of a call that another model made, or
// an older one of Gemini; newer models refuse calls without any. It is the base64 of the text
// that Google documents for this.
const foreignSignature = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="

// encodeGemini writes a body of generateContent.
func encodeGemini(p Content) (Body, error) {
	system, rest := leading(read(Gemini, p.Messages))
	o := newObject("")
	if len(p.Tools) > 0 {
		o.raw("tools", p.Tools)
	}
	var parts []block
	for i := range system {
		for j := range system[i].pieces {
			piece := &system[i].pieces[j]
			if s := said(&piece.Block); !blank(s) {
				parts = append(parts, block{newObject("").text("text", s).end(), content.Text, piece.at})
			}
		}
	}
	if len(parts) > 0 {
		o.raw("systemInstruction", newObject("").raw("parts", blockList(parts)).end())
	}
	turns := pair(rest, func(id string) string { return id })
	sign(turns)
	talk := merge(turns, geminiPart)
	contents := make([][]byte, len(talk))
	for i, e := range talk {
		role := "model"
		if e.user {
			role = "user"
		}
		contents[i] = newObject("").text("role", role).raw("parts", blockList(e.blocks)).end()
	}
	var out bytes.Buffer
	array(&out, contents)
	a := anthropic{system: parts, talk: talk}
	return Body{JSON: o.raw("contents", out.Bytes()).end(), Marks: a.place(p.Marks)}, nil
}

// sign gives the first call of each message that has none a signature.
func sign(turns []turn) {
	signed := false
	for i := range turns {
		if turns[i].role != session.Assistant {
			signed = false
			continue
		}
		for j := range turns[i].pieces {
			p := &turns[i].pieces[j]
			if p.Kind != content.Call {
				continue
			}
			if p.Signature == "" && !signed {
				p.Signature = foreignSignature
			}
			signed = true
		}
	}
}

// geminiPart writes a piece, or nothing where Gemini takes none.
func geminiPart(p *piece, role session.Role) []byte {
	own := p.Dialect == content.Gemini
	switch {
	case p.Kind == content.Thought && !own:
		return nil
	case p.Kind == content.Other && !own && p.Dialect != content.Shared && p.Text == "":
		return nil
	case p.Kind == content.Call && role == session.Assistant:
		return geminiCall(p)
	case p.Kind == content.Result && role != session.Assistant:
		return geminiResult(p)
	case own && (p.Kind != content.Text || p.Signature != ""):
		return ownItem(p)
	case role == session.User:
		if media := geminiMedia(&p.Block); media != nil {
			return media
		}
	}
	s := spokenText(p, role)
	if blank(s) {
		return nil
	}
	return newObject("").text("text", s).end()
}

func geminiCall(p *piece) []byte {
	if p.Dialect == content.Gemini && Gemini.name(p.Name) == p.Name {
		own := piece{Block: p.Block} // its id is its own
		raw := ownItem(&own)
		if p.Signature == foreignSignature && !bytes.Contains(raw, []byte(foreignSignature)) {
			raw = append(raw[:len(raw)-1], `,"thoughtSignature":"`+foreignSignature+`"}`...)
		}
		return raw
	}
	call := newObject("").text("name", Gemini.name(p.Name)).raw("args", argumentsObject(p)).end()
	o := newObject("").raw("functionCall", call)
	if p.Signature != "" {
		o.text("thoughtSignature", p.Signature)
	}
	return o.end()
}

// geminiResult writes a result under the name of the function. What is no text goes
// into its parts.
func geminiResult(p *piece) []byte {
	if p.Dialect == content.Gemini {
		own := piece{Block: p.Block}
		return ownItem(&own)
	}
	var texts []string
	var media [][]byte
	for i := range p.Parts {
		if m := geminiMedia(&p.Parts[i]); m != nil && p.Parts[i].Media().Data != "" {
			media = append(media, m)
		} else if s := said(&p.Parts[i]); s != "" {
			texts = append(texts, s)
		}
	}
	key := "output"
	if p.Failed {
		key = "error"
	}
	o := newObject("")
	if p.native {
		o.text("id", p.ID)
	}
	o.text("name", Gemini.name(p.Name))
	o.raw("response", newObject("").text(key, strings.Join(texts, "\n")).end())
	if len(media) > 0 {
		var out bytes.Buffer
		array(&out, media)
		o.raw("parts", out.Bytes())
	}
	return newObject("").raw("functionResponse", o.end()).end()
}

// geminiMedia is a part for an image, a sound or a file; nil where Gemini takes none.
func geminiMedia(p *content.Block) []byte {
	m := p.Media()
	if p.Kind != content.Image && p.Kind != content.Audio && p.Kind != content.File {
		return nil
	}
	switch {
	case m.Data != "" && m.Type != "":
		return newObject("").raw("inlineData", newObject("").text("mimeType", m.Type).text("data", m.Data).end()).end()
	case m.URL != "":
		file := newObject("")
		if m.Type != "" {
			file.text("mimeType", m.Type)
		}
		return newObject("").raw("fileData", file.text("fileUri", m.URL).end()).end()
	}
	return nil
}

// place returns the marks with the contents that they stand behind.
func (a *anthropic) place(marks []Mark) []Mark {
	var out []Mark
	for _, m := range marks {
		if b, at := a.find(m.BlockPlace); b != nil {
			m.BlockPlace = at
		} else if m.Message >= 0 {
			continue
		}
		out = append(out, m)
	}
	return out
}
