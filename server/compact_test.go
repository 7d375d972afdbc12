package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/observe"
)

// MustCompact folds what may be folded.
func MustCompact(tb testing.TB, w *work, r *loombridgev1.CompactHistoryRequest) *loombridgev1.CompactHistoryResponse {
	tb.Helper()
	r.AgentId, r.SessionId = agent, w.session
	got, err := w.server.Context.CompactHistory(tb.Context(), r)
	must(tb, err)
	return got
}

// freeCache makes reading the cache free, so that nothing is folded by price.
func (w *work) freeCache() {
	w.tb.Helper()
	MustConfigure(w.tb, w.server, &loombridgev1.ConfigureSessionRequest{SessionId: w.session, History: &loombridgev1.HistorySettings{
		Prices: &loombridgev1.TokenPrices{Input: 1, CacheWrite: 1.25},
	}})
}

// MustSteps records steps without assembling.
func MustSteps(tb testing.TB, w *work, n int) {
	tb.Helper()
	for range n {
		w.step()
	}
}

func TestCompactHistory(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Metrics: observe.NewMetrics(registry)}})
	patience, cancel := context.WithTimeout(t.Context(), attachPatience)
	defer cancel()
	folded, _ := MustSubscribe(t, patience, s.Events, &loombridgev1.SubscribeRequest{
		AgentId: "watcher", Topics: []*loombridgev1.TopicPosition{{Topic: "context.folded"}},
	})
	w := MustWork(t, s, "s1", 32_000)
	if empty := MustCompact(t, w, &loombridgev1.CompactHistoryRequest{}); empty.GetBatch() != nil || len(empty.GetFolds()) != 0 {
		t.Errorf("a session without steps folded %v", empty)
	}
	w.freeCache()
	MustSteps(t, w, 12)
	before := w.assemble(true)
	shown := MustCompact(t, w, &loombridgev1.CompactHistoryRequest{DryRun: true})
	checkSame(t, "after a dry run", before, w.assemble(true))

	got := MustCompact(t, w, &loombridgev1.CompactHistoryRequest{})
	if !proto.Equal(shown, got) {
		t.Errorf("the dry run had %v, it is %v", shown, got)
	}
	batch := got.GetBatch()
	if batch.GetNumber() != 1 || batch.GetReason() != loombridgev1.FoldReason_FOLD_REASON_CALLER || !slices.Contains(eachRef(batch.GetRefs()), "step_001") {
		t.Errorf("batch = %v", batch)
	}
	if len(got.GetFolds()) == 0 || got.GetText() != "" || got.GetTokens().GetTokens() == 0 {
		t.Errorf("answer = %v", got)
	}
	if after := w.assemble(true); after.GetTokens().GetTokens() >= before.GetTokens().GetTokens() {
		t.Errorf("%v tokens became %v", before.GetTokens(), after.GetTokens())
	}
	if again := MustCompact(t, w, &loombridgev1.CompactHistoryRequest{}); again.GetBatch() != nil || len(again.GetFolds()) != len(got.GetFolds()) {
		t.Errorf("compacted again: %v", again)
	}
	checkFolded(t, MustNext(t, folded).GetEvent(), batch)
	checkFoldMetrics(t, registry, batch)

	_, err := s.Context.Undo(t.Context(), &loombridgev1.UndoRequest{AgentId: agent, SessionId: "s1"})
	must(t, err)
	after := w.assemble(true)
	checkSame(t, "after the undo", before, after)
}

// checkFolded compares the event of a batch with it.
func checkFolded(tb testing.TB, e *loombridgev1.Event, batch *loombridgev1.FoldBatch) {
	tb.Helper()
	text, err := e.GetPayload().MarshalJSON()
	must(tb, err)
	var got struct {
		SessionID    string   `json:"session_id"`
		Batch        int64    `json:"batch"`
		Reason       string   `json:"reason"`
		Refs         []string `json:"refs"`
		BeforeTokens int32    `json:"before_tokens"`
		AfterTokens  int32    `json:"after_tokens"`
	}
	must(tb, json.Unmarshal(text, &got))
	if got.SessionID != "s1" || got.Batch != batch.GetNumber() || got.Reason != "caller" || e.GetSource() != agent ||
		got.BeforeTokens != batch.GetBeforeTokens() || got.AfterTokens != batch.GetAfterTokens() {
		tb.Errorf("event = %v", e)
	}
	if diff := cmp.Diff(batch.GetRefs(), got.Refs); diff != "" {
		tb.Errorf("refs (-want +got):\n%s", diff)
	}
}

