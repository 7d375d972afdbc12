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

// chat writes a message as OpenAI's Chat takes it.
func (w *Writer) chat(out *bytes.Buffer, m session.Message) error {
	parts := content.Parse(m.BlocksJSON)
	if m.Role != session.Tool && !slices.ContainsFunc(parts, isResult) {
		if err := w.flush(out); err != nil {
			return err
		}
	}
	if isChat(m.Role, parts) {
		if len(parts) == 0 {
			m.BlocksJSON = nil // an empty list, which Chat refuses
		}
		w.asks(m)
		return w.message(out, m)
	}
	results := slices.ContainsFunc(parts, isResult)
	for i := range parts {
		switch {
		case parts[i].Kind != content.Result:
		case w.waiting != nil && w.waiting[parts[i].ID] == 0: // a provider would refuse it
			parts[i] = content.Block{Kind: content.Text, Text: loose(&parts[i])}
		default:
			w.answered(parts[i].ID)
			if err := w.message(out, w.answer(parts[i].ID, parts[i].Parts)); err != nil {
				return err
			}
		}
	}
	parts = spoken(parts)
	switch {
	case m.Role == session.Tool:
		answer := w.answer(m.ToolCallID, parts)
		answer.Name, answer.ExtraJSON = m.Name, m.ExtraJSON
		w.asks(answer)
		return w.message(out, answer)
	case results:
		if len(parts) > 0 {
			w.beside = append(w.beside, chatMessage(m, parts))
		}
		return nil
	}
	m = chatMessage(m, parts)
	w.asks(m)
	return w.message(out, m)
}

// asks notes the calls that a message asks for, in place of those before, or that it answers.
func (w *Writer) asks(m session.Message) {
	if m.Role == session.Tool {
		w.answered(m.ToolCallID)
	}
	if m.Role != session.Assistant || w.waiting == nil {
		return
	}
	clear(w.waiting)
	for i := range m.ToolCalls {
		w.waiting[m.ToolCalls[i].ID]++
	}
}

func (w *Writer) answered(id string) {
	if w.waiting[id] > 0 {
		w.waiting[id]--
	}
}

func isResult(p content.Block) bool { return p.Kind == content.Result }

// isChat reports whether blocks are of Chat, or unknown to everybody.
func isChat(role session.Role, parts []content.Block) bool {
	return !slices.ContainsFunc(parts, func(p content.Block) bool {
		switch {
		case p.HasOthers("type", p.Type) && p.Kind != content.Other:
			return true // Anthropic's cache marks, or what a library adds
		case p.Kind == content.Image && p.FieldText("image_url") != "":
			return true // an address alone, as some hosts write it
		case p.Dialect != content.Shared && p.Dialect != content.Chat:
			return true
		case role == session.Assistant, role == session.Tool:
			return p.Kind == content.Image || p.Kind == content.Audio || p.Kind == content.File
		}
		return false
	})
}

// spoken are the parts that are no results, with the content of messages in their
// place.
func spoken(parts []content.Block) []content.Block {
	var out []content.Block
	for i := range parts {
		switch parts[i].Kind {
		case content.Result:
		case content.Said:
			out = append(out, spoken(parts[i].Parts)...)
		default:
			out = append(out, parts[i])
		}
	}
	return out
}

// answer is the message of a result. Its images wait.
func (w *Writer) answer(id string, parts []content.Block) session.Message {
	m := session.Message{Role: session.Tool, ToolCallID: id}
	var texts []string
	for i := range parts {
		p := &parts[i]
		if block := chatMedia(p); block != nil {
			w.images = append(w.images, *p)
			texts = append(texts, "["+nameOf(p)+" below]")
			continue
		}
		if s := said(p); s != "" {
			texts = append(texts, s)
		}
	}
	m.Content = strings.Join(texts, "\n")
	return m
}

// imagesNote stands before the images of results.
const imagesNote = "What the tools showed:"

// flush writes the images of results as a message of the user, and what else was said.
func (w *Writer) flush(out *bytes.Buffer) error {
	waiting := w.beside
	if len(w.images) > 0 {
		blocks := []any{map[string]any{"type": "text", "text": imagesNote}}
		for i := range w.images {
			blocks = append(blocks, chatMedia(&w.images[i]))
		}
		waiting = slices.Insert(waiting, 0, session.Message{Role: session.User, BlocksJSON: text.CanonicalJSON(blocks)})
	}
	w.images, w.beside = nil, nil
	for i := range waiting {
		if err := w.message(out, waiting[i]); err != nil {
			return err
		}
	}
	return nil
}

// chatMessage is a message with other blocks in the words of Chat.
func chatMessage(m session.Message, parts []content.Block) session.Message {
	m.BlocksJSON = nil
	var blocks []any
	var texts []string
	own := len(m.ToolCalls) > 0
	for i := range parts {
		p := &parts[i]
		switch {
		case p.Kind == content.Call && m.Role == session.Assistant:
			if !own {
				m.ToolCalls = append(m.ToolCalls, chatCall(p))
			}
			continue
		case p.Kind == content.Refusal && m.Role == session.Assistant:
			blocks = append(blocks, map[string]any{"type": "refusal", "refusal": p.Text})
			continue
		}
		if block := chatMedia(p); block != nil && m.Role == session.User {
			blocks = append(blocks, block)
			continue
		}
		if s := said(p); s != "" {
			texts = append(texts, s)
			blocks = append(blocks, map[string]any{"type": "text", "text": s})
		}
	}
	switch {
	case len(blocks) == 0:
	case len(blocks) == 1 && len(texts) == 1:
		m.Content = texts[0]
	default:
		m.BlocksJSON = text.CanonicalJSON(blocks)
	}
	return m
}

func chatCall(p *content.Block) session.ToolCall {
	c := session.ToolCall{ID: p.ID, Name: OpenAIChat.name(p.Name), Arguments: arguments(p)}
	if p.Custom {
		c.Extra = `{"type":"custom"}`
	}
	return c
}

// chatMedia is a block of Chat for an image, a sound or a file; nil where Chat has
// none.
func chatMedia(p *content.Block) map[string]any {
	m := p.Media()
	switch {
	case p.Kind == content.Image && (m.Data != "" && m.Type != "" || isWeb(m.URL)):
		url := map[string]any{"url": address(m)}
		if m.Detail != "" {
			url["detail"] = m.Detail
		}
		return map[string]any{"type": "image_url", "image_url": url}
	case p.Kind == content.Audio && m.Data != "" && soundFormat(m.Type) != "":
		return map[string]any{"type": "input_audio", "input_audio": map[string]any{"data": m.Data, "format": soundFormat(m.Type)}}
	case p.Kind == content.File && m.FileID != "" && isOpenAI(p.Dialect):
		return map[string]any{"type": "file", "file": map[string]any{"file_id": m.FileID}}
	case p.Kind == content.File && m.Data != "" && m.Type == pdf:
		return map[string]any{"type": "file", "file": map[string]any{"file_data": address(m), "filename": fileName(m)}}
	}
	return nil
}

func isOpenAI(d content.Dialect) bool { return d == content.Chat || d == content.Responses }

// arguments returns the arguments of a call as text.
func arguments(p *content.Block) string {
	if p.Dialect == content.Responses {
		return p.Arguments
	}
	var out bytes.Buffer
	if json.Compact(&out, []byte(p.Arguments)) != nil || out.Len() == 0 {
		return "{}"
	}
	return out.String()
}
