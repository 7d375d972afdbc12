package server

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Limits of request fields that belong to no domain package. Each is stated in
// the field's comment in the protos; changing one breaks clients.
const (
	// maxIDBytes bounds request, turn and call ids.
	maxIDBytes = kv.MaxRequestIDBytes
	// maxModelBytes bounds the name of a model.
	maxModelBytes = 128
	// maxThoughtBytes bounds what a model said before a call.
	maxThoughtBytes = 64 * kib
	// maxGoalBytes bounds the goal of a prompt.
	maxGoalBytes = 256 * kib
	// maxSystemBytes bounds a system prompt.
	maxSystemBytes = mib
	// maxCountedBytes bounds the text of CountTokens.
	maxCountedBytes = mib
	// maxBlobNameBytes bounds a path, step id or ref.
	maxBlobNameBytes = 512
	// maxBlobTokenBytes bounds a page token of ListBlobs: a path in base64.
	maxBlobTokenBytes = 1024
	// maxPageTokenBytes bounds a page token; ours are much shorter.
	maxPageTokenBytes = 128
	// maxTopics bounds the topics of one subscription.
	maxTopics = 64
	// maxToolTimeout bounds one tool call.
	maxToolTimeout = 10 * time.Minute
	// maxTTL bounds how far ahead an expiry may lie.
	maxTTL = 100 * 365 * 24 * time.Hour
)

func (c *check) agent(agentID string) { c.requiredName("agent_id", agentID, kv.MaxOwnerBytes) }

func (c *check) user(userID string) { c.name("user_id", userID, kv.MaxOwnerBytes) }

func (c *check) session(sessionID string) {
	c.name("session_id", sessionID, session.MaxSessionIDBytes)
}

func (c *check) request(requestID string) { c.text("request_id", requestID, maxIDBytes) }

func checkMemorySaveRequest(r *loombridgev1.MemorySaveRequest) error {
	var c check
	c.agent(r.GetAgentId())
	c.user(r.GetUserId())
	c.required("text", r.GetText(), memory.MaxTextBytes)
	c.name("id", r.GetId(), memory.MaxIDBytes)
	c.name("key", r.GetKey(), memory.MaxKeyBytes)
	c.text("kind", r.GetKind(), memory.MaxKindBytes)
	c.session(r.GetSessionId())
	c.text("author", r.GetAuthor(), memory.MaxAuthorBytes)
	c.time("event_time", r.GetEventTime())
	c.text("metadata_json", r.GetMetadataJson(), memory.MaxMetadataBytes)
	c.tags(r.GetTags())
	c.share("importance", r.GetImportance())
	c.span("ttl", r.GetTtl(), 1, maxTTL)
	c.time("expire_time", r.GetExpireTime())
	c.embedding(r)
	c.name("supersedes", r.GetSupersedes(), memory.MaxIDBytes)
	c.count("derived_from", len(r.GetDerivedFrom()), memory.MaxDerivedFrom)
	for i, id := range r.GetDerivedFrom() {
		c.requiredName(fmt.Sprintf("derived_from[%d]", i), id, memory.MaxIDBytes)
	}
	c.enum("origin", r.GetOrigin())
	c.request(r.GetRequestId())
	return c.err()
}

func (c *check) tags(tags []string) {
	c.count("tags", len(tags), memory.MaxTags)
	for i, tag := range tags {
		c.required(fmt.Sprintf("tags[%d]", i), tag, memory.MaxTagBytes)
	}
}

func (c *check) embedding(r *loombridgev1.MemorySaveRequest) {
	c.count("embedding", len(r.GetEmbedding()), memory.MaxEmbedding)
	if len(r.GetEmbedding()) > 0 && r.GetEmbeddingSpace() == "" {
		c.add("embedding_space", "is required with embedding")
	}
	c.text("embedding_space", r.GetEmbeddingSpace(), memory.MaxEmbeddingSpaceBytes)
	if slices.ContainsFunc(r.GetEmbedding(), notFinite) {
		c.add("embedding", "holds a number that is not finite")
	}
}

func notFinite(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }

