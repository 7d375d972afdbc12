package step

import (
	"fmt"
	"strconv"
)

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

// Compact returns the step's one-line form. It is pure: the same step gives the
// same line, whatever came before.
func Compact(s Step) CompactStep { return CompactStep{ID: s.ID(), Summary: summary(s)} }

func summary(s Step) string {
	if s.Outcome == Failed {
		line, _ := oneLineCut("✗ "+s.ToolName+" failed: "+s.Error, compactErrorChars)
		return line
	}
	args, _ := DecodeJSON(s.MinimalArgs)
	object, _ := args.(map[string]any)
	path, named := object["path"].(string)
	f := decodeFigures(s.Metadata)
	switch {
	case s.Outcome == Unknown:
	case s.ToolName == ToolReadFile && named && f.Size != nil:
		return OneLine("Read " + path + " (" + HumanSize(*f.Size) + ")")
	case s.ToolName == ToolWriteFile && named && f.Bytes != nil:
		return OneLine("Wrote " + path + " (" + strconv.FormatInt(*f.Bytes, 10) + " bytes)")
	case s.ToolName == ToolListDir && f.Count != nil:
		if !named {
			path = "."
		}
		return OneLine(fmt.Sprintf("Listed %s (%d items)", path, *f.Count))
	default:
		if line, ok := webSummary(s.ToolName, object, f); ok {
			return OneLine(line)
		}
	}
	line, _ := CutChars(string(CanonicalJSON(args)), compactArgsChars)
	return OneLine(s.ToolName + "(" + line + ")")
}

// webSummary is the line of the tools that look outside the workspace, and of
// commands.
func webSummary(tool string, args map[string]any, f figures) (string, bool) {
	text := func(name string) (string, bool) {
		value, ok := args[name].(string)
		return value, ok
	}
	switch tool {
	case ToolSearchWeb:
		query, ok := text("query")
		if ok && f.Count != nil {
			return fmt.Sprintf("Searched '%s' → %d results", query, *f.Count), true
		}
	case ToolNavigate:
		url, ok := text("url")
		return "Visited " + withoutScheme(url), ok
	case ToolShell:
		command, ok := text(argCommand)
		if ok && f.ExitCode != nil {
			return fmt.Sprintf("Ran `%s` → exit %d", command, *f.ExitCode), true
		}
	case ToolWeather:
		location, ok := text("location")
		return "Checked weather for " + location, ok
	}
	return "", false
}
