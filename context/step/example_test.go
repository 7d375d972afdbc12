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
	fmt.Println(step.Compact(s).Summary)
	// Output:
	// Read notes.txt (1900 bytes, text). Saved to workspace/outputs/read_001.txt
	// Use fs:read_file to retrieve if needed.
	// Read notes.txt (1.9KB)
}
