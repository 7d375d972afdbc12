package hand

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// outputReserve is the room in an output for everything but the body's text.
const outputReserve = 8 << 10

// output makes the JSON text of a result, whole where the result has no body, and
// what of it an answer shows. It also reports whether text was cut.
func output(result tools.Output, b body) (whole, shown json.RawMessage, truncated bool, err error) {
	if result.Given.Form == step.FormJSON && len(result.Given.Data) <= MaxOutputBytes {
		return result.Given.Data, result.Given.Data, false, nil
	}
	out := result.Values
	if out == nil {
		out = map[string]any{}
	}
	if result.BodyKey != "" {
		truncated = showBody(out, result, b)
	}
	answer := answerOf(out, result.ValueKey)
	text, err := compact(answer)
	if err != nil || len(text) <= MaxOutputBytes {
		return text, text, truncated, err
	}
	shown, err = compact(cutAnswer(answer, text))
	return text, shown, true, err
}

// cutAnswer is the beginning of an answer that is too long: of a text a text, of
// anything else its JSON as text.
func cutAnswer(answer any, text []byte) any {
	if whole, isText := answer.(string); isText {
		return whole[:textFit([]byte(whole), MaxOutputBytes-outputReserve)]
	}
	return map[string]any{"truncated": true, "text": string(text[:textFit(text, MaxOutputBytes/2)])}
}

// shownBytes are the bytes of a result that an answer can hold, and whether they
// were left out.
func shownBytes(mediaType string, b body) (*step.Original, bool) {
	if int64(len(b.shown)) < b.size {
		return nil, true
	}
	return &step.Original{Form: step.FormBytes, MediaType: mediaType, Data: b.shown}, false
}

// answerOf is the part of a result that is its answer.
func answerOf(out map[string]any, key string) any {
	if key == "" {
		return out
	}
	return out[key]
}

// showBody puts the body's text into the output, cut to what fits, and reports
// whether it was cut. Bytes that are no text are described instead.
func showBody(out map[string]any, result tools.Output, b body) bool {
	fit := textFit(b.shown, MaxOutputBytes-outputReserve)
	cut := int64(fit) < b.size
	isText := result.Given.Form == step.FormText // with or without NUL
	if !utf8.Valid(b.shown[:fit]) || b.binary && cut && !isText {
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
