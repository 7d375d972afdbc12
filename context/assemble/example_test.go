package assemble_test

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

func ExampleAssembler() {
	counter, err := tokens.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var log entries
	log.say(session.Message{Role: session.User, Content: "What is in the README?"})
	log.do(step.Step{ToolName: "fs:read_file", Observation: "Read README.md (6 bytes)", Inline: "# Loom"})

	prompt, err := assemble.New(log, counter, nil).Assemble(context.Background(), assemble.Request{
		Scope: scope, Goal: "Answer the question", Model: "gpt-4o",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range prompt.Messages {
		fmt.Printf("%s: %q\n", m.Role, m.Content)
	}
	fmt.Println(prompt.Parts)
	// Output:
	// user: "What is in the README?"
	// assistant: ""
	// tool: "Read README.md (6 bytes)\n# Loom"
	// user: "Current Goal: Answer the question"
	// [{system 0} {tools 0} {history 41} {goal 10}]
}
