package assemble_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	formats "github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
)

// result is one of so many words, with a mark of its own at the beginning.
func result(i, words int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "RESULT-%d begins", i)
	for k := range words {
		fmt.Fprintf(&b, " w%d", k)
	}
	return b.String()
}

// called are parallel calls with their results, as harnesses record them.
var called = map[string]func(w *world, sizes []int){
	"tool messages": func(w *world, sizes []int) {
		w.say(asks("", ids(len(sizes))...))
		for i, n := range sizes {
			w.say(answers(fmt.Sprint("c", i), result(i, n)))
		}
	},
	"steps": func(w *world, sizes []int) {
		w.say(asks("", ids(len(sizes))...))
		for i, n := range sizes {
			w.do(step.Step{ToolName: "x:y", CallID: fmt.Sprint("c", i), Inline: result(i, n)})
		}
	},
	"steps of a turn": func(w *world, sizes []int) {
		for i, n := range sizes {
			w.do(step.Step{ToolName: "x:y", TurnID: "t", Inline: result(i, n)})
		}
	},
	"steps before their message": func(w *world, sizes []int) {
		for i, n := range sizes[:min(len(sizes), 8)] {
			w.do(step.Step{ToolName: "x:y", CallID: fmt.Sprint("c", i), Inline: result(i, n)})
		}
		for i, n := range sizes[min(len(sizes), 8):] {
			w.do(step.Step{ToolName: "x:y", CallID: fmt.Sprint("c", 8+i), Inline: result(8+i, n)})
		}
		w.say(asks("", ids(len(sizes))...))
	},
	"blocks in one message": func(w *world, sizes []int) {
		var uses, results []any
		for i, n := range sizes {
			uses = append(uses, map[string]any{"type": "tool_use", "id": fmt.Sprint("c", i), "name": "x", "input": map[string]any{}})
			results = append(results, map[string]any{"type": "tool_result", "tool_use_id": fmt.Sprint("c", i), "content": result(i, n)})
		}
		w.say(blockMessage(w, session.Assistant, uses...))
		w.say(blockMessage(w, session.User, results...))
	},
	"blocks in messages of their own": func(w *world, sizes []int) {
		for i := range sizes {
			w.say(blockMessage(w, session.Assistant, map[string]any{"type": "tool_use", "id": fmt.Sprint("c", i), "name": "x", "input": map[string]any{}}))
		}
		for i, n := range sizes {
			text := map[string]any{"type": "text", "text": result(i, n)}
			w.say(blockMessage(w, session.User, map[string]any{"type": "tool_result", "tool_use_id": fmt.Sprint("c", i), "content": []any{text}}))
		}
	},
	"parts of Gemini": func(w *world, sizes []int) {
		var uses, results []any
		for i, n := range sizes {
			uses = append(uses, map[string]any{"functionCall": map[string]any{"name": "x", "args": map[string]any{"n": i}}})
			results = append(results, map[string]any{"functionResponse": map[string]any{"name": "x", "response": map[string]any{"output": result(i, n)}}})
		}
		w.say(blockMessage(w, session.Assistant, uses...))
		w.say(blockMessage(w, session.User, results...))
	},
}

func ids(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint("c", i)
	}
	return out
}

func blockMessage(w *world, role session.Role, blocks ...any) session.Message {
	w.tb.Helper()
	raw, err := json.Marshal(blocks)
	if err != nil {
		w.tb.Fatal(err)
	}
	return session.Message{Role: role, BlocksJSON: raw}
}

