package tools

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/settings"
)

// Limits of a descriptor, in bytes. They bound what one tool can add to a
// prompt and to the list of tools.
const (
	MaxNameBytes        = settings.MaxToolNameBytes
	MaxDescriptionBytes = 16 << 10
	MaxSchemaBytes      = 64 << 10
)

// The levels of a tool.
const (
	LevelFunction = 1 // listed in prompts, called by name
	LevelShell    = 2 // a shell utility
	LevelScript   = 3 // a script of the workspace
)

// Descriptor describes one tool. The slices it holds are shared: do not change
// them after the descriptor was added or listed.
type Descriptor struct {
	// Name is what to call it by, such as "fs:read_file": letters, digits and
	// the characters _ : . - /, at most MaxNameBytes.
	Name string
	// Description says what it does, for a model.
	Description string
	// Schema is the JSON Schema of the arguments object. Empty: any object.
	Schema json.RawMessage
	// Level is LevelFunction, LevelShell or LevelScript.
	Level int
	// RequiresApproval says that a person must agree to each call.
	RequiresApproval bool
	// Mutates says that the tool changes something outside the log. An intent
	// is written before such a tool runs.
	Mutates bool
	// Workspace says that the tool touches the agent's workspace, so that it runs at the
	// server that has it.
	Workspace bool
	// ByName says that prompts offer the tool only where a setting or a skill names it: most
	// agents have no use for it, or it can't work with the server's settings.
	ByName bool
	// Category groups tools in summaries: "file", "search" and others.
	Category string
	// ResultKind says how a long result is shortened: "text", "json" and others.
	ResultKind string
	// CLIEquivalents are commands a model may know the tool by.
	CLIEquivalents []string
}

// anyObject is the schema of a tool that states none.
var anyObject = json.RawMessage(`{"type":"object"}`)

// check returns a *DescriptorError for the first rule the descriptor breaks,
// the schema's own validity aside.
func (d Descriptor) check() error {
	switch {
	case !settings.IsToolName(d.Name):
		return d.problem("name", fmt.Sprintf("must be 1 to %d letters, digits or _ : . - /", MaxNameBytes))
	case len(d.Description) > MaxDescriptionBytes:
		return d.problem("description", fmt.Sprintf("is longer than %d bytes", MaxDescriptionBytes))
	case !utf8.ValidString(d.Description):
		return d.problem("description", "is not UTF-8")
	case len(d.Schema) > MaxSchemaBytes:
		return d.problem("schema", fmt.Sprintf("is longer than %d bytes", MaxSchemaBytes))
	case d.Level < LevelFunction || d.Level > LevelScript:
		return d.problem("level", fmt.Sprintf("is %d, must be %d to %d", d.Level, LevelFunction, LevelScript))
	}
	return nil
}

func (d Descriptor) problem(field, text string) *DescriptorError {
	return &DescriptorError{Name: d.Name, Field: field, Problem: text}
}
