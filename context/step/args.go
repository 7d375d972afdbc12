package step

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/text"
)

const (
	// argChars of a text argument are kept of calls without their own rule.
	argChars = 100
	// maxMinimalKeys bounds how many arguments are kept, so that a call with a
	// hundred thousand of them makes no large step.
	maxMinimalKeys = 64
)

// minimalArgs are the arguments that the rule keeps.
func (r *rule) minimalArgs(args map[string]any) map[string]any {
	if r.args == nil {
		return shortArgs(args)
	}
	kept := make(map[string]any, len(r.args))
	for _, name := range r.args {
		switch v := args[name].(type) {
		case nil:
		case string:
			kept[name] = text.Head(v, MaxPathBytes)
		default:
			kept[name] = shortArg(v)
		}
	}
	if r.shape.failures {
		r.joinCommand(kept, args)
	}
	return kept
}

// joinCommand puts the whole command line in the place of the command.
func (r *rule) joinCommand(kept, args map[string]any) {
	if line := commandLine(args); line != "" && slices.Contains(r.args, argCommand) {
		kept[argCommand] = text.Head(line, MaxPathBytes)
	}
}

const argCommand = "command"

// commandLine is a command and its arguments, joined by one space. A command
// that is one text is taken as it is.
func commandLine(args map[string]any) string {
	return strings.Join(append(words(args[argCommand]), words(args["args"])...), " ")
}

func words(v any) []string {
	switch v := v.(type) {
	case string:
		if v != "" {
			return []string{v}
		}
	case []any:
		list := make([]string, 0, len(v))
		for _, word := range v {
			list = append(list, plainText(word))
		}
		return list
	}
	return nil
}

// commandOf is the command line of a call; empty when it has none.
func commandOf(c Call) string {
	if line := commandLine(c.Args); line != "" {
		return line
	}
	line, _ := c.Args["cmd"].(string)
	return line
}

// keepArgs fills in all arguments, and what of them has to be kept elsewhere.
func (r *rule) keepArgs(args map[string]any, out *Reduced) {
	if args == nil {
		args = map[string]any{}
	}
	content, given := args[r.keep]
	if _, isText := content.(string); isText {
		out.KeepArg = r.keep
		args = maps.Clone(args)
		delete(args, r.keep)
	}
	s := text.CanonicalJSON(args)
	switch {
	case given && r.keep != "" && out.KeepArg == "", len(s) > MaxArgsBytes:
		out.KeepArgs = true
	case r.keep != "" && string(s) == string(out.MinimalArgs):
	default:
		out.Args = s
	}
}

// shortArgs keeps every argument, the long ones in short.
func shortArgs(args map[string]any) map[string]any {
	keys := slices.Sorted(maps.Keys(args))
	kept := make(map[string]any, min(len(keys), maxMinimalKeys)+1)
	for _, key := range keys[:min(len(keys), maxMinimalKeys)] {
		kept[text.CutChars(key, argChars, text.Dots)] = shortArg(args[key])
	}
	if left := len(keys) - maxMinimalKeys; left > 0 {
		kept[text.Dots] = fmt.Sprintf("[%d more]", left)
	}
	return kept
}

func shortArg(arg any) any {
	switch arg := arg.(type) {
	case string:
		return text.CutChars(arg, argChars, text.Dots)
	case []any:
		return fmt.Sprintf("[%d items]", len(arg))
	case map[string]any:
		return fmt.Sprintf("{%d keys}", len(arg))
	case json.Number:
		return json.Number(text.Head(string(arg), argChars))
	}
	return arg
}
