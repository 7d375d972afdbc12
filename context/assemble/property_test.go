package assemble_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
)

// writer makes random logs in blocks. At the end of a block no turn is open.
type writer struct {
	*rand.Rand
	entries
	calls  int
	unpaid []string // ids of calls whose turn ended without their result
}

func newWriter(tb testing.TB) *writer {
	tb.Helper()
	seed := chance.Seed(tb)
	return &writer{Rand: rand.New(rand.NewPCG(seed, 1))}
}

func (w *writer) words() string {
	return strings.Repeat([]string{"", "word ", "<tag> & \"quote\" ", "Füße 漢字 👍 ", "line\n"}[w.IntN(5)], w.IntN(20))
}

// id is mostly a new call id; some models use the same ids in every turn.
func (w *writer) id() string {
	w.calls++
	if w.IntN(4) == 0 {
		return fmt.Sprint("call_", w.IntN(2))
	}
	return fmt.Sprint("call_", w.calls+1)
}

func (w *writer) step(turnID, callID string) {
	s := step.Step{ToolName: "fs:stat", TurnID: turnID, CallID: callID, Observation: w.words(), Inline: w.words()}
	if w.IntN(4) == 0 {
		s.Outcome, s.Error = step.Failed, w.words()
	}
	w.do(s)
}

// answer records a result either way.
func (w *writer) answer(id string) {
	if w.IntN(2) == 0 {
		w.say(answers(id, w.words()))
		return
	}
	w.step("", id)
}

func (w *writer) block() {
	switch w.IntN(7) {
	case 0:
		w.say(text(session.User, w.words()))
	case 1:
		w.say(text(session.Assistant, w.words()))
	case 2:
		w.say(text(session.System, w.words()))
	case 3:
		w.step("", "")
	case 4:
		turn := fmt.Sprint("turn ", w.calls)
		for range 1 + w.IntN(3) {
			w.step(turn, w.id())
		}
		w.say(text(session.User, "end of turn"))
	case 5:
		w.turn()
	case 6:
		if len(w.unpaid) > 0 {
			w.answer(w.unpaid[w.IntN(len(w.unpaid))])
			w.say(text(session.User, "that was late"))
		}
	}
}

// turn is an assistant message with calls; some steps may come before it, and
// some results not at all.
func (w *writer) turn() {
	var ids []string
	for range 1 + w.IntN(4) {
		ids = append(ids, w.id())
	}
	waiting := slices.Clone(ids)
	if w.IntN(4) == 0 {
		w.say(text(session.User, "steps first"))
		w.step("", waiting[0])
		waiting = waiting[1:]
	}
	w.say(asks(w.words(), ids...))
	w.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
	for _, id := range waiting {
		if w.IntN(5) == 0 {
			w.unpaid = append(w.unpaid, id)
			continue
		}
		w.answer(id)
	}
	// A turn is over when the model answers somebody else.
	w.say(text(session.User, "end of turn"))
	w.say(text(session.Assistant, "so be it"))
}

// Whatever the log, a provider takes the prompt, and once a turn is over its
// bytes stay: each prompt up to the goal is a prefix of all later ones.
func TestPromptsOnlyGrow(t *testing.T) {
	for range rounds(10, 3) {
		w, counter := newWriter(t), MustCounter(t)
		r := assemble.Request{Format: assemble.OpenAIChat, System: "system", Tools: someTools(), Settings: plainEnd()}
		before, neutralBefore := []byte(nil), []session.Message(nil)
		for range 30 {
			from := len(w.entries)
			w.block()
			for n := from; n <= len(w.entries); n++ {
				p := MustAssembleWith(t, counter, w.entries[:n], r)
				if err := checkRules(MustChat(t, p).Messages); err != nil {
					t.Fatalf("after %d entries: %v", n, err)
				}
				now := beforeGoal(t, p)
				if !bytes.HasPrefix(now, before) {
					t.Fatalf("after %d entries the prompt begins otherwise:\n%s\nwas\n%s", n, now, before)
				}
				if n == len(w.entries) {
					before = now
				}
			}
			neutral := MustAssembleWith(t, counter, w.entries, assemble.Request{System: "system", Settings: plainEnd()}).Messages
			if len(neutral) < len(neutralBefore) || fmt.Sprint(neutral[:len(neutralBefore)]) != fmt.Sprint(neutralBefore) {
				t.Fatal("the neutral prompt begins otherwise")
			}
			neutralBefore = neutral
		}
	}
}

// The prefix hash is the hash of all bytes before the last message, and the goal does
// not touch it.
func TestPrefixHash(t *testing.T) {
	w, counter := newWriter(t), MustCounter(t)
	// A newest message of the user would belong to the last message.
	asks := func() bool {
		last := w.entries[len(w.entries)-1].Message
		return last != nil && last.Role == session.User
	}
	for n := 0; n < 10 || asks(); n++ {
		w.block()
	}
	for _, format := range []assemble.Format{assemble.OpenAIChat, assemble.Neutral} {
		r := assemble.Request{Format: format, Tools: someTools(), Settings: plainEnd()}
		bare := MustAssembleWith(t, counter, w.entries, r)
		r.Goal = "goal"
		aimed := MustAssembleWith(t, counter, w.entries, r)
		if bare.PrefixSHA256 != aimed.PrefixSHA256 {
			t.Error("the goal changed the prefix hash")
		}
		if format == assemble.OpenAIChat {
			sum := sha256.Sum256(beforeGoal(t, bare))
			if got := hex.EncodeToString(sum[:]); got != bare.PrefixSHA256 {
				t.Errorf("hash %s, want %s", bare.PrefixSHA256, got)
			}
		}
		r.System = "other"
		if MustAssembleWith(t, counter, w.entries, r).PrefixSHA256 == bare.PrefixSHA256 {
			t.Error("another system prompt has the same prefix hash")
		}
	}
}