func checkFoldMetrics(tb testing.TB, registry *prometheus.Registry, batch *loombridgev1.FoldBatch) {
	tb.Helper()
	families, err := registry.Gather()
	must(tb, err)
	got := map[string]float64{}
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), "loom_bridge_fold") {
			got[family.GetName()] = family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	want := map[string]float64{
		"loom_bridge_fold_batches_total":   1,
		"loom_bridge_folded_entries_total": float64(len(eachRef(batch.GetRefs()))),
		"loom_bridge_folded_tokens_total":  float64(batch.GetBeforeTokens() - batch.GetAfterTokens()),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("metrics (-want +got):\n%s", diff)
	}
}

func TestCompactHistoryAsText(t *testing.T) {
	w := MustWork(t, servertest.Start(t, nil), "s1", 32_000)
	MustSteps(t, w, 8)
	before := w.assemble(true)
	for style, want := range map[loombridgev1.HistoryStyle][2]string{
		loombridgev1.HistoryStyle_HISTORY_STYLE_DESIGN:    {"Previous steps:\n  • ", "\n\nRecent steps:\n"},
		loombridgev1.HistoryStyle_HISTORY_STYLE_REDUCTION: {"Earlier steps:\n• ", "\n\nRecent steps:\n\n"},
		loombridgev1.HistoryStyle_HISTORY_STYLE_GROUPED:   {"Previous actions (summarized):\n", "\n\nRecent actions:\n"},
	} {
		got := MustCompact(t, w, &loombridgev1.CompactHistoryRequest{Style: style, KeepRecent: 2})
		if !strings.HasPrefix(got.GetText(), want[0]) || !strings.Contains(got.GetText(), want[1]) || got.GetTokens().GetTokens() == 0 {
			t.Errorf("%v: %q", style, got.GetText())
		}
		if got.GetBatch() != nil {
			t.Errorf("%v folded %v", style, got.GetBatch())
		}
	}
	checkSame(t, "after the texts", before, w.assemble(true))
}

// A policy of the call is stronger than that of the session, and changes
// nothing for the next call.
func TestAssembleByPolicy(t *testing.T) {
	w := MustWork(t, servertest.Start(t, nil), "s1", 32_000)
	MustSteps(t, w, 12)
	MustConfigure(t, w.server, &loombridgev1.ConfigureSessionRequest{SessionId: "s1", MaxTokens: 30_000, Model: "gpt-4", History: &loombridgev1.HistorySettings{Policy: appendOnly}})
	byPolicy := func(h *loombridgev1.HistorySettings) *loombridgev1.AssembleResponse {
		r := w.request()
		r.History, r.MaxTokens, r.DryRun = h, 0, true
		got, err := w.server.Context.Assemble(t.Context(), r)
		must(t, err)
		return got
	}
	for name, h := range map[string]*loombridgev1.HistorySettings{
		"append_only": nil,
		"ledger":      {Policy: ledger},
		"design":      {Preset: "design", Literal: new(true)},
		"reduction":   {Preset: "reduction", Literal: new(true)},
		"research":    {Policy: preset, Preset: "research", Literal: new(true)},
	} {
		got := byPolicy(h)
		if got.GetReceipt().GetPolicy() != name || got.GetTokens().GetCounter() != "cl100k_base" {
			t.Errorf("%s: %v, %v", name, got.GetReceipt().GetPolicy(), got.GetTokens())
		}
	}
	if whole, design := byPolicy(nil), byPolicy(&loombridgev1.HistorySettings{Preset: "design", Literal: new(true)}); design.GetTokens().GetTokens() >= whole.GetTokens().GetTokens() {
		t.Errorf("design takes %v, everything %v", design.GetTokens(), whole.GetTokens())
	}
	_, err := w.server.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, History: &loombridgev1.HistorySettings{Policy: preset}})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	if diff := cmp.Diff([]string{"history.preset"}, fieldsOf(err)); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

