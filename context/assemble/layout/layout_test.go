package layout_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject/vary"
	"github.com/loom-bridge/loom-bridge/context/assemble/layout"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
)

var layouts = []settings.Layout{settings.ThreePhase, settings.TaskContext, settings.Partitioned, settings.ReAct}

func section(name string, phase inject.Phase, text string) inject.Injection {
	return inject.Injection{Name: name, Phase: phase, Text: text, Priority: inject.DefaultPriority, Framed: true}
}

// prepared arranges sections of every kind. Which of them are there is what bits say.
func prepared(bits int, position settings.Position) (*inject.Prepared, []string) {
	messages := section(settings.Messages, inject.UserContext, "")
	messages.Messages = []session.Message{{Role: session.User, Content: "<direct>"}}
	examples := section(settings.FewShots, inject.System, "")
	examples.Messages = []session.Message{{Role: session.User, Content: "<example>"}, {Role: session.Assistant, Content: "<reply>"}}
	goal := section(settings.Goal, inject.Runtime, "<goal, short>")
	goal.Last = true
	stable := section(settings.System, inject.System, "<system>")
	stable.Cache = inject.Stable
	all := []inject.Injection{
		stable, examples, section("user_profile", inject.UserContext, "<user>"), section(settings.Working, inject.UserContext, "<working>"),
		messages, section(settings.Plan, inject.Runtime, "<plan>"), section("caller", inject.Runtime, "<caller>"), goal,
	}
	shown := []string{"<system>", "<example>", "<user>", "<working>", "<direct>", "<plan>", "<caller>", "<goal, short>"}
	var some []inject.Injection
	var texts []string
	for i := range all {
		if bits>>i&1 == 1 {
			some, texts = append(some, all[i]), append(texts, shown[i])
		}
	}
	count := func(text string) int { return len(text) }
	return &inject.Prepared{Arranged: inject.Arrange(some, inject.Options{Count: count}), Forms: vary.Forms{}, Position: position}, texts
}

// whole is all text of a prompt, and the messages one by one.
func whole(t *testing.T, f *layout.Frame, last []layout.Message) string {
	t.Helper()
	var b strings.Builder
	for _, part := range [][]layout.Message{f.Before, f.After, last} {
		for _, m := range part {
			var pieces string
			for _, p := range m.Pieces {
				pieces += p.Text
			}
			switch {
			case len(m.BlocksJSON) > 0:
				if !json.Valid(m.BlocksJSON) {
					t.Errorf("blocks %s", m.BlocksJSON)
				}
				b.WriteString(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\n`, "\n").Replace(string(m.BlocksJSON)))
			case pieces != m.Content:
				t.Errorf("a message says %q, its sections %q", m.Content, pieces)
			default:
				b.WriteString(m.Content)
			}
			b.WriteString("\n")
			if len(m.Pieces) == 0 || m.Cache == 0 || m.Content == "" && len(m.BlocksJSON) == 0 {
				t.Errorf("a message of nobody, or of no class: %+v", m)
			}
			if m.Role == session.System && strings.Contains(m.Content, "<user>") {
				t.Error("what may not instruct stands in the system message")
			}
		}
	}
	return b.String()
}

// TestEverythingOnce: in every layout each section, the newest message and the goal are said
// once, and what ends a prompt stands at its end.
func TestEverythingOnce(t *testing.T) {
	t.Parallel()
	text := &session.Message{Role: session.User, Content: "<query>"}
	blocks := &session.Message{Role: session.User, BlocksJSON: json.RawMessage(`[{"type":"text","text":"<query>"},{"type":"image","data":"<x>"}]`)}
	for _, name := range layouts {
		for _, position := range []settings.Position{"", settings.Prepend, settings.Append} {
			for bits := range 1 << 8 {
				for _, goal := range []string{"", "<goal, short>", "<goal, whole: long>"} {
					for i, query := range []*session.Message{nil, text, blocks} {
						p, want := prepared(bits, position)
						f := layout.New(layout.Named(name), p, goal)
						if !f.TakesQuery() {
							query = nil
						}
						last := f.Last(query, bits&1 == 0)
						got := whole(t, &f, last)
						at := fmt.Sprintf("%s, %q, sections %08b, goal %q, query %d:\n%s", name, position, bits, goal, i, got)
						if query != nil {
							want = append(want, "<query>")
						}
						if name != settings.ThreePhase { // their goal is not that section
							want = slices.DeleteFunc(want, func(text string) bool { return text == "<goal, short>" })
						}
						ends := name == settings.ThreePhase && bits>>7&1 == 1
						if name != settings.ThreePhase && goal != "" || ends && goal == "<goal, whole: long>" {
							want = append(want, goal)
						}
						for _, text := range want {
							if n := strings.Count(got, text); n != 1 {
								t.Fatalf("%q stands %d times in %s", text, n, at)
							}
						}
						if ends && !strings.HasSuffix(strings.TrimRight(got, "\n\"}]"), "<goal, short>") && i != 2 {
							t.Fatalf("the goal does not end %s", at)
						}
					}
				}
			}
		}
	}
}
