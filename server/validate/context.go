package validate

import (
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
)

// ofContext is together for the services of sessions, prompts and blobs.
func (c *checker) ofContext(r proto.Message) {
	switch r := r.(type) {
	case *loombridgev1.ListStepsRequest:
		if r.GetPageToken() != "" && r.GetPageSize() == 0 {
			c.add("page_size", "is required with page_token")
		}
	case *loombridgev1.ListConversationRequest:
		newestFirst := r.GetOrder() == loombridgev1.ConversationOrder_CONVERSATION_ORDER_NEWEST_FIRST
		if _, known := page.ParseConversationToken(r.GetPageToken(), newestFirst); !known {
			c.add("page_token", notListed)
		}
		if r.GetTaskId() != "" && (r.GetOrder() != 0 || r.GetPageSize() != 0 || r.GetPageToken() != "") {
			c.add("task_id", "is of one task: it can't be given with order, page_size or page_token")
		}
	case *loombridgev1.ListSnapshotsRequest:
		if r.GetSprint() != 0 && r.GetLast() {
			c.add("last", "can't be given with sprint: it names another snapshot")
		}
		if (r.GetSprint() != 0 || r.GetLast()) && (r.GetPageSize() != 0 || r.GetPageToken() != "") {
			c.add("page_size", "can't be given with sprint or last, nor can page_token: they are of one snapshot")
		}
	case *loombridgev1.ConfigureSessionRequest:
		c.history(r.GetHistory())
	case *loombridgev1.EndSessionRequest:
		if reward := r.GetReward(); !(reward >= -1 && reward <= 1) {
			c.add("reward", "must be from -1 to 1")
		}
		if r.GetTaskType() != "" && r.Reward == nil {
			c.add("task_type", "needs a reward")
		}
	case *loombridgev1.CompactHistoryRequest:
		c.compaction(r)
	case *loombridgev1.UploadStepRequest:
		c.upload(r)
	case *loombridgev1.AssembleRequest:
		c.history(r.GetHistory())
		c.ownTools(r.GetTools())
		c.asOf(r)
	case *loombridgev1.ReportUsageRequest:
		c.usage(r)
	case *loombridgev1.CountTokensRequest:
		if len(r.GetMessages()) > 0 && r.GetText() != "" {
			c.add("text", "is not counted together with messages")
		}
	case *loombridgev1.UpdateBlobRequest:
		c.blob(r)
	case *loombridgev1.SearchBlobsRequest:
		c.search(r)
	}
}

// history checks settings; unset ones are fine.
func (c *checker) history(h *loombridgev1.HistorySettings) {
	if h.GetPreset() != "" {
		if !(session.Config{Preset: h.GetPreset()}.Check() == nil) {
			c.add("history.preset", "is %q, it must be %s", Printable(h.GetPreset()), history.Names())
		}
		switch h.GetPolicy() {
		case loombridgev1.HistoryPolicy_HISTORY_POLICY_LEDGER, loombridgev1.HistoryPolicy_HISTORY_POLICY_APPEND_ONLY:
			c.add("history.preset", "needs the policy preset or no policy")
		}
	}
	p := h.GetPrices()
	if p == nil {
		return
	}
	if !(p.GetInput() >= minPrice && p.GetInput() <= maxPrice) {
		c.add("history.prices.input", "is %v, it must be from %v to %v", p.GetInput(), minPrice, maxPrice)
	}
	if p.GetCachedInput() > p.GetInput() {
		c.add("history.prices.cached_input", "is more than input")
	}
}

func (c *checker) compaction(r *loombridgev1.CompactHistoryRequest) {
	styled := r.GetStyle() != loombridgev1.HistoryStyle_HISTORY_STYLE_UNSPECIFIED
	if r.GetKeepRecent() > 0 && !styled {
		c.add("keep_recent", "needs style")
	}
	if r.GetSummary() != "" && styled {
		c.add("summary", "must be empty with style: nothing is folded then")
	}
	if len(r.GetStepIds()) > 0 && !styled {
		c.add("step_ids", "need style")
	}
}

// upload checks the first message of one.
func (c *checker) upload(r *loombridgev1.UploadStepRequest) {
	if r.GetStep() == nil {
		c.add("step", "is required in the first message")
		return
	}
	broken := len(c.violations)
	c.recorded(r.GetStep())
	if problem := r.GetStep().GetOutputUpload(); !isMediaType(problem.GetMediaType()) {
		c.add("output_upload.media_type", noMediaType, maxMediaTypeBytes)
	}
	switch r.GetStep().GetOutputUpload().GetForm() {
	case loombridgev1.ResultForm_RESULT_FORM_JSON, loombridgev1.ResultForm_RESULT_FORM_TEXT, loombridgev1.ResultForm_RESULT_FORM_BYTES:
	default:
		c.add("output_upload.form", "must be RESULT_FORM_JSON, RESULT_FORM_TEXT or RESULT_FORM_BYTES")
	}
	c.within(broken, "step")
}

