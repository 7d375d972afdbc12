package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// worker takes tasks up and works on them.
type worker struct {
	*testing.T
	s     *servertest.Server
	steps int
}

// take takes a task up, as a part of another one.
func (w *worker) take(id, parent string) {
	w.Helper()
	_, err := w.s.Bridge.Emit(w.Context(), taskEvent("s1", "execute", fmt.Sprintf(`{"task_id":%q,"parent_task_id":%q}`, id, parent)))
	must(w, err)
}

// work records steps, of which each shows a long result with a word of its own.
func (w *worker) work(n int) {
	w.Helper()
	for range n {
		w.steps++
		_, err := w.s.Context.RecordStep(w.Context(), &loombridgev1.RecordStepRequest{
			AgentId: agent, SessionId: "s1", ToolName: "my.tool", Success: true,
			OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: fmt.Sprintf("found word%03d in %s", w.steps, strings.Repeat("a long text ", 40))},
		})
		must(w, err)
	}
}

// prompt is the text of a prompt.
func (w *worker) prompt() string {
	w.Helper()
	got, err := w.s.Context.Assemble(w.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s1", WithoutTools: true})
	must(w, err)
	var text strings.Builder
	for _, m := range got.GetMessages() {
		text.WriteString(m.GetContent() + "\n")
	}
	return text.String()
}

// shows fails unless the prompt has the results of these steps and of no other.
func (w *worker) shows(text string, steps ...int) {
	w.Helper()
	var want, got []int
	want = append(want, steps...)
	for n := 1; n <= w.steps; n++ {
		if strings.Contains(text, fmt.Sprintf("word%03d", n)) {
			got = append(got, n)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("results of steps (-want +got):\n%s in\n%s", diff, text)
	}
}

func (w *worker) complete(r *loombridgev1.CompleteTaskRequest) *loombridgev1.CompleteTaskResponse {
	w.Helper()
	r.AgentId = agent
	got, err := w.s.Context.CompleteTask(w.Context(), r)
	must(w, err)
	return got
}

// A task that is done stands in prompts as one line, its conclusion, which names its steps.
// The steps of others stay, what belongs to it goes with it, and Undo brings all back.
//
// L08
func TestCompleteTaskFolds(t *testing.T) {
	w := &worker{T: t, s: servertest.Start(t, nil)}
	w.work(1)
	w.take("t1", "")
	w.work(3)
	w.take("t1.1", "t1")
	w.work(2)
	whole := w.prompt()
	w.shows(whole, 1, 2, 3, 4, 5, 6)

	part := w.complete(&loombridgev1.CompleteTaskRequest{TaskId: "t1.1", Conclusion: "The part is done."})
	if diff := cmp.Diff([]string{"step_005", "step_006"}, part.GetFold().GetRefs()); diff != "" || part.GetFold().GetNumber() != 1 || part.GetFold().GetAfterTokens() >= part.GetFold().GetBeforeTokens() {
		t.Errorf("the part's fold is %v", part)
	}
	text := w.prompt()
	w.shows(text, 1, 2, 3, 4)
	if !strings.Contains(text, "\n[Subtask t1.1] The part is done. → step_005, step_006\n") {
		t.Errorf("the prompt has no line of the part:\n%s", text)
	}

	w.take("t2", "")
	w.work(2)
	fold := w.complete(&loombridgev1.CompleteTaskRequest{TaskId: "t1", Conclusion: "Hamsters are rodents.\nThey store food."})
	if diff := cmp.Diff([]string{"step_002..step_006"}, fold.GetFold().GetRefs()); diff != "" || fold.GetProblem() != "" {
		t.Errorf("the fold is %v", fold)
	}
	text = w.prompt()
	w.shows(text, 1, 7, 8)
	if !strings.Contains(text, "\n[Subtask t1] Hamsters are rodents.\nThey store food. → step_002..step_006\n") || strings.Contains(text, "t1.1") {
		t.Errorf("the prompt has no line of the task:\n%s", text)
	}
	if l1 := MustAsk(t, w.s, "s1", "query_l1_memory", `{}`); !strings.Contains(fmt.Sprint(l1.values("result")), "Hamsters are rodents.") {
		t.Errorf("the tasks have the results %q", l1.values("result"))
	}

	// Repeated, it finds nothing left; with another result it is refused.
	if again := w.complete(&loombridgev1.CompleteTaskRequest{TaskId: "t1", Conclusion: "Hamsters are rodents.\nThey store food."}); again.GetFold().GetNumber() != 0 || again.GetProblem() == "" {
		t.Errorf("again: %v", again)
	}
	_, err := w.s.Context.CompleteTask(t.Context(), &loombridgev1.CompleteTaskRequest{AgentId: agent, TaskId: "t1", Conclusion: "Something else."})
	MustFail(t, err, codes.AlreadyExists, "RECORD_EXISTS")

	undo := &loombridgev1.UndoRequest{AgentId: agent, SessionId: "s1", Batch: fold.GetFold().GetNumber()}
	_, err = w.s.Context.Undo(t.Context(), undo)
	must(t, err)
	text = w.prompt()
	w.shows(text, 1, 2, 3, 4, 7, 8)
	if !strings.Contains(text, "[Subtask t1.1]") || strings.Contains(text, "[Subtask t1] ") {
		t.Errorf("undone:\n%s", text)
	}
	undo.Batch = part.GetFold().GetNumber()
	_, err = w.s.Context.Undo(t.Context(), undo)
	must(t, err)
	if text = w.prompt(); !strings.HasPrefix(text, strings.TrimSuffix(whole, "\n")) {
		t.Errorf("with both undone, the prompt does not begin as it was:\n%s\nwas\n%s", text, whole)
	}
}

// Which steps are a task's can be said; what failed has its error; and every step that was
// folded is read by its name.
//
// L08
func TestCompleteTaskOfSteps(t *testing.T) {
	w := &worker{T: t, s: servertest.Start(t, nil)}
	w.take("odd", "")
	w.take("even", "")
	w.work(6)
	fold := w.complete(&loombridgev1.CompleteTaskRequest{TaskId: "odd", Failed: true, Error: "nothing was found", StepIds: []string{"step_005", "step_001", "step_003"}})
	if diff := cmp.Diff([]string{"step_001", "step_003", "step_005"}, fold.GetFold().GetRefs()); diff != "" {
		t.Errorf("refs (-want +got):\n%s", diff)
	}
	text := w.prompt()
	w.shows(text, 2, 4, 6)
	if !strings.Contains(text, "[Subtask odd] ✗ nothing was found → step_001, step_003, step_005\n") {
		t.Errorf("the prompt:\n%s", text)
	}
	for _, n := range []int{1, 3, 5} {
		got, err := w.s.Bridge.Tool(convert.AskText(t.Context()), &loombridgev1.ToolRequest{
			AgentId: agent, SessionId: "other", Name: "fs:read_file",
			ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: fmt.Sprintf(`{"path":"step_%03d"}`, n)},
		})
		if err != nil || !strings.Contains(got.GetOutputJson(), fmt.Sprintf("word%03d", n)) {
			t.Errorf("step %d: %v %v", n, got, err)
		}
	}
	for name, tt := range map[string]struct {
		r      *loombridgev1.CompleteTaskRequest
		code   codes.Code
		reason string
	}{
		"nobody's":        {&loombridgev1.CompleteTaskRequest{TaskId: "none"}, codes.NotFound, "AGENT_NOT_FOUND"},
		"of a child":      {&loombridgev1.CompleteTaskRequest{TaskId: "even", Grants: []string{"step_001"}}, codes.InvalidArgument, "INVALID_REQUEST"},
		"another session": {&loombridgev1.CompleteTaskRequest{TaskId: "even", SessionId: "s2"}, codes.InvalidArgument, "INVALID_REQUEST"},
		"no step":         {&loombridgev1.CompleteTaskRequest{TaskId: "even", StepIds: []string{"step_099"}}, codes.NotFound, "STEP_NOT_FOUND"},
		"no id":           {&loombridgev1.CompleteTaskRequest{TaskId: "even", StepIds: []string{"99"}}, codes.InvalidArgument, "INVALID_REQUEST"},
	} {
		tt.r.AgentId, tt.r.Conclusion = agent, "done"
		_, err := w.s.Context.CompleteTask(t.Context(), tt.r)
		t.Log(name)
		MustFail(t, err, tt.code, tt.reason)
	}
	w.shows(w.prompt(), 2, 4, 6)
	if l1 := MustAsk(t, w.s, "s1", "query_l1_memory", `{}`); strings.Contains(fmt.Sprint(l1.values("result")), "done") {
		t.Errorf("a refused call left the results %q", l1.values("result"))
	}

	// A conclusion that is longer than its steps stands nowhere but in the task.
	w.take("short", "")
	if fold := w.complete(&loombridgev1.CompleteTaskRequest{TaskId: "short", Conclusion: "It was nothing."}); fold.GetFold().GetNumber() != 0 || fold.GetProblem() == "" {
		t.Errorf("nothing to fold: %v", fold)
	}
}

// The window under a small budget folds a conclusion again with the rest, and still says
// what it was.
//
// L08
func TestCompletedTasksUnderPressure(t *testing.T) {
	w := &worker{T: t, s: servertest.Start(t, nil)}
	for n := range 12 {
		id := fmt.Sprint("job", n)
		w.take(id, "")
		w.work(4)
		w.complete(&loombridgev1.CompleteTaskRequest{TaskId: id, Conclusion: fmt.Sprintf("Job %d gave answer%03d.", n, n)})
	}
	w.work(3)
	for budget, first := range map[int32]int{700: 0, 500: 8} {
		got, err := w.s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s1", WithoutTools: true, MaxTokens: budget, DryRun: true})
		must(t, err)
		text := ""
		for _, m := range got.GetMessages() {
			text += m.GetContent() + "\n"
		}
		for n := first; n < 12; n++ {
			if !strings.Contains(text, fmt.Sprintf("[Subtask job%d] Job %d gave answer%03d.", n, n, n)) {
				t.Errorf("%d tokens: job %d is not told of in\n%s", budget, n, text)
			}
		}
	}
}
