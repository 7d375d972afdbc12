package working

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/guard"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// Figures are what the dashboard shows of the prompt and the session.
type Figures struct {
	// Pressure is the share of the window that the prompt takes, Budget how many tokens
	// are left of it.
	Pressure float64
	Budget   int
	// Errors are the failed steps among the last ones, Depth how many parents the agent
	// has above it.
	Errors, Depth int
}

// Limits of what is shown.
const (
	// maxShownChars of a line that may be long.
	maxShownChars  = 200
	shownCitations = 5
	shownDecisions = 5
)

// Text is how prompts show it, in at most MaxTokens tokens if that is possible: events
// that need more room become one of each type, or of each urgency. The goal and the plan
// are left out where a prompt shows them elsewhere. The words of others are guarded.
func (w *Working) Text(f Figures, planned bool, count func(string) int) string {
	shown := ""
	for level := range densest + 1 {
		if shown = w.render(f, planned, level); count(shown) <= MaxTokens {
			break
		}
	}
	return shown
}

// densest is the last way of grouping events.
const densest = 2

func (w *Working) render(f Figures, planned bool, level int) string {
	sections := []string{w.dashboard(f)}
	add := func(title string, lines []string) {
		if len(lines) > 0 {
			sections = append(sections, "## "+title+"\n"+strings.Join(lines, "\n"))
		}
	}
	if planned {
		add("Current Plan", w.planLines())
	}
	add("Pending Events", eventLines(w.pendingAt(level)))
	add("Active Risks", eventLines(risksAt(w.Risks(), level)))
	questions := make([]string, len(w.Questions))
	for i, q := range w.Questions {
		questions[i] = "- " + quoted(q)
	}
	add("Active Questions", questions)
	var evidence []string
	for i := range w.Evidence {
		e := &w.Evidence[i]
		evidence = append(evidence, fmt.Sprintf("### [%s] %s\n%s", quoted(e.Source), quoted(e.Title), body(e.Content)))
	}
	add("Knowledge Evidence", evidence)
	var citations []string
	for _, c := range w.Citations[max(len(w.Citations)-shownCitations, 0):] {
		citations = append(citations, "- "+quoted(c))
	}
	add("Knowledge Citations", citations)
	if strings.TrimSpace(w.Scratchpad) != "" {
		add("Scratchpad", []string{body(w.Scratchpad)})
	}
	return strings.Join(sections, "\n\n")
}

// dashboard is the first section.
func (w *Working) dashboard(f Figures) string {
	var b strings.Builder
	b.WriteString("## Dashboard")
	fmt.Fprintf(&b, "\n- Context Pressure (ρ): %.2f", min(f.Pressure, 1))
	fmt.Fprintf(&b, "\n- Token Budget: %d", max(f.Budget, 0))
	fmt.Fprintf(&b, "\n- Goal Progress: %s", guard.Inline(w.ShownProgress()))
	fmt.Fprintf(&b, "\n- Error Count: %d", f.Errors)
	fmt.Fprintf(&b, "\n- Depth: %d", f.Depth)
	if !w.Heartbeat.IsZero() {
		fmt.Fprintf(&b, "\n- Last Heartbeat: %s", Stamp(w.Heartbeat))
	}
	if w.Interrupt() {
		b.WriteString("\n**INTERRUPT REQUESTED**")
	}
	return b.String()
}

// Stamp is a time as prompts show it; empty for none.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// ShownProgress is what the agent says of how far it is, or its goal as long as it said
// nothing.
func (w *Working) ShownProgress() string {
	if w.Progress != "" {
		return text.OneLine(w.Progress)
	}
	goal, cut := text.OneLineHead(w.Goal, maxShownChars)
	if cut {
		goal += text.Ellipsis
	}
	return strings.TrimRight("Goal: "+goal, " ")
}

func (w *Working) planLines() []string {
	lines := make([]string, len(w.Plan))
	for i, item := range w.Plan {
		status := ""
		if item.Status != Pending {
			status = "[" + item.Status.String() + "] "
		}
		lines[i] = fmt.Sprintf("%d. %s%s", i+1, status, quoted(item.Text))
	}
	return lines
}

// pendingAt are the events that wait, more of them as one at each level.
func (w *Working) pendingAt(level int) []Waiting {
	switch level {
	case 0:
		return w.Waiting()
	case 1:
		return criticalFirst(grouped(w.Events, 1, func(e Event) string { return e.Type }))
	}
	return criticalFirst(grouped(w.Events, 1, func(e Event) string { return e.Urgency.String() }))
}

func risksAt(risks []Event, level int) []Waiting {
	over := math.MaxInt
	if level > 0 {
		over = 1
	}
	return criticalFirst(grouped(risks, over, func(e Event) string {
		if level == 1 {
			return e.Type
		}
		return e.Urgency.String()
	}))
}

func eventLines(events []Waiting) []string {
	lines := make([]string, len(events))
	for i := range events {
		lines[i] = fmt.Sprintf("- [%s] %s", events[i].Urgency, quoted(events[i].Summary))
	}
	return lines
}

func groupSummary(n int, kind string) string { return fmt.Sprintf("%d %s events", n, kind) }

// quoted are words of others on one line, behind words of the prompt's own.
func quoted(s string) string { return guard.Inline(text.OneLine(s)) }

// body returns a text of others on separate lines, none of which looks like a section.
func body(s string) string {
	lines := strings.Split(guard.Text(strings.TrimSpace(s)), "\n")
	for i, line := range lines {
		if begins := strings.TrimSpace(line); strings.HasPrefix(begins, "#") || strings.HasPrefix(begins, "**INTERRUPT") {
			lines[i] = guard.Mark + line
		}
	}
	return strings.Join(lines, "\n")
}
