package views

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// A table fits every width that its columns can be cut to, names are cut last, and numbers
// stand on the right.
func TestTablesFit(t *testing.T) {
	made := newTable("nothing", "=ID", ">N", "TEXT")
	made.add("01M8E2", 7, "你好世界 and some more of it\nin two lines")
	made.add("x", 1234, "e\u0301 short")
	for limit := range 90 {
		var out bytes.Buffer
		if err := made.write(&out, limit); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			if limit >= 3*leastWidth+2*len(gap) && columns(line) > limit {
				t.Errorf("at %d: %d columns: %q", limit, columns(line), line)
			}
			if strings.HasPrefix(line, "01") && limit >= 6+2*leastWidth+2*len(gap) && !strings.HasPrefix(line, "01M8E2") {
				t.Errorf("at %d a name is cut: %q", limit, line)
			}
		}
		if limit == 0 && out.String() != "ID         N  TEXT\n01M8E2     7  你好世界 and some more of it in two lines\nx       1234  e\u0301 short\n" {
			t.Errorf("got\n%s", out.String())
		}
	}
	var out bytes.Buffer
	if err := newTable("nothing", "A").write(&out, 3); err != nil || out.String() != "nothing\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

// Whatever a cell or a line says, nothing of it steers a terminal.
func FuzzNothingSteersTheTerminal(f *testing.F) {
	for _, s := range []string{"\x1b[2J", "\u202e", "\x00\x07\r\n\t", "\xff\xfe", "\u2028\u200b\u00ad", "e\u0301\U000e0041", strings.Repeat("世", 99)} {
		f.Add(s, 20)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		var out bytes.Buffer
		v := &view{Options: Options{Out: &out}}
		made := newTable("", "A", "B")
		made.add(s, s)
		_ = made.write(&out, min(max(limit, 0), 300))
		_ = v.say("%s", s)
		for _, c := range out.String() {
			if c != '\n' && !unicode.IsPrint(c) || unicode.Is(unicode.Bidi_Control, c) {
				t.Fatalf("%q is written as %q", s, out.String())
			}
		}
	})
}

// Runs of prompts with the same places are one line, gaps are gaps.
func TestRunsOfPrompts(t *testing.T) {
	at := func(n int64, places ...*loombridgev1.TextPlace) *loombridgev1.SentPrompt {
		return &loombridgev1.SentPrompt{Number: n, Places: places}
	}
	said, folded := &loombridgev1.TextPlace{Section: "history", Ref: "message_002"}, &loombridgev1.TextPlace{Section: "history", Batch: 3}
	got := runs([]*loombridgev1.SentPrompt{at(4), at(5, said), at(6, said), at(7), at(8, folded), at(9, said, folded)})
	want := "prompts 5 to 6: history, message_002|prompt 8: history, fold of batch 3|prompt 9: history, message_002; history, fold of batch 3"
	if strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
}

// Prompts of every provider's form are read as messages.
func TestMessagesOfAllFormats(t *testing.T) {
	for body, want := range map[string]string{
		`{"messages":[{"role":"system","content":"careful"},{"role":"user","content":[{"type":"text","text":"hello"}]}]}`:                                             "system=careful user=hello",
		`{"system":[{"type":"text","text":"careful"}],"messages":[{"role":"user","content":[{"type":"tool_result","content":"x"}]}],"tools":[{"name":"a"}]}`:          `tools={"name":"a"} system=careful user={"content":"x","type":"tool_result"}`,
		`{"instructions":"careful","input":[{"type":"function_call_output","output":"x"}]}`:                                                                           `instructions=careful input={"output":"x","type":"function_call_output"}`,
		`{"systemInstruction":{"parts":[{"text":"careful"}]},"contents":[{"role":"model","parts":[{"text":"hello"},{"functionCall":{"name":"a"}}]},{"role":"user"}]}`: "systemInstruction=careful model=hello\n" + `{"functionCall":{"name":"a"}} user={"role":"user"}`,
		`no JSON`: "prompt=no JSON",
	} {
		var got []string
		for _, m := range messages(&loombridgev1.AssembleResponse{PromptJson: body}) {
			got = append(got, m.who+"="+m.text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s is read as %q", body, got)
		}
	}
}

// Programs are found in what results and the audit tell of them, with words in front or not.
func TestProgramsAreTold(t *testing.T) {
	for told, want := range map[string]string{
		`{"command":"sleep 1","exit_code":3,"job_id":"job_a"}`:   "job_a sleep 1 3",
		`exit 0 {"command": "sleep 1", "job_id": "job_b"}, more`: "job_b sleep 1 none",
		`nothing of it`: "  none", `{"job_id":`: "  none", "": "  none",
	} {
		p, exit := programOf(told)
		got := p.ID + " " + p.Command + " none"
		if exit != nil {
			got = p.ID + " " + p.Command + " " + string(rune('0'+*exit))
		}
		if got != want {
			t.Errorf("%q tells of %q", told, got)
		}
	}
}