func checkMemoryQueryRequest(r *loombridgev1.MemoryQueryRequest) error {
	var c check
	c.agent(r.GetAgentId())
	c.user(r.GetUserId())
	c.required("query", r.GetQuery(), memory.MaxQueryBytes)
	c.between("limit", int64(r.GetLimit()), 0, memory.MaxLimit)
	c.text("filter", r.GetFilter(), memory.MaxFilterBytes)
	c.enum("mode", r.GetMode())
	c.share("min_score", r.GetMinScore())
	c.enum("json_form", r.GetJsonForm())
	return c.err()
}

func checkGetRecordRequest(r *loombridgev1.GetRecordRequest) error {
	var c check
	c.agent(r.GetAgentId())
	c.user(r.GetUserId())
	switch name := r.GetName().(type) {
	case *loombridgev1.GetRecordRequest_Id:
		c.requiredName("id", name.Id, memory.MaxIDBytes)
	case *loombridgev1.GetRecordRequest_Key:
		c.requiredName("key", name.Key, memory.MaxKeyBytes)
	default:
		c.add("name", "is required: give id or key")
	}
	c.enum("json_form", r.GetJsonForm())
	return c.err()
}

func checkToolRequest(r *loombridgev1.ToolRequest) error {
	var c check
	c.agent(r.GetAgentId())
	c.required("name", r.GetName(), tools.MaxNameBytes)
	c.text("arguments_json", r.GetArgumentsJson(), tools.MaxArgumentsBytes)
	c.session(r.GetSessionId())
	c.span("timeout", r.GetTimeout(), 1, maxToolTimeout)
	c.text("thought", r.GetThought(), maxThoughtBytes)
	c.text("turn_id", r.GetTurnId(), maxIDBytes)
	c.text("call_id", r.GetCallId(), maxIDBytes)
	c.request(r.GetRequestId())
	c.enum("json_form", r.GetJsonForm())
	return c.err()
}

func checkRecordStepRequest(r *loombridgev1.RecordStepRequest) error {
	var c check
	c.agent(r.GetAgentId())
	c.required("tool_name", r.GetToolName(), tools.MaxNameBytes)
	c.text("arguments_json", r.GetArgumentsJson(), tools.MaxArgumentsBytes)
	c.text("output_json", r.GetOutputJson(), hand.MaxOutputBytes)
	c.text("error_message", r.GetErrorMessage(), maxThoughtBytes)
	c.session(r.GetSessionId())
	c.text("thought", r.GetThought(), maxThoughtBytes)
	c.text("turn_id", r.GetTurnId(), maxIDBytes)
	c.text("call_id", r.GetCallId(), maxIDBytes)
	c.request(r.GetRequestId())
	return c.err()
}

func checkListToolsRequest(r *loombridgev1.ListToolsRequest) error {
	var c check
	c.agent(r.GetAgentId())
	c.count("levels", len(r.GetLevels()), tools.LevelScript)
	for i, level := range r.GetLevels() {
		c.between(fmt.Sprintf("levels[%d]", i), int64(level), tools.LevelFunction, tools.LevelScript)
	}
	c.enum("json_form", r.GetJsonForm())
	return c.err()
}

func checkEmitRequest(r *loombridgev1.EmitRequest) error {
	var c check
	c.emit(r)
	return c.err()
}

func (c *check) emit(r *loombridgev1.EmitRequest) {
	c.agent(r.GetAgentId())
	c.required("topic", r.GetTopic(), events.MaxTopicBytes)
	c.text("payload_json", r.GetPayloadJson(), events.MaxPayloadBytes)
	c.bytes("payload_bytes", len(r.GetPayloadBytes()), events.MaxPayloadBytes)
	c.pairs("headers", r.GetHeaders(), events.MaxHeaders, events.MaxHeadersBytes)
	c.enum("delivery", r.GetDelivery())
	c.session(r.GetSessionId())
	c.text("event_id", r.GetEventId(), events.MaxIDBytes)
	c.request(r.GetRequestId())
	c.text("type", r.GetType(), events.MaxTypeBytes)
	c.count("tags", len(r.GetTags()), events.MaxTags)
	c.texts("tags", r.GetTags(), events.MaxTagBytes)
}