// However many results the model has just asked for, and however long they are, a prompt
// shows a part of each, uses its budget, and says how to read the rest.
func TestNewestResultsStay(t *testing.T) {
	for shape, call := range called {
		for _, sizes := range [][]int{
			{20_000}, {1250, 1250, 1250}, {5, 5000, 5000}, {400, 400, 400, 400, 400, 400, 400, 400, 400, 400}, {3000, 10, 3000, 10, 3000, 10, 3000, 9000, 10, 4000, 100, 20_000},
		} {
			for _, before := range []int{0, 12} {
				t.Run(fmt.Sprint(shape, len(sizes), sizes[0], before), func(t *testing.T) {
					w := newWorld(t)
					w.say(text(session.User, "compare them"))
					for i := range before {
						w.say(asks("look", fmt.Sprint("b", i)), answers(fmt.Sprint("b", i), wordy(i)))
					}
					call(w, sizes)
					if before > 0 {
						w.say(text(session.User, "and be quick"))
					}
					w.request.MaxTokens = 4000
					p := w.prompt()
					if err := checkRules(MustChat(t, p).Messages); err != nil {
						t.Fatal(err)
					}
					checkShown(t, p, sizes)
					if before > 0 {
						return
					}
					again := w.prompt()
					if string(again.OpenAIChatJSON) != string(p.OpenAIChatJSON) {
						t.Error("the same prompt again differs")
					}
				})
			}
		}
	}
}

// leastWords of each of the newest results stand in a prompt at least, beside how to read the
// rest.
const leastWords = 5

// ownWords is a result whose words stand nowhere else.
func ownWords(name string, words int) string {
	var b strings.Builder
	b.WriteString(name)
	for k := range words {
		fmt.Fprintf(&b, " %sw%d", name, k)
	}
	return b.String()
}

// The newest results stay in a prompt that has room for the least of them, whatever the user
// said before: old words leave instead, with the way to read them. What the user said last
// stays whole, and so it goes on over the turns of a session.
func TestOldWordsLeaveBeforeTheNewestResults(t *testing.T) {
	rng := rand.New(rand.NewPCG(chance.Seed(t), 36))
	turns, folded := 0, 0
	for format := range formats.Formats {
		for i, shape := range []struct{ said, words, results, size, budget int }{
			{15, 24, 3, 300, 2000},
			{17, 24, 3, 300, 2000},
			{25, 24, 3, 300, 2000},
			{60, 24, 3, 300, 2000},
			{3, 300, 1, 2000, 2000},
			{12, 60, 8, 200, 4000},
			{2, 900, 4, 50, 4000},
			{40, 20, 10, 1500, 4000},
			{200, 3, 2, 1000, 3000},
			{30 + rng.IntN(30), 10 + rng.IntN(40), 1 + rng.IntN(6), 100 + rng.IntN(900), 2500 + rng.IntN(2500)},
		} {
			if testing.Short() && i%formats.Formats != format { // each shape in one format
				continue
			}
			t.Run(fmt.Sprint(format, shape), func(t *testing.T) {
				w := newWorld(t)
				w.request.MaxTokens, w.request.Format = shape.budget, assemble.Format(format)
				var said []string
				for turn := range 2 {
					for i := range shape.said {
						said = append(said, ownWords(fmt.Sprintf("said%dx%d", turn, i), shape.words))
						w.say(text(session.User, said[len(said)-1]))
						if i%3 == 2 {
							w.say(text(session.Assistant, "I see."))
						}
					}
					said = append(said, fmt.Sprintf("compare them now %d", turn))
					w.say(text(session.User, said[len(said)-1]), asks("", ids(shape.results)...))
					for i := range shape.results {
						w.say(answers(fmt.Sprint("c", i), ownWords(fmt.Sprintf("got%dx%d", turn, i), shape.size)))
					}
					p := w.prompt()
					turns++
					if p.Receipt.Batch != nil {
						folded++
					}
					w.checkNewest(p, said, fmt.Sprintf("got%dx", turn), shape.results)
					w.say(text(session.Assistant, fmt.Sprint("compared ", turn)))
				}
			})
		}
	}
	if folded < turns/2 {
		t.Errorf("in only %d of %d turns there was too much", folded, turns)
	}
}

