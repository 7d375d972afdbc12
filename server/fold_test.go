package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// work is an agent's session of made-up coding work: what it records is known,
// so that it can be compared with what comes back.
type work struct {
	tb      testing.TB
	server  *servertest.Server
	random  *rand.Rand
	session string
	budget  int32
	// outputs are the texts of the steps, from step_001.
	outputs []string
	// last is the prompt before.
	last *loombridgev1.AssembleResponse
}

// MustWork begins a session that asks for something.
func MustWork(tb testing.TB, s *servertest.Server, session string, budget int32) *work {
	tb.Helper()
	w := &work{tb: tb, server: s, random: rand.New(rand.NewPCG(1, uint64(len(session)))), session: session, budget: budget}
	_, err := s.Context.AppendMessages(tb.Context(), &loombridgev1.AppendMessagesRequest{
		AgentId: agent, SessionId: session, Messages: []*loombridgev1.Message{
			{Role: loombridgev1.Role_ROLE_USER, Content: "The tests of src/parse fail since yesterday. Find out why and mend it."},
		},
	})
	must(tb, err)
	return w
}

// step records one step of a realistic size: mostly small, now and then a file
// or a long log, one in ten a failure.
func (w *work) step() {
	w.tb.Helper()
	n := len(w.outputs) + 1
	text, failed := w.output(n), n%10 == 7
	request := &loombridgev1.RecordStepRequest{
		AgentId: agent, SessionId: w.session, ToolName: "system:shell", Success: !failed,
		Thought: fmt.Sprintf("Look at part %d of the parser next.", n),
		ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{
			ArgumentsJson: fmt.Sprintf(`{"command":"sed -n %d,%dp src/parse/part_%03d.go"}`, n, n+80, n),
		},
	}
	if failed {
		request.ErrorMessage = text
	} else {
		request.OutputForm = &loombridgev1.RecordStepRequest_OutputText{OutputText: text}
	}
	_, err := w.server.Context.RecordStep(w.tb.Context(), request)
	must(w.tb, err)
	w.outputs = append(w.outputs, text)
}

func (w *work) output(n int) string {
	if n%10 == 7 {
		return fmt.Sprintf("src/parse/part_%03d.go:%d: error: undefined: node%d\nexit status 2", n, n, n)
	}
	lines := 3 + w.random.IntN(30)
	if n%12 == 0 {
		lines = 250
	}
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "%d\tfunc part%dName%d(in []token) (*node, error) { return pick(in, %d), nil } // src/parse/part_%03d.go\n",
			i, n, i, w.random.IntN(1_000_000), n)
	}
	return b.String()
}

func (w *work) request() *loombridgev1.AssembleRequest {
	return &loombridgev1.AssembleRequest{
		AgentId: agent, SessionId: w.session, System: "You mend programs.", Goal: "Mend the parser.", MaxTokens: w.budget,
	}
}

func (w *work) assemble(dryRun bool) *loombridgev1.AssembleResponse {
	w.tb.Helper()
	r := w.request()
	r.DryRun = dryRun
	got, err := w.server.Context.Assemble(w.tb.Context(), r)
	must(w.tb, err)
	return got
}

// next assembles the prompt of the next turn and checks it against the one
// before.
func (w *work) next() *loombridgev1.FoldBatch {
	w.tb.Helper()
	got := w.assemble(false)
	if total := got.GetTokens().GetTokens(); total > w.budget {
		w.tb.Fatalf("step %d: %d tokens, over the budget of %d", len(w.outputs), total, w.budget)
	}
	receipt := got.GetReceipt()
	if batch := receipt.GetBatch(); batch != nil {
		w.checkBatch(receipt)
	} else if w.last != nil && !begins(got, w.last) {
		w.tb.Fatalf("step %d: nothing was folded, and the prompt does not begin with the one before", len(w.outputs))
	}
	w.last = got
	return receipt.GetBatch()
}

// checkBatch looks for what a batch folded in the folds.
func (w *work) checkBatch(receipt *loombridgev1.Receipt) {
	w.tb.Helper()
	folded := map[string]bool{}
	for _, f := range receipt.GetFolds() {
		for _, ref := range eachRef(f.GetRefs()) {
			folded[ref] = true
		}
		if f.GetTokens() >= f.GetBeforeTokens() {
			w.tb.Errorf("fold %v", f)
		}
	}
	batch := receipt.GetBatch()
	if len(batch.GetRefs()) == 0 || batch.GetAfterTokens() >= batch.GetBeforeTokens() || batch.GetReason() == 0 {
		w.tb.Errorf("batch %v", batch)
	}
	for _, ref := range eachRef(batch.GetRefs()) {
		if !folded[ref] {
			w.tb.Errorf("%s was folded and is in no fold", ref)
		}
	}
}

