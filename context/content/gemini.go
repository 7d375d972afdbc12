package content

import (
	"encoding/json"
	"strings"
)

// gemini reads a part of Gemini, or a block that says nothing of its type.
func (r *reader) gemini(p *Block, f fields, depth int) {
	p.Signature = f.text("thoughtSignature")
	if p.Signature == "" {
		p.Signature = f.text("thought_signature")
	}
	switch {
	case f.get("text") != nil:
		p.Kind, p.Text = Text, f.text("text")
		if f.isTrue("thought") {
			p.Kind = Thought
		}
	case f.either("functionCall", "function_call") != nil:
		call := f.object("functionCall", "function_call")
		p.Kind, p.Name, p.Arguments = Call, call.text("name"), string(call.get("args"))
		p.called(call.text("id"), p.Name, r.calls)
	case f.either("functionResponse", "function_response") != nil:
		result := f.object("functionResponse", "function_response")
		p.Kind, p.Name = Result, result.text("name")
		p.called(result.text("id"), p.Name, r.results)
		p.Parts, p.Failed = responseParts(result.get("response"))
		p.Parts = append(p.Parts, r.list(result.get("parts"), depth+1)...)
	case f.either("inlineData", "inline_data") != nil:
		blob := f.object("inlineData", "inline_data")
		p.media = &Media{Type: typeIn(blob), Data: blob.text("data"), Name: blob.text("displayName")}
		p.Kind = kindOf(p.media.Type)
	case f.either("fileData", "file_data") != nil:
		file := f.object("fileData", "file_data")
		p.media = &Media{Type: typeIn(file), URL: fileURL(file)}
		p.Kind = kindOf(p.media.Type)
	case f.either("executableCode", "executable_code", "codeExecutionResult", "code_execution_result", "toolCall", "toolResponse") != nil:
	default:
		return
	}
	p.Dialect = Gemini
}

func typeIn(f fields) string {
	if kind := f.text("mimeType"); kind != "" {
		return kind
	}
	return f.text("mime_type")
}

func fileURL(f fields) string {
	if url := f.text("fileUri"); url != "" {
		return url
	}
	return f.text("file_uri")
}

// kindOf is what bytes of a media type are.
func kindOf(mediaType string) Kind {
	switch {
	case strings.HasPrefix(mediaType, "image/"):
		return Image
	case strings.HasPrefix(mediaType, "audio/"):
		return Audio
	}
	return File
}

// responseParts is what a response says: the text under "output", "result" or
// "error", or else all of it.
func responseParts(response json.RawMessage) (parts []Block, failed bool) {
	f := fieldsOf(response)
	if len(f) == 1 {
		for _, name := range []string{"output", "result", "error"} {
			if raw := f.get(name); raw != nil {
				return []Block{{Kind: Text, Text: textOf(raw)}}, name == "error"
			}
		}
	}
	if len(response) == 0 || len(f) == 0 && isObject(response) {
		return nil, false
	}
	return []Block{{Kind: Text, Text: string(response)}}, false
}

// textOf is a JSON value as text: what a string says, or the JSON of another value.
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
