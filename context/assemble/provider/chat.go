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
	if m.Role != session.Tool {
		if err := w.flush(out); err != nil {
			return err
		}
	}
	parts := content.Parse(m.BlocksJSON)
	if isChat(m.Role, parts) {
		return w.message(out, m)
	}
	for i := range parts {
		if parts[i].Kind == content.Result {
			if err := w.message(out, w.answer(parts[i].ID, parts[i].Parts)); err != nil {
				return err
			}
		}
	}
	results := len(parts)
	parts = spoken(parts)
	results -= len(parts)
	switch {
	case m.Role == session.Tool:
		answer := w.answer(m.ToolCallID, parts)
		answer.Name, answer.ExtraJSON = m.Name, m.ExtraJSON
		return w.message(out, answer)
	case results > 0:
		// Images of the results come first; what else was said goes behind them.
		if err := w.flush(out); err != nil || len(parts) == 0 {
			return err
		}
	}
	return w.message(out, chatMessage(m, parts))
}

// isChat reports whether blocks are of Chat, or unknown to everybody.
func isChat(role session.Role, parts []content.Block) bool {
	return !slices.ContainsFunc(parts, func(p content.Block) bool {
		switch {
		case p.HasOthers("type", p.Type) && p.Kind != content.Other:
			return true // Anthropic's cache marks, or what a library adds
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

// flush writes the images of results as a message of the user.
func (w *Writer) flush(out *bytes.Buffer) error {
	if len(w.images) == 0 {
		return nil
	}
	blocks := []any{map[string]any{"type": "text", "text": imagesNote}}
	for i := range w.images {
		blocks = append(blocks, chatMedia(&w.images[i]))
	}
	w.images = nil
	return w.message(out, session.Message{Role: session.User, BlocksJSON: text.CanonicalJSON(blocks)})
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
