package history_test

import (
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/history"
)

// A log of three steps is folded but for its last turn.
func ExampleLedger() {
	words := func(text string) int { return len(strings.Fields(text)) }
	ledger := history.New(words, &history.Options{KeepTurns: 1, Header: "[Folded]"})
	var log []history.Entry
	for i, command := range []string{"grep -rn parse_date src", "pytest -q", "git diff"} {
		call := history.Call{Name: "bash", Args: fmt.Sprintf(`{"command": %q}`, command)}
		output := strings.Repeat("src/fmt/dates.py says that the function parse_date is the one to look at\n", 5)
		log = append(log, history.Entry{
			Position: uint64(i + 1), Kind: history.Step, Ref: fmt.Sprintf("%03d", i+1),
			Calls: []history.Call{call}, Output: output, Failed: command == "pytest -q",
		})
	}
	view, err := ledger.Compact(history.History{Entries: log, Now: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(view.Items[0].Fold.Text)
	fmt.Println(len(view.Items), "items")
	// Output:
	// [Folded]
	// 001 bash {"command": "grep -rn parse_date src"} → src/fmt/dates.py | function
	// 002 bash {"command": "pytest -q"} → failed
	// 2 items
}

// A preset has fixed rules. Older calls become lines where they stood; messages
// stay.
func ExampleCompactor_Show() {
	words := func(text string) int { return len(strings.Fields(text)) }
	var parts []history.Chunk
	for i, s := range shellSteps(6) {
		if i == 2 {
			parts = append(parts, history.Chunk{Tokens: 4})
		}
		parts = append(parts, history.Chunk{Acts: []history.Act{{Step: s}}, Text: true})
	}
	design, _ := history.Named("design")
	layout := history.NewCompactor(words, design).Show(history.Conversation{Parts: parts, Literal: true}, nil)
	for _, shown := range layout.Shown {
		if shown.Text == "" {
			fmt.Println("(a message)")
			continue
		}
		fmt.Println(strings.SplitAfter(shown.Text, "Recent steps:")[0])
	}
	// Output:
	// Previous steps:
	//   • Ran `go test ./...` → exit 0
	//   • Ran `go test ./...` → exit 0
	// (a message)
	// Previous steps:
	//   • Ran `go test ./...` → exit 0
	//
	// Recent steps:
}
