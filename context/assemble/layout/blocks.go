package layout

import (
	"encoding/json"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// withText is a provider's content blocks with a text behind that of the last block of
// text, or in its own block where there is none.
func withText(content json.RawMessage, more string) json.RawMessage {
	var blocks []json.RawMessage
	if json.Unmarshal(content, &blocks) != nil {
		return content
	}
	for i := len(blocks) - 1; i >= 0; i-- {
		if longer, ok := longer(blocks[i], more); ok {
			blocks[i] = longer
			return list(blocks)
		}
	}
	own := text.CanonicalJSON(map[string]any{"type": "text", "text": strings.TrimLeft(more, "-\n")})
	return list(append(blocks, own))
}

// longer is a block of text with more text; false for any other block.
func longer(block json.RawMessage, more string) (json.RawMessage, bool) {
	value, err := text.DecodeJSON(block)
	fields, ok := value.(map[string]any)
	if err != nil || !ok {
		return nil, false
	}
	said, ok := fields["text"].(string)
	kind, typed := fields["type"].(string)
	if !ok || typed && kind != "text" && kind != "input_text" {
		return nil, false
	}
	fields["text"] = said + more
	return text.CanonicalJSON(fields), true
}

func list(blocks []json.RawMessage) json.RawMessage {
	out := []byte{'['}
	for i := range blocks {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, blocks[i]...)
	}
	return append(out, ']')
}
