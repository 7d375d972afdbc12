package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// begun is the n-th message of a talk, of more than 300 characters.
func begun(n int) string {
	return fmt.Sprintf("Message %d begins here. ", n) + strings.Repeat("It goes on and on. ", 30) + fmt.Sprintf("It ends with %d.", n)
}

// talkOf appends so many messages, those of the user first.
func (c caller) talkOf(from, to int) {
	c.tb.Helper()
	for n := from; n <= to; n++ {
		role := loombridgev1.Role_ROLE_USER
		if n%2 == 0 {
			role = loombridgev1.Role_ROLE_ASSISTANT
		}
		c.say(&loombridgev1.Message{Role: role, Content: begun(n)})
	}
}

// texts are those of a prompt's messages, with their blocks.
func texts(prompt *loombridgev1.AssembleResponse) []string {
	var all []string
	for _, m := range prompt.GetMessages() {
		all = append(all, m.GetContent()+m.GetBlocksJson())
	}
	return all
}

// Of twenty messages ten are a summary, six are shortened, four stand in full; four
// are all in full, and ten have no summary. A session, a call and single rules choose
// it; an unknown name is refused.
//
// L01, L02, L03, L04, L06, K40
func TestThreePhase(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, "talker")
	for n, want := range map[int]string{4: "0 0", 5: "0 1", 10: "0 6", 11: "1 6", 20: "1 6"} {
		c := as(t, s, fmt.Sprint("talker ", n))
		c.talkOf(1, n)
		all := texts(c.prompt(literally("three_phase")))
		folded := 0
		for _, text := range all {
			if strings.Contains(text, " chars omitted]… ") {
				folded++
			}
		}
		if got := fmt.Sprint(strings.Count(all[0], "[Summary of "), " ", folded); got != want {
			t.Errorf("%d messages: %s, want %s", n, got, want)
		}
	}
	c.talkOf(1, 20)
	all := texts(c.prompt(literally("three_phase")))
	head, tail := begun(11)[:150], begun(11)[len(begun(11))-80:]
	if want := fmt.Sprintf("%s …[%d chars omitted]… %s", head, len(begun(11))-230, tail); len(all) != 11 || all[1] != want {
		t.Errorf("%d messages, the second is %q, want %q", len(all), all[1], want)
	}
	if !strings.HasPrefix(all[0], "[Summary of 10 earlier messages] [user] Message 1 begins here. | [assistant] Message 2 begins here. | ") || c.tokens(all[0]) > 500 {
		t.Errorf("the summary is %q", all[0])
	}
	for i, text := range all[7:] {
		if text != begun(17+i) {
			t.Errorf("message %d is %q", 17+i, text)
		}
	}

	MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{AgentId: c.id, SessionId: "s", History: literally("three_phase")})
	if got := c.prompt(&loombridgev1.HistorySettings{Preset: "design"}); got.GetReceipt().GetPolicy() != "design" {
		t.Errorf("the policy is %s", got.GetReceipt().GetPolicy())
	}
	_, err := s.Context.ConfigureSession(t.Context(), &loombridgev1.ConfigureSessionRequest{AgentId: c.id, SessionId: "s", History: &loombridgev1.HistorySettings{Preset: "three_phases"}})
	if status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
	got, err := s.Context.ConfigureSession(t.Context(), &loombridgev1.ConfigureSessionRequest{AgentId: c.id, SessionId: "s"})
	must(t, err)
	if h := got.GetHistory(); h.GetPreset() != "three_phase" || !h.GetLiteral() {
		t.Errorf("what holds is %v", h)
	}
}

