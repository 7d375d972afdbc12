package validate

import (
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/filter"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// byHand are the requests that are made most often, or hold a thousand of another. Rules would
// take up to a microsecond for each, ten times what this takes; of them the rules have only what
// is counted.
var byHand = map[protoreflect.Name]bool{
	"MemorySaveRequest": true, "MemoryQueryRequest": true, "ToolRequest": true, "RecordStepRequest": true, "EmitRequest": true,
}

// draft checks all of a record but that it has a text.
func (c *checker) draft(r *loombridgev1.MemorySaveRequest) {
	c.text("text", r.GetText(), record.MaxTextBytes)
	c.name("id", r.GetId(), record.MaxIDBytes)
	c.name("key", r.GetKey(), record.MaxKeyBytes)
	c.text("kind", r.GetKind(), record.MaxKindBytes)
	c.name("session_id", r.GetSessionId(), record.MaxSessionBytes)
	c.text("author", r.GetAuthor(), record.MaxAuthorBytes)
	c.time("event_time", r.GetEventTime())
	c.time("valid_until", r.GetValidUntil())
	c.text("metadata_json", r.GetMetadataJson(), record.MaxMetadataBytes)
	for i, tag := range r.GetTags() {
		if tag == "" || len(tag) > record.MaxTagBytes {
			c.required(Item("tags", i), tag, record.MaxTagBytes)
		}
	}
	c.share("importance", r.GetImportance())
	c.span("ttl", r.GetTtl(), maxTTL)
	c.time("expire_time", r.GetExpireTime())
	c.span("sliding_ttl", r.GetSlidingTtl(), maxTTL)
	c.embedding(r.GetEmbedding(), r.GetEmbeddingSpace())
	c.name("supersedes", r.GetSupersedes(), record.MaxIDBytes)
	for i, id := range r.GetDerivedFrom() {
		c.requiredName(Item("derived_from", i), id, record.MaxIDBytes)
	}
	c.enum("origin", r.GetOrigin())
	for i, one := range r.GetRelations() {
		field := Item("relations", i)
		if problem := record.RelationProblem(one.GetName()); problem != "" {
			c.add(field+".name", "%s", problem)
		}
		c.requiredName(field+".to_id", one.GetToId(), record.MaxIDBytes)
	}
}

// question checks the fields of a query.
func (c *checker) question(r *loombridgev1.MemoryQueryRequest) {
	c.owner(r)
	c.text("query", r.GetQuery(), question.MaxTextBytes)
	c.between("limit", int64(r.GetLimit()), 0, question.MaxLimit)
	c.text("filter", r.GetFilter(), filter.MaxBytes)
	c.enum("mode", r.GetMode())
	c.share("min_score", r.GetMinScore())
	c.between("max_tokens", int64(r.GetMaxTokens()), 0, maxQueryTokens)
	c.embedding(r.GetEmbedding(), r.GetEmbeddingSpace())
	c.share("recency_weight", r.GetRecencyWeight())
	c.span("recency_half_life", r.GetRecencyHalfLife(), maxTTL)
	c.share("importance_weight", r.GetImportanceWeight())
	c.share("access_weight", r.GetAccessWeight())
	for i, tier := range r.GetTiers() {
		c.between(Item("tiers", i), int64(tier), 2, record.LongTerm)
	}
	c.time("as_of", r.GetAsOf())
	c.time("valid_at", r.GetValidAt())
	if related := r.GetRelated(); related != nil {
		broken := len(c.violations)
		c.fields(related.ProtoReflect(), false)
		c.within(broken, "related")
	}
	for i, owner := range r.GetOwners() {
		broken := len(c.violations)
		if c.fields(owner.ProtoReflect(), false); owner.GetOwner() == nil {
			c.add("", "needs agent_id, user_id or space_id")
		}
		if len(c.violations) > broken {
			c.within(broken, Item("owners", i))
		}
	}
}

// tool checks the fields of a call.
func (c *checker) tool(r *loombridgev1.ToolRequest) {
	c.requiredName("agent_id", r.GetAgentId(), kv.MaxOwnerBytes)
	if r.GetCallId() == "" { // else a model wrote them, which reads in the step what is wrong
		c.required("name", r.GetName(), tools.MaxNameBytes)
		c.text("arguments_json", r.GetArgumentsJson(), tools.MaxArgumentsBytes)
	}
	c.name("session_id", r.GetSessionId(), session.MaxSessionIDBytes)
	c.span("timeout", r.GetTimeout(), maxToolTimeout)
	c.text("thought", r.GetThought(), maxThoughtBytes)
	c.name("turn_id", r.GetTurnId(), MaxIDBytes)
	c.name("call_id", r.GetCallId(), session.MaxCallIDBytes)
	c.name("request_id", r.GetRequestId(), MaxIDBytes)
}

// recorded checks the fields of a step.
func (c *checker) recorded(r *loombridgev1.RecordStepRequest) {
	c.requiredName("agent_id", r.GetAgentId(), kv.MaxOwnerBytes)
	c.requiredName("tool_name", r.GetToolName(), tools.MaxNameBytes)
	c.text("arguments_json", r.GetArgumentsJson(), tools.MaxArgumentsBytes)
	c.text("output_json", r.GetOutputJson(), hand.MaxOutputBytes)
	c.text("output_text", r.GetOutputText(), hand.MaxOutputBytes)
	if r.GetRefused() && r.GetSuccess() {
		c.add("refused", "needs success = false")
	}
	c.text("error_message", r.GetErrorMessage(), maxThoughtBytes)
	c.name("session_id", r.GetSessionId(), session.MaxSessionIDBytes)
	c.text("thought", r.GetThought(), maxThoughtBytes)
	c.name("turn_id", r.GetTurnId(), MaxIDBytes)
	c.name("call_id", r.GetCallId(), session.MaxCallIDBytes)
	c.name("request_id", r.GetRequestId(), MaxIDBytes)
	if r.GetOutputBytes() != nil {
		broken := len(c.violations)
		c.fields(r.GetOutputBytes().ProtoReflect(), false)
		c.within(broken, "output_bytes")
	}
	if r.GetTask() != nil {
		broken := len(c.violations)
		c.fields(r.GetTask().ProtoReflect(), false)
		c.within(broken, "task")
	}
}

// emit checks the fields of an event.
func (c *checker) emit(r *loombridgev1.EmitRequest) {
	c.requiredName("agent_id", r.GetAgentId(), kv.MaxOwnerBytes)
	c.required("topic", r.GetTopic(), pattern.MaxTopicBytes)
	c.text("payload_json", r.GetPayloadJson(), store.MaxPayloadBytes)
	c.size("payload_bytes", len(r.GetPayloadBytes()), store.MaxPayloadBytes)
	size := 0
	for key, value := range r.GetHeaders() {
		size += len(key) + len(value)
	}
	c.pairs("headers", size, store.MaxHeadersBytes)
	c.enum("delivery", r.GetDelivery())
	c.name("session_id", r.GetSessionId(), session.MaxSessionIDBytes)
	c.name("event_id", r.GetEventId(), store.MaxIDBytes)
	c.name("request_id", r.GetRequestId(), MaxIDBytes)
	c.text("type", r.GetType(), store.MaxTypeBytes)
	for i, tag := range r.GetTags() {
		if len(tag) > store.MaxTagBytes {
			c.text(Item("tags", i), tag, store.MaxTagBytes)
		}
	}
}

func (c *checker) owner(r owned) {
	c.requiredName("agent_id", r.GetAgentId(), kv.MaxOwnerBytes)
	c.name("user_id", r.GetUserId(), kv.MaxOwnerBytes)
	c.name("space_id", r.GetSpaceId(), kv.MaxOwnerBytes)
}

// text refuses more than limit bytes. That it is UTF-8 is the codec's care.
func (c *checker) text(field, s string, limit int) { c.size(field, len(s), limit) }

func (c *checker) requiredName(field, s string, limit int) {
	if s == "" {
		c.add(field, "is required")
	}
	c.name(field, s, limit)
}

// share refuses what is not a number from 0 to 1.
func (c *checker) share(field string, x float64) {
	if !(x >= 0 && x <= 1) {
		c.add(field, "is %v, it must be from 0 to 1", x)
	}
}

// enum refuses numbers that have no name.
func (c *checker) enum(field string, e protoreflect.Enum) {
	if e.Descriptor().Values().ByNumber(e.Number()) == nil {
		c.add(field, "has the unknown value %d", e.Number())
	}
}

func (c *checker) time(field string, t *timestamppb.Timestamp) {
	if t != nil && !t.IsValid() {
		c.add(field, "is not a time from the year 1 to 9999")
	}
}

// span refuses durations that are not above 0, or over a limit; unset is allowed.
func (c *checker) span(field string, d *durationpb.Duration, most time.Duration) {
	if d != nil && (!d.IsValid() || d.AsDuration() < 1 || d.AsDuration() > most) {
		c.add(field, "must be from %v to %v", time.Duration(1), most)
	}
}

// pairs refuses more than limit bytes of all.
func (c *checker) pairs(field string, size, limit int) {
	if size > limit {
		c.add(field, "are %d bytes, at most %d are allowed", size, limit)
	}
}