func checkSubscribeRequest(r *loombridgev1.SubscribeRequest) error {
	var c check
	c.agent(r.GetAgentId())
	if len(r.GetTopics()) == 0 {
		c.add("topics", "is required")
	}
	c.topics(r.GetTopics(), nil)
	c.enum("json_form", r.GetJsonForm())
	return c.err()
}

func checkAppendMessagesRequest(r *loombridgev1.AppendMessagesRequest) error {
	var c check
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	if len(r.GetMessages()) == 0 {
		c.add("messages", "is required")
	}
	c.count("messages", len(r.GetMessages()), session.MaxMessages)
	for i, m := range r.GetMessages() {
		c.message(fmt.Sprintf("messages[%d].", i), m)
	}
	c.request(r.GetRequestId())
	return c.err()
}

// message checks the form of one message; what belongs to which role is the
// session's own rule.
func (c *check) message(field string, m *loombridgev1.Message) {
	if m.GetRole() == loombridgev1.Role_ROLE_UNSPECIFIED {
		c.add(field+"role", "is required")
	}
	c.enum(field+"role", m.GetRole())
	c.text(field+"content", m.GetContent(), session.MaxMessageBytes)
	c.text(field+"blocks_json", m.GetBlocksJson(), session.MaxMessageBytes)
	c.text(field+"name", m.GetName(), session.MaxNameBytes)
	c.text(field+"tool_call_id", m.GetToolCallId(), session.MaxCallIDBytes)
	c.count(field+"tool_calls", len(m.GetToolCalls()), session.MaxToolCalls)
	for i, call := range m.GetToolCalls() {
		inner := fmt.Sprintf("%stool_calls[%d].", field, i)
		c.required(inner+"id", call.GetId(), session.MaxCallIDBytes)
		c.required(inner+"name", call.GetName(), session.MaxToolNameBytes)
	}
}

func checkListStepsRequest(r *loombridgev1.ListStepsRequest) error {
	var c check
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	c.between("page_size", int64(r.GetPageSize()), 0, session.MaxListed)
	c.text("page_token", r.GetPageToken(), maxPageTokenBytes)
	if r.GetPageToken() != "" && r.GetPageSize() == 0 {
		c.add("page_size", "is required with page_token")
	}
	if _, ok := parsePageToken(r.GetPageToken()); !ok {
		c.add("page_token", "did not come from ListSteps")
	}
	c.enum("json_form", r.GetJsonForm())
	return c.err()
}

func checkGetStepRequest(r *loombridgev1.GetStepRequest) error {
	var c check
	c.agent(r.GetAgentId())
	if _, ok := step.ParseID(r.GetStepId()); !ok {
		c.add("step_id", "is not `step_` and a number of at least three digits")
	}
	c.enum("json_form", r.GetJsonForm())
	return c.err()
}

func checkAssembleRequest(r *loombridgev1.AssembleRequest) error {
	var c check
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	c.text("goal", r.GetGoal(), maxGoalBytes)
	c.text("model", r.GetModel(), maxModelBytes)
	c.between("max_tokens", int64(r.GetMaxTokens()), 0, math.MaxInt32)
	c.text("system", r.GetSystem(), maxSystemBytes)
	c.enum("format", r.GetFormat())
	return c.err()
}

func checkCountTokensRequest(r *loombridgev1.CountTokensRequest) error {
	var c check
	c.agent(r.GetAgentId())
	c.text("text", r.GetText(), maxCountedBytes)
	c.text("model", r.GetModel(), maxModelBytes)
	return c.err()
}

func checkReadBlobRequest(r *loombridgev1.ReadBlobRequest) error {
	var c check
	c.agent(r.GetAgentId())
	c.required("name", r.GetName(), maxBlobNameBytes)
	c.between("offset", r.GetOffset(), 0, math.MaxInt64)
	c.between("limit", r.GetLimit(), 0, math.MaxInt64)
	return c.err()
}

