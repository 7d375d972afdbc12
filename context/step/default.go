package step

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Cuts of the rule for tools without a rule of their own.
const (
	// resultChars of a result stand in its observation.
	resultChars = 200
	// argChars of a text argument are kept.
	argChars = 100
	// maxMinimalKeys bounds how many arguments are kept, so that a call with a
	// hundred thousand of them makes no large step.
	maxMinimalKeys = 64
)

// anyTool is the rule for every tool without one of its own: the beginning of
// the result, which goes into a blob when it is long.
func (r *Reducer) anyTool(c Call, out *Reduced) {
	hasBody := c.Result.BodyKey != ""
	out.Inline = r.inlineJSON(c.Result)
	out.Observation = OneLine(c.Tool + " completed")
	if !emptyResult(c.Result) {
		text, cut := oneLineCut(resultText(c.Result), resultChars)
		if cut {
			text += ellipsis
		}
		out.Observation = OneLine(c.Tool) + " → " + text
	}
	if hasBody && c.Result.BodySize >= r.opts.ResultBytes {
		out.Offload, out.OffloadExt = true, "txt"
		out.Metadata = figures{Size: &c.Result.BodySize, SHA256: c.Result.BodySHA256}.encode()
		if c.Result.BodyBinary {
			out.OffloadExt = "bin"
		}
		return
	}
	full := CanonicalJSON(resultValue(c.Result))
	size := int64(len(full))
	out.Metadata = figures{Size: &size}.encode()
	if size >= r.opts.ResultBytes {
		out.Offload, out.OffloadExt, out.OffloadBytes = true, "json", full
	}
}

// failure is the rule for every tool's failures.
func (r *Reducer) failure(c Call, out *Reduced) {
	text := headBytes(c.Result.ErrorText, MaxErrorBytes)
	line := OneLine(text)
	out.Outcome = Failed
	out.Error = text
	out.Observation = OneLine(c.Tool + " failed: " + line)
	if line != c.Result.ErrorText {
		// The line above does not show all of it.
		full := c.Tool + " failed: " + c.Result.ErrorText
		out.Inline = r.clip(full, "", int64(len(full)), true)
	}
	if text != c.Result.ErrorText {
		out.Offload, out.OffloadExt, out.OffloadBytes = true, "txt", []byte(c.Result.ErrorText)
	}
}

// emptyResult tells whether there is nothing to show.
func emptyResult(result Result) bool {
	return len(result.Output) == 0 && result.BodySize <= 0
}

// resultValue is the result as one JSON value, with the body in its place; of
// bytes that are no text it says how many there are.
func resultValue(result Result) map[string]any {
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

// resultText is the result for reading: a single text as it is, all else as
// spaced JSON.
func resultText(result Result) string {
	value := resultValue(result)
	if len(value) == 1 {
		for _, only := range value {
			if text, ok := only.(string); ok {
				return text
			}
		}
	}
	return string(SpacedJSON(value))
}

// shortArgs keeps every argument, the long ones in short.
func shortArgs(args map[string]any) map[string]any {
	keys := slices.Sorted(maps.Keys(args))
	kept := make(map[string]any, min(len(keys), maxMinimalKeys)+1)
	for _, key := range keys[:min(len(keys), maxMinimalKeys)] {
		kept[withEllipsis(key, argChars)] = shortArg(args[key])
	}
	if left := len(keys) - maxMinimalKeys; left > 0 {
		kept[ellipsis] = fmt.Sprintf("[%d more]", left)
	}
	return kept
}

func shortArg(arg any) any {
	switch arg := arg.(type) {
	case string:
		return withEllipsis(arg, argChars)
	case []any:
		return fmt.Sprintf("[%d items]", len(arg))
	case map[string]any:
		return fmt.Sprintf("{%d keys}", len(arg))
	case json.Number:
		return json.Number(headBytes(string(arg), argChars))
	}
	return arg
}

// fullArgs is all arguments, or nil when they are too long to keep.
func fullArgs(args map[string]any) json.RawMessage {
	if args == nil {
		args = map[string]any{}
	}
	text := CanonicalJSON(args)
	if len(text) > MaxArgsBytes {
		return nil
	}
	return text
}