// checkNewest wants the last of what was said, the least of each result, and the rest of what was
// said within what the prompt says was left out.
func (w *world) checkNewest(p assemble.Prompt, said []string, got string, results int) {
	w.tb.Helper()
	prompt := neutralText(p) + string(p.OpenAIChatJSON) + string(p.Body)
	if p.Tokens.Tokens > w.request.MaxTokens {
		w.tb.Errorf("%d tokens of %d", p.Tokens.Tokens, w.request.MaxTokens)
	}
	if !strings.Contains(prompt, said[len(said)-1]) {
		w.tb.Errorf("what was said last is not whole: %.2000s", prompt)
	}
	for i := range results {
		own := map[string]bool{}
		for _, word := range regexp.MustCompile(fmt.Sprintf(`\b%s%dw\d+\b`, got, i)).FindAllString(prompt, -1) {
			own[word] = true
		}
		if len(own) < leastWords {
			w.tb.Errorf("%d words of result %d: %.6000s", len(own), i, prompt)
			return
		}
	}
	var first, last uint64
	if _, named, ok := strings.Cut(prompt, "Earlier messages are left out, "); ok {
		var n int
		if _, err := fmt.Sscanf(named, "%d from message_%d to message_%d.", &n, &first, &last); err != nil {
			w.tb.Error(err)
		}
	}
	for e, err := range w.log.Range(w.tb.Context(), scope, "", 1, math.MaxUint64) {
		if err != nil {
			w.tb.Fatal(err)
		}
		m := e.Message
		if m != nil && m.Role == session.User && !strings.Contains(prompt, m.Content) && (e.Position < first || e.Position > last) {
			w.tb.Errorf("nothing leads to message %d; left out is said to be %d to %d", e.Position, first, last)
			return
		}
	}
}

// checkShown wants a part of each result, and no room left that a result could use.
func checkShown(t *testing.T, p assemble.Prompt, sizes []int) {
	t.Helper()
	prompt := string(p.OpenAIChatJSON)
	all := 0
	for i, n := range sizes {
		all += 2 * n
		_, shown, found := strings.Cut(prompt, fmt.Sprintf("RESULT-%d begins", i))
		if !found {
			t.Errorf("result %d of %d words is not there", i, n)
			continue
		}
		if n <= 20 && !strings.HasPrefix(shown, strings.TrimPrefix(result(i, n), fmt.Sprintf("RESULT-%d begins", i))) {
			t.Errorf("result %d of %d words is not whole", i, n)
		}
	}
	if all > 6000 && !strings.Contains(prompt, "Full data: ") {
		t.Error("nothing says how to read the rest")
	}
	if p.Tokens.Tokens > 4000 || p.Tokens.Tokens < 2800 && all > 8000 {
		t.Errorf("%d tokens of 4000", p.Tokens.Tokens)
	}
}

// Messages of the model that stand side by side are one turn, in whatever order their
// results come, and nothing that is there is said to be missing.
func TestSideBySide(t *testing.T) {
	use := func(id string) string { return `[{"type":"tool_use","id":"` + id + `","name":"f","input":{}}]` }
	gave := func(id string) string {
		return `[{"type":"tool_result","tool_use_id":"` + id + `","content":"result ` + id + `"}]`
	}
	for _, order := range []string{
		"a b A B", "a b B A", "a . b A B", "t a b c C A B", "a b A c B C", "a b A c C B", "a . A b B", "a b u A B", "a b A u B", "a b s A B", "t t a . b . c A B C", "a b c d e f D E F A B C",
	} {
		t.Run(order, func(t *testing.T) {
			w := newWorld(t)
			w.say(text(session.User, "q"))
			for word := range strings.FieldsSeq(order) {
				m := session.Message{Role: session.Assistant}
				switch {
				case word == ".":
					m.Content = "I go on"
				case word == "t":
					m.BlocksJSON = json.RawMessage(`[{"type":"thinking","thinking":"hm","signature":"x"}]`)
				case word == "u":
					m = text(session.User, "be quick")
				case word == "s":
					m = text(session.System, "a note")
				case word == strings.ToUpper(word):
					m.Role, m.BlocksJSON = session.User, json.RawMessage(gave(strings.ToLower(word)))
				default:
					m.BlocksJSON = json.RawMessage(use(word))
				}
				w.say(m)
			}
			p := w.prompt()
			prompt := string(p.OpenAIChatJSON)
			if err := checkAnswered(MustChat(t, p).Messages); err != nil {
				t.Errorf("%v:\n%s", err, prompt)
			}
			if strings.Contains(prompt, "No result") || strings.Contains(prompt, "Result of the call") {
				t.Errorf("a result is said to be missing:\n%s", prompt)
			}
		})
	}
}