// What can't be folded enough is named.
func TestAssembleOverflowIsNamed(t *testing.T) {
	s := servertest.Start(t, nil)
	w := MustWork(t, s, "s1", 2000)
	_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{
		AgentId: agent, SessionId: "s1", Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_SYSTEM, Content: strings.Repeat("word ", 5000)}},
	})
	must(t, err)
	r := w.request()
	r.WithoutTools = true
	_, err = s.Context.Assemble(t.Context(), r)
	info := MustFail(t, err, codes.FailedPrecondition, "CONTEXT_OVERFLOW")
	for _, key := range []string{"part", "part_tokens", "total_tokens"} {
		if info.GetMetadata()[key] == "" {
			t.Errorf("metadata = %v", info.GetMetadata())
		}
	}
	if info.GetMetadata()["max_tokens"] != "2000" || !strings.Contains(info.GetMetadata()["part"], "system") {
		t.Errorf("metadata = %v", info.GetMetadata())
	}
}

// A task that is too long is cut, not refused: under the default policy and a preset, as
// the goal and as what the user said last.
//
// G14, P06
func TestLongTaskIsServed(t *testing.T) {
	s := servertest.Start(t, nil)
	long := "FIRST " + strings.Repeat("word ", 5000) + "LAST"
	for _, policy := range []*loombridgev1.HistorySettings{nil, {Policy: loombridgev1.HistoryPolicy_HISTORY_POLICY_APPEND_ONLY}, {Preset: "reduction"}} {
		for _, goal := range []string{long, ""} {
			r := &loombridgev1.AssembleRequest{AgentId: agent, SessionId: fmt.Sprint(policy.GetPolicy(), policy.GetPreset(), len(goal)), History: policy, Goal: goal, MaxTokens: 2000, WithoutTools: true}
			if goal == "" {
				_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{
					AgentId: agent, SessionId: r.GetSessionId(), Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: long}},
				})
				must(t, err)
			}
			p, err := s.Context.Assemble(t.Context(), r)
			must(t, err)
			if text := promptText(p); p.GetTokens().GetTokens() > 2000 || !strings.Contains(text, "FIRST word") || !strings.Contains(text, "word LAST") {
				t.Errorf("%v: %d tokens: %.300s", policy, p.GetTokens().GetTokens(), text)
			}
		}
	}
}

// A pinned step is never folded.
func TestPinnedStepsStay(t *testing.T) {
	w := MustWork(t, servertest.Start(t, nil), "s1", 32_000)
	var rules strings.Builder
	for i := range 100 {
		fmt.Fprintf(&rules, "rule %d: keep every byte of this\n", i)
	}
	text := rules.String()
	recorded, err := w.server.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
		AgentId: agent, SessionId: "s1", ToolName: "my.rules", Success: true, Pinned: true,
		OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: text},
	})
	must(t, err)
	w.outputs = append(w.outputs, text)
	MustSteps(t, w, 12)
	batch := MustCompact(t, w, &loombridgev1.CompactHistoryRequest{}).GetBatch()
	if id := recorded.GetStep().GetId(); batch == nil || slices.Contains(eachRef(batch.GetRefs()), id) {
		t.Errorf("folded %v", batch.GetRefs())
	}
	shown := slices.ContainsFunc(w.assemble(true).GetMessages(), func(m *loombridgev1.Message) bool { return strings.Contains(m.GetContent(), text) })
	if !shown {
		t.Errorf("the pinned step is not shown whole: %v", w.assemble(true).GetMessages()[2:4])
	}
}

func mustJSON(tb testing.TB, v any) []byte {
	tb.Helper()
	text, err := json.Marshal(v)
	must(tb, err)
	return text
}

