package inject_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject/playbook"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/context/working"
)

// overfull is a scene whose every part is over its cap, but the system prompt and the
// tools, which are never cut and stand just within theirs. The caller adds more.
func overfull(tb testing.TB) inject.Inputs {
	tb.Helper()
	counter, err := tokens.New(nil)
	if err != nil {
		tb.Fatal(err)
	}
	count := func(s string) int {
		n, err := counter.Count("gpt-4o", s)
		if err != nil {
			tb.Fatal(err)
		}
		return n.Tokens
	}
	prose := func(lines int) string {
		var b strings.Builder
		for i := range lines {
			fmt.Fprintf(&b, "Line %d of a text that says what the agent has to know of src/part_%d.go.\n", i, i)
		}
		return b.String()
	}
	long := prose(400)
	s := scene{
		System: inject.Lines(long, systemTokens, count), Goal: strings.ReplaceAll(prose(30), "\n", " "),
		Skills: []settings.Skill{{Name: "a", Text: long}}, Active: []string{"a"},
	}
	for i := range 10 {
		s.FewShot = append(s.FewShot, settings.Example{Input: prose(3), Output: prose(3)})
		s.Memories = append(s.Memories, prose(40))
		s.Knowledge = append(s.Knowledge, inject.Snippet{Title: "t", Type: "doc", Source: "s.md", Content: long, Score: 1})
		s.Failures = append(s.Failures, inject.Failure{Tool: "code:grep", Message: prose(3), Recovery: prose(3)})
		s.Injections = append(s.Injections, inject.Injection{Name: fmt.Sprint("own", i), Phase: inject.Phase(1 + i%3), Priority: 50, Tag: "own", Text: long})
	}
	for i := range working.MaxItems {
		s.Plan = append(s.Plan, working.Item{Text: prose(1), Status: working.Status(i % 4)})
	}
	s.Playbooks = []playbook.Found{{Score: 0.9, ChangeTime: today}}
	s.Playbooks[0].Status, s.Playbooks[0].Description = playbook.Approved, prose(2)
	for len(s.Tools) == 0 || count(inject.Tools(s.Tools, 0).Text) < 2900 {
		s.Tools = append(s.Tools, tokens.ToolDefinition{Name: fmt.Sprint("tool", len(s.Tools)), Description: prose(2)})
	}
	in := s.inputs()
	in.Count = count
	return in
}

const systemTokens = 2000

// In the worst case of all caps, what is no message of the history takes at most 12,000
// tokens, and every part keeps its cap.
func TestWorstCase(t *testing.T) {
	// I20, Q13
	in := overfull(t)
	p := inject.Prepare(in)
	if p.Tokens > inject.DefaultTotal || p.Tokens < inject.DefaultTotal-200 {
		t.Errorf("all take %d tokens, of %d", p.Tokens, p.Limit)
	}
	whole := ""
	for _, phase := range []inject.Phase{inject.System, inject.UserContext, inject.Runtime} {
		whole += p.Text(phase) + "\n\n"
		for _, m := range p.Messages(phase) {
			whole += m.Content + "\n\n"
		}
	}
	if n := in.Count(whole); n > inject.DefaultTotal {
		t.Errorf("together they have %d tokens", n)
	}
	builtIn := 0
	for _, piece := range p.Pieces {
		if limit := in.Settings.Cap(piece.Name); limit > 0 {
			builtIn += limit
			if piece.Name == settings.SkillTexts {
				limit += inject.MaxActiveTokens + 4 // the active ones stand beside the list
			}
			if piece.After > limit || piece.After == 0 && piece.Reason != inject.OverTotal {
				t.Errorf("%s has %d tokens of %d", piece.Name, piece.After, limit)
			}
		}
	}
	if builtIn != 8900 {
		t.Errorf("the caps are %d together, want 8900", builtIn)
	}
}

func BenchmarkPrepare(b *testing.B) {
	in := overfull(b)
	in.Injections = in.Injections[:7] // without the caller's
	size := 0
	for b.Loop() {
		p := inject.Prepare(in)
		size = len(p.Text(inject.System)) + len(p.Text(inject.UserContext)) + len(p.Text(inject.Runtime))
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(size)*1024, "µs/KiB")
}
