package hooks

import (
	"bytes"
	"encoding/json"
	"strings"
)

// gave are the members of what hosts' own tools give that a model reads. Around them stand
// copies of what the tool was given, counts and flags.
type gave struct {
	// Stdout and Stderr are of a command.
	Stdout, Stderr *string
	// File is a file that was read.
	File *struct{ Content *string }
	// StructuredPatch is how a file was changed.
	StructuredPatch *[]struct {
		Lines []string `json:"lines"`
	}
	// Content are the lines that a search found, or else Filenames the files.
	Content   json.RawMessage
	Filenames *[]string
	// Result is what was read of a page, in some time.
	Result     *string
	DurationMs *float64
	// NewTodos is a list of tasks as the tool was given it.
	NewTodos *[]any
}

// asResult is what a tool gave. The text that a model reads is taken out of its JSON, so that
// it can be read line by line.
func asResult(given json.RawMessage) json.RawMessage {
	given = bytes.TrimSpace(given)
	if string(given) == "null" {
		return nil
	}
	var g gave
	if len(given) == 0 || given[0] != '{' || json.Unmarshal(given, &g) != nil {
		return given
	}
	var found string
	switch {
	case g.Stdout != nil:
		text := *g.Stdout
		if g.Stderr != nil && *g.Stderr != "" {
			text = strings.TrimRight(text, "\n") + "\n[stderr]\n" + *g.Stderr
		}
		return textResult(text)
	case g.File != nil && g.File.Content != nil:
		return textResult(*g.File.Content)
	case g.StructuredPatch != nil:
		var lines []string
		for _, hunk := range *g.StructuredPatch {
			lines = append(lines, hunk.Lines...)
		}
		return textResult(strings.Join(lines, "\n"))
	case g.Filenames != nil && json.Unmarshal(g.Content, &found) == nil && found != "":
		return textResult(found)
	case g.Filenames != nil:
		return textResult(strings.Join(*g.Filenames, "\n"))
	case g.Result != nil && g.DurationMs != nil:
		return textResult(*g.Result)
	case g.NewTodos != nil:
		return nil
	}
	return given
}

func textResult(text string) json.RawMessage {
	whole, _ := json.Marshal(text) //nolint:errchkjson // a string
	return whole
}
