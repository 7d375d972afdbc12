package inject

import (
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject/vary"
	"github.com/loom-bridge/loom-bridge/context/guard"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/context/working"
)

// maxGoalTokens bounds the line of the goal in a plan that is too long.
const maxGoalTokens = 100

// marks are how a plan marks its items.
var marks = map[working.Status]string{working.Done: "✓", working.InProgress: "→", working.Failed: "✗", working.Pending: "○"}

// Plan is the goal and the plan; nothing without a plan. If that is over its cap, the
// line of the goal is cut at maxGoalTokens, and if it still is, what is done becomes one
// line.
func Plan(goal string, plan working.Plan, forms vary.Forms, limit int, count func(string) int) Injection {
	in := Injection{
		Name: settings.Plan, Phase: Runtime, Cache: Dynamic, Priority: planPriority, MaxTokens: limit,
		Framed: true, Source: "working state",
	}
	if len(plan) == 0 {
		return in
	}
	head := ""
	if goal = text.OneLine(goal); goal != "" {
		head = "Goal: " + guard.Inline(goal) + "\n"
	}
	in.Text = head + planText(plan, forms, false)
	if limit > 0 && count(in.Text) > limit {
		if head != "" {
			head = Line(strings.TrimSuffix(head, "\n"), maxGoalTokens, count) + "\n"
		}
		in.Text = head + planText(plan, forms, false)
	}
	if limit > 0 && count(in.Text) > limit {
		in.Text = head + planText(plan, forms, true)
	}
	return in
}

// planText is a plan, with its done items in one line if folded.
func planText(plan working.Plan, forms vary.Forms, folded bool) string {
	var b strings.Builder
	done := plan.Done()
	fmt.Fprintf(&b, "Plan (%d/%d):", done, len(plan))
	if folded && done > 0 {
		fmt.Fprintf(&b, "\n%s %d done", marks[working.Done], done)
	}
	for i, item := range plan {
		if !folded || item.Status != working.Done {
			b.WriteString("\n" + forms.List.Mark(i+1) + marks[item.Status] + " " + guard.Inline(text.OneLine(item.Text)))
		}
	}
	return b.String()
}

// Working is what the agent noted, as text. It is never cut.
func Working(text string) Injection {
	return Injection{
		Name: settings.Working, Phase: Runtime, Cache: Dynamic, Priority: workingPriority, MaxTokens: working.MaxTokens,
		Text: text, Whole: true, Framed: true, Source: "working state",
	}
}

// Progress says in one line how far a plan is; nothing without a plan.
func Progress(plan working.Plan, forms vary.Forms) Injection {
	in := Injection{Name: settings.Progress, Phase: Runtime, Cache: Dynamic, Priority: progressPriority, Framed: true, Source: "working state"}
	if len(plan) > 0 {
		in.Text = forms.Label + " " + forms.Progress.Text(plan.Done(), len(plan))
	}
	return in
}

// How many failures are looked at and shown, and how much of the words of one.
const (
	ErrorWindow   = 10
	shownErrors   = 5
	maxErrorChars = 100
	errorsHead    = "Past errors:"
)

// Failure is a call that failed.
type Failure struct {
	Tool, Message string
	// Recovery is what helped, if it is known.
	Recovery string
}

// Errors are the newest most of the failures, which are in the order in which they
// happened; no more than ErrorWindow of them are looked at. What does not fit leaves, the
// oldest first.
func Errors(failures []Failure, most, limit int, count func(string) int) Injection {
	in := Injection{
		Name: settings.Errors, Phase: Runtime, Cache: Dynamic, Priority: errorPriority, MaxTokens: limit,
		Framed: true, Source: "failed calls",
	}
	shown := failures[max(len(failures)-min(most, ErrorWindow), 0):]
	for len(shown) > 0 {
		in.Text = errorsHead
		for i := range shown {
			in.Text += "\n" + shown[i].line()
		}
		if limit <= 0 || count(in.Text) <= limit || len(shown) == 1 {
			break
		}
		shown = shown[1:]
	}
	return in
}

func (f *Failure) line() string {
	line := "- " + text.OneLine(f.Tool) + ": " + shortened(f.Message)
	if recovery := shortened(f.Recovery); recovery != "" {
		line += " → " + recovery
	}
	return guard.Text(line)
}

// shortened is one line of at most maxErrorChars characters.
func shortened(s string) string {
	head, cut := text.OneLineHead(s, maxErrorChars)
	if cut {
		head, _ = text.HeadChars(head, maxErrorChars-1)
		head += text.Ellipsis
	}
	return head
}
