package assemble_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	formats "github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
)

// A talk without tools goes on for ever: when it is longer than the budget the newest of it
// stays, and the prompt says how to read the rest.
func TestLongTalkIsServed(t *testing.T) {
	w := newWorld(t)
	w.request.MaxTokens = 4000
	before, batches := "", 0
	for i := range 90 {
		w.say(text(session.User, fmt.Sprintf("question %d ", i)+strings.Repeat("blah ", 150)))
		p := w.prompt()
		if p.Tokens.Tokens > 4000 {
			t.Fatalf("turn %d: %d tokens", i, p.Tokens.Tokens)
		}
		prompt := string(p.OpenAIChatJSON)
		if !strings.Contains(prompt, fmt.Sprintf("question %d ", i)) || i > 0 && !strings.Contains(prompt, fmt.Sprintf("answer %d ", i-1)) && i < 20 {
			t.Fatalf("turn %d: what was said last is not there", i)
		}
		if p.Receipt.Batch != nil {
			batches++
		} else if now := historyBytes(t, p); !strings.HasPrefix(now, before) {
			t.Fatalf("turn %d: no batch is reported, but the prompt begins otherwise", i)
		}
		before = historyBytes(t, p)
		w.say(text(session.Assistant, fmt.Sprintf("answer %d ", i)+strings.Repeat("blah ", 100)))
	}
	if prompt := string(w.prompt().OpenAIChatJSON); !strings.Contains(prompt, "fs_read_file message_") {
		t.Error("nothing says how to read what was left out")
	}
	if batches == 0 || batches > 40 {
		t.Errorf("%d batches in 90 turns", batches)
	}
}

// A task that is too long is cut in its middle under every policy and preset, in every layout
// and format, whether it is the goal or what the user said last.
//
// G14, P06
func TestLongTaskIsCut(t *testing.T) {
	long := "FIRST " + strings.Repeat("many words ", 1500) + " LAST"
	histories := []session.Config{{}, {Policy: session.PolicyLedger}, {Policy: session.PolicyAppendOnly}}
	for name := range strings.SplitSeq(strings.ReplaceAll(history.Names(), " or ", ", "), ", ") {
		histories = append(histories, session.Config{Preset: name})
	}
	if len(histories) < 10 {
		t.Fatalf("no presets are named: %v", histories)
	}
	cases := 0
	for _, h := range histories {
		for _, layout := range settings.Layouts() {
			for format := range formats.Formats {
				ways := []string{"goal", "text", "blocks"}
				if testing.Short() { // a third of the cases
					ways = ways[cases%3 : cases%3+1]
				}
				cases++
				for _, said := range ways {
					t.Run(fmt.Sprint(h.Policy, h.Preset, layout, format, said), func(t *testing.T) {
						w := newWorld(t)
						w.say(text(session.User, "hello"))
						w.say(text(session.Assistant, "hi"))
						w.request.MaxTokens, w.request.Goal = 2000, long
						if said != "goal" {
							asked := text(session.User, long)
							if said == "blocks" {
								asked = blockMessage(w, session.User, map[string]any{"type": "text", "text": "in short"}, map[string]any{"type": "text", "text": long})
							}
							w.say(asked)
							w.request.Goal = ""
						}
						w.request.History, w.request.Format = h, assemble.Format(format)
						w.request.Settings = &settings.Prompt{Layout: layout}
						p := w.prompt()
						prompt := neutralText(p) + string(p.OpenAIChatJSON) + string(p.Body)
						if p.Tokens.Tokens > 2000 || !strings.Contains(prompt, "FIRST many") || !strings.Contains(prompt, "words  LAST") || !strings.Contains(prompt, "chars omitted") {
							t.Errorf("%d tokens: %.300s", p.Tokens.Tokens, prompt)
						}
					})
				}
			}
		}
	}
}
