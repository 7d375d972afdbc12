package server_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/replay"
)

// allPresets are the presets that there are; "" is the ledger.
func allPresets() []string {
	return []string{"", "design", "reduction", "task_context", "three_phase", "chat", "research", "code", "debug"}
}

// talk is a session under a preset, and what became of its prompts.
type talk struct {
	tb      testing.TB
	server  *servertest.Server
	session string
	preset  string
	budget  int32

	// asks takes the place of assemble where a run is replayed; nil is assemble.
	asks func()

	calls int
	last  []*loombridgev1.Message
	// What was counted: prompts, those that do not begin with the one before, with a
	// batch in the receipt and without, and those that were refused.
	prompts, batches, breaks, refused int
	tokens                            int32
	// onPrompt, if not nil, is shown each prompt.
	onPrompt func(p *loombridgev1.AssembleResponse)
}

// say appends messages.
func (c *talk) say(messages ...*loombridgev1.Message) {
	c.tb.Helper()
	_, err := c.server.Context.AppendMessages(c.tb.Context(), &loombridgev1.AppendMessagesRequest{
		AgentId: agent, SessionId: c.session, Messages: messages,
	})
	must(c.tb, err)
}

// ask appends the model's wish to call a tool, and returns the id of the call.
func (c *talk) ask(words, tool, args string) string {
	c.tb.Helper()
	c.calls++
	id := fmt.Sprintf("call_%d", c.calls)
	c.say(&loombridgev1.Message{
		Role: loombridgev1.Role_ROLE_ASSISTANT, Content: words,
		ToolCalls: []*loombridgev1.ModelToolCall{{Id: id, Name: tool, ArgumentsJson: args}},
	})
	return id
}

// record records what a call gave.
func (c *talk) record(id, tool, args, output string) {
	c.tb.Helper()
	_, err := c.server.Context.RecordStep(c.tb.Context(), &loombridgev1.RecordStepRequest{
		AgentId: agent, SessionId: c.session, ToolName: tool, CallId: id, Success: true,
		ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: args},
		OutputForm:    &loombridgev1.RecordStepRequest_OutputJson{OutputJson: output},
	})
	must(c.tb, err)
}

// answer appends what a call gave as a message.
func (c *talk) answer(id, text string) {
	c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_TOOL, ToolCallId: id, Content: text})
}

// assemble asks for a prompt, and compares it with the one before. One that is
// refused has to be refused with nothing folded, too.
func (c *talk) assemble() *loombridgev1.AssembleResponse {
	c.tb.Helper()
	request := &loombridgev1.AssembleRequest{
		AgentId: agent, SessionId: c.session, Goal: "the goal", MaxTokens: c.budget, WithoutTools: true,
		History: &loombridgev1.HistorySettings{Preset: c.preset},
	}
	prompt, err := c.server.Context.Assemble(c.tb.Context(), request)
	c.prompts++
	if err != nil {
		if status.Code(err) != codes.FailedPrecondition {
			c.tb.Fatal(err)
		}
		request.History, request.DryRun = &loombridgev1.HistorySettings{Policy: loombridgev1.HistoryPolicy_HISTORY_POLICY_APPEND_ONLY}, true
		if _, whole := c.server.Context.Assemble(c.tb.Context(), request); whole == nil {
			c.refused++
			c.tb.Errorf("%s %q, prompt %d is refused, but fits with nothing folded: %v", c.session, c.preset, c.prompts, err)
		}
		return nil
	}
	c.tokens = prompt.GetTokens().GetTokens()
	if c.onPrompt != nil {
		c.onPrompt(prompt)
	}
	settled := prompt.GetMessages()[:len(prompt.GetMessages())-1]
	if prompt.GetReceipt().GetBatch() != nil {
		c.batches++
	} else if !beginsWith(settled, c.last) {
		c.breaks++
		c.tb.Errorf("%s %q, prompt %d begins otherwise, but its receipt reports no batch", c.session, c.preset, c.prompts)
	}
	c.last = settled
	return prompt
}

// beginsWith reports whether messages begin with others.
func beginsWith(messages, first []*loombridgev1.Message) bool {
	if len(messages) < len(first) {
		return false
	}
	for i := range first {
		if !proto.Equal(messages[i], first[i]) {
			return false
		}
	}
	return true
}

