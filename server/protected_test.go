package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// compact folds a session's history as far as it goes.
func (c caller) compact() *loombridgev1.CompactHistoryResponse {
	c.tb.Helper()
	got, err := c.Context.CompactHistory(c.tb.Context(), &loombridgev1.CompactHistoryRequest{AgentId: c.id, SessionId: "s", Model: "gpt-4o"})
	must(c.tb, err)
	return got
}

// What is pinned stays as it is, whatever becomes of what stands around it: a step
// in presets, however long ago it was, and a step or a message in the ledger.
//
// P03
func TestPinnedStaysWhole(t *testing.T) {
	s := servertest.Start(t, nil)
	rule, whole := "Never touch the table of invoices.\n", strings.Repeat("a line of the contract\n", 100)
	for _, policy := range []string{"design", "reduction", "chat", "ledger"} {
		c := as(t, s, policy)
		c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: strings.Repeat(rule, 20), Observation: true, Pinned: true})
		for i := range 20 {
			c.record(&loombridgev1.RecordStepRequest{
				ToolName: "db:query", Success: true, Pinned: i == 2, Thought: fmt.Sprintf("I look at part %d.", i),
				ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: fmt.Sprintf(`{"part":%d}`, i)},
				OutputForm:    &loombridgev1.RecordStepRequest_OutputJson{OutputJson: quoted(t, fmt.Sprint("part ", i, "\n")+whole)},
			})
		}
		settings := literally(policy)
		if policy == "ledger" {
			settings = nil
			if batch := c.compact().GetBatch(); len(batch.GetRefs()) == 0 {
				t.Fatalf("nothing was folded: %v", batch)
			}
		}
		text := shownIn(c.prompt(settings))
		for what, n := range map[string]int{"part 2\n" + whole: 1, "part 1\n" + whole: 0, strings.Repeat(rule, 20): 1} {
			if got := strings.Count(text, what); got != n {
				t.Errorf("%s: %.20q... stands there %d times, want %d:\n%.5000s", policy, what, got, n, text)
			}
		}
	}
}

// A pinned step stays in full in the text of a history as well, and the result of a
// pinned call of a model in prompts that only fit when results are left out.
//
// P03
func TestPinnedStaysWholeInSmallPrompts(t *testing.T) {
	s := servertest.Start(t, nil)
	whole := strings.Repeat("a line of the contract\n", 100)
	for _, preset := range []string{"design", "reduction", "chat"} {
		c := as(t, s, preset)
		for i := range 8 {
			id, args := fmt.Sprint("call-", i), fmt.Sprintf(`{"part":%d}`, i)
			c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT, ToolCalls: []*loombridgev1.ModelToolCall{{Id: id, Name: "db_query", ArgumentsJson: args}}})
			c.record(&loombridgev1.RecordStepRequest{
				ToolName: "db:query", CallId: id, Success: true, Pinned: i == 6,
				ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: args},
				OutputForm:    &loombridgev1.RecordStepRequest_OutputJson{OutputJson: quoted(t, fmt.Sprint("part ", i, "\n")+whole)},
			})
		}
		for _, style := range []loombridgev1.HistoryStyle{design, reduction} {
			got, err := s.Context.CompactHistory(t.Context(), &loombridgev1.CompactHistoryRequest{AgentId: c.id, SessionId: "s", Style: style, KeepRecent: 1})
			must(t, err)
			if !strings.Contains(got.GetText(), "Step 7:") || strings.Contains(got.GetText(), "Step 6:") {
				t.Errorf("%s, %v: the text is\n%s", preset, style, got.GetText())
			}
		}
		size := c.prompt(literally(preset)).GetTokens().GetTokens()
		for budget := size; budget > size-1500; budget -= 100 {
			prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
				AgentId: c.id, SessionId: "s", WithoutTools: true, MaxTokens: budget, DryRun: true, History: literally(preset),
			})
			if err != nil { // it fits no more
				break
			}
			if text := shownIn(prompt); !strings.Contains(text, "part 6\n"+whole) {
				t.Errorf("%s: with %d of %d tokens it is left out:\n%s", preset, budget, size, text)
			}
		}
	}
}

// A turn is open as long as one of its calls has no result, or the message that asks
// for its calls has not come. Nothing folds it before, nor is a part of it lines.
//
// P03
func TestOpenTurnStaysWhole(t *testing.T) {
	s := servertest.Start(t, nil)
	rows := func(what string) string { // no two lines of which are the same
		var b strings.Builder
		for row := range 15 {
			fmt.Fprintf(&b, "row %d of %s\n", row, what)
		}
		return b.String()
	}
	for _, policy := range []string{"ledger", "design", "reduction"} {
		c := as(t, s, policy)
		settings := literally(policy)
		check := func(when string, open bool) {
			t.Helper()
			if policy == "ledger" {
				settings = nil
				c.compact()
			}
			text := shownIn(c.prompt(settings))
			for _, what := range []string{"call 1", "call 6"} {
				if got := strings.Contains(text, rows(what)); got != open {
					t.Errorf("%s, %s: the rows of %s are shown: %v", policy, when, what, got)
				}
			}
			if strings.Contains(text, rows("part 1")) {
				t.Errorf("%s, %s: what is long past is shown", policy, when)
			}
		}
		query := func(what, turn, id string) {
			c.record(&loombridgev1.RecordStepRequest{
				ToolName: "db:query", Success: true, TurnId: turn, CallId: id,
				ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: fmt.Sprintf(`{"table":%q}`, what)},
				OutputForm:    &loombridgev1.RecordStepRequest_OutputJson{OutputJson: quoted(t, rows(what))},
			})
		}
		for i := range 10 {
			query(fmt.Sprint("part ", i), "", "")
		}
		message := &loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT}
		for i := range 6 {
			id := fmt.Sprint("call ", i+1)
			query(id, "turn", id)
			message.ToolCalls = append(message.ToolCalls, &loombridgev1.ModelToolCall{Id: id, Name: "db_query", ArgumentsJson: fmt.Sprintf(`{"table":%q}`, id)})
		}
		check("before the message", true)
		message.ToolCalls = append(message.ToolCalls, &loombridgev1.ModelToolCall{Id: "call 7", Name: "db_query", ArgumentsJson: `{}`})
		c.say(message)
		check("before the last result", true)
		query("call 7", "turn", "call 7")
		for i := range 5 {
			query(fmt.Sprint("later ", i), "", "")
		}
		check("later", false)
	}
}

// A section of older steps that is too long says how many there were; the last ten
// failures among them keep their lines.
//
// P03
func TestLastFailuresKeepTheirLines(t *testing.T) {
	c := as(t, servertest.Start(t, nil), agent)
	for i := range 60 {
		if i%5 == 0 {
			c.fail("db:query", `{}`, fmt.Sprintf("table %d is locked", i/5+1))
		} else {
			c.report("fs:read_file", fmt.Sprintf(`{"path":"some/rather/long/path/of/file_%d.txt"}`, i), `{"content":"short"}`)
		}
	}
	text := shownIn(c.prompt(literally("reduction")))
	if strings.Contains(text, "Read some/rather/long/path/of/file_1.txt") {
		t.Fatalf("the section is not too long:\n%s", text)
	}
	for n := 1; n <= 12; n++ {
		if got := strings.Contains(text, fmt.Sprintf("✗ db:query failed: table %d is locked\n", n)); got != (n > 2) {
			t.Errorf("failure %d of 12 is shown: %v:\n%s", n, got, text)
		}
	}
}