// What is over 1500 characters stands compressed as soon as it was recorded, without
// anybody asking, and can be read in full; 1500 stay.
//
// K13, J01, P02
func TestResultsCompressed(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, "maker")
	MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{AgentId: c.id, SessionId: "s", History: &loombridgev1.HistorySettings{Preset: "three_phase"}})
	for chars, compressed := range map[int]bool{1499: false, 1500: false, 1501: true} {
		body := strings.Repeat("ü", chars)
		c.report("my:tool", fmt.Sprintf(`{"n":%d}`, chars), quoted(t, body))
		all := texts(c.prompt(nil))
		last := all[len(all)-1]
		if got := strings.HasPrefix(last, "[COMPRESSED:"); got != compressed {
			t.Errorf("%d characters: %.100q", chars, last)
		}
		if !compressed {
			continue
		}
		lines := strings.Split(last, "\n")
		path, ok := strings.CutPrefix(lines[len(lines)-1], "Full data: ")
		if !ok || !strings.Contains(c.read(path), body) {
			t.Errorf("the whole is not at %q", path)
		}
		ref, _, _ := strings.Cut(strings.TrimPrefix(last, "[COMPRESSED:"), "] ")
		if len(ref) != 12 || !strings.Contains(c.read(ref), body) {
			t.Errorf("the reference is %q", ref)
		}
	}
	hits := strings.Repeat(`{"title":"A title","url":"https://example.org/a","snippet":"`+strings.Repeat("words ", 40)+`"},`, 8)
	c.report("web:search", `{"query":"q"}`, `{"results":[`+strings.TrimSuffix(hits, ",")+`]}`)
	all := texts(c.prompt(nil))
	if got := all[len(all)-1]; !strings.Contains(got, "] Found 8 results. Top 5:\n1. A title  https://example.org/a\n") || !strings.HasSuffix(got, "\nFull data: workspace/outputs/search_004.json") {
		t.Errorf("the search is %q", got)
	}
	// Messages of the caller's own tools, too.
	long := strings.Repeat("a line of output\n", 200)
	c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT, ToolCalls: []*loombridgev1.ModelToolCall{{Id: "c9", Name: "my_tool", ArgumentsJson: "{}"}}},
		&loombridgev1.Message{Role: loombridgev1.Role_ROLE_TOOL, ToolCallId: "c9", Content: long})
	all = texts(c.prompt(nil))
	last := all[len(all)-1]
	if path := last[strings.LastIndex(last, " ")+1:]; !strings.HasPrefix(last, "[COMPRESSED:message_006] ") || !strings.Contains(c.read(path), long) {
		t.Errorf("the message is %q", last)
	}
	c.fail("my:tool", `{}`, strings.Repeat("it failed in many words ", 100))
	if all = texts(c.prompt(nil)); strings.HasPrefix(all[len(all)-1], "[COMPRESSED:") {
		t.Errorf("a failure is compressed: %.100q", all[len(all)-1])
	}
}

// Each preset shows results in its own way.
//
// K13, G10
func TestToolResults(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, "worker")
	c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: "Work."})
	long := strings.Repeat("LONG result\n", 300)
	c.report("my:tool", `{"a":1}`, quoted(t, long))
	c.report("my:tool", `{"b":"`+strings.Repeat("y", 300)+`"}`, `"SHORT result"`)
	for preset, want := range map[string][3]bool{
		// the long result whole, compressed; the short one
		"design": {false, false, true}, "reduction": {false, false, true}, "task_context": {false, false, false},
		"three_phase": {false, true, true}, "partitioned": {true, false, true},
	} {
		all := strings.Join(texts(c.prompt(literally(preset))), "\n")
		got := [3]bool{strings.Count(all, "LONG result") >= 300, strings.Contains(all, "[COMPRESSED:"), strings.Contains(all, "SHORT result")}
		if got != want {
			t.Errorf("%s: %v, want %v:\n%.3000s", preset, got, want, strings.ReplaceAll(all, "LONG result\n", ""))
		}
	}
	all := strings.Join(texts(c.prompt(&loombridgev1.HistorySettings{Preset: "task_context"})), "\n")
	want := "Work.\n[Calling my:tool({\"a\": 1})]\n[Calling my:tool({\"b\": \"" + strings.Repeat("y", 193) + "...)]"
	if all != want {
		t.Errorf("%q, want %q", all, want)
	}
}