// place is the index of the first message that holds a text, -1 for none.
func place(prompt *loombridgev1.AssembleResponse, text string) int {
	for i, m := range prompt.GetMessages() {
		all := m.GetContent()
		for _, call := range m.GetToolCalls() {
			all += call.GetArgumentsJson()
		}
		if strings.Contains(all, text) {
			return i
		}
	}
	return -1
}

// turn is one of a made-up piece of work: a file is written, the web is searched,
// a command run and a tool called, now as a step and now as a message.
func (c *talk) turn(n int) {
	c.tb.Helper()
	hit := fmt.Sprintf(`{"title":"Title %d","url":"https://example.org/%d","snippet":"%s"}`, n, n, strings.Repeat("SEARCH-HIT words ", 6))
	switch n % 5 {
	case 0:
		args := fmt.Sprintf(`{"path":"part_%d.txt","content":"%s"}`, n, strings.Repeat("WRITTEN words ", 20))
		id := c.ask("I write it down.", "fs_write_file", args)
		_, err := c.server.Bridge.Tool(c.tb.Context(), &loombridgev1.ToolRequest{
			AgentId: agent, SessionId: c.session, Name: "fs_write_file", CallId: id,
			ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: args},
		})
		must(c.tb, err)
	case 1:
		args := fmt.Sprintf(`{"query":"query %d"}`, n)
		c.record(c.ask("", "web_search", args), "web_search", args, `{"results":[`+strings.Repeat(hit+",", 7)+hit+`]}`)
	case 2:
		args := fmt.Sprintf(`{"command":"ls part_%d"}`, n)
		c.answer(c.ask("I look.", "bash", args), strings.Repeat(fmt.Sprintf("line of %d\n", n), 1+n%7*40))
	case 3:
		args := fmt.Sprintf(`{"path":"part_%d.txt","content":"WRITTEN words"}`, n)
		c.answer(c.ask("", "write_file", args), "ok")
	case 4:
		args := fmt.Sprintf(`{"key":"%d"}`, n)
		c.record("", "my:tool", args, fmt.Sprintf(`"value %d"`, n))
	}
}

// Under every preset a conversation with native calls is laid out as the ledger
// lays it out: calls by what they are, each where it stood. Prompts begin with the
// prompt before unless the receipt reports a batch; what the user corrects stands
// before the correction; what was written and what was found is gone; and nothing
// is refused that fits with nothing folded.
//
// X03, A11, A13
func TestPresetsOverConversations(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, preset := range allPresets() {
		c := &talk{tb: t, server: s, session: "made up " + preset, preset: preset, budget: 12_000}
		c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: "Do the work."})
		for n := range 100 {
			c.turn(n)
			if n%10 == 7 {
				c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: fmt.Sprintf("Correction %d", n)})
			}
			prompt := c.assemble()
			if preset == "" {
				continue
			}
			// The goal stands in the same message, but for a layout where it is the task.
			behind := 1
			if preset == "task_context" {
				behind = 2
			}
			for _, gone := range []string{"WRITTEN", "SEARCH-HIT"} {
				if preset == "three_phase" && gone == "SEARCH-HIT" {
					continue // the results of these searches are short enough to stay
				}
				if at := place(prompt, gone); at >= 0 {
					t.Fatalf("%s, turn %d: %s stands in message %d: %v", preset, n, gone, at, prompt.GetMessages()[at])
				}
			}
			if at := place(prompt, fmt.Sprintf("Correction %d", n)); n%10 == 7 && at != len(prompt.GetMessages())-behind {
				t.Errorf("%s, turn %d: the correction stands at %d of %d", preset, n, at, len(prompt.GetMessages()))
			}
		}
		c.report()
		// What the newest messages take fits, so that none is left out.
		if c.batches == 0 && preset != "task_context" || c.batches > 30 {
			t.Errorf("%q: %d batches in %d prompts", preset, c.batches, c.prompts)
		}
	}
}