// settled are the messages of a prompt before its goal.
func settled(p *loombridgev1.AssembleResponse) []*loombridgev1.Message {
	return p.GetMessages()[:len(p.GetMessages())-1]
}

// begins reports whether a prompt begins with another one, the goal left out.
func begins(p, earlier *loombridgev1.AssembleResponse) bool {
	old, all := settled(earlier), settled(p)
	return len(all) >= len(old) && slices.EqualFunc(old, all[:len(old)], func(a, b *loombridgev1.Message) bool { return proto.Equal(a, b) })
}

// checkSame compares two prompts in everything but what is told of the prompt
// before.
func checkSame(tb testing.TB, what string, want, got *loombridgev1.AssembleResponse) {
	tb.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreFields(&loombridgev1.Receipt{},
		"stable_tokens", "cost", "append_only_cost", "difference", "expected_cached_tokens"),
		protocmp.IgnoreFields(&loombridgev1.AssembleResponse{}, "cache_marks")); diff != "" {
		tb.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// A session of 200 steps under a budget that it would exceed several times
// over.
// It is never over its budget (context G2), and every fold can be undone (context G9).
func TestLongSession(t *testing.T) {
	engine := MustEngine(t)
	o := &servertest.Options{Engine: engine, Workspace: t.TempDir()}
	s := servertest.Start(t, o)
	w := MustWork(t, s, "s1", 32_000)
	batches, undone := 0, false
	for n := range 200 {
		w.step()
		before := w.assemble(true)
		if n%20 == 0 {
			checkSame(t, "a dry run again", before, w.assemble(true))
		}
		if n == 100 {
			w.server = servertest.Start(t, o)
			checkSame(t, "after a restart", before, w.assemble(true))
		}
		last := w.last
		if w.next() == nil {
			continue
		}
		batches++
		checkSame(t, "the dry run before", before, w.last)
		if byPrice := w.last.GetReceipt().GetBatch().GetReason() == loombridgev1.FoldReason_FOLD_REASON_PRICE; byPrice && !undone {
			undone = true
			w.undo(last)
		}
	}
	if receipt := w.last.GetReceipt(); batches < 2 || !undone || receipt.GetPolicy() != "ledger" {
		t.Errorf("%d batches, undone %v, receipt %v", batches, undone, receipt)
	}
	w.checkReadBack()
}

// undo takes the last batch back: the prompt then begins with the bytes it had
// before the batch.
func (w *work) undo(before *loombridgev1.AssembleResponse) {
	w.tb.Helper()
	batch := w.last.GetReceipt().GetBatch()
	_, err := w.server.Context.Undo(w.tb.Context(), &loombridgev1.UndoRequest{AgentId: agent, SessionId: w.session, Batch: batch.GetNumber() + 1})
	MustFail(w.tb, err, codes.FailedPrecondition, "NOTHING_TO_UNDO")
	request := &loombridgev1.UndoRequest{AgentId: agent, SessionId: w.session, Batch: batch.GetNumber(), RequestId: "undo-1"}
	undone, err := w.server.Context.Undo(w.tb.Context(), request)
	must(w.tb, err)
	if diff := cmp.Diff(batch.GetRefs(), undone.GetRefs()); diff != "" {
		w.tb.Errorf("undone %v, refs (-want +got):\n%s", undone, diff)
	}
	again, err := w.server.Context.Undo(w.tb.Context(), request)
	if err != nil || !proto.Equal(undone, again) {
		w.tb.Errorf("the same request again: %v, %v", again, err)
	}
	w.last = before
	if w.next() != nil {
		w.tb.Error("what was undone was folded again at once")
	}
}

// eachRef has every step and message of refs by itself.
func eachRef(refs []string) []string {
	var all []string
	for _, ref := range refs {
		var first, last int
		kind, _, _ := strings.Cut(ref, "_")
		if n, _ := fmt.Sscanf(ref, kind+"_%d.."+kind+"_%d", &first, &last); n < 2 {
			all = append(all, ref)
			continue
		}
		for i := first; i <= last; i++ {
			all = append(all, fmt.Sprintf("%s_%03d", kind, i))
		}
	}
	return all
}

// checkReadBack reads every folded step as the folds say.
func (w *work) checkReadBack() {
	w.tb.Helper()
	folded := 0
	for _, f := range w.last.GetReceipt().GetFolds() {
		for _, ref := range eachRef(f.GetRefs()) {
			number := 0
			if _, err := fmt.Sscanf(ref, "step_%d", &number); err != nil {
				w.tb.Fatalf("ref %q", ref)
			}
			folded++
			_, blob := MustReadBlob(w.tb, w.server, &loombridgev1.ReadBlobRequest{AgentId: agent, SessionId: w.session, Name: ref})
			for how, got := range map[string]string{"fs:read_file": w.read(ref), "ReadBlob": string(blob)} {
				if want := w.outputs[number-1]; !isWhole(got, want) {
					w.tb.Errorf("%s by %s: %d bytes, want %d", ref, how, len(got), len(want))
				}
			}
		}
	}
	if folded < 100 {
		w.tb.Errorf("%d steps are folded", folded)
	}
}

// isWhole reports whether a text is a step's output. Of one that was too small to
// be offloaded it is all that the prompt showed, which begins with the exit code.
func isWhole(got, output string) bool {
	return got == output || got == "exit 0\n"+output
}

// read runs fs:read_file without leaving a step in the session: the whole, or
// what is too long for one answer in parts.
func (w *work) read(ref string) string {
	w.tb.Helper()
	text, next := w.readPart(map[string]any{"path": ref})
	if next == 0 {
		return text
	}
	text = ""
	for offset := int64(0); ; offset = next {
		var part string
		part, next = w.readPart(map[string]any{"path": ref, "offset_bytes": offset})
		if text += part; next == 0 {
			return text
		}
	}
}

// readPart returns a part of a text and where it goes on; 0 is the end.
func (w *work) readPart(args map[string]any) (text string, next int64) {
	w.tb.Helper()
	answer, err := w.server.Bridge.Tool(convert.AskText(w.tb.Context()), &loombridgev1.ToolRequest{
		AgentId: agent, SessionId: "reader", Name: "fs:read_file",
		ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: string(mustJSON(w.tb, args))},
	})
	must(w.tb, err)
	var out struct {
		Content string
		Next    int64 `json:"next_offset_bytes"`
	}
	must(w.tb, errors.Join(json.Unmarshal([]byte(answer.GetOutputJson()), &out), failureOfTool(answer)))
	if answer.GetOutputTruncated() && out.Next == 0 {
		return out.Content, int64(len(out.Content))
	}
	return out.Content, out.Next
}