// A prompt never exceeds its budget, and is refused only when it would.
//
// N11: the counted tokens decide.
func TestBudgetIsKept(t *testing.T) {
	w, counter := newWriter(t), MustCounter(t)
	for range 40 {
		w.block()
	}
	w.say(text(session.Assistant, "All results were seen.")) // those that were not are shortened instead
	w.say(text(session.User, "Go on."))
	for _, format := range []assemble.Format{assemble.OpenAIChat, assemble.Neutral} {
		r := assemble.Request{Scope: scope, Format: format, Goal: "goal", System: "system", Tools: someTools(), MaxTokens: unlimited, History: session.Config{Policy: session.PolicyAppendOnly}}
		a := assemble.New(w.entries, counter, nil)
		whole, err := a.Assemble(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		size := whole.Tokens.Tokens
		for _, budget := range []int{1, size / 2, size - 1, size, size + 1, 1 + w.IntN(2*size)} {
			r.MaxTokens = budget
			p, err := a.Assemble(t.Context(), r)
			var overflow *assemble.OverflowError
			switch {
			case budget >= size && (err != nil || p.PrefixSHA256 != whole.PrefixSHA256):
				t.Errorf("budget %d of %d: %v", budget, size, err)
			case budget < size && (!errors.Is(err, assemble.ErrOverflow) || !errors.As(err, &overflow)):
				t.Errorf("budget %d of %d: got %v, want an *OverflowError", budget, size, err)
			case budget < size && (overflow.TotalTokens != size || overflow.MaxTokens != budget):
				t.Errorf("budget %d of %d: got %+v", budget, size, overflow)
			}
		}
	}
}

// The tokens are those of what is sent: each message by the rule, the
// tools, and the reply's three.
func TestTokensAreThoseOfThePrompt(t *testing.T) {
	w, counter := newWriter(t), MustCounter(t)
	for range 40 {
		w.block()
	}
	for _, model := range []string{"gpt-4o", "gpt-4"} {
		p := MustAssembleWith(t, counter, w.entries, assemble.Request{Format: assemble.OpenAIChat, Model: model, Goal: "g", System: "s"})
		want := tokens.ReplyTokens
		for _, m := range MustChat(t, p).Messages {
			message := tokens.Message{Role: m.Role, Name: m.Name, CallID: m.ToolCallID}
			if string(m.Content) != "null" {
				if err := json.Unmarshal(m.Content, &message.Content); err != nil {
					t.Fatal(err)
				}
			}
			for _, c := range m.ToolCalls {
				message.Calls = append(message.Calls, tokens.Call{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
			}
			n, err := counter.Message(model, message)
			if err != nil {
				t.Fatal(err)
			}
			want += n.Tokens
		}
		sum := tokens.ReplyTokens
		for _, part := range p.Parts {
			sum += part.Tokens
		}
		if p.Tokens.Tokens != want || sum != want || !p.Tokens.Exact {
			t.Errorf("%s: got %+v, parts sum up to %d, want %d", model, p.Tokens, sum, want)
		}
	}
}

func someTools() []assemble.Tool {
	return []assemble.Tool{
		{Name: "fs:stat", Description: "Tells.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"deep":{"type":"boolean"}}}`)},
		{Name: "fs:list_dir", Description: "Lists <all>."},
		{Name: "a_tool", Description: "Does.", Schema: json.RawMessage(`{"properties":{"n":{"maximum":9007199254740993,"type":"integer"}},"type":"object"}`)},
	}
}

// M01: the same tools and the same log are the same bytes, a thousand times
// over, in whatever order the tools and their keys come.
func TestSameRequestSameBytes(t *testing.T) {
	w, counter := newWriter(t), MustCounter(t)
	for range 8 {
		w.block()
	}
	for _, format := range []assemble.Format{assemble.OpenAIChat, assemble.Neutral} {
		hashes := make(map[string]bool)
		for range rounds(1000, 60) {
			tools := someTools()
			w.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
			for i := range tools {
				tools[i].Schema = w.shuffled(t, tools[i].Schema)
			}
			p := MustAssembleWith(t, counter, w.entries, assemble.Request{Format: format, Goal: "g", Tools: tools})
			sum := sha256.Sum256(fmt.Append(p.OpenAIChatJSON, string(p.ToolsJSON), p.Messages, p.PrefixSHA256, p.Tokens))
			hashes[hex.EncodeToString(sum[:])] = true
		}
		if len(hashes) != 1 {
			t.Errorf("format %d: %d different prompts", format, len(hashes))
		}
	}
}

// shuffled writes an object with its keys in another order and with spaces.
func (w *writer) shuffled(tb testing.TB, object json.RawMessage) json.RawMessage {
	tb.Helper()
	if len(object) == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil {
		tb.Fatal(err)
	}
	out := []byte("{ ")
	for key, value := range fields { // in random order
		if len(out) > 2 {
			out = append(out, " ,\n"...)
		}
		out = fmt.Appendf(out, "%q : %s", key, value)
	}
	return append(out, '}')
}
