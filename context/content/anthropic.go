package content

import "strings"

// anthropic reads a block of Anthropic's Messages.
func (r *reader) anthropic(p *Block, kind string, f fields, depth int) bool {
	switch kind {
	case "tool_use":
		p.Kind, p.Name, p.Arguments = Call, f.text("name"), string(f.get("input"))
		p.called(f.text("id"), unnamed, r.calls)
	case "tool_result":
		p.Kind, p.Failed = Result, f.isTrue("is_error")
		p.called(f.text("tool_use_id"), unnamed, r.results)
		p.Parts = r.content(f.get("content"), depth)
	case "thinking":
		p.Kind, p.Text = Thought, f.text("thinking")
	case "redacted_thinking":
		p.Kind = Thought
	case "image", "document":
		source := f.object("source")
		if source == nil {
			return false
		}
		p.Kind, p.media = Image, anthropicSource(source)
		if kind == "document" {
			p.Kind, p.media.Name = File, f.text("title")
			if source.text("type") == "content" {
				p.Kind, p.Text = Other, joined(Texts(r.content(source.get("content"), depth)))
			}
		}
	case "server_tool_use", "mcp_tool_use", "search_result", "container_upload":
	default:
		if !strings.HasSuffix(kind, "_tool_result") {
			return false
		}
	}
	p.Dialect = Anthropic
	return true
}

// unnamed stands for the tool of a result that does not say it.
const unnamed = "call"

func anthropicSource(source fields) *Media {
	m := &Media{Type: source.text("media_type"), URL: source.text("url"), FileID: source.text("file_id")}
	if source.text("type") == "text" {
		m.Text = source.text("data")
	} else {
		m.Data = source.text("data")
	}
	return m
}

// mcp reads a block as tools give it.
func (r *reader) mcp(p *Block, kind string, f fields, _ int) bool {
	switch kind {
	case "image", "audio":
		if f.text("data") == "" {
			return false
		}
		p.Kind = map[string]Kind{"image": Image, "audio": Audio}[kind]
		p.media = &Media{Type: f.text("mimeType"), Data: f.text("data")}
	case "resource":
		inner := f.object("resource")
		if inner == nil {
			return false
		}
		p.Kind, p.Text = Text, inner.text("text")
		if blob := inner.text("blob"); blob != "" {
			p.Kind, p.media = File, &Media{Type: inner.text("mimeType"), Data: blob, Name: inner.text("uri")}
		}
	case "resource_link":
		p.Kind, p.Text = Text, f.text("uri")
	default:
		return false
	}
	p.Dialect = MCP
	return true
}
