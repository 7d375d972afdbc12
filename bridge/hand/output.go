package hand

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// outputReserve is the room in an output for everything but the body's text.
const outputReserve = 8 << 10

// output makes the JSON text of a result, and tells whether text was cut.
func output(result tools.Result, b body) (json.RawMessage, bool, error) {
	out := result.Output
	if out == nil {
		out = map[string]any{}
	}
	truncated := false
	if result.BodyKey != "" {
		truncated = showBody(out, result, b)
	}
	text, err := compact(answerOf(out, result.ValueKey))
	if err != nil || len(text) <= MaxOutputBytes {
		return text, truncated, err
	}
	text, err = compact(map[string]any{"truncated": true, "text": string(text[:textFit(text, MaxOutputBytes/2)])})
	return text, true, err
}

// answerOf is the part of a result that is its answer.
func answerOf(out map[string]any, key string) any {
	if key == "" {
		return out
	}
	return out[key]
}

// showBody puts the body's text into the output, cut to what fits, and tells
// whether it was cut. Bytes that are no text are described instead.
func showBody(out map[string]any, result tools.Result, b body) bool {
	fit := textFit(b.shown, MaxOutputBytes-outputReserve)
	cut := int64(fit) < b.size
	if !utf8.Valid(b.shown[:fit]) || b.binary && cut {
		out[result.BodyKey] = ""
		out["binary"] = true
		out["size"] = b.size
		out["sha256"] = b.sha256
		return false
	}
	if cut && result.BodyPaged {
		fit = readOn(out, b.shown[:fit])
	}
	out[result.BodyKey] = string(b.shown[:fit])
	if cut {
		out["truncated"] = true
	}
	return cut
}

// readOn cuts text behind its last whole line, notes the line to read on from,
// and returns the new length. Text within one line, or read by bytes, stays as it
// is; there the byte is noted.
func readOn(out map[string]any, text []byte) int {
	end := bytes.LastIndexByte(text, '\n') + 1
	first, ranged := out["offset"].(int64)
	firstByte, byBytes := out["offset_bytes"].(int64)
	if byBytes || end == 0 && !ranged {
		out["next_offset_bytes"] = firstByte + int64(len(text))
	}
	if byBytes || end == 0 {
		return len(text)
	}
	first = max(first, 1)
	out["next_offset"] = first + int64(bytes.Count(text[:end], []byte{'\n'}))
	if _, counted := out["lines"]; counted {
		out["lines"] = int64(bytes.Count(text[:end], []byte{'\n'}))
	}
	return end
}

// compact is JSON without spaces and with sorted keys, characters left as they
// are.
func compact(value any) (json.RawMessage, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte{'\n'}), nil
}