// A search that is folded has its first titles in one line, others what was observed,
// and the calls of one message stand together. What was folded reads back.
//
// L05
func TestFoldedCalls(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, "sorter")
	c.talkOf(1, 5)
	var hits []any
	for _, title := range []string{"quicksort O(nlogn)", "mergesort", "TimSort", "heapsort", "radix", "shell", "bubble", "bogo"} {
		hits = append(hits, map[string]string{"title": title, "url": "https://example.org/" + title, "snippet": strings.Repeat("words ", 20)})
	}
	found, err := json.Marshal(map[string]any{"results": hits})
	must(t, err)
	c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT, ToolCalls: []*loombridgev1.ModelToolCall{
		{Id: "c1", Name: "web_search", ArgumentsJson: `{"query":"sorting"}`}, {Id: "c2", Name: "read_file", ArgumentsJson: `{"path":"sort.go"}`},
	}})
	args := func(json string) *loombridgev1.RecordStepRequest_ArgumentsJson {
		return &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: json}
	}
	output := func(json string) *loombridgev1.RecordStepRequest_OutputJson {
		return &loombridgev1.RecordStepRequest_OutputJson{OutputJson: json}
	}
	step := c.record(&loombridgev1.RecordStepRequest{ToolName: "web_search", CallId: "c1", Success: true, ArgumentsForm: args(`{"query":"sorting"}`), OutputForm: output(string(found))})
	c.record(&loombridgev1.RecordStepRequest{ToolName: "read_file", CallId: "c2", Success: true, ArgumentsForm: args(`{"path":"sort.go"}`), OutputForm: output(`{"path":"sort.go","content":` + quoted(t, strings.Repeat("package sort\n", 200)) + `}`)})
	c.talkOf(6, 9)
	all := texts(c.prompt(literally("three_phase")))
	want := "[Turn 3] web_search → Found 8 results, most relevant: quicksort O(nlogn), mergesort, TimSort\n" +
		"[Turn 3] read_file → Read sort.go (2600 bytes, text). Saved to workspace/outputs/read_002.txt"
	if at := place(c.prompt(literally("three_phase")), "[Turn 3]"); at < 0 || all[at] != want {
		t.Errorf("the calls are not\n%s\nbut\n%s", want, strings.Join(all, "\n"))
	}
	if got := c.read(step.GetStep().GetId()); !strings.Contains(got, "bogo") {
		t.Errorf("%s reads back as %q", step.GetStep().GetId(), got)
	}
}

// An image of the newest turn or of two before stands there; of an older one the line
// says what the caller said of it. No prompt has the description as a field.
//
// L07, K41
func TestOldImages(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, "viewer")
	image := func(description string) *loombridgev1.Message {
		block := map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": "image/png", "data": strings.Repeat("iVBORw0KGgo", 20)}}
		if description != "" {
			block["description"] = description
		}
		return &loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, BlocksJson: string(mustJSON(t, []any{map[string]any{"type": "text", "text": "See."}, block}))}
	}
	answer := &loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT, Content: "I see."}
	hello := &loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: "Hello."}
	c.say(hello, answer, hello, answer, image("user uploaded a screenshot of the settings page"), answer)
	const line = "[Image at Turn 3: user uploaded a screenshot of the settings page]"
	for turn := 3; turn <= 7; turn++ {
		all := strings.Join(texts(c.prompt(literally("three_phase"))), "\n")
		if old := turn > 5; strings.Contains(all, line) != old || strings.Contains(all, "base64") == old || strings.Contains(all, "description") {
			t.Errorf("turn %d: %.2000s", turn, all)
		}
		if all = strings.Join(texts(c.prompt(nil)), "\n"); strings.Contains(all, "description") || !strings.Contains(all, "base64") {
			t.Errorf("turn %d, by default: %.2000s", turn, all)
		}
		c.say(hello, answer)
	}
	c.say(image(""), answer, hello, answer, hello, answer, hello)
	if all := strings.Join(texts(c.prompt(literally("three_phase"))), "\n"); !strings.Contains(all, "[Image at Turn 9: image]") && !strings.Contains(all, "[Image at Turn 8: image]") {
		t.Errorf("without a description: %.2000s", all)
	}
}

// The nine messages of the documents: of 4000 tokens stay the system message and the
// newest that fit; smaller ones before them leave, too.
//
// G14, P06
func TestNewestMessages(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, "nine")
	frame := c.prompt(nil).GetTokens().GetTokens() // of an empty prompt
	sized := func(name string, size int) string {
		// A message has three tokens and its role's one beside its text.
		return name + strings.Repeat(" word", size-5)
	}
	roles := []loombridgev1.Role{loombridgev1.Role_ROLE_USER, loombridgev1.Role_ROLE_ASSISTANT}
	c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_SYSTEM, Content: sized("S", 200)})
	for i, size := range []int{100, 100, 100, 100, 1400, 1000, 1000, 1000} {
		c.say(&loombridgev1.Message{Role: roles[(i+1)%2], Content: sized(string(rune('A'+i)), size)})
	}
	fit := func(budget int32) string {
		prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
			AgentId: c.id, SessionId: "s", WithoutTools: true, Model: "gpt-4o", MaxTokens: budget, History: &loombridgev1.HistorySettings{Preset: "task_context"},
		})
		must(t, err)
		if got := prompt.GetTokens().GetTokens(); got > budget {
			t.Errorf("%d tokens of %d", got, budget)
		}
		var names []string
		for _, m := range prompt.GetMessages() {
			names = append(names, m.GetContent()[:1])
		}
		return strings.Join(names, "")
	}
	for budget, want := range map[int32]string{
		4000: "SFGH", 4599: "SFGH", 4600: "SEFGH", 4601: "SEFGH", 4999: "SBCDEFGH", 5000: "SABCDEFGH",
	} {
		if got := fit(budget + frame); got != want {
			t.Errorf("%d tokens: %s, want %s", budget, got, want)
		}
	}
	// The newest wish of the user is cut, never left out.
	if got := fit(1000 + frame); got != "SH" {
		t.Errorf("1000 tokens: %s", got)
	}
	prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
		AgentId: c.id, SessionId: "s", WithoutTools: true, Model: "gpt-4o", MaxTokens: 700, History: &loombridgev1.HistorySettings{Preset: "task_context"},
	})
	must(t, err)
	last := prompt.GetMessages()[len(prompt.GetMessages())-1].GetContent()
	if !strings.HasPrefix(last, "H word") || !strings.Contains(last, " chars omitted; full text: message_009]\n") || !strings.HasSuffix(last, " word") {
		t.Errorf("the task is %q", last)
	}
	_, err = s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
		AgentId: c.id, SessionId: "s", WithoutTools: true, Model: "gpt-4o", MaxTokens: 150, History: &loombridgev1.HistorySettings{Preset: "task_context"},
	})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("without room for the system message: %v", err)
	}
}

