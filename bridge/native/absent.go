package native

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// Absent gives the tool that answers for one of loom.v1 that is not here, or nil.
// Lists do not show it. It is safe for concurrent use.
//
// They are the two that run programs, under either of their names, for servers that run
// none: they refuse every command with the words of loom.v1's core, and say why where
// that is known. loom-py looks for the words: it then asks the person in front of it, and
// runs the command itself. That there is no such tool would tell it to give up.
func Absent(why string) func(name string) *tools.Tool {
	absent := map[string]*tools.Tool{}
	for _, name := range []string{toolShell, toolShellRun} {
		t, err := tools.New(tools.Descriptor{
			Name:        name,
			Description: "Run a program. It is not served: every command is refused.",
			Schema:      json.RawMessage(shellSchema),
			Level:       tools.LevelFunction,
			Category:    "shell",
			ResultKind:  "json",
		}, refuseCommand(why))
		if err != nil {
			panic(err) // the descriptor is a constant, and a test makes it
		}
		absent[name], absent[strings.ReplaceAll(name, ":", "_")] = t, t
	}
	return func(name string) *tools.Tool { return absent[name] }
}

func refuseCommand(why string) tools.Func {
	return func(_ context.Context, c tools.Input) (tools.Output, error) {
		failure := notAllowed(c.String("command", ""))
		if why != "" {
			failure.Message += ": " + why
		}
		return tools.Output{}, failure
	}
}
