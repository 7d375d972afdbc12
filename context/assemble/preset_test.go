package assemble_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
)

// written is in all that the talker's tools write, and nowhere else.
const written = "WRITTEN-CONTENT"

// talker grows random conversations with native calls, in blocks. At the end of a
// block no call is open.
type talker struct {
	*world
	*rand.Rand
	calls int
	said  []string // what the user said, in order
	plain bool     // nothing is pinned
}

func newTalker(tb testing.TB) *talker {
	tb.Helper()
	seed := chance.Seed(tb)
	return &talker{world: newWorld(tb), Rand: rand.New(rand.NewPCG(seed, 3))}
}

func (k *talker) words(most int) string {
	return strings.Repeat([]string{"word ", "<tag> & \"quote\"\n", "Füße 漢字 👍 ", "src/a/b.go:12 error\n"}[k.IntN(4)], k.IntN(most))
}

func (k *talker) block() {
	switch k.IntN(8) {
	case 0:
		k.user(false)
	case 1:
		k.say(text(session.Assistant, "I think "+k.words(5)))
	case 2:
		k.alone()
	case 3:
		k.observe()
	case 4:
		k.blocks()
	default:
		k.turn()
	}
}

func (k *talker) user(pinned bool) {
	words := fmt.Sprintf("wish %d: %s", len(k.said), k.words(10))
	k.said = append(k.said, words)
	m := text(session.User, words)
	m.Pinned = pinned
	k.say(m)
}

// result is what a call gave, short or long.
func (k *talker) result() string {
	return fmt.Sprintf("result %d\n", k.calls) + k.words(1+300*k.IntN(2))
}

// call is a call of a random tool.
func (k *talker) call() session.ToolCall {
	k.calls++
	c := session.ToolCall{ID: fmt.Sprint("call_", k.calls), Name: []string{"write_file", "fs_write_file", "web_search", "bash", "system_shell"}[k.IntN(5)]}
	if k.IntN(5) == 0 {
		c.ID = "call_1" // some models use the same ids again
	}
	args := map[string]any{"command": "ls " + k.words(3), "query": "q"}
	if strings.HasSuffix(c.Name, "write_file") {
		args = map[string]any{"path": fmt.Sprintf("f%d.txt", k.calls), "content": written + k.words(200)}
	}
	text, _ := json.Marshal(args)
	c.Arguments = string(text)
	return c
}

// step is a recorded call.
func (k *talker) step(c session.ToolCall, turnID string) step.Step {
	s := step.Step{
		ToolName: map[string]string{"write_file": step.ToolWriteFile, "fs_write_file": step.ToolWriteFile, "web_search": step.ToolSearchWeb}[c.Name],
		CalledAs: c.Name, CallID: c.ID, TurnID: turnID, MinimalArgs: json.RawMessage(`{"path":"f.txt"}`),
		Observation: fmt.Sprintf("Did %d", k.calls), Inline: k.result(), Pinned: !k.plain && k.IntN(20) == 0,
	}
	if s.ToolName == "" {
		s.ToolName = "bash"
	}
	if s.ToolName == step.ToolWriteFile {
		s.Inline, s.Pinned = "", false // what is pinned stays as it is
	}
	if len(s.Inline) > 500 {
		s.OutcomeRef, s.OutcomePath = "ref", fmt.Sprintf("workspace/outputs/tool_%03d.txt", k.calls)
	}
	return s
}

// turn is an assistant message with calls, whose results are steps or messages;
// some steps may come before it, and one result not at all.
func (k *talker) turn() {
	m := text(session.Assistant, k.words(4))
	for range 1 + k.IntN(3) {
		c := k.call()
		if !slices.ContainsFunc(m.ToolCalls, func(other session.ToolCall) bool { return other.ID == c.ID }) {
			m.ToolCalls = append(m.ToolCalls, c)
		}
	}
	rest := slices.Clone(m.ToolCalls)
	if k.IntN(6) == 0 {
		k.user(false)
		k.do(k.step(rest[0], ""))
		rest = rest[1:]
	}
	k.say(m)
	k.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	for i, c := range rest {
		switch {
		case i > 0 && k.IntN(6) == 0: // lost
		case k.IntN(2) == 0:
			k.say(answers(c.ID, k.result()))
		default:
			k.do(k.step(c, ""))
		}
	}
	if len(rest) > 1 || k.IntN(3) == 0 {
		k.user(!k.plain && k.IntN(4) == 0) // whatever waits, waits no longer
	}
}

// alone are steps that no message asks for.
func (k *talker) alone() {
	turn := ""
	if k.IntN(2) == 0 {
		turn = fmt.Sprint("turn ", k.calls)
	}
	for range 1 + k.IntN(3) {
		s := k.step(k.call(), turn)
		s.CallID = ""
		k.do(s)
	}
}

// observe is an action that is text, with what it gave in a message of the user.
func (k *talker) observe() {
	k.calls++
	seen := text(session.User, k.result())
	seen.Observation = true
	k.say(text(session.Assistant, "I look.\n```bash\nls -la\n```"), seen)
}

// blocks is a turn in the content blocks of a provider.
func (k *talker) blocks() {
	c := k.call()
	c.ID = fmt.Sprint("toolu_", k.calls)
	said, _ := json.Marshal([]any{
		map[string]any{"type": "thinking", "thinking": "a < b", "signature": "s"},
		map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(c.Arguments)},
	})
	got, _ := json.Marshal([]any{map[string]any{"type": "tool_result", "tool_use_id": c.ID, "content": k.result()}})
	k.say(session.Message{Role: session.Assistant, BlocksJSON: said}, session.Message{Role: session.User, BlocksJSON: got})
}