// Calls without an id, as some hosts write them, are paired by their order and names.
func TestCallsWithoutIDs(t *testing.T) {
	bare := func(names ...string) session.Message {
		m := session.Message{Role: session.Assistant}
		for _, name := range names {
			m.ToolCalls = append(m.ToolCalls, session.ToolCall{Name: name, Arguments: "{}"})
		}
		return m
	}
	gave := func(name, s string) session.Message {
		return session.Message{Role: session.Tool, Name: name, Content: s}
	}
	for name, messages := range map[string][]session.Message{
		"chat by order":  {bare("f", "g"), gave("", "one"), gave("", "two")},
		"chat by name":   {bare("f", "g"), gave("g", "two"), gave("f", "one")},
		"chat, one tool": {bare("f", "f"), gave("f", "one"), gave("f", "two")},
		"blocks": {
			{Role: session.Assistant, BlocksJSON: json.RawMessage(`[{"type":"tool_use","id":"","name":"f","input":{}},{"type":"tool_use","name":"g","input":{}}]`)},
			{Role: session.User, BlocksJSON: json.RawMessage(`[{"type":"tool_result","tool_use_id":"","content":"one"}]`)},
			{Role: session.User, BlocksJSON: json.RawMessage(`[{"type":"tool_result","content":"two"}]`)},
		},
		"items": {
			{Role: session.Assistant, BlocksJSON: json.RawMessage(`[{"type":"function_call","call_id":"","name":"f","arguments":"{}"},{"type":"function_call","name":"g","arguments":"{}"}]`)},
			{Role: session.User, BlocksJSON: json.RawMessage(`[{"type":"function_call_output","call_id":"","output":"one"},{"type":"function_call_output","output":"two"}]`)},
		},
		"parts": {
			{Role: session.Assistant, BlocksJSON: json.RawMessage(`[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"f","args":{}}}]`)},
			{Role: session.User, BlocksJSON: json.RawMessage(`[{"functionResponse":{"name":"f","response":{"output":"one"}}}]`)},
			{Role: session.User, BlocksJSON: json.RawMessage(`[{"functionResponse":{"name":"f","response":{"output":"two"}}}]`)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.say(text(session.User, "q"))
			for _, m := range messages {
				w.say(m)
			}
			p := w.prompt()
			prompt := string(p.OpenAIChatJSON)
			if err := checkRules(MustChat(t, p).Messages); err != nil {
				t.Errorf("%v:\n%s", err, prompt)
			}
			if strings.Contains(prompt, "No result") || strings.Contains(prompt, "Result of the call") || strings.Index(prompt, "one") > strings.Index(prompt, "two") {
				t.Errorf("wrongly paired:\n%s", prompt)
			}
		})
	}
}

// checkAnswered wants the results of a message's calls right behind it, in any order.
func checkAnswered(messages []chatMessage) error {
	for i := 0; i < len(messages); i++ {
		waiting := make(map[string]bool)
		for _, c := range messages[i].ToolCalls {
			waiting[c.ID] = true
		}
		for ; i+1 < len(messages) && messages[i+1].Role == "tool"; i++ {
			if id := messages[i+1].ToolCallID; !waiting[id] {
				return fmt.Errorf("a result of %q that nothing asks for", id)
			}
			delete(waiting, messages[i+1].ToolCallID)
		}
		if len(waiting) > 0 {
			return fmt.Errorf("calls without results: %v", waiting)
		}
	}
	return nil
}