func checkListBlobsRequest(r *loombridgev1.ListBlobsRequest) error {
	var c check
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	if _, ok := step.ParseID(r.GetStepId()); !ok && r.GetStepId() != "" {
		c.add("step_id", "is not `step_` and a number of at least three digits")
	}
	c.text("kind", r.GetKind(), blob.MaxCategoryBytes)
	c.text("category", r.GetCategory(), blob.MaxCategoryBytes)
	c.enum("tier", r.GetTier())
	c.between("page_size", int64(r.GetPageSize()), 0, blob.MaxListed)
	c.text("page_token", r.GetPageToken(), maxBlobTokenBytes)
	if _, ok := parseBlobToken(r.GetPageToken()); !ok {
		c.add("page_token", "did not come from ListBlobs")
	}
	return c.err()
}

func checkPromoteBlobRequest(r *loombridgev1.PromoteBlobRequest) error {
	var c check
	c.agent(r.GetAgentId())
	c.required("name", r.GetName(), maxBlobNameBytes)
	switch r.GetTier() {
	case loombridgev1.BlobTier_BLOB_TIER_SHORT_TERM, loombridgev1.BlobTier_BLOB_TIER_LONG_TERM:
	default:
		c.add("tier", "must be BLOB_TIER_SHORT_TERM or BLOB_TIER_LONG_TERM")
	}
	c.text("category", r.GetCategory(), blob.MaxCategoryBytes)
	c.text("new_name", r.GetNewName(), blob.MaxNameBytes)
	c.request(r.GetRequestId())
	return c.err()
}

func checkArchiveBlobRequest(r *loombridgev1.ArchiveBlobRequest) error {
	var c check
	c.agent(r.GetAgentId())
	c.required("name", r.GetName(), maxBlobNameBytes)
	c.text("category", r.GetCategory(), blob.MaxCategoryBytes)
	c.blobTags(r.GetTags())
	c.text("new_name", r.GetNewName(), blob.MaxNameBytes)
	c.request(r.GetRequestId())
	return c.err()
}

func (c *check) blobTags(tags []string) {
	c.count("tags", len(tags), blob.MaxTags)
	for i, tag := range tags {
		c.required(fmt.Sprintf("tags[%d]", i), tag, blob.MaxTagBytes)
	}
}

func checkSearchBlobsRequest(r *loombridgev1.SearchBlobsRequest) error {
	var c check
	c.agent(r.GetAgentId())
	c.text("name", r.GetName(), maxBlobNameBytes)
	switch pattern := r.GetPattern().(type) {
	case *loombridgev1.SearchBlobsRequest_Words:
		c.required("words", pattern.Words, blob.MaxQueryBytes)
		if r.GetName() != "" {
			c.add("words", "search the archive, not one blob: give literal or regexp")
		}
	case *loombridgev1.SearchBlobsRequest_Literal:
		c.required("literal", pattern.Literal, blob.MaxPatternBytes)
	case *loombridgev1.SearchBlobsRequest_Regexp:
		c.required("regexp", pattern.Regexp, blob.MaxPatternBytes)
	default:
		if r.GetName() != "" {
			c.add("pattern", "is required with name: give literal or regexp")
		}
	}
	c.text("category", r.GetCategory(), blob.MaxCategoryBytes)
	c.blobTags(r.GetTags())
	c.between("limit", int64(r.GetLimit()), 0, blob.MaxFound)
	c.between("max_matches", int64(r.GetMaxMatches()), 0, blob.MaxFoundMatches)
	c.searchPlace(r)
	return c.err()
}

// searchPlace refuses fields that belong to the other kind of search.
func (c *check) searchPlace(r *loombridgev1.SearchBlobsRequest) {
	c.text("page_token", r.GetPageToken(), maxPageTokenBytes)
	if _, ok := parseSearchToken(r.GetPageToken()); !ok {
		c.add("page_token", "did not come from SearchBlobs")
	}
	if r.GetName() == "" && r.GetPageToken() != "" {
		c.add("page_token", "continues the search of one blob: give its name")
	}
	if r.GetName() != "" && (r.GetCategory() != "" || len(r.GetTags()) > 0) {
		c.add("name", "searches one blob, category and tags the archive: give one or the other")
	}
}

func checkCollectGarbageRequest(r *loombridgev1.CollectGarbageRequest) error {
	var c check
	c.agent(r.GetAgentId())
	c.request(r.GetRequestId())
	return c.err()
}
