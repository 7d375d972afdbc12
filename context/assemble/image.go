package assemble

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/history/decay"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// fieldDescription is a field of an image block that says what the image shows. It is
// the caller's word to this server; providers refuse it.
const fieldDescription = "description"

// isImage tells whether a block is an image, in any provider's words.
func isImage(kind string) bool {
	return kind == "image" || kind == "image_url" || kind == "input_image"
}

// textType is what a provider calls a text that stands beside such images.
func textType(image string) string {
	if image == "input_image" {
		return "input_text"
	}
	return "text"
}

// aged is content with a line in the place of each image.
func aged(content json.RawMessage, turn int) json.RawMessage {
	return withImages(content, 0, func(b map[string]json.RawMessage, kind string) json.RawMessage {
		var description string
		_ = json.Unmarshal(b[fieldDescription], &description) // what is no text describes nothing
		return text.CanonicalJSON(map[string]any{"type": textType(kind), "text": decay.ImageLine(turn, description)})
	})
}

// undescribed are blocks without the descriptions of their images.
func undescribed(content json.RawMessage) json.RawMessage {
	if !bytes.Contains(content, []byte(`"`+fieldDescription+`"`)) {
		return content
	}
	return withImages(content, 0, func(b map[string]json.RawMessage, _ string) json.RawMessage {
		if _, ok := b[fieldDescription]; !ok {
			return nil
		}
		delete(b, fieldDescription)
		own, _ := json.Marshal(b) // it was read from JSON
		return own
	})
}

// withImages is content with another block for each image, within results of calls,
// too. nil leaves one as it is; all other blocks stay byte for byte.
func withImages(content json.RawMessage, depth int, other func(b map[string]json.RawMessage, kind string) json.RawMessage) json.RawMessage {
	var blocks []json.RawMessage
	if len(content) == 0 || depth > maxBlockDepth || json.Unmarshal(content, &blocks) != nil {
		return content
	}
	changed := false
	for i, raw := range blocks {
		var b map[string]json.RawMessage
		var kind string
		if json.Unmarshal(raw, &b) != nil || json.Unmarshal(b["type"], &kind) != nil {
			continue
		}
		if isImage(kind) {
			if own := other(b, kind); own != nil {
				blocks[i], changed = own, true
			}
			continue
		}
		if inner := b["content"]; len(inner) > 0 && inner[0] == '[' {
			if own := withImages(inner, depth+1, other); !bytes.Equal(own, inner) {
				blocks[i], changed = withField(raw, "content", own), true
			}
		}
	}
	if !changed {
		return content
	}
	return arrayOf(blocks)
}

// arrayOf is a JSON array of values.
func arrayOf(values []json.RawMessage) json.RawMessage {
	return slices.Concat([]byte("["), bytes.Join(rawBytes(values), []byte(",")), []byte("]"))
}