// ownTools checks the size of the caller's tools; what names they may have is the
// prompt's own rule.
func (c *checker) ownTools(all []*loombridgev1.ToolDescriptor) {
	for i, tool := range all {
		broken := len(c.violations)
		c.required("name", tool.GetName(), math.MaxInt)
		c.name("name", tool.GetName(), settings.MaxToolNameBytes)
		c.size("description", len(tool.GetDescription()), settings.MaxToolTextBytes)
		c.size("parameters_schema_json", len(tool.GetParametersSchemaJson()), settings.MaxToolSchemaBytes)
		c.served(tool)
		if tool.GetLevel() != 0 || tool.GetRequiresApproval() {
			c.add("level", "is of tools that an agent provides, as is requires_approval")
		}
		if len(c.violations) > broken {
			c.within(broken, Item("tools", i))
		}
	}
}

// asOf checks which prompt of before is asked for: it is as it was sent, so nothing else
// can be said of it.
func (c *checker) asOf(r *loombridgev1.AssembleRequest) {
	if r.GetAsOf() == nil {
		return
	}
	only := &loombridgev1.AssembleRequest{AgentId: r.GetAgentId(), SessionId: r.GetSessionId(), AsOf: r.GetAsOf()}
	if !proto.Equal(only, r) {
		c.add("as_of", "can be combined only with agent_id and session_id: an earlier prompt is returned as sent")
	}
}

func (c *checker) usage(r *loombridgev1.ReportUsageRequest) {
	if r.GetOverflow() {
		if r.GetPromptId() != "" || r.GetPromptTokens() != 0 || r.GetCompletionTokens() != 0 || r.GetReasoningTokens() != 0 || r.GetCachedTokens() != 0 {
			c.add("overflow", "can't be given with prompt_id or tokens: the provider counted none")
		}
		return
	}
	if r.GetTurnId() != "" {
		c.add("turn_id", "can only be given with overflow")
	}
	c.required("prompt_id", r.GetPromptId(), math.MaxInt)
	c.name("prompt_id", r.GetPromptId(), MaxIDBytes)
	c.between("prompt_tokens", int64(r.GetPromptTokens()), 1, math.MaxInt32)
	c.between("completion_tokens", int64(r.GetCompletionTokens()), 0, math.MaxInt32)
	c.between("reasoning_tokens", int64(r.GetReasoningTokens()), 0, int64(max(r.GetCompletionTokens(), 0)))
	c.between("cached_tokens", int64(r.GetCachedTokens()), 0, int64(max(r.GetPromptTokens(), 0)))
}

func (c *checker) blob(r *loombridgev1.UpdateBlobRequest) {
	switch r.GetTier() {
	case loombridgev1.BlobTier_BLOB_TIER_SHORT_TERM, loombridgev1.BlobTier_BLOB_TIER_LONG_TERM:
		if r.GetArchive() {
			c.add("tier", "can't be given with archive")
		}
	default:
		if !r.GetArchive() || r.GetTier() != loombridgev1.BlobTier_BLOB_TIER_UNSPECIFIED {
			c.add("tier", "must be BLOB_TIER_SHORT_TERM or BLOB_TIER_LONG_TERM")
		}
	}
	if r.GetArchive() && r.GetImportant() {
		c.add("important", "can't be given with archive: there all is kept")
	}
	if len(r.GetTags()) > 0 && !r.GetArchive() {
		c.add("tags", "can only be given with archive")
	}
}

func (c *checker) search(r *loombridgev1.SearchBlobsRequest) {
	switch r.GetPattern().(type) {
	case *loombridgev1.SearchBlobsRequest_Words:
		if r.GetName() != "" {
			c.add("words", "search the archive, not one blob: give literal or regexp")
		}
	case nil:
		if r.GetName() != "" {
			c.add("pattern", "is required with name: give literal or regexp")
		}
	}
	if _, ok := page.ParseSearchToken(r.GetPageToken()); !ok {
		c.add("page_token", "did not come from SearchBlobs")
	}
	if r.GetName() == "" && r.GetPageToken() != "" {
		c.add("page_token", "continues the search of one blob: give its name")
	}
	if r.GetName() != "" && (r.GetCategory() != "" || len(r.GetTags()) > 0) {
		c.add("name", "searches one blob, category and tags the archive: give one or the other")
	}
}