func TestReportUsage(t *testing.T) {
	o := &servertest.Options{Engine: MustEngine(t)}
	s := servertest.Start(t, o)
	w := MustWork(t, s, "s1", 32_000)
	MustSteps(t, w, 5)
	first := w.assemble(false)
	report := &loombridgev1.ReportUsageRequest{
		AgentId: agent, SessionId: "s1", PromptId: first.GetReceipt().GetPromptId(),
		PromptTokens: first.GetTokens().GetTokens() * 11 / 10, CompletionTokens: 50,
	}
	learned, err := s.Context.ReportUsage(t.Context(), report)
	must(t, err)
	if learned.GetRatio() < 1.05 || learned.GetRatio() > 1.15 {
		t.Errorf("learned = %v", learned)
	}
	MustSteps(t, w, 1)
	second := w.assemble(false)
	if c := second.GetTokens(); c.GetCertainty() != loombridgev1.TokenCertainty_TOKEN_CERTAINTY_ANCHORED || c.GetTokens() <= report.GetPromptTokens() {
		t.Errorf("tokens = %v", c)
	}
	for name, bad := range map[string]*loombridgev1.ReportUsageRequest{
		"no such prompt":  {AgentId: agent, SessionId: "s1", PromptId: "nonsense", PromptTokens: 10},
		"another session": {AgentId: agent, SessionId: "s2", PromptId: report.GetPromptId(), PromptTokens: 10},
		"another agent":   {AgentId: "other", SessionId: "s1", PromptId: report.GetPromptId(), PromptTokens: 10},
	} {
		if _, err := s.Context.ReportUsage(t.Context(), bad); infoOf(err).GetReason() != "PROMPT_UNKNOWN" {
			t.Errorf("%s: %v", name, err)
		}
	}
	report.PromptId = second.GetReceipt().GetPromptId()
	_, err = servertest.Start(t, o).Context.ReportUsage(t.Context(), report)
	MustFail(t, err, codes.FailedPrecondition, "PROMPT_UNKNOWN")
}

// A summary that can't stand in a fold is left out, never refused: the history is
// folded all the same, and the answer says why.
//
// B01
func TestSummaryThatIsLeftOut(t *testing.T) {
	s := servertest.Start(t, nil)
	for summary, problem := range map[string]string{
		"":                           "",
		"The fault is found.":        "",
		" \n\t ":                     "it is blank",
		strings.Repeat("word ", 600): "it is longer than 500 tokens",
		strings.Repeat("x ", 1<<15):  "it is longer than 500 tokens",
	} {
		w := MustWork(t, s, fmt.Sprint("s", len(summary)), 32_000)
		w.freeCache()
		MustSteps(t, w, 12)
		got := MustCompact(t, w, &loombridgev1.CompactHistoryRequest{Summary: summary})
		if got.GetSummaryProblem() != problem || got.GetBatch() == nil {
			t.Errorf("%.20q: problem %q, batch %v", summary, got.GetSummaryProblem(), got.GetBatch())
		}
		text := ""
		for _, m := range w.assemble(true).GetMessages() {
			text += m.GetContent()
		}
		if has := strings.Contains(text, "Summary: "); has != (summary != "" && problem == "") {
			t.Errorf("%.20q: it stands in the fold: %v", summary, has)
		}
		again := MustCompact(t, w, &loombridgev1.CompactHistoryRequest{Summary: "There is nothing more."})
		if again.GetSummaryProblem() != "nothing was folded" || again.GetBatch() != nil {
			t.Errorf("again: %q, %v", again.GetSummaryProblem(), again.GetBatch())
		}
	}
}

// A caller's summary stands at the head of the fold, and replaces no line.
func TestCompactHistoryWithSummary(t *testing.T) {
	s := servertest.Start(t, nil)
	plain, told := MustWork(t, s, "plain", 32_000), MustWork(t, s, "told", 32_000)
	folds := make(map[string]string)
	for session, r := range map[*work]*loombridgev1.CompactHistoryRequest{
		plain: {}, told: {Summary: "The fault is in the parser;\nthe fix is not tested yet."},
	} {
		session.freeCache()
		MustSteps(t, session, 12)
		if MustCompact(t, session, r).GetBatch() == nil {
			t.Fatal("nothing was folded")
		}
		for _, m := range session.assemble(true).GetMessages() {
			if strings.Contains(m.GetContent(), "folded") {
				folds[session.session] = m.GetContent()
			}
		}
	}
	const line = "Summary: The fault is in the parser; the fix is not tested yet.\n"
	if !strings.Contains(folds["told"], line) {
		t.Errorf("no summary in\n%s", folds["told"])
	}
	stepLines := func(fold string) int { return strings.Count(fold, " → ") }
	if stepLines(folds["told"]) != stepLines(folds["plain"]) {
		t.Errorf("with a summary:\n%s\nwithout:\n%s", folds["told"], folds["plain"])
	}
}
