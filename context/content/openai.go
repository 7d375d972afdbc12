package content

import (
	"encoding/json"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/media"
)

// chat reads a block of OpenAI's Chat Completions.
func (r *reader) chat(p *Block, kind string, f fields, _ int) bool {
	switch kind {
	case "image_url":
		image := f.object("image_url")
		url := f.text("image_url")
		if image != nil {
			url = image.text("url")
		}
		p.Kind, p.media = Image, mediaOfURL(url)
		p.media.Detail = image.text("detail")
	case "input_audio":
		audio := f.object("input_audio")
		p.Kind, p.media = Audio, &Media{Type: audioType(audio.text("format")), Data: audio.text("data")}
	case "file":
		file := f.object("file")
		p.Kind, p.media = File, mediaOfURL(file.text("file_data"))
		p.media.FileID, p.media.Name = file.text("file_id"), file.text("filename")
	default:
		return false
	}
	p.Dialect = Chat
	return true
}

// audioType is the media type of a format of OpenAI.
func audioType(format string) string {
	if format == "mp3" {
		return "audio/mpeg"
	}
	return "audio/" + format
}

// responses reads an item of OpenAI's Responses, or a block of a message there.
func (r *reader) responses(p *Block, kind string, f fields, depth int) bool {
	p.Dialect = Responses
	switch kind {
	case "input_text", "output_text":
		p.Kind, p.Text = Text, f.text("text")
	case "input_image":
		p.Kind, p.media = Image, mediaOfURL(f.text("image_url"))
		p.media.FileID, p.media.Detail = f.text("file_id"), f.text("detail")
	case "input_file":
		p.Kind, p.media = File, mediaOfURL(f.text("file_data"))
		if url := f.text("file_url"); url != "" {
			p.media.URL = url
		}
		p.media.FileID, p.media.Name = f.text("file_id"), f.text("filename")
	case "message":
		p.Kind, p.Parts = Said, r.content(f.get("content"), depth)
	case "reasoning":
		p.Kind = Thought
	case "function_call":
		p.Kind, p.Name, p.Arguments = Call, f.text("name"), f.text("arguments")
		p.called(f.text("call_id"), unnamed, r.calls)
	case "custom_tool_call":
		p.Kind, p.Name, p.Arguments, p.Custom = Call, f.text("name"), f.text("input"), true
		p.called(f.text("call_id"), unnamed, r.calls)
	case "function_call_output", "custom_tool_call_output":
		p.Kind, p.Parts = Result, r.content(f.get("output"), depth)
		p.called(f.text("call_id"), unnamed, r.results)
	default:
		p.Dialect = Shared
		return r.hosted(p, kind, f)
	}
	return true
}

// hosted reads an item of a tool that OpenAI runs itself: only Responses knows what
// to do with it.
func (r *reader) hosted(p *Block, kind string, f fields) bool {
	if kind == "compaction" && f.get("content") != nil {
		p.Kind, p.Dialect = Other, Anthropic // OpenAI's is encrypted
		return true
	}
	if kind != "item_reference" && kind != "compaction" && !strings.HasSuffix(kind, "_call") &&
		!strings.HasSuffix(kind, "_call_output") && !strings.HasPrefix(kind, "mcp_") {
		return false
	}
	p.Kind, p.Dialect, p.Text = Other, Responses, f.text("text")
	if id := f.text("call_id"); id != "" {
		p.Text = ran(kind, id, f)
	}
	return true
}

// ran says for other providers what a tool of OpenAI's that the caller runs was given, or gave:
// its shell, its patches, its computer.
func ran(kind, id string, f fields) string {
	if tool, ok := strings.CutSuffix(kind, "_call"); ok {
		return "[Call of " + tool + " " + id + ": " + string(f.either("action", "operation", "input", "arguments")) + "]"
	}
	var texts []string
	collect(f.get("output"), &texts)
	if len(texts) == 0 {
		return ""
	}
	return "Result of the call " + id + ":\n" + joined(texts)
}

// collect appends the texts of an output: it is one, or has a list of what programs printed.
func collect(output json.RawMessage, texts *[]string) {
	var list []json.RawMessage
	if json.Unmarshal(output, &list) == nil {
		for _, each := range list {
			collect(each, texts)
		}
		return
	}
	if s := plainText(output); s != "" {
		*texts = append(*texts, s)
		return
	}
	f := fieldsOf(output)
	for _, name := range []string{"stdout", "stderr", "text"} {
		if s := strings.TrimRight(f.text(name), "\n"); s != "" {
			*texts = append(*texts, s)
		}
	}
}

// mediaOfURL reads an address, which may have the bytes in it.
func mediaOfURL(url string) *Media {
	if data, ok := media.ParseDataURL(url); ok {
		return &Media{Type: data.Type, Data: data.Payload}
	}
	if head, payload, ok := strings.Cut(url, ";base64,"); ok && strings.HasPrefix(head, "data:") {
		kind, _, _ := strings.Cut(strings.TrimPrefix(head, "data:"), ";")
		return &Media{Type: kind, Data: payload}
	}
	if url != "" && !strings.Contains(url, ":") {
		return &Media{Data: url} // bytes without a type, as file_data may be
	}
	return &Media{URL: url}
}

// joined is texts one below the other.
func joined(texts []string) string { return strings.Join(texts, "\n") }

// isObject reports whether JSON text is an object.
func isObject(raw json.RawMessage) bool { return fieldsOf(raw) != nil }
