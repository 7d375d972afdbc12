package convert

import (
	"cmp"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/window"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Config reads settings; what is unset stays zero. A preset without a policy
// brings its policy along.
func Config(h *loombridgev1.HistorySettings) session.Config {
	c := session.Config{
		Policy: nameOf(h.GetPolicy()), Preset: h.GetPreset(),
		ExpectedTurns: int(h.GetExpectedSteps()), ResultTokens: int(h.GetMaxResultTokens()),
	}
	if h != nil {
		c.Literal = h.Literal
	}
	if p := h.GetPrices(); p != nil {
		c.Prices = history.Prices{Input: p.GetInput(), CachedInput: p.GetCachedInput(), CacheWrite: p.GetCacheWrite()}
	}
	return c
}

// Configured writes the settings that hold.
func Configured(c session.Config) *loombridgev1.ConfigureSessionResponse {
	h := &loombridgev1.HistorySettings{
		Policy: enumOf[loombridgev1.HistoryPolicy](cmp.Or(c.Policy, session.PolicyLedger)), Preset: c.Preset, Literal: c.Literal, ExpectedSteps: Int32(c.ExpectedTurns),
		MaxResultTokens: Int32(cmp.Or(c.ResultTokens, history.DefaultResultTokens)),
	}
	if c.Prices != (history.Prices{}) {
		h.Prices = &loombridgev1.TokenPrices{Input: c.Prices.Input, CachedInput: c.Prices.CachedInput, CacheWrite: c.Prices.CacheWrite}
	}
	return &loombridgev1.ConfigureSessionResponse{
		History: h, Model: c.Model, MaxTokens: Int32(c.MaxTokens), Prompt: promptSettingsOf(c.Prompt),
	}
}

func promptReceiptOf(r assemble.Receipt) *loombridgev1.Receipt {
	out := &loombridgev1.Receipt{
		PromptId: r.PromptID, Policy: r.Policy, Folds: foldsOf(r.Folds), Batch: batchOf(r.Batch),
		StableTokens: Int32(r.StableTokens),
		Cost:         r.Cost, AppendOnlyCost: r.AppendOnlyCost,
		Pressure: r.Pressure, Layout: enumOf[loombridgev1.PromptLayout](string(r.Layout)), Sprint: Int32(r.Sprint), Calls: r.Calls, Faults: r.Faults, Reused: r.Reused, Partitions: partitionsOf(r.Partitions), ExpectedCachedTokens: Int32(r.ExpectedCached), Sections: sectionsOf(r.Sections),
	}
	if r.Difference != nil {
		out.Difference = differenceOf(r.Difference)
	}
	return out
}

func foldsOf(folds []history.Fold) []*loombridgev1.FoldInfo {
	out, all := make([]*loombridgev1.FoldInfo, len(folds)), make([]loombridgev1.FoldInfo, len(folds))
	for i := range folds {
		f := &folds[i]
		out[i] = &all[i]
		out[i].Refs, out[i].Tokens, out[i].BeforeTokens = session.RefRuns(f.Refs), Int32(f.Tokens), Int32(cmp.Or(f.Original, f.Before))
	}
	return out
}

func batchOf(b *fold.Batch) *loombridgev1.FoldBatch {
	if b == nil {
		return nil
	}
	return &loombridgev1.FoldBatch{
		Number: int64(b.Number), Reason: loombridgev1.FoldReason(b.Reason), Refs: session.RefRuns(b.Refs),
		BeforeTokens: Int32(b.Before), AfterTokens: Int32(b.After), Level: PressureLevel(b.Level),
	}
}

// CompactRequest says which history is to be compacted, and into what.
func CompactRequest(scope kv.Scope, r *loombridgev1.CompactHistoryRequest) assemble.CompactRequest {
	request := assemble.CompactRequest{
		Scope: scope, SessionID: r.GetSessionId(), Style: history.Style(r.GetStyle()), Text: r.GetStyle() != 0, KeepRecent: int(r.GetKeepRecent()),
		Model: r.GetModel(), MaxTokens: int(r.GetMaxTokens()), DryRun: r.GetDryRun(),
		Summary: r.GetSummary(),
	}
	for _, id := range r.GetStepIds() {
		number, _ := step.ParseID(id)
		request.Steps = append(request.Steps, number)
	}
	return request
}

// Compaction converts the folded batch, or the history as text.
func Compaction(c assemble.Compaction) *loombridgev1.CompactHistoryResponse {
	return &loombridgev1.CompactHistoryResponse{
		Batch: batchOf(c.Batch), Folds: foldsOf(c.Folds), Text: utf8Text(c.Text), Tokens: TokenCount(c.Tokens),
		SummaryProblem: c.SummaryProblem,
	}
}

// PressureLevel writes a level of pressure: both count from none.
func PressureLevel(l window.Level) loombridgev1.PressureLevel { return loombridgev1.PressureLevel(l) }

func partitionsOf(p assemble.Partitions) map[string]int32 {
	return map[string]int32{
		"system": Int32(p.System), "memory": Int32(p.Memory), "skill": Int32(p.Skill), "history": Int32(p.History), "working": Int32(p.Working),
	}
}
