package hooks

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strings"
	"unicode/utf16"
)

// byteOrderMark is what some programs begin a text with.
const byteOrderMark = "\uFEFF"

// utf8Text is what a host wrote, in UTF-8 and without what stands around the JSON: hosts on
// Windows write one or two byte order marks, or UTF-16.
func utf8Text(text []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(text, []byte{0xFF, 0xFE}):
		order = binary.LittleEndian
	case bytes.HasPrefix(text, []byte{0xFE, 0xFF}):
		order = binary.BigEndian
	}
	if order != nil {
		units := make([]uint16, len(text)/2)
		for i := range units {
			units[i] = order.Uint16(text[2*i:])
		}
		text = []byte(string(utf16.Decode(units)))
	}
	text = bytes.Trim(text, "\x00 \t\r\n"+byteOrderMark)
	return bytes.ToValidUTF8(text, []byte("\uFFFD"))
}

// words is a text of a host's report. Hosts do not always write one: a number or a boolean is
// its text, blocks are their texts one below the other, and an object is its message.
type words string

// UnmarshalJSON takes any JSON.
func (w *words) UnmarshalJSON(raw []byte) error {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return err
	}
	*w = words(wordsOf(value, raw))
	return nil
}

func wordsOf(value any, raw []byte) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case []any:
		var texts []string
		for _, item := range v {
			if text := wordsOf(item, nil); text != "" {
				texts = append(texts, text)
			}
		}
		return strings.Join(texts, "\n")
	case map[string]any:
		for _, name := range []string{"text", "message", "content", "value"} {
			if inner, ok := v[name]; ok {
				return wordsOf(inner, nil)
			}
		}
	}
	if raw != nil {
		return string(raw)
	}
	text, _ := json.Marshal(value) //nolint:errchkjson // it was decoded from JSON
	return string(text)
}

// roots are the folders of a workspace: a list, or one alone.
type roots []string

// UnmarshalJSON takes any JSON; what is no text is left out.
func (r *roots) UnmarshalJSON(raw []byte) error {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return err
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	*r = nil
	for _, item := range list {
		if folder, ok := item.(string); ok {
			*r = append(*r, folder)
		}
	}
	return nil
}
