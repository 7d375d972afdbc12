package step

import (
	"fmt"
	"maps"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// resultChars of a result stand in the observation of a tool without a rule.
const resultChars = 200

// anything reads a result as it comes: what a program printed, a text, or JSON.
func (r *Reducer) anything(c Call) finding {
	var rd finding
	printed, isOutput := outputOf(&c.Result)
	switch {
	case emptyResult(&c.Result):
		rd.empty = true
	case isOutput:
		printed.read(&rd)
		if !printed.isBody {
			rd.text = nil // the whole result says more than its text
			rd.shown.taken = true
		}
	case c.Result.BodyKey != "":
		rd.body(&c.Result)
	default:
		rd.readJSON(&c.Result)
	}
	rd.words = map[string]string{"text": unmarked(rd.shown.preview(resultChars))}
	if !rd.empty {
		rd.figure("size", rd.size.bytes)
	}
	return rd
}

// body reads a result that is a text and little else.
func (rd *finding) body(result *Result) {
	b := fileBody(result)
	rd.size = size{bytes: b.size, text: b.text}
	rd.text = &heldText{ext: "txt"}
	rd.shown = shown{text: b.text, tail: b.tail, size: b.size}
	rd.printed = !b.binary
	rest := maps.Clone(result.Output)
	delete(rest, result.BodyKey)
	rd.noText(result, b)
	rd.figure("sha256", b.sha256)
	if len(rest) == 0 {
		return
	}
	if above := string(text.SpacedJSON(rest)); len(above) <= maxRestBytes {
		rd.shown.head = above
		rd.figure(figureOther, rest)
	} else {
		rd.shown = rd.shown.below(above)
	}
}

// readJSON reads a result as JSON.
func (rd *finding) readJSON(result *Result) {
	value := resultValue(result)
	rd.size.bytes = int64(len(rd.jsonText(result)))
	if text, only := onlyText(value); only {
		rd.printed = true
		rd.showText(text)
		rd.shown.taken = true
		return
	}
	rd.showJSON(value)
}

// showJSON shows a value as JSON, but for bytes that no prompt shows.
func (rd *finding) showJSON(value any) {
	value, found := withoutBytes(value)
	rd.found(found)
	if s, ok := blocksText(value); ok {
		rd.shown = shownText(s)
		rd.shown.taken, rd.printed = true, true
		return
	}
	rd.shown = shownText(string(text.SpacedJSON(value)))
}

// textKeys are the names under which results have nothing but a text. A text under
// another name means something by that name.
func textKeys() []string { return []string{keyOutput, keyStdout, "content", "text", "result"} }

// onlyText returns the text of a result that is one text and nothing else.
func onlyText(value any) (string, bool) {
	if text, ok := value.(string); ok {
		return text, true
	}
	object, _ := value.(map[string]any)
	if len(object) != 1 {
		return "", false
	}
	for _, key := range textKeys() {
		if text, ok := object[key].(string); ok {
			return text, true
		}
	}
	return "", false
}

// figure adds known figures to the metadata.
func (rd *finding) figure(name string, value any) {
	if value == "" {
		return
	}
	if rd.figures == nil {
		rd.figures = make(map[string]any)
	}
	rd.figures[name] = value
}

// failure is the rule for the failures of every tool except tools that run commands.
func (r *Reducer) failure(c Call, rd *finding, out *Reduced) {
	reason := c.Result.ErrorText
	if strings.TrimSpace(reason) == "" {
		reason = unmarked(rd.shown.lastLine())
	}
	out.Outcome = Failed
	out.Error = text.Head(reason, MaxErrorBytes)
	line := text.OneLine(out.Error)
	out.Observation = text.OneLine(c.Tool + " failed: " + line)
	if short := rd.words["short"]; c.Result.Refused && short != "" {
		out.Observation = text.OneLine(short + ": refused: " + line)
	}
	rd.shown.isError = true
	if line != reason {
		// The line above does not show all of it.
		rd.shown = rd.shown.below(c.Tool + " failed: " + reason)
		rd.printed = true
	}
	if out.Error != reason {
		out.Offload, rd.derived, out.OffloadExt = true, true, "txt"
		out.OffloadBytes = []byte(reason + rd.full(&c.Result))
	}
}

// full is what a call gave in addition to its error, all of it, for below the error.
func (rd *finding) full(result *Result) string {
	switch {
	case rd.empty:
		return ""
	case rd.text != nil && rd.text.bytes != nil:
		return "\n" + string(rd.text.bytes)
	case rd.size.text != "" && int64(len(rd.size.text)) == rd.size.bytes:
		return "\n" + rd.size.text
	}
	return "\n" + string(rd.jsonText(result))
}

// emptyResult reports whether there is nothing to show.
func emptyResult(result *Result) bool {
	if list, isList := result.Value.([]any); isList && len(list) == 0 {
		return len(result.Output) == 0 && result.BodySize <= 0
	}
	return len(result.Output) == 0 && result.BodySize <= 0 && (!result.IsValue || result.Value == nil || result.Value == "")
}

// onlyBody reports whether the body is all of the result.
func (r *Result) onlyBody() bool { return r.BodyKey != "" && len(r.Output) == 0 }

// resultValue is the result as one JSON value, with the body in its place; of
// bytes that are no text it says how many there are.
func resultValue(result *Result) any {
	if result.IsValue {
		return result.Value
	}
	value := result.Output
	if result.BodyKey != "" {
		value = maps.Clone(value)
		if value == nil {
			value = make(map[string]any, 1)
		}
		value[result.BodyKey] = result.BodyText
		if result.BodyBinary {
			value[result.BodyKey] = fmt.Sprintf("[%d bytes, no text]", result.BodySize)
		}
	}
	if value == nil {
		value = map[string]any{}
	}
	return value
}
