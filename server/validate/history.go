package validate

import (
	"math"
	"slices"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject/playbook"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/step"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// maxExpectedSteps bounds how many steps a caller may expect.
	maxExpectedSteps = 1_000_000
	// maxShownTokens bounds what a prompt may show of one result: as much as the
	// largest windows hold.
	maxShownTokens = 1_000_000
	// minPrice and maxPrice bound what a token may cost, in any unit, so that
	// sums and quotients of prices stay numbers, and exact enough.
	minPrice = 1e-9
	maxPrice = 1e9
	// maxSummaryBytes bounds a caller's summary: more than its tokens take.
	maxSummaryBytes = 64 * kib
	// maxCompressedBytes bounds a result that CompressResult takes.
	maxCompressedBytes = hand.MaxResultBytes
	// maxFilePathBytes bounds the path of a file that a result shows.
	maxFilePathBytes = 4 * kib
)

// history checks settings under their field's path; unset ones are fine.
func (c *checker) history(field string, h *loombridgev1.HistorySettings) {
	if h == nil {
		return
	}
	c.enum(field+".policy", h.GetPolicy())
	c.preset(field+".preset", h)
	c.prices(field+".prices", h.GetPrices())
	c.between(field+".expected_steps", int64(h.GetExpectedSteps()), 0, maxExpectedSteps)
	c.between(field+".max_result_tokens", int64(h.GetMaxResultTokens()), 0, maxShownTokens)
}

func (c *checker) preset(field string, h *loombridgev1.HistorySettings) {
	if h.GetPreset() == "" {
		return
	}
	if !(session.Config{Preset: h.GetPreset()}.Check() == nil) {
		c.add(field, "is %q, it must be %s", Printable(h.GetPreset()), history.Names())
	}
	switch h.GetPolicy() {
	case loombridgev1.HistoryPolicy_HISTORY_POLICY_LEDGER, loombridgev1.HistoryPolicy_HISTORY_POLICY_APPEND_ONLY:
		c.add(field, "needs the policy preset or no policy")
	}
}

func (c *checker) prices(field string, p *loombridgev1.TokenPrices) {
	if p == nil {
		return
	}
	if !(p.GetInput() >= minPrice && p.GetInput() <= maxPrice) {
		c.add(field+".input", "is %v, it must be from %v to %v", p.GetInput(), minPrice, maxPrice)
	}
	c.price(field+".cached_input", p.GetCachedInput())
	if p.GetCachedInput() > p.GetInput() {
		c.add(field+".cached_input", "is more than input")
	}
	c.price(field+".cache_write", p.GetCacheWrite())
}

func (c *checker) price(field string, x float64) {
	if x != 0 && !(x >= minPrice && x <= maxPrice) {
		c.add(field, "is %v, it must be 0, or from %v to %v", x, minPrice, maxPrice)
	}
}

// prompt checks the form of settings under their field's path; what they may hold is
// their own rule. Unset ones are fine.
func (c *checker) prompt(field string, p *loombridgev1.PromptSettings) {
	if p == nil {
		return
	}
	c.enum(field+".layout", p.GetLayout())
	c.enum(field+".tool_rendering", p.GetToolRendering())
	c.enum(field+".runtime_position", p.GetRuntimePosition())
	c.span(field+".sources.knowledge_timeout", p.GetSources().GetKnowledgeTimeout(), 1, settings.MaxKnowledgeTimeout)
	for i, in := range p.GetInjections() {
		c.enum(Item(field+".injections", i)+".phase", in.GetPhase())
		c.enum(Item(field+".injections", i)+".cache", in.GetCache())
	}
}

// ConfigureSessionRequest checks what SessionService.ConfigureSession is asked.
func ConfigureSessionRequest(r *loombridgev1.ConfigureSessionRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	c.history("history", r.GetHistory())
	c.name("model", r.GetModel(), maxModelBytes)
	c.between("max_tokens", int64(r.GetMaxTokens()), 0, math.MaxInt32)
	c.request(r.GetRequestId())
	c.prompt("prompt", r.GetPrompt())
	return c.err()
}

// EndSessionRequest checks what SessionService.EndSession is asked.
func EndSessionRequest(r *loombridgev1.EndSessionRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	if reward := r.GetReward(); !(reward >= -1 && reward <= 1) {
		c.add("reward", "must be from -1 to 1")
	}
	c.text("task_type", r.GetTaskType(), playbook.MaxWordBytes)
	if r.GetTaskType() != "" && r.Reward == nil {
		c.add("task_type", "needs a reward")
	}
	return c.err()
}