// What the user says between calls divides their lines: each correction stands
// behind the calls that it corrects and before those that follow it.
//
// X03
func TestCorrectionsKeepTheirPlace(t *testing.T) {
	s := servertest.Start(t, nil)
	c := &talk{tb: t, server: s, session: "corrected", preset: "reduction"}
	for n := range 12 {
		args := fmt.Sprintf(`{"command":"make part-%02d"}`, n)
		c.record(c.ask("", "system_shell", args), "system_shell", args, `{"stdout":"done","exit_code":0}`)
		c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: fmt.Sprintf("Correction %02d", n)})
	}
	prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
		AgentId: agent, SessionId: "corrected", WithoutTools: true,
		History: &loombridgev1.HistorySettings{Preset: "reduction", Literal: new(true)},
	})
	must(t, err)
	for n := range 12 {
		made, corrected := place(prompt, fmt.Sprintf("make part-%02d", n)), place(prompt, fmt.Sprintf("Correction %02d", n))
		if made < 0 || corrected <= made || n > 0 && place(prompt, fmt.Sprintf("Correction %02d", n-1)) >= made {
			t.Errorf("call %d stands at %d, its correction at %d", n, made, corrected)
		}
	}
	if !strings.Contains(prompt.GetMessages()[0].GetContent(), "Earlier steps:\n• Ran `make part-00` (exit 0)") {
		t.Errorf("the first message is %q", prompt.GetMessages()[0].GetContent())
	}
}

// Nobody gives a budget, and the steps are tiny: a preset leaves the response its
// share as long as it can, and refuses nothing that the default budget holds.
//
// B14, X03
func TestTinyStepsUnderPresets(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, preset := range []string{"design", "reduction"} {
		c := &talk{tb: t, server: s, session: "tiny " + preset, preset: preset}
		for n := range 150 {
			id := c.ask("", "bash", fmt.Sprintf(`{"command":"ls %d"}`, n))
			c.answer(id, "ok")
			if c.assemble(); c.tokens > 4700 {
				t.Fatalf("%s: %d tokens after %d steps", preset, c.tokens, n+1)
			}
		}
		c.report()
		c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: strings.Repeat("A long wish of many words. ", 800)})
		if c.assemble(); c.tokens < 4700 || c.tokens > 8192 {
			t.Errorf("%s: %d tokens with a long wish", preset, c.tokens)
		}
	}
}

// report prints what was counted.
func (c *talk) report() {
	c.tb.Helper()
	c.tb.Logf("%-24s %4d prompts, %3d batches, %d breaks without, %d refused, %6d tokens at the end",
		c.session, c.prompts, c.batches, c.breaks, c.refused, c.tokens)
}

// Recorded runs under all presets, each with a prompt before each answer. A part of
// them by default, all with LOOM_SOAK_ROUNDS.
//
// X03
func TestPresetsOverRecordedRunsSoak(t *testing.T) {
	dir := os.Getenv("LOOM_EVAL_DATA")
	if dir == "" {
		t.Skip("LOOM_EVAL_DATA does not name the folder with recorded runs")
	}
	for _, kind := range []struct {
		name    string
		every   int // of so many runs one is taken
		prompts int // at most so many of each
		budgets []int32
	}{
		{"mini_swe_dev", 23, 40, []int32{100_000, 8_000}},
		{"tau_dev", 25, 40, []int32{100_000, 4_000}},
		{"swe_agent_demos", 7, 40, []int32{100_000, 6_000}},
	} {
		runs := MustRuns(t, filepath.Join(dir, "trajectories", kind.name+".jsonl"))
		switch {
		case os.Getenv("LOOM_SOAK_ROUNDS") != "":
			kind.every, kind.prompts = 1, 1<<20
		case testing.Short():
			kind.every, kind.prompts = len(runs), 20
		}
		for _, budget := range kind.budgets {
			for _, preset := range allPresets() {
				// A server holds what was recorded in memory.
				s := servertest.Start(t, nil)
				sum := &talk{tb: t, session: fmt.Sprintf("%s %d %s", kind.name, budget, preset)}
				for i := 0; i < len(runs); i += kind.every {
					c := &talk{tb: t, server: s, session: fmt.Sprintf("%s %d", runs[i].ID, i), preset: preset, budget: budget}
					c.replay(&runs[i], kind.prompts)
					sum.prompts, sum.batches, sum.breaks = sum.prompts+c.prompts, sum.batches+c.batches, sum.breaks+c.breaks
					sum.refused, sum.tokens = sum.refused+c.refused, sum.tokens+c.tokens
				}
				sum.report()
			}
		}
	}
}

