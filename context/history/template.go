package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/step"
)

// ErrTemplate: a template names a value that no step has.
var ErrTemplate = errors.New("history: unknown placeholder in a template")

// Templates make one line of a step: a text with placeholders in braces for
// each tool by its registered name. They never change once made.
type Templates struct{ byTool map[string]string }

// DesignTemplates are the short lines with the most figures.
func DesignTemplates() Templates {
	return Templates{map[string]string{
		"fs:read_file":     "Read {path} ({size})",
		"fs:write_file":    "Wrote {path} ({bytes} bytes)",
		"fs:list_dir":      "Listed {path} ({count} items)",
		"web:search":       "Searched '{query}' → {count} results",
		"browser:navigate": "Visited {url}",
		"system:shell":     "Ran `{command}` → exit {code}",
		"weather:get":      "Checked weather for {location}",
	}}
}

// ReductionTemplates say less of a write and put exit codes into brackets.
func ReductionTemplates() Templates {
	t := DesignTemplates().byTool
	t["fs:write_file"] = "Wrote {path}"
	t["system:shell"] = "Ran `{command}` (exit {exit_code})"
	return Templates{t}
}

// With returns the templates with some of them added or replaced. A
// placeholder that is none is an ErrTemplate.
func (t Templates) With(own map[string]string) (Templates, error) {
	all := maps.Clone(t.byTool)
	for _, tool := range slices.Sorted(maps.Keys(own)) {
		for _, name := range placeholder.FindAllString(own[tool], -1) {
			if _, known := placeholders[strings.Trim(name, "{}")]; !known {
				return Templates{}, fmt.Errorf("%w: %s of %s", ErrTemplate, name, tool)
			}
		}
		all[tool] = own[tool]
	}
	return Templates{all}, nil
}

var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// placeholders are the names that a template may have, and where the value is
// found.
var placeholders = map[string]func(v values) (string, bool){
	"path":      func(v values) (string, bool) { return v.text("path") },
	"query":     func(v values) (string, bool) { return v.text("query") },
	"command":   func(v values) (string, bool) { return v.text("command") },
	"location":  func(v values) (string, bool) { return v.text("location") },
	"url":       values.url,
	"size":      values.size,
	"bytes":     func(v values) (string, bool) { return v.number("bytes") },
	"count":     func(v values) (string, bool) { return v.number("count") },
	"files":     func(v values) (string, bool) { return v.number("files") },
	"dirs":      func(v values) (string, bool) { return v.number("dirs") },
	"lines":     func(v values) (string, bool) { return v.number("lines") },
	"status":    func(v values) (string, bool) { return v.number("status") },
	"code":      values.code,
	"exit_code": values.code,
	"tool_name": func(v values) (string, bool) { return v.tool, true },
	"args":      values.all,
}

// values are a step's arguments and figures.
type values struct {
	tool      string
	args      map[string]any
	figures   map[string]any
	canonical string
}

func valuesOf(s step.Step) values {
	v := values{tool: s.ToolName}
	args, _ := step.DecodeJSON(s.MinimalArgs)
	v.args, _ = args.(map[string]any)
	figures, _ := step.DecodeJSON(s.Metadata)
	v.figures, _ = figures.(map[string]any)
	v.canonical = string(step.CanonicalJSON(args))
	return v
}

func (v values) text(name string) (string, bool) {
	text, ok := v.args[name].(string)
	return text, ok
}

// number is a figure, or an argument of that name.
func (v values) number(name string) (string, bool) {
	for _, from := range []map[string]any{v.figures, v.args} {
		if n, ok := from[name].(json.Number); ok {
			return n.String(), true
		}
	}
	return "", false
}

func (v values) code() (string, bool) {
	if code, ok := v.number("exit_code"); ok {
		return code, true
	}
	return v.number("code")
}

// url leaves out the scheme.
func (v values) url() (string, bool) {
	text, ok := v.text("url")
	if _, rest, found := strings.Cut(text, "://"); found {
		text = rest
	}
	return text, ok
}

func (v values) size() (string, bool) {
	for _, name := range []string{"size", "bytes"} {
		if text, ok := v.number(name); ok {
			if n, err := json.Number(text).Int64(); err == nil {
				return step.HumanSize(n), true
			}
		}
	}
	return "", false
}

func (v values) all() (string, bool) {
	text, _ := step.CutChars(v.canonical, compactArgsChars)
	return text, true
}

// Cuts of compact lines, in characters.
const (
	compactErrorChars = 100
	compactArgsChars  = 200
)

// anyTool is the template of tools without one, and of steps that lack a value.
const anyTool = "{tool_name}({args})"

// Compact returns a step's line under its id. It is pure: the same step gives
// the same line, whatever came before. A failed step says how it failed,
// except that of a shell command, whose exit code does.
func (t Templates) Compact(s step.Step) step.CompactStep {
	return step.CompactStep{ID: s.ID(), Summary: step.OneLine(t.summary(s))}
}

func (t Templates) summary(s step.Step) string {
	v := valuesOf(s)
	if s.Outcome == step.Failed && s.ToolName != "system:shell" {
		line, _ := step.CutChars(step.OneLine("✗ "+s.ToolName+" failed: "+s.Error), compactErrorChars)
		return line
	}
	if template, ok := t.byTool[s.ToolName]; ok && s.Outcome != step.Unknown {
		if text, complete := v.fill(template); complete {
			return text
		}
	}
	text, _ := v.fill(anyTool)
	return text
}

// fill puts values in the place of their names; complete is false when the
// step lacks one.
func (v values) fill(template string) (text string, complete bool) {
	complete = true
	text = placeholder.ReplaceAllStringFunc(template, func(name string) string {
		find, known := placeholders[strings.Trim(name, "{}")]
		if !known {
			return name
		}
		value, ok := find(v)
		complete = complete && ok
		return value
	})
	return text, complete
}