// presets are all there are.
var presets = []string{"design", "reduction", "chat", "research", "code", "debug"}

// Whatever is said and called: under every preset a prompt begins with the whole
// prompt before, unless its receipt reports a batch; a provider takes it; what the
// user said stands there word for word and in order; what tools wrote is gone; and
// none is refused that fits with nothing folded. What is remembered of earlier
// prompts changes none.
//
// X03, X05, A11
func TestPresetsOverRandomConversations(t *testing.T) {
	for _, preset := range presets {
		t.Run(preset, func(t *testing.T) {
			k := newTalker(t)
			k.request.History.Preset = preset
			before, batches := "", 0
			for n := range 50 {
				k.block()
				budget := k.budget()
				p, err := k.assembler.Assemble(t.Context(), budget)
				if err != nil {
					t.Fatalf("block %d, %d tokens: %v", n, budget.MaxTokens, err)
				}
				now := historyBytes(t, p)
				if p.Receipt.Batch != nil {
					batches++
				} else if !strings.HasPrefix(now, before) || len(now) > len(before) && before != "" && !strings.ContainsRune(`,"\`, rune(now[len(before)])) && !strings.HasSuffix(before, "[") {
					t.Fatalf("block %d: no batch is reported, but the prompt begins otherwise: %s", n, differs(before, now))
				}
				before = now
				k.check(p)
			}
			if batches == 0 || batches > 40 {
				t.Errorf("%d batches in 50 blocks", batches)
			}
		})
	}
}

// differs shows where one text begins otherwise than another.
func differs(before, now string) string {
	at := 0
	for at < len(before) && at < len(now) && before[at] == now[at] {
		at++
	}
	at = max(at-200, 0)
	return fmt.Sprintf("\n%.600s\nwas\n%.600s", now[min(at, len(now)):], before[at:])
}

// budget is a request whose budget is at least what the prompt takes with nothing
// folded.
func (k *talker) budget() assemble.Request {
	k.tb.Helper()
	r := k.request
	whole := r
	whole.DryRun, whole.MaxTokens, whole.History = true, unlimited, session.Config{Policy: session.PolicyAppendOnly}
	p, err := k.assembler.Assemble(k.tb.Context(), whole)
	if err != nil {
		k.tb.Fatal(err)
	}
	// A layout that has the goal in a message of its own takes a frame more.
	const frame = 8
	r.MaxTokens = p.Tokens.Tokens + frame + k.IntN(2)*k.IntN(2000)
	return r
}

func (k *talker) check(p assemble.Prompt) {
	k.tb.Helper()
	prompt := MustChat(k.tb, p)
	if err := checkRules(prompt.Messages); err != nil {
		k.tb.Fatal(err)
	}
	all, at := string(p.OpenAIChatJSON), 0
	for _, words := range k.said {
		quoted, _ := json.Marshal(words)
		var plain strings.Builder
		encoder := json.NewEncoder(&plain)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(words)
		// The newest message may go on behind what the user said.
		found := strings.Index(all[at:], strings.TrimSuffix(strings.TrimSpace(plain.String()), `"`))
		if found < 0 {
			k.tb.Fatalf("%s is not in the prompt, or not in its place: %.4000s", quoted, all)
		}
		at += found
	}
	if strings.Contains(all, written) {
		at := strings.Index(all, written)
		k.tb.Fatalf("what was written is in the prompt: %.400s", all[max(at-200, 0):])
	}
}

// With less room a preset says less: first results go, then lines, and each time
// the receipt says so. Messages of the user stay.
//
// B14, X03
func TestPresetsUnderABudget(t *testing.T) {
	for _, preset := range presets {
		t.Run(preset, func(t *testing.T) {
			k := newTalker(t)
			k.request.History.Preset, k.request.MaxTokens, k.plain = preset, 8000, true
			before, batches := "", 0
			for n := range 80 {
				k.turn()
				p, err := k.assembler.Assemble(t.Context(), k.request)
				if err != nil {
					t.Fatalf("block %d: %v", n, err)
				}
				if p.Tokens.Tokens > k.request.MaxTokens {
					t.Fatalf("block %d: %d tokens of %d", n, p.Tokens.Tokens, k.request.MaxTokens)
				}
				now := historyBytes(t, p)
				if p.Receipt.Batch != nil {
					batches++
				} else if !strings.HasPrefix(now, before) {
					t.Fatalf("block %d: no batch is reported, but the prompt begins otherwise", n)
				}
				before = now
				k.check(p)
			}
			if batches < 2 || batches > 55 {
				t.Errorf("%d batches in 80 blocks", batches)
			}
		})
	}
}

// What is shown of a file that was read is bounded like any result, and says how the
// rest can be read.
//
// A10
func TestPresetsBoundWhatWasRead(t *testing.T) {
	k := newTalker(t)
	k.request.History.Preset = "reduction"
	k.do(step.Step{
		ToolName: step.ToolReadFile, MinimalArgs: json.RawMessage(`{"path":"a"}`), Observation: "Read a (16000 bytes, text)",
		Inline: strings.Repeat("1 2 3 4\n", 2000), OutcomeRef: "ref", OutcomePath: "workspace/outputs/read_001.txt",
	})
	p := k.prompt()
	if got := p.Tokens.Tokens; got < 2000 || got > 3200 || !strings.Contains(string(p.OpenAIChatJSON), "chars omitted. Full data: workspace/outputs/read_001.txt") {
		t.Errorf("%d tokens: %.300s", got, p.OpenAIChatJSON)
	}
}
