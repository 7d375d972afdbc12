package validate

import (
	"math"
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	policyUnset      = loombridgev1.HistoryPolicy_HISTORY_POLICY_UNSPECIFIED
	policyLedger     = loombridgev1.HistoryPolicy_HISTORY_POLICY_LEDGER
	policyAppendOnly = loombridgev1.HistoryPolicy_HISTORY_POLICY_APPEND_ONLY
	policyPreset     = loombridgev1.HistoryPolicy_HISTORY_POLICY_PRESET
)

func TestConfigureSessionRequest(t *testing.T) {
	type r = *loombridgev1.ConfigureSessionRequest
	settings := func(m r, h *loombridgev1.HistorySettings) { m.History = h }
	prices := func(m r, input, cached, write float64) {
		settings(m, &loombridgev1.HistorySettings{Prices: &loombridgev1.TokenPrices{Input: input, CachedInput: cached, CacheWrite: write}})
	}
	good := &loombridgev1.ConfigureSessionRequest{AgentId: "a"}
	runChecks(t, good, check[r], []checkCase[r]{
		{"no agent", func(m r) { m.AgentId = "" }, []string{"agent_id"}},
		{"session with NUL", func(m r) { m.SessionId = "\x00" }, []string{"session_id"}},
		{"model over its limit", func(m r) { m.Model = long(129) }, []string{"model"}},
		{"budget under 0", func(m r) { m.MaxTokens = -1 }, []string{"max_tokens"}},
		{"request id over its limit", func(m r) { m.RequestId = long(129) }, []string{"request_id"}},
		{"unknown policy", func(m r) { settings(m, &loombridgev1.HistorySettings{Policy: 9}) }, []string{"history.policy"}},
		{"policy preset alone", func(m r) { settings(m, &loombridgev1.HistorySettings{Policy: policyPreset}) }, nil},
		{"preset alone", func(m r) { settings(m, &loombridgev1.HistorySettings{Preset: "design"}) }, nil},
		{"preset of the policy", func(m r) { settings(m, &loombridgev1.HistorySettings{Preset: "debug", Policy: policyPreset}) }, nil},
		{"preset of no policy", func(m r) { settings(m, &loombridgev1.HistorySettings{Preset: "code", Policy: policyLedger}) }, []string{"history.preset"}},
		{"preset without folds", func(m r) { settings(m, &loombridgev1.HistorySettings{Preset: "chat", Policy: policyAppendOnly}) }, []string{"history.preset"}},
		{"unknown preset", func(m r) { settings(m, &loombridgev1.HistorySettings{Preset: long(10_000)}) }, []string{"history.preset"}},
		{"preset in capitals", func(m r) { settings(m, &loombridgev1.HistorySettings{Preset: "Design"}) }, []string{"history.preset"}},
		{"prices", func(m r) { prices(m, 1, 0.1, 1.25) }, nil},
		{"no input price", func(m r) { prices(m, 0, 0, 1.25) }, []string{"history.prices.input"}},
		{"prices at their limit", func(m r) { prices(m, 1e9, 1e9, 1e9) }, nil},
		{"prices at their other limit", func(m r) { prices(m, 1e-9, 1e-9, 1e-9) }, nil},
		{"prices over their limit", func(m r) { prices(m, 2e9, 2e9, 2e9) }, []string{"history.prices.input", "history.prices.cached_input", "history.prices.cache_write"}},
		{"prices that are no numbers", func(m r) { prices(m, math.NaN(), math.NaN(), math.Inf(1)) }, []string{"history.prices.input", "history.prices.cached_input", "history.prices.cache_write"}},
		{"prices under their limit", func(m r) { prices(m, 5e-324, 5e-324, 5e-324) }, []string{"history.prices.input", "history.prices.cached_input", "history.prices.cache_write"}},
		{"prices under 0", func(m r) { prices(m, 1, -0.1, -1) }, []string{"history.prices.cached_input", "history.prices.cache_write"}},
		{"a cache dearer than sending", func(m r) { prices(m, 1, 1.5, 1) }, []string{"history.prices.cached_input"}},
		{"steps", func(m r) {
			settings(m, &loombridgev1.HistorySettings{ExpectedSteps: 1_000_000, MaxResultTokens: 1_000_000})
		}, nil},
		{"too many steps", func(m r) {
			settings(m, &loombridgev1.HistorySettings{ExpectedSteps: 1_000_001, MaxResultTokens: 1_000_001})
		}, []string{"history.expected_steps", "history.max_result_tokens"}},
		{"fewer than none", func(m r) {
			settings(m, &loombridgev1.HistorySettings{ExpectedSteps: -1, MaxResultTokens: -1})
		}, []string{"history.expected_steps", "history.max_result_tokens"}},
	})
}

