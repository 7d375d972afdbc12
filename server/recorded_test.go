package server_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/replay"
)

const (
	// recordedBudget is that of every prompt of a recorded run.
	recordedBudget = 32_000
	// undoEvery so many requests a batch is asked for and taken back.
	undoEvery = 15
	// tolerance is how far tokens and cost may be from those of the policy
	// replayed alone: a server shows a call and its result in a frame of its own.
	tolerance = .25
)

// Recorded runs, replayed through a whole server as their agents would have
// used it: no prompt is over its budget, a prompt goes on from the one before
// unless something is folded, tokens and cost are those of the policy replayed
// alone, taking a batch back gives the bytes there were, and whatever a fold
// names can be read back byte for byte.
func TestRecordedRunsSoak(t *testing.T) {
	dir := os.Getenv("LOOM_EVAL_DATA")
	if dir == "" {
		t.Skip("LOOM_EVAL_DATA does not name the folder with recorded runs")
	}
	for _, file := range []struct {
		name string
		runs []int
	}{{"mini_swe_dev", []int{0, 7, 21}}, {"tau_dev", []int{3, 40}}, {"swe_agent_demos", []int{1, 11}}} {
		all := MustRuns(t, filepath.Join(dir, "trajectories", file.name+".jsonl"))
		for _, i := range file.runs {
			run := all[i%len(all)]
			t.Run(fmt.Sprint(file.name, "/", i), func(t *testing.T) {
				MustReplay(t, run, false).check()
				MustReplay(t, run, true).checkUndone()
			})
		}
	}
}

// MustRuns reads a file of recorded runs, or skips the test.
func MustRuns(tb testing.TB, name string) []replay.Run {
	tb.Helper()
	f, err := os.Open(name)
	if err != nil {
		tb.Skipf("no recorded runs: %v", err)
	}
	defer f.Close()
	runs, err := replay.Read(f)
	must(tb, err)
	return runs
}

// recordedRun is a run while it is replayed through a server.
type recordedRun struct {
	tb      testing.TB
	server  *servertest.Server
	random  *rand.Rand
	counter *tokens.Counter
	// undoing: batches are asked for and taken back.
	undoing bool
	// alone is the policy without a server.
	alone replay.Session
	// texts are what the references of steps have to give.
	texts map[string]string
	last  *loombridgev1.AssembleResponse

	system      string
	requests    int
	undone      int
	sent, cost  float64
	alonePieces []replay.PromptPart
	aloneSent   float64
	aloneCost   float64
}

// MustReplay replays a run, and with undoing takes batches back now and then.
func MustReplay(tb testing.TB, run replay.Run, undoing bool) *recordedRun {
	tb.Helper()
	counter, err := tokens.New(nil)
	must(tb, err)
	r := &recordedRun{
		tb: tb, server: servertest.Start(tb, nil), random: rand.New(rand.NewPCG(5, 6)), counter: counter, undoing: undoing, texts: make(map[string]string),
	}
	first := 0
	if run.Messages[0].Role == "system" {
		r.system, first = run.Messages[0].Text, 1
	}
	// What the log gets is what the policy alone gets, without frames.
	for i := range run.Entries {
		run.Entries[i].Shown = ""
	}
	r.alone = replay.Ledger(replay.Settings{Budget: recordedBudget}).Start(&run, r.count)
	for i := first; i < len(run.Messages); i++ {
		m, e := run.Messages[i], run.Entries[i]
		if m.Role == "assistant" {
			r.request(i)
		}
		if e.Kind == history.Result && e.CallID != "" {
			r.record(run, e)
			continue
		}
		r.append(m, e)
	}
	return r
}

func (r *recordedRun) count(text string) int {
	n, err := r.counter.Count("", text)
	must(r.tb, err)
	return n.Tokens
}

// record records the result of a call.
func (r *recordedRun) record(run replay.Run, e history.Entry) {
	r.tb.Helper()
	request := &loombridgev1.RecordStepRequest{AgentId: agent, CallId: e.CallID, Success: e.Exit == nil || *e.Exit == 0}
	for i := int(e.Position) - 2; i >= 0 && request.GetToolName() == ""; i-- {
		for _, c := range run.Entries[i].Calls {
			if c.ID == e.CallID {
				request.ToolName = c.Name
				request.ArgumentsForm = &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: c.Args}
			}
		}
	}
	if request.GetSuccess() || len(e.Output) > step.MaxErrorBytes {
		request.Success = true
		request.OutputForm = &loombridgev1.RecordStepRequest_OutputText{OutputText: e.Output}
	} else {
		request.ErrorMessage = e.Output
	}
	got, err := r.server.Context.RecordStep(r.tb.Context(), request)
	must(r.tb, err)
	text := e.Output
	if !request.GetSuccess() && text != "" {
		text = got.GetStep().GetToolName() + " failed: " + text
	}
	r.texts[got.GetStep().GetId()] = text
}

// append records a message. Those of roles that only the harness knows are none
// of the conversation.
func (r *recordedRun) append(m replay.Message, e history.Entry) {
	r.tb.Helper()
	roles := map[string]loombridgev1.Role{"user": loombridgev1.Role_ROLE_USER, "assistant": loombridgev1.Role_ROLE_ASSISTANT}
	role, known := roles[m.Role]
	if !known {
		return
	}
	message := &loombridgev1.Message{Role: role, Content: m.Text, Observation: e.Kind == history.Result}
	for _, c := range m.Calls {
		message.ToolCalls = append(message.ToolCalls, &loombridgev1.ModelToolCall{Id: c.ID, Name: c.Name, ArgumentsJson: c.Args})
	}
	got, err := r.server.Context.AppendMessages(r.tb.Context(), &loombridgev1.AppendMessagesRequest{
		AgentId: agent, Messages: []*loombridgev1.Message{message},
	})
	must(r.tb, err)
	if message.GetObservation() {
		r.texts[fmt.Sprintf("message_%03d", got.GetPositions()[0])] = m.Text
	}
}