func failureOfTool(answer *loombridgev1.ToolResponse) error {
	if answer.GetSuccess() {
		return nil
	}
	return errors.New(answer.GetErrorMessage())
}

// Where what the user said fills the budget, the newest results stay and the oldest words
// leave; what left is named, and comes back by its name.
func TestOldWordsMakeRoomForRecordedSteps(t *testing.T) {
	c := as(t, servertest.Start(t, nil), agent)
	said := make([]string, 17)
	for i := range said {
		said[i] = fmt.Sprintf("wish %d: %s", i, words(95))
		c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: said[i]})
	}
	c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: "compare the three"})
	for i := range 3 {
		c.record(&loombridgev1.RecordStepRequest{
			ToolName: "my.search", Success: true, TurnId: "t1", CallId: fmt.Sprint("c", i),
			OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: fmt.Sprintf("found %d: %s", i, words(800))},
		})
	}
	for _, format := range []loombridgev1.PromptFormat{loombridgev1.PromptFormat_PROMPT_FORMAT_UNSPECIFIED, loombridgev1.PromptFormat_PROMPT_FORMAT_ANTHROPIC} {
		prompt := MustAssemble(t, c.Server, &loombridgev1.AssembleRequest{SessionId: "s", Goal: "compare", WithoutTools: true, Model: "gpt-4o", MaxTokens: 2000, Format: format})
		shown := shownIn(prompt) + prompt.GetPromptJson()
		for _, want := range []string{"found 0: word word word", "found 1: word word word", "found 2: word word word", "compare the three", said[len(said)-1]} {
			if !strings.Contains(shown, want) {
				t.Errorf("%v: %.30q is not there:\n%s", format, want, shown)
			}
		}
		var n, first, last int
		_, named, _ := strings.Cut(shown, "Earlier messages are left out, ")
		if _, err := fmt.Sscanf(named, "%d from message_%d to message_%d.", &n, &first, &last); err != nil || first != 1 || n != last {
			t.Fatalf("%v: %.80q: %v", format, named, err)
		}
		for i := range said {
			if in := strings.Contains(shown, said[i]); in == (i < last) {
				t.Errorf("%v: wish %d of which %d left: shown %v", format, i, last, in)
			}
			if got := c.read(fmt.Sprintf("message_%03d", i+1)); got != said[i] {
				t.Errorf("wish %d reads as %.60q", i, got)
			}
		}
	}
}