func TestAssembleRequestHistory(t *testing.T) {
	type r = *loombridgev1.AssembleRequest
	runChecks(t, &loombridgev1.AssembleRequest{AgentId: "a"}, check[r], []checkCase[r]{
		{"preset", func(m r) { m.History = &loombridgev1.HistorySettings{Preset: "research"} }, nil},
		{"unknown preset", func(m r) { m.History = &loombridgev1.HistorySettings{Preset: "x"} }, []string{"history.preset"}},
		{"no input price", func(m r) {
			m.History = &loombridgev1.HistorySettings{Prices: &loombridgev1.TokenPrices{}}
		}, []string{"history.prices.input"}},
	})
}

func TestCompactHistoryRequest(t *testing.T) {
	type r = *loombridgev1.CompactHistoryRequest
	const design = loombridgev1.HistoryStyle_HISTORY_STYLE_DESIGN
	runChecks(t, &loombridgev1.CompactHistoryRequest{AgentId: "a"}, check[r], []checkCase[r]{
		{"all at once", func(m r) {
			*m = loombridgev1.CompactHistoryRequest{SessionId: "\x00", Style: 9, Model: long(129), MaxTokens: -1}
		}, []string{"agent_id", "session_id", "style", "model", "max_tokens"}},
		{"text", func(m r) { m.Style, m.KeepRecent = design, 1000 }, nil},
		{"more recent steps than there are in a list", func(m r) { m.Style, m.KeepRecent = design, 1001 }, []string{"keep_recent"}},
		{"recent steps of no text", func(m r) { m.KeepRecent = 3 }, []string{"keep_recent"}},
		{"recent steps under 0", func(m r) { m.Style, m.KeepRecent = design, -1 }, []string{"keep_recent"}},
	})
}

func TestUndoRequest(t *testing.T) {
	type r = *loombridgev1.UndoRequest
	runChecks(t, &loombridgev1.UndoRequest{AgentId: "a"}, check[r], []checkCase[r]{
		{"all at once", func(m r) {
			*m = loombridgev1.UndoRequest{SessionId: long(257), Batch: -1, RequestId: long(129)}
		}, []string{"agent_id", "session_id", "batch", "request_id"}},
		{"a batch", func(m r) { m.Batch = 7 }, nil},
	})
}

func TestEndSessionRequest(t *testing.T) {
	type r = *loombridgev1.EndSessionRequest
	runChecks(t, &loombridgev1.EndSessionRequest{AgentId: "a"}, check[r], []checkCase[r]{
		{"all at once", func(m r) { *m = loombridgev1.EndSessionRequest{SessionId: long(257)} }, []string{"agent_id", "session_id"}},
	})
}

func TestReportUsageRequest(t *testing.T) {
	type r = *loombridgev1.ReportUsageRequest
	good := &loombridgev1.ReportUsageRequest{AgentId: "a", PromptId: "p", PromptTokens: 10}
	runChecks(t, good, check[r], []checkCase[r]{
		{"nothing", func(m r) { *m = loombridgev1.ReportUsageRequest{AgentId: "a"} }, []string{"prompt_id", "prompt_tokens"}},
		{"prompt id over its limit", func(m r) { m.PromptId = long(129) }, []string{"prompt_id"}},
		{"all of it cached and thought", func(m r) { m.CachedTokens, m.CompletionTokens, m.ReasoningTokens = 10, 5, 5 }, nil},
		{"more cached than sent", func(m r) { m.CachedTokens = 11 }, []string{"cached_tokens"}},
		{"more thought than said", func(m r) { m.CompletionTokens, m.ReasoningTokens = 5, 6 }, []string{"reasoning_tokens"}},
		{"under 0", func(m r) {
			m.PromptTokens, m.CompletionTokens, m.ReasoningTokens, m.CachedTokens = -1, -1, -1, -1
		}, []string{"prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens"}},
	})
}

func TestCompressResultRequest(t *testing.T) {
	type r = *loombridgev1.CompressResultRequest
	good := &loombridgev1.CompressResultRequest{AgentId: "a", ToolName: "x"}
	runChecks(t, good, check[r], []checkCase[r]{
		{"no name", func(m r) { m.ToolName = "" }, []string{"tool_name"}},
		{"long name", func(m r) { m.ToolName = long(129) }, []string{"tool_name"}},
		{"call id over its limit", func(m r) { m.ToolCallId = long(4097) }, []string{"tool_call_id"}},
		{"content at its limit", func(m r) { m.Content = long(1 << 20) }, nil},
		{"content over its limit", func(m r) { m.Content = long(1<<20 + 1) }, []string{"content"}},
		{"a kind", func(m r) { m.ResultKind = "exec" }, nil},
		{"unknown kind", func(m r) { m.ResultKind = "shell" }, []string{"result_kind"}},
		{"unknown hint", func(m r) { m.Hint = 9 }, []string{"hint"}},
		{"threshold under 0", func(m r) { m.ThresholdChars = -1 }, []string{"threshold_chars"}},
		{"long path", func(m r) { m.Path = long(4097) }, []string{"path"}},
	})
}