// request makes the prompt of one request, on the server and without.
func (r *recordedRun) request(i int) {
	r.tb.Helper()
	r.requests++
	got := r.assemble(false)
	total := got.GetTokens().GetTokens()
	if total > recordedBudget {
		r.tb.Fatalf("message %d: a prompt of %d tokens", i+1, total)
	}
	if r.last != nil && got.GetReceipt().GetBatch() == nil && !begins(got, r.last) {
		r.tb.Fatalf("message %d: nothing was folded, and the prompt does not begin with the one before", i+1)
	}
	r.sent += float64(total)
	r.cost += got.GetReceipt().GetCost()
	r.last = got
	if r.undoing && r.random.IntN(undoEvery) == 0 {
		r.undo()
	}
	if !r.undoing {
		r.requestAlone(i)
	}
}

func (r *recordedRun) assemble(dryRun bool) *loombridgev1.AssembleResponse {
	r.tb.Helper()
	got, err := r.server.Context.Assemble(r.tb.Context(), &loombridgev1.AssembleRequest{
		AgentId: agent, System: r.system, WithoutTools: true, MaxTokens: recordedBudget, DryRun: dryRun,
		// The prices of the policy alone.
		History: &loombridgev1.HistorySettings{Prices: &loombridgev1.TokenPrices{Input: 1, CachedInput: .1, CacheWrite: 1.25}},
		// The policy alone has nothing behind its history.
		Settings: &loombridgev1.PromptSettings{Sources: &loombridgev1.SourceSettings{Exclude: []string{"errors", "rehydrated"}}},
	})
	must(r.tb, err)
	return got
}

func (r *recordedRun) requestAlone(i int) {
	r.tb.Helper()
	v, err := r.alone.View(i)
	must(r.tb, err)
	same := 0
	for k, p := range v.Pieces {
		r.aloneSent += float64(p.Tokens)
		if same == k && k < len(r.alonePieces) && r.alonePieces[k] == p {
			same++
			r.aloneCost += .1 * float64(p.Tokens)
		} else {
			r.aloneCost += 1.25 * float64(p.Tokens)
		}
	}
	r.alonePieces = v.Pieces
}

// undo asks for a batch right after a prompt and takes it back: the prompt is
// what it was.
func (r *recordedRun) undo() {
	r.tb.Helper()
	made, err := r.server.Context.CompactHistory(r.tb.Context(), &loombridgev1.CompactHistoryRequest{AgentId: agent})
	must(r.tb, err)
	if made.GetBatch() == nil {
		return
	}
	before := r.last
	if after := r.assemble(true); begins(after, before) {
		r.tb.Error("a batch changed nothing")
	}
	undone, err := r.server.Context.Undo(r.tb.Context(), &loombridgev1.UndoRequest{AgentId: agent, Batch: made.GetBatch().GetNumber()})
	must(r.tb, err)
	if !slices.Equal(undone.GetRefs(), made.GetBatch().GetRefs()) {
		r.tb.Errorf("undone %v, folded %v", undone.GetRefs(), made.GetBatch().GetRefs())
	}
	r.undone++
	if again := r.assemble(true); !begins(again, before) || again.GetPrefixSha256() != before.GetPrefixSha256() {
		r.tb.Error("undo does not give the prompt there was")
	}
}

// checkUndone tells how often a batch was taken back.
func (r *recordedRun) checkUndone() {
	r.tb.Helper()
	r.tb.Logf("%d requests, %d batches undone", r.requests, r.undone)
	if r.requests > 5*undoEvery && r.undone == 0 {
		r.tb.Error("nothing was undone: the test tests little")
	}
}

// check compares the whole run with the policy alone, and reads back what is
// folded.
func (r *recordedRun) check() {
	r.tb.Helper()
	read := 0
	for _, f := range r.last.GetReceipt().GetFolds() {
		for _, ref := range eachRef(f.GetRefs()) {
			want, known := r.texts[ref]
			if !known {
				continue
			}
			_, got := MustReadBlob(r.tb, r.server, &loombridgev1.ReadBlobRequest{AgentId: agent, SessionId: "default", Name: ref})
			if string(got) != want {
				r.tb.Errorf("%s reads as %.60q, %d bytes, recorded was %.60q, %d bytes", ref, got, len(got), want, len(want))
			}
			read++
		}
	}
	r.tb.Logf("%d requests, %.3f of the tokens and %.3f of the cost of the policy alone, %d results read back",
		r.requests, r.sent/r.aloneSent, r.cost/r.aloneCost, read)
	for what, ratio := range map[string]float64{"tokens": r.sent / r.aloneSent, "cost": r.cost / r.aloneCost} {
		if ratio < 1-tolerance || ratio > 1+tolerance {
			r.tb.Errorf("%s are %.3f of those of the policy alone", what, ratio)
		}
	}
	if r.requests > 5*undoEvery && read == 0 {
		r.tb.Error("nothing was read back: the test tests little")
	}
}
