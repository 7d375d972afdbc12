package step

import (
	"encoding/json"
	"strconv"
)

// figures are the fields of a step's metadata. Pointers tell zero from unknown.
type figures struct {
	Size, Bytes, Lines *int64
	Count, Files, Dirs *int64
	Type, SHA256       string
	// ChangedSinceWrite says that somebody else changed the file after the
	// agent wrote it.
	ChangedSinceWrite bool
}

// encode returns the figures that are known as a canonical JSON object.
func (f figures) encode() json.RawMessage {
	dst := make([]byte, 1, 192)
	dst[0] = '{'
	key := func(name string) {
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, name), ':')
	}
	number := func(name string, n *int64) {
		if n != nil {
			key(name)
			dst = strconv.AppendInt(dst, *n, 10)
		}
	}
	text := func(name, value string) {
		if value != "" {
			key(name)
			dst = appendString(dst, value)
		}
	}
	// The keys come in their canonical order.
	number("bytes", f.Bytes)
	if f.ChangedSinceWrite {
		key("changed_since_write")
		dst = append(dst, "true"...)
	}
	number("count", f.Count)
	number("dirs", f.Dirs)
	number("files", f.Files)
	number("lines", f.Lines)
	text("sha256", f.SHA256)
	number("size", f.Size)
	text("type", f.Type)
	return append(dst, '}')
}

// decodeFigures reads metadata; what is missing or mistyped stays unknown.
func decodeFigures(metadata json.RawMessage) figures {
	var object map[string]any
	decoded, err := DecodeJSON(metadata)
	if err != nil {
		return figures{}
	}
	object, _ = decoded.(map[string]any)
	number := func(key string) *int64 {
		if n, ok := wholeNumber(object[key]); ok {
			return &n
		}
		return nil
	}
	return figures{Size: number("size"), Bytes: number("bytes"), Count: number("count")}
}