// CompactHistoryRequest checks what SessionService.CompactHistory is asked.
func CompactHistoryRequest(r *loombridgev1.CompactHistoryRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	c.enum("style", r.GetStyle())
	c.between("keep_recent", int64(r.GetKeepRecent()), 0, session.MaxListed)
	if r.GetKeepRecent() > 0 && r.GetStyle() == loombridgev1.HistoryStyle_HISTORY_STYLE_UNSPECIFIED {
		c.add("keep_recent", "needs style")
	}
	if r.GetSummary() != "" && r.GetStyle() != loombridgev1.HistoryStyle_HISTORY_STYLE_UNSPECIFIED {
		c.add("summary", "must be empty with style: nothing is folded then")
	}
	c.name("model", r.GetModel(), maxModelBytes)
	c.text("summary", r.GetSummary(), maxSummaryBytes)
	c.between("max_tokens", int64(r.GetMaxTokens()), 0, math.MaxInt32)
	c.stepIDs(r)
	return c.err()
}

func (c *checker) stepIDs(r *loombridgev1.CompactHistoryRequest) {
	ids := r.GetStepIds()
	if len(ids) > 0 && r.GetStyle() == loombridgev1.HistoryStyle_HISTORY_STYLE_UNSPECIFIED {
		c.add("step_ids", "need style")
	}
	c.listedSteps(ids)
}

// listedSteps refuses too many ids of steps, and what is none.
func (c *checker) listedSteps(ids []string) {
	if !c.count("step_ids", len(ids), assemble.MaxCompactedSteps) {
		return
	}
	for i, id := range ids {
		if _, ok := step.ParseID(id); !ok {
			c.add(Item("step_ids", i), "is not `step_` and a number of at least three digits")
		}
	}
}

// UndoRequest checks what SessionService.Undo is asked.
func UndoRequest(r *loombridgev1.UndoRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	c.between("batch", r.GetBatch(), 0, math.MaxInt64)
	c.request(r.GetRequestId())
	return c.err()
}

// ReportUsageRequest checks what PromptService.ReportUsage is asked.
func ReportUsageRequest(r *loombridgev1.ReportUsageRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	c.name("turn_id", r.GetTurnId(), MaxIDBytes)
	if r.GetOverflow() {
		if r.GetPromptId() != "" || r.GetPromptTokens() != 0 || r.GetCompletionTokens() != 0 || r.GetReasoningTokens() != 0 || r.GetCachedTokens() != 0 {
			c.add("overflow", "can't be given with prompt_id or tokens: the provider counted none")
		}
		return c.err()
	}
	if r.GetTurnId() != "" {
		c.add("turn_id", "can only be given with overflow")
	}
	c.requiredName("prompt_id", r.GetPromptId(), MaxIDBytes)
	c.between("prompt_tokens", int64(r.GetPromptTokens()), 1, math.MaxInt32)
	c.between("completion_tokens", int64(r.GetCompletionTokens()), 0, math.MaxInt32)
	c.between("reasoning_tokens", int64(r.GetReasoningTokens()), 0, int64(max(r.GetCompletionTokens(), 0)))
	c.between("cached_tokens", int64(r.GetCachedTokens()), 0, int64(max(r.GetPromptTokens(), 0)))
	return c.err()
}

// CompressResultRequest checks what PromptService.CompressResult is asked.
func CompressResultRequest(r *loombridgev1.CompressResultRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	c.requiredName("tool_name", r.GetToolName(), tools.MaxNameBytes)
	c.name("tool_call_id", r.GetToolCallId(), session.MaxCallIDBytes)
	c.text("content", r.GetContent(), maxCompressedBytes)
	c.resultKind("result_kind", r.GetResultKind())
	c.enum("hint", r.GetHint())
	c.between("threshold_chars", int64(r.GetThresholdChars()), 0, maxCompressedBytes)
	c.text("path", r.GetPath(), maxFilePathBytes)
	return c.err()
}

func (c *checker) resultKind(field, kind string) {
	if kind != "" && !slices.Contains(compress.Kinds(), compress.Strategy(kind)) {
		c.add(field, "is %q, it must be search, file, exec, api or text", Printable(kind))
	}
}
