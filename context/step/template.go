package step

import (
	"fmt"
	"maps"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// Templates make one line of a step: a text with placeholders in braces for
// each tool. They never change once made; the zero value has none.
type Templates struct {
	byTool map[string]template // by the name with _ for the colon
	own    map[string]bool     // tools whose template came from outside the package
}

// DesignTemplates are the short lines with the most figures: the default.
func DesignTemplates() Templates {
	return builtinTemplates(map[string]string{
		ToolReadFile:  "Read {path} ({size})",
		ToolWriteFile: "Wrote {path} ({bytes} bytes)",
		ToolListDir:   "Listed {path} ({count} items)",
		ToolSearchWeb: "Searched '{query}' → {count} results",
		ToolNavigate:  "Visited {url}",
		ToolShell:     "Ran `{command}` → exit {code}",
		ToolWeather:   "Checked weather for {location}",
	})
}

// ReductionTemplates say less of a write and put exit codes into brackets.
func ReductionTemplates() Templates {
	t := DesignTemplates()
	maps.Copy(t.byTool, builtinTemplates(map[string]string{
		ToolWriteFile: "Wrote {path}",
		ToolShell:     "Ran `{command}` (exit {exit_code})",
	}).byTool)
	return t
}

func builtinTemplates(lines map[string]string) Templates {
	t := Templates{byTool: make(map[string]template, len(lines))}
	for tool, line := range lines {
		made, err := parseTemplate(line, compactNames())
		if err != nil {
			panic(err) // the lines are part of the program, and a test reads them
		}
		t.byTool[ruleName(tool)] = made
	}
	return t
}

// Empty reports whether there are no templates.
func (t Templates) Empty() bool { return len(t.byTool) == 0 }

// Owns reports whether a tool's line is not one of the package's own.
func (t Templates) Owns(tool string) bool { return t.own[ruleName(tool)] }

// Over returns the templates of t and, for tools that t lacks, the ones of under.
func (t Templates) Over(under Templates) Templates {
	all := Templates{byTool: maps.Clone(under.byTool), own: maps.Clone(under.own)}
	if all.byTool == nil {
		all.byTool = make(map[string]template, len(t.byTool))
	}
	if all.own == nil {
		all.own = make(map[string]bool, len(t.own))
	}
	for tool, line := range t.byTool {
		all.byTool[tool] = line
		delete(all.own, tool)
	}
	maps.Copy(all.own, t.own)
	return all
}

// compactNames are the placeholders that every line may have, in addition to the arguments
// and figures of its tool.
func compactNames() map[string]bool {
	known := make(map[string]bool)
	for _, name := range []string{
		"tool", "tool_name", "args", "path", "query", "command", "location", "url",
		"size", "bytes", "count", "files", "dirs", "lines", "status", "code", "exit_code",
	} {
		known[name] = true
	}
	return known
}

// Templates returns the lines of older steps that the rules give themselves.
func (r Rules) Templates() Templates {
	t := Templates{byTool: make(map[string]template), own: make(map[string]bool)}
	for tool, rule := range r.byTool {
		if rule.compact != nil {
			t.byTool[tool], t.own[tool] = rule.compact, true
		}
	}
	return t
}

// compactLine reads the line of a table for older steps. All tools without a rule
// have one line, which is no template.
func (t table) compactLine(name string, made *rule) (err error) {
	line := deref(t.Compact)
	switch {
	case len(line) > maxRuleText:
		return fmt.Errorf("compact is longer than %d bytes", maxRuleText)
	case line != "" && name == otherTools:
		return fmt.Errorf("compact: older steps of tools without one are always {tool}({args})")
	}
	known := made.placeholders()
	maps.Copy(known, compactNames())
	delete(known, "text") // a step does not keep it
	if made.compact, err = parseTemplate(line, known); err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	return nil
}

// values are a step's arguments and figures.
type values struct {
	tool          string
	args, figures map[string]any
}

func valuesOf(s Step) values {
	v := values{tool: s.ToolName}
	args, _ := text.DecodeJSON(s.MinimalArgs)
	v.args, _ = args.(map[string]any)
	figures, _ := text.DecodeJSON(s.Metadata)
	v.figures, _ = figures.(map[string]any)
	return v
}

// fill puts values in the place of their names; complete is false when the step
// lacks one.
func (v values) fill(line template) (text string, complete bool) {
	complete = true
	text = line.fill(func(name string) string {
		value, ok := v.find(name)
		complete = complete && ok
		return value
	})
	return text, complete
}

// find returns the value of a placeholder.
func (v values) find(name string) (string, bool) {
	switch name {
	case "tool", "tool_name":
		return v.tool, true
	case "args":
		return v.allArgs(), true
	case "path":
		if v.args[name] == nil && v.tool == ToolListDir {
			return ".", true
		}
	case "size", "human_size":
		return v.size()
	case "url", "site":
		s, ok := v.args["url"].(string)
		return text.Head(withoutScheme(s), MaxPathBytes), ok
	case "short":
		return shortCommand(Call{Tool: v.tool, Args: v.args}), true
	case "code":
		name = "exit_code"
	}
	for _, from := range []map[string]any{v.figures, v.args} {
		if value, ok := from[name]; ok && value != nil {
			return plainText(value), true
		}
	}
	return "", false
}

// size is the result's, for people.
func (v values) size() (string, bool) {
	for _, from := range []map[string]any{v.figures, v.args} {
		for _, name := range []string{"size", "bytes"} {
			if n, ok := wholeNumber(from[name]); ok {
				return text.HumanSize(n), true
			}
		}
	}
	return "", false
}

func (v values) allArgs() string {
	args := v.args
	if args == nil {
		args = map[string]any{}
	}
	s, _ := text.HeadChars(string(text.CanonicalJSON(args)), compactArgsChars)
	return s
}

// called is the line of the call as it was made.
func (v values) called() string { return v.tool + "(" + v.allArgs() + ")" }

// CompactStep is a step in one line.
type CompactStep struct {
	// ID is the step's id.
	ID string
	// Summary is the line, such as "Read config.json (1.2KB)".
	Summary string
}

// Cuts of compact lines, in characters.
const (
	compactErrorChars = 100
	compactArgsChars  = 200
)

// Compact returns a step's line under its id. It is pure: the same step gives
// the same line, whatever came before. A failed step says how it failed, except
// that of a shell command, whose exit code does.
func (t Templates) Compact(s Step) CompactStep {
	return CompactStep{ID: s.ID(), Summary: text.OneLine(t.summary(s))}
}

func (t Templates) summary(s Step) string {
	if s.Outcome == Failed && s.ToolName != ToolShell {
		line, _ := text.OneLineHead("✗ "+s.ToolName+" failed: "+s.Error, compactErrorChars)
		return line
	}
	v := valuesOf(s)
	if line, ok := t.byTool[ruleName(s.ToolName)]; ok && s.Outcome != Unknown {
		if body, complete := v.fill(line); complete {
			return body
		}
	}
	return v.called()
}

// Called is the line of a step without a template: the call as it was made.
func Called(s Step) CompactStep {
	v := valuesOf(s)
	return CompactStep{ID: s.ID(), Summary: text.OneLine(v.called())}
}