// Results that no call waits for leave the prompt, and stay in the store; of calls
// that nobody answered the last ten are told about, and the open one stays.
//
// P43
func TestPairsRepaired(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, "broken")
	ask := func(id, args string) *loombridgev1.Message {
		return &loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT, ToolCalls: []*loombridgev1.ModelToolCall{{Id: id, Name: "my_tool", ArgumentsJson: args}}}
	}
	user := &loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: "Go on."}
	c.say(user, &loombridgev1.Message{Role: loombridgev1.Role_ROLE_TOOL, ToolCallId: "nobody", Content: "LOST result"})
	for n := 1; n <= 11; n++ {
		c.say(ask(fmt.Sprint("c", n), fmt.Sprintf(`{"n":%d,"text":%q,"x":[1],"z":2}`, n, strings.Repeat("v", 41))), user)
	}
	c.say(ask("open", `{}`))
	h := literally("partitioned")
	prompt := c.prompt(h)
	all := strings.Join(texts(prompt), "\n")
	earlier := func(n int) string {
		return fmt.Sprintf("[Earlier call my_tool(n=%d, text=%s…, x=[1], …), result not recorded]", n, strings.Repeat("v", 40))
	}
	for n := 1; n <= 11; n++ {
		if got := strings.Contains(all, earlier(n)); got != (n > 1) {
			t.Errorf("call %d is told about: %v\n%s", n, got, all)
		}
	}
	open := 0
	for _, m := range prompt.GetMessages() {
		open += len(m.GetToolCalls())
	}
	if open != 1 || strings.Contains(all, "LOST result") {
		t.Errorf("%d calls are open: %s", open, all)
	}
	if got := c.read("message_002"); !strings.Contains(got, "LOST result") {
		t.Errorf("the result reads back as %q", got)
	}
}

// Between two batches the prompts of the new presets only grow at their end; what
// is folded by then is told.
//
// X03, X05
func TestThreePhaseSticks(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, "long")
	h := &loombridgev1.HistorySettings{Preset: "three_phase"}
	var before []string
	batches := 0
	for n := 1; n <= 120; n += 2 {
		c.talkOf(n, n+1)
		prompt := c.prompt(h)
		now := texts(prompt)
		if again := texts(c.prompt(h)); strings.Join(again, "\x00") != strings.Join(now, "\x00") {
			t.Fatalf("%d messages: the same call gives another prompt", n+1)
		}
		if b := prompt.GetReceipt().GetBatch(); b != nil {
			if batches++; len(b.GetRefs()) == 0 || b.GetBeforeTokens() <= b.GetAfterTokens() {
				t.Errorf("%d messages: a batch %v", n+1, b)
			}
		} else if len(now) < len(before) || strings.Join(now[:len(before)], "\x00") != strings.Join(before, "\x00") {
			t.Fatalf("%d messages: no batch, but the prompt begins otherwise", n+1)
		}
		before = now
	}
	if batches < 2 || batches > 30 {
		t.Errorf("%d batches in 60 prompts", batches)
	}
	if !strings.HasPrefix(before[0], "[Summary of ") {
		t.Errorf("at the end the first message is %.100q", before[0])
	}
}
