package step_test

import (
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/step"
)

// A file was read: the step keeps one line, the content goes into a blob.
func ExampleReducer_Reduce() {
	content := strings.Repeat("one line of a file\n", 100)
	reduced := step.NewReducer(nil).Reduce(step.Call{
		Tool: step.ToolReadFile,
		Args: map[string]any{"path": "notes.txt"},
		Result: step.Result{
			BodyKey: "content", BodySize: int64(len(content)), BodyText: content,
		},
	})
	s := step.Step{
		Number: 1, ToolName: step.ToolReadFile, MinimalArgs: reduced.MinimalArgs,
		Observation: reduced.Observation, Metadata: reduced.Metadata,
		OutcomeRef: "9c41d07be2aa", OutcomePath: "workspace/outputs/read_001.txt",
	}
	fmt.Println(s.ToObservation(step.ReferenceHint))
	fmt.Println(step.DesignTemplates().Compact(s).Summary)
	// Output:
	// Read notes.txt (1900 bytes, text). Saved to workspace/outputs/read_001.txt
	// Use fs:read_file to retrieve if needed.
	// Read notes.txt (1.9KB)
}

// A tool of one's own gets a line of its own, without code.
func ExampleRules_With() {
	rules, err := step.BuiltinRules().With([]byte(`
[tools."ci:build"]
shape = "command"
args = ["target"]
observation = "Built {target}: exit {exit_code}"
offload = "text"
from_chars = 2000
kind = "tool"
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	reduced := step.NewReducer(&step.Options{Rules: rules}).Reduce(step.Call{
		Tool:   "ci:build",
		Args:   map[string]any{"target": "release", "verbose": true},
		Result: step.Result{Output: map[string]any{"stdout": "12 passed in 3.1s\n", "exit_code": 0}},
	})
	fmt.Println(reduced.Observation)
	fmt.Printf("%s\n%s", reduced.MinimalArgs, reduced.Inline)
	// Output:
	// Built release: exit 0
	// {"target":"release"}
	// exit 0
	// 12 passed in 3.1s
}