// replay records a run, every other result as a step, and asks for a prompt before
// each of at most so many answers.
func (c *talk) replay(run *replay.Run, prompts int) {
	c.tb.Helper()
	asked := make(map[string]*loombridgev1.ModelToolCall)
	observed, acted := true, false
	for i := range run.Messages {
		observed = observed && len(run.Messages[i].Calls) == 0
	}
	for i := range run.Messages {
		m := &run.Messages[i]
		message := &loombridgev1.Message{Content: m.Text}
		switch m.Role {
		case "system":
			message.Role = loombridgev1.Role_ROLE_SYSTEM
		case "user":
			message.Role, message.Observation = loombridgev1.Role_ROLE_USER, observed && acted
		case "assistant":
			if c.asks != nil {
				c.asks()
			} else {
				c.assemble()
			}
			if c.prompts >= prompts {
				return
			}
			message.Role = loombridgev1.Role_ROLE_ASSISTANT
			for _, call := range m.Calls {
				message.ToolCalls = append(message.ToolCalls, &loombridgev1.ModelToolCall{Id: call.ID, Name: call.Name, ArgumentsJson: call.Args})
				asked[call.ID] = message.ToolCalls[len(message.ToolCalls)-1]
			}
			acted = true
		case "tool":
			if call := asked[m.CallID]; call != nil && i%4 == 1 && json.Valid([]byte(call.GetArgumentsJson())) {
				output, err := json.Marshal(m.Text)
				must(c.tb, err)
				c.record(m.CallID, call.GetName(), call.GetArgumentsJson(), string(output))
				continue
			}
			message.Role, message.ToolCallId = loombridgev1.Role_ROLE_TOOL, m.CallID
			message.Content = cmp.Or(message.GetContent(), "{}") // a call without a result stands beside the next one
		default:
			continue
		}
		if message.GetContent() == "" && len(message.GetToolCalls()) == 0 {
			continue
		}
		c.say(message)
	}
}

// When a batch comes is decided by the prices of the model: the dearer it is to read
// from the cache, the sooner. What the session or the call says of prices is
// stronger.
//
// X03
func TestPricesOfTheModelDecide(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, preset := range allPresets() {
		if preset == "task_context" {
			continue // it shows what fits, whatever that costs
		}
		first := func(model string, prices *loombridgev1.TokenPrices) int {
			c := &talk{tb: t, server: s, session: fmt.Sprint(preset, model, prices)}
			for n := range 200 {
				id := c.ask("I look at the next one.", "bash", fmt.Sprintf(`{"command":"cat part_%d"}`, n))
				c.answer(id, strings.Repeat(fmt.Sprintf("line %d of many\n", n), 30))
				prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
					AgentId: agent, SessionId: c.session, Model: model, MaxTokens: 1_000_000, WithoutTools: true,
					History: &loombridgev1.HistorySettings{Preset: preset, Prices: prices},
				})
				must(t, err)
				if batch := prompt.GetReceipt().GetBatch(); batch != nil {
					if batch.GetReason() != loombridgev1.FoldReason_FOLD_REASON_PRICE {
						t.Fatalf("%q: the batch is made by %v", preset, batch.GetReason())
					}
					return n
				}
			}
			return 200
		}
		half, tenth := first("gpt-4o", nil), first("gpt-5", nil)
		if half >= tenth || tenth == 200 {
			t.Errorf("%q: the first batch comes at step %d where cached tokens cost half, at %d where they cost a tenth", preset, half, tenth)
		}
		own := &loombridgev1.TokenPrices{Input: 1, CachedInput: 0.1, CacheWrite: 1}
		if got := first("gpt-4o", own); got != tenth {
			t.Errorf("%q: at prices of the caller's own the first batch comes at step %d, want %d", preset, got, tenth)
		}
	}
}
