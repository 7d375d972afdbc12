package pairing

import (
	"encoding/json"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/history/decay"
)

// fieldDescription is a field of an image block that says what the image shows. It is
// the caller's word to this server; providers refuse it.
const fieldDescription = "description"

// isImage reports whether a block is an image, in any provider's words.
func isImage(p *content.Block) bool {
	return p.Kind == content.Image || p.Type == "image" || p.Type == "image_url" || p.Type == "input_image"
}

// Aged is content with a line in the place of each image.
func Aged(blocks json.RawMessage, turn int) json.RawMessage {
	return content.Edit(blocks, func(p *content.Block) json.RawMessage {
		if !isImage(p) {
			return nil
		}
		return p.Dialect.TextBlock(decay.ImageLine(turn, p.FieldText(fieldDescription)))
	})
}

// Undescribed are blocks without the descriptions of their images.
func Undescribed(blocks json.RawMessage) json.RawMessage {
	if !strings.Contains(string(blocks), `"`+fieldDescription+`"`) {
		return blocks
	}
	return content.Edit(blocks, func(p *content.Block) json.RawMessage {
		if !isImage(p) {
			return nil
		}
		return p.WithoutField(fieldDescription)
	})
}
