package native

import (
	"context"
	"encoding/json"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// shellSchema is that of loom.v1's shell.
const shellSchema = `{"type":"object","properties":{
"command":{"type":"string","description":"Program to run"}},
"required":["command"]}`

// maxCommandBytes bounds what an error repeats of a command.
const maxCommandBytes = 256

// Absent gives the tool that answers for one of loom.v1 that is not here, or nil.
// Lists do not show it. It is safe for concurrent use.
//
// There is one, system:shell, under either of its names: it refuses every command
// with the words of loom.v1's core. loom-py looks for them: it then asks the person
// in front of it, and runs the command itself. That there is no such tool would
// tell it to give up.
func Absent() func(name string) *tools.Tool {
	shell, err := tools.New(tools.Descriptor{
		Name:        "system:shell",
		Description: "Run a program. It is not served: every command is refused.",
		Schema:      json.RawMessage(shellSchema),
		Level:       tools.LevelFunction,
		Category:    "shell",
		ResultKind:  "json",
	}, refuseCommand)
	if err != nil {
		panic(err) // the descriptor is a constant, and a test makes it
	}
	return func(name string) *tools.Tool {
		if name == "system:shell" || name == "system_shell" {
			return shell
		}
		return nil
	}
}

func refuseCommand(_ context.Context, c tools.Input) (tools.Output, error) {
	command := text.Cut(c.String("command", ""), maxCommandBytes, text.Ellipsis)
	return tools.Output{}, tools.Errorf(tools.PermissionDenied, "Permission denied: Command '%s' is not allowed", command)
}
