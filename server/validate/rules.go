package validate

import (
	"math"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/bridge/approval"
	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject/playbook"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/context/media"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	stepping "github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/filter"
	"github.com/loom-bridge/loom-bridge/memory/grants"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/backup"
	"github.com/loom-bridge/loom-bridge/memory/lexical/rank"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/relations"
	"github.com/loom-bridge/loom-bridge/server/page"
)

// rule is what a field may hold.
type rule struct {
	// check adds what is wrong with a value: of a field, of each item of a list, or with a whole
	// map. It is not called for an empty list and a field that has presence and is not set.
	check func(c *checker, v protoreflect.Value)
	// needed refuses a list without items, and a message, and a member of a oneof, that is not set.
	needed bool
	// inner is for messages whose own fields have rules.
	inner bool
	// most bounds the items of a list, the entries of a map and the values of JSON.
	most int
}

// callers are common rules for who asks and about whom: they hold in the request itself, not in
// messages within it.
var callers = map[string]bool{"agent_id": true, "user_id": true, "space_id": true, "request_id": true}

// rules are the rules of fields: of that of one message or, where it has none, of all fields of a
// name. Each limit is stated in the field's comment in the protos; changing one breaks clients.
// An enum without a rule has one of its values, a time is from the year 1 to 9999.
var rules = map[string]rule{
	"agent_id":         required(name(kv.MaxOwnerBytes)),
	"user_id":          name(kv.MaxOwnerBytes),
	"space_id":         name(kv.MaxOwnerBytes),
	"request_id":       name(MaxIDBytes),
	"session_id":       name(session.MaxSessionIDBytes),
	"turn_id":          name(MaxIDBytes),
	"call_id":          name(session.MaxCallIDBytes),
	"model":            name(maxModelBytes),
	"max_tokens":       between(0, math.MaxInt32),
	"filter":           size(filter.MaxBytes),
	"expected_version": between(1, math.MaxInt64), // none has zero: taken for any it would turn the comparison off
	"id":               required(name(record.MaxIDBytes)),
	"key":              required(name(record.MaxKeyBytes)),
	"page_size":        between(0, page.MaxSize),

	"AttachHello.topics":                 list(maxTopics, inner),
	"AttachHello.tools":                  list(maxProvidedTools),
	"AttachHello.metadata":               pairs(maxAgentMetadata, maxAgentMetadataBytes),
	"AttachHello.capabilities":           list(maxCapabilities, size(maxCapabilityBytes)),
	"AttachHello.parent_id":              name(kv.MaxOwnerBytes),
	"AttachHello.heartbeat_interval":     span(minHeartbeat, maxHeartbeat),
	"AttachHeartbeat.signals":            list(working.MaxSignals), // which are checked one by one: a bad one stops no other
	"AttachUnsubscribe.topics":           some(list(maxUnsubscribed)),
	"AttachToolResult.output":            values(maxJSONValues),
	"ToolDescriptor.cli_equivalents":     list(maxEquivalents),
	"SubscribeRequest.topics":            some(list(maxTopics, inner)),
	"TopicPosition.topic":                required(size(pattern.MaxTopicBytes)),
	"TopicPosition.after_sequence":       between(0, math.MaxInt64),
	"TopicPosition.event_types":          list(maxEventTypes, size(store.MaxTypeBytes)),
	"TopicPosition.headers":              pairs(store.MaxHeaders, store.MaxHeadersBytes),
	"TopicPosition.session_id":           size(store.MaxSessionBytes),
	"EmitRequest.payload":                values(maxJSONValues),
	"EmitRequest.headers":                list(store.MaxHeaders),
	"EmitRequest.tags":                   list(store.MaxTags),
	"SendMessageRequest.message":         inner,
	"DirectMessage.source_agent_id":      ofServer,
	"DirectMessage.target_agent_id":      name(kv.MaxOwnerBytes),
	"DirectMessage.target_node_id":       name(kv.MaxOwnerBytes),
	"DirectMessage.content":              size(messages.MaxContentBytes),
	"DirectMessage.ttl":                  span(time.Microsecond, messages.MaxTTL),
	"DirectMessage.parent_task_id":       name(messages.MaxTaskIDBytes),
	"DirectMessage.task_id":              name(messages.MaxTaskIDBytes),
	"DirectMessage.metadata":             values(messages.MaxMetadataBytes / textPerValue),
	"ListMessagesRequest.parent_task_id": name(messages.MaxTaskIDBytes),
	"ListMessagesRequest.page_token":     token(page.Messages, messages.MaxPlaceBytes),
	"DeleteMessagesRequest.task_ids":     some(list(maxDeletedMessages, required(name(messages.MaxTaskIDBytes)))),
	"SpawnAgentRequest.child_id":         required(name(children.MaxIDBytes)),
	"SpawnAgentRequest.goal":             required(size(children.MaxGoalBytes)),
	"SpawnAgentRequest.child_session_id": name(session.MaxSessionIDBytes),
	"SpawnAgentRequest.profile":          name(children.MaxToolBytes),
	"SpawnAgentRequest.tools":            list(children.MaxTools, required(name(children.MaxToolBytes))),
	"SpawnAgentRequest.grants":           list(children.MaxGrants, required(name(children.MaxGrantBytes))),
	"SpawnAgentRequest.limits":           inner,
	"SpawnAgentRequest.fork_from":        name(children.MaxPromptIDBytes),
	"ChildLimits.steps":                  between(0, children.MaxLimit),
	"ChildLimits.tokens_per_step":        between(0, children.MaxLimit),
	"ChildLimits.files":                  between(0, children.MaxLimit),
	"ChildLimits.bytes":                  between(0, children.MaxLimit),
	"ChildLimits.timeout":                upTo(children.MaxTimeout, "30 days"),
	"CompleteTaskRequest.task_id":        required(name(session.MaxTaskIDBytes)),
	"CompleteTaskRequest.conclusion":     size(children.MaxResultBytes),
	"CompleteTaskRequest.grants":         list(children.MaxGrants, required(name(children.MaxGrantBytes))),
	"CompleteTaskRequest.step_ids":       list(assemble.MaxCompactedSteps, aStep),
	"WaitAgentsRequest.child_ids":        list(children.MaxWaited, required(name(children.MaxIDBytes))),
	"WaitAgentsRequest.timeout":          upTo(maxWait, "10 minutes"),

	"ToolRequest.arguments":                 values(maxJSONValues),
	"ListToolsRequest.levels":               list(tools.LevelScript, between(tools.LevelFunction, tools.LevelScript)),
	"ListToolsRequest.page_token":           token(page.Tools, tools.MaxNameBytes),
	"ListToolsRequest.tool":                 name(tools.MaxNameBytes),
	"ApproveCallRequest.id":                 required(name(MaxIDBytes)),
	"ApproveCallRequest.decision":           chosen,
	"ApproveCallRequest.note":               line(approval.MaxNoteBytes),
	"RevokeApprovalRequest.id":              required(name(MaxIDBytes)),
	"ListApprovalsRequest.page_token":       token(page.Approvals, MaxIDBytes),
	"ListAuditRequest.caller_id":            name(kv.MaxOwnerBytes),
	"ListAuditRequest.tool":                 size(tools.MaxNameBytes),
	"ListAuditRequest.page_size":            between(0, audit.MaxPage),
	"ListAuditRequest.page_token":           listed(func(s string) bool { _, ok := page.ParseAuditToken(s); return ok }),
	"ListMcpServersRequest.page_token":      token(page.Servers, mcp.MaxServerName),
	"RemoveMcpServerRequest.name":           required(name(mcp.MaxServerName)),
	"McpServerDefinition.args":              list(mcp.MaxServerFields),
	"McpServerDefinition.env":               list(mcp.MaxServerFields),
	"McpServerDefinition.headers":           list(mcp.MaxServerFields),
	"ListScopesRequest.agent_id":            name(kv.MaxOwnerBytes),
	"ListScopesRequest.tenant":              name(kv.MaxTenantBytes),
	"ListScopesRequest.prefix":              name(kv.MaxOwnerBytes),
	"ListScopesRequest.page_size":           between(0, memory.MaxOwnersPage),
	"ListScopesRequest.page_token":          listed(func(s string) bool { _, ok := page.ParseScopeToken(s); return ok }),
	"ListBackupsRequest.page_token":         token(page.Backups, backup.MaxNameBytes),
	"GetStatusRequest.agent_id":             name(kv.MaxOwnerBytes), // it is needed for a workspace alone
	"MoveWorkspaceRequest.server":           required(size(registry.MaxWorkspaceBytes)),
	"EraseScopeRequest.subject":             inner,
	"EraseSubject.tenant":                   name(kv.MaxTenantBytes),
	"EraseSubject.agent_id":                 required(name(kv.MaxOwnerBytes)),
	"EraseSubject.user_id":                  required(name(kv.MaxOwnerBytes)),
	"EraseSubject.step_id":                  optional(aStep),
	"CreateSpaceRequest.space_id":           required(name(kv.MaxOwnerBytes)),
	"DeleteSpaceRequest.space_id":           required(name(kv.MaxOwnerBytes)),
	"ListSpacesRequest.page_token":          token(page.Spaces, kv.MaxOwnerBytes),
	"GrantAccessRequest.grantee":            required(name(grants.MaxPatternBytes)),
	"GrantAccessRequest.access":             chosen,
	"RevokeAccessRequest.grantee":           required(name(grants.MaxPatternBytes)),
	"ListGrantsRequest.page_token":          token(page.Grants, grants.MaxPatternBytes),
	"RecordStepRequest.arguments":           values(maxJSONValues),
	"RecordStepRequest.output":              values(maxJSONValues),
	"ResultBytes.data":                      data(hand.MaxOutputBytes),
	"ResultBytes.media_type":                aMediaType,
	"Task.task_id":                          name(session.MaxTaskIDBytes),
	"Task.action":                           required(name(session.MaxActionBytes)),
	"Task.parameters":                       values(session.MaxParametersBytes / textPerValue),
	"Task.parameters_json":                  size(session.MaxParametersBytes),
	"Task.source_agent":                     name(session.MaxTaskAgentBytes),
	"Task.target_agent":                     name(session.MaxTaskAgentBytes),
	"Task.parent_task_id":                   name(session.MaxTaskIDBytes),
	"Task.result":                           size(session.MaxTaskResultBytes),
	"Task.tags":                             list(session.MaxTaskTags, required(name(session.MaxTaskTagBytes))),
	"Task.importance":                       share,
	"CompressResultRequest.tool_name":       required(name(tools.MaxNameBytes)),
	"CompressResultRequest.tool_call_id":    name(session.MaxCallIDBytes),
	"CompressResultRequest.content":         size(maxCompressedBytes),
	"CompressResultRequest.result_kind":     optional(aResultKind),
	"CompressResultRequest.threshold_chars": between(0, maxCompressedBytes),
	"CompressResultRequest.path":            size(maxFilePathBytes),

	"AppendMessagesRequest.messages":        some(list(session.MaxMessages, inner)),
	"CountTokensRequest.messages":           list(session.MaxMessages, inner),
	"CountTokensRequest.text":               size(maxCountedBytes),
	"Message.role":                          chosen,
	"Message.content":                       size(session.MaxMessageBytes),
	"Message.blocks_json":                   size(session.MaxMediaBytes),
	"Message.name":                          name(session.MaxNameBytes),
	"Message.tool_call_id":                  name(session.MaxCallIDBytes),
	"Message.extra_json":                    size(session.MaxMessageBytes),
	"Message.tool_calls":                    list(session.MaxToolCalls, inner),
	"ModelToolCall.id":                      name(session.MaxCallIDBytes),
	"ModelToolCall.name":                    required(name(session.MaxToolNameBytes)),
	"ModelToolCall.arguments_json":          size(session.MaxMessageBytes),
	"ModelToolCall.extra_json":              size(session.MaxMessageBytes),
	"ListStepsRequest.page_size":            between(0, session.MaxListed),
	"ListStepsRequest.page_token":           listed(func(s string) bool { _, ok := page.ParseToken(s); return ok }),
	"ListSessionsRequest.page_token":        token(page.Sessions, session.MaxSessionIDBytes),
	"ListConversationRequest.page_size":     between(0, session.MaxListed),
	"ListConversationRequest.task_id":       name(session.MaxTaskIDBytes + len(tiers.Key(""))),
	"ListSnapshotsRequest.page_size":        between(0, session.MaxSnapshots),
	"ListSnapshotsRequest.page_token":       listed(func(s string) bool { _, ok := page.ParseToken(s); return ok }),
	"ListSnapshotsRequest.sprint":           between(0, math.MaxInt32),
	"GetStepRequest.step_id":                aStep,
	"ConfigureSessionRequest.history":       inner,
	"ConfigureSessionRequest.prompt":        inner,
	"EndSessionRequest.task_type":           size(playbook.MaxWordBytes),
	"CompactHistoryRequest.keep_recent":     between(0, session.MaxListed),
	"CompactHistoryRequest.summary":         size(maxSummaryBytes),
	"CompactHistoryRequest.step_ids":        list(assemble.MaxCompactedSteps, aStep),
	"UndoRequest.batch":                     between(0, math.MaxInt64),
	"RenewRequest.goal":                     size(working.MaxGoalBytes),
	"UpdateWorkingRequest.goal":             size(working.MaxGoalBytes),
	"UpdateWorkingRequest.plan":             inner,
	"UpdateWorkingRequest.goal_progress":    size(working.MaxProgressBytes),
	"UpdateWorkingRequest.scratchpad":       size(working.MaxScratchpadBytes),
	"UpdateWorkingRequest.signals":          list(working.MaxSignals, inner),
	"UpdateWorkingRequest.acknowledge":      list(working.MaxSignals, inner),
	"UpdateWorkingRequest.add_questions":    list(working.MaxQuestions, requiredLine(working.MaxQuestionBytes)),
	"UpdateWorkingRequest.remove_questions": list(working.MaxQuestions, requiredLine(working.MaxQuestionBytes)),
	"UpdateWorkingRequest.add_evidence":     list(working.MaxFound, inner),
	"UpdateWorkingRequest.activate":         list(working.MaxSkills, required(name(working.MaxSkillBytes))),
	"UpdateWorkingRequest.deactivate":       list(working.MaxSkills, required(name(working.MaxSkillBytes))),
	"Plan.items":                            list(working.MaxItems, inner),
	"PlanItem.text":                         anItem,
	"Signal.event_id":                       requiredLine(working.MaxEventIDBytes),
	"Signal.type":                           line(working.MaxTypeBytes),
	"Signal.summary":                        requiredLine(working.MaxSummaryBytes),
	"Signal.delta_h":                        share,
	"Acknowledgement.event_id":              requiredLine(working.MaxEventIDBytes),
	"Acknowledgement.decision":              chosen,
	"Acknowledgement.summary":               ofServer,
	"Evidence.source":                       requiredLine(working.MaxSourceBytes),
	"Evidence.title":                        line(working.MaxSourceBytes),
	"Evidence.content":                      required(size(working.MaxContentBytes)),
	"Evidence.citation":                     line(working.MaxSourceBytes),
	"Evidence.score":                        share,

	"AssembleRequest.goal":              size(maxGoalBytes),
	"AssembleRequest.system":            size(maxSystemBytes),
	"AssembleRequest.history":           inner,
	"AssembleRequest.settings":          inner,
	"AssembleRequest.tools":             list(settings.MaxToolDefinitions),
	"AssembleRequest.as_of_step_id":     aStep,
	"AssembleRequest.as_of_prompt_id":   required(name(session.MaxPromptIDBytes)),
	"DiffPromptsRequest.from_prompt_id": name(session.MaxPromptIDBytes),
	"DiffPromptsRequest.to_prompt_id":   name(session.MaxPromptIDBytes),
	"FindInPromptsRequest.text":         size(maxFoundBytes),
	"HistorySettings.prices":            inner,
	"HistorySettings.expected_steps":    between(0, maxExpectedSteps),
	"HistorySettings.max_result_tokens": between(0, maxShownTokens),
	"TokenPrices.cached_input":          price,
	"TokenPrices.cache_write":           price,
	"PromptSettings.sources":            inner,
	"PromptSettings.few_shot":           list(settings.MaxExamples),
	"PromptSettings.skills":             list(settings.MaxSkills),
	"PromptSettings.injections":         list(settings.MaxInjections, inner),
	"Injection.max_tokens":              {}, // is for package settings to check, as is most else of a prompt's
	"Skill.tools":                       list(settings.MaxSkillTools),
	"ToolSelection.levels":              list(settings.MaxLevels),
	"ToolSelection.names":               list(settings.MaxToolPatterns),
	"SourceSettings.knowledge_timeout":  span(1, settings.MaxKnowledgeTimeout),
	"SourceSettings.exclude":            list(settings.MaxExcluded),
	"SourceSettings.memory_layers":      list(settings.MaxLayers),
	"SourceSettings.event_actions":      list(settings.MaxEventActions),
	"SourceSettings.instructors":        list(settings.MaxInstructors),
	"InjectionLimits.sections":          list(settings.MaxCaps),

	"ReadBlobRequest.name":           required(name(maxBlobNameBytes)),
	"ReadBlobRequest.offset":         between(0, math.MaxInt64),
	"ReadBlobRequest.limit":          between(0, math.MaxInt64),
	"ReadBlobRequest.media_index":    between(0, stepping.MaxMedia-1),
	"ListBlobsRequest.step_id":       optional(aStep),
	"ListBlobsRequest.kind":          size(blob.MaxCategoryBytes),
	"ListBlobsRequest.category":      name(blob.MaxCategoryBytes),
	"ListBlobsRequest.page_token":    token(page.Blobs, blob.MaxPathBytes),
	"UpdateBlobRequest.name":         required(name(maxBlobNameBytes)),
	"UpdateBlobRequest.tier":         {},
	"UpdateBlobRequest.category":     name(blob.MaxCategoryBytes),
	"UpdateBlobRequest.tags":         list(blob.MaxTags, required(name(blob.MaxTagBytes))),
	"UpdateBlobRequest.new_name":     name(blob.MaxNameBytes),
	"SearchBlobsRequest.name":        name(maxBlobNameBytes),
	"SearchBlobsRequest.words":       required(size(blob.MaxQueryBytes)),
	"SearchBlobsRequest.literal":     required(size(blob.MaxPatternBytes)),
	"SearchBlobsRequest.regexp":      required(size(blob.MaxPatternBytes)),
	"SearchBlobsRequest.category":    name(blob.MaxCategoryBytes),
	"SearchBlobsRequest.tags":        list(blob.MaxTags, required(name(blob.MaxTagBytes))),
	"SearchBlobsRequest.limit":       between(0, blob.MaxFound),
	"SearchBlobsRequest.max_matches": between(0, blob.MaxFoundMatches),
	"SearchBlobsRequest.page_token":  size(maxPageTokenBytes),

	"MemorySaveRequest.metadata":         values(record.MaxMetadataBytes / textPerValue),
	"MemorySaveRequest.tags":             list(record.MaxTags),
	"MemorySaveRequest.embedding":        list(record.MaxEmbedding),
	"MemorySaveRequest.derived_from":     list(record.MaxDerivedFrom),
	"MemorySaveRequest.relations":        list(record.MaxRelations),
	"MemoryQueryRequest.embedding":       list(record.MaxEmbedding),
	"MemoryQueryRequest.tiers":           list(record.LongTerm),
	"MemoryQueryRequest.without_signals": list(len(rank.Signals())),
	"MemoryQueryRequest.owners":          list(maxOwners),
	"MemoryOwner.agent_id":               required(name(kv.MaxOwnerBytes)),
	"MemoryOwner.user_id":                required(name(kv.MaxOwnerBytes)),
	"MemoryOwner.space_id":               required(name(kv.MaxOwnerBytes)),
	"RelatedOptions.names":               list(relations.MaxNames, aRelation),
	"RelatedOptions.limit":               between(0, question.MaxRelated),
	"DeleteRecordsRequest.tiers":         someTiers,
	"UpdateRecordRequest.review":         {},
	"ListRecordsRequest.page_size":       between(0, memory.MaxPageSize),
	"ListRecordsRequest.page_token":      size(maxPageTokenBytes),
	"ListRecordsRequest.tiers":           someTiers,
	"BatchSaveRequest.records":           some(list(memory.MaxBatchRecords)),
	"WatchRecordsRequest.after":          size(maxPositionBytes),
	"RelateRecordsRequest.relations":     some(list(memory.MaxRelated, inner)),
	"UnrelateRecordsRequest.relations":   some(list(memory.MaxRelated, inner)),
	"Relation.from_id":                   required(name(record.MaxIDBytes)),
	"Relation.name":                      aRelation,
	"Relation.to_id":                     required(name(record.MaxIDBytes)),
	"ListRelationsRequest.names":         list(relations.MaxNames, aRelation),
	"ListRelationsRequest.page_token":    token(page.Relations, 2+record.MaxRelationName+record.MaxIDBytes),
	"ImportRequest.import_id":            name(record.MaxKeyBytes),
	"ImportRequest.lines":                list(maxLines),
}

// of makes a rule of texts.
func of(check func(c *checker, s string)) rule {
	return rule{check: func(c *checker, v protoreflect.Value) { check(c, v.String()) }}
}

// size is of text of at most so many bytes. That it is UTF-8 is the codec's care.
func size(limit int) rule { return of(func(c *checker, s string) { c.size("", len(s), limit) }) }

// data is size for bytes.
func data(limit int) rule {
	return rule{check: func(c *checker, v protoreflect.Value) { c.size("", len(v.Bytes()), limit) }}
}

// name is text that becomes a key, so that it can't hold NUL.
func name(limit int) rule { return of(func(c *checker, s string) { c.name("", s, limit) }) }

// line is a name on one line.
func line(limit int) rule {
	return of(func(c *checker, s string) {
		c.name("", s, limit)
		if strings.ContainsAny(s, "\r\n") {
			c.add("", "is more than one line")
		}
	})
}

func requiredLine(limit int) rule {
	one := line(limit)
	return rule{check: func(c *checker, v protoreflect.Value) {
		if one.check(c, v); strings.TrimSpace(v.String()) == "" {
			c.add("", "is required")
		}
	}}
}

// required is a text that is not empty.
func required(r rule) rule {
	return of(func(c *checker, s string) {
		if s == "" {
			c.add("", "is required")
		}
		r.check(c, protoreflect.ValueOfString(s))
	})
}

// optional is a text that may be empty.
func optional(r rule) rule {
	return rule{check: func(c *checker, v protoreflect.Value) {
		if v.String() != "" {
			r.check(c, v)
		}
	}}
}

// list has at most so many items, each of which keeps the rule if there is one. So has a map.
func list(most int, each ...rule) rule {
	if len(each) == 0 {
		return rule{most: most}
	}
	return rule{check: each[0].check, inner: each[0].inner, most: most}
}

// values are those of JSON in protobuf's own types.
func values(most int) rule { return rule{most: most} }

// some is a list that is not empty.
func some(r rule) rule {
	r.needed = true
	return r
}

// pairs are at most so many, and so many bytes in all.
func pairs(most, limit int) rule {
	return rule{most: most, check: func(c *checker, v protoreflect.Value) {
		size := 0
		v.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
			size += len(key.String()) + len(value.String())
			return true
		})
		if size > limit {
			c.add("", "are %d bytes, at most %d are allowed", size, limit)
		}
	}}
}

// between allows both ends.
func between(low, high int64) rule {
	return rule{check: func(c *checker, v protoreflect.Value) { c.between("", v.Int(), low, high) }}
}

// span refuses durations outside low and high.
func span(low, high time.Duration) rule {
	return duration(low, high, func(c *checker) { c.add("", "must be from %v to %v", low, high) })
}

// upTo is a duration of at most so much, which has a name.
func upTo(high time.Duration, called string) rule {
	return duration(0, high, func(c *checker) { c.add("", "must be from 0 to %s", called) })
}

func duration(low, high time.Duration, refuse func(c *checker)) rule {
	return rule{check: func(c *checker, v protoreflect.Value) {
		if d := v.Message().Interface().(*durationpb.Duration); !d.IsValid() || d.AsDuration() < low || d.AsDuration() > high {
			refuse(c)
		}
	}}
}

// token is the place in a list of names, which have at most so many bytes.
func token(of page.Names, limit int) rule {
	return listed(func(s string) bool { _, ok := of.Parse(s, limit); return ok })
}

// listed is a place in a list that the list gave.
func listed(known func(token string) bool) rule {
	return of(func(c *checker, s string) {
		if !known(s) {
			c.add("", notListed)
		}
	})
}

const notListed = "did not come from this listing"

var (
	inner = rule{inner: true}
	// chosen is an enum that is not unspecified.
	chosen = rule{check: func(c *checker, v protoreflect.Value) {
		if v.Enum() == 0 {
			c.add("", "is required")
		}
	}}
	// aTime is a time that there is.
	aTime = rule{check: func(c *checker, v protoreflect.Value) {
		if !v.Message().Interface().(*timestamppb.Timestamp).IsValid() {
			c.add("", "is not a time from the year 1 to 9999")
		}
	}}
	// share is a number from 0 to 1.
	share = rule{check: func(c *checker, v protoreflect.Value) {
		if x := v.Float(); !(x >= 0 && x <= 1) {
			c.add("", "is %v, it must be from 0 to 1", x)
		}
	}}
	price = rule{check: func(c *checker, v protoreflect.Value) {
		if x := v.Float(); x != 0 && !(x >= minPrice && x <= maxPrice) {
			c.add("", "is %v, it must be 0, or from %v to %v", x, minPrice, maxPrice)
		}
	}}
	aStep = of(func(c *checker, s string) {
		if _, ok := stepping.ParseID(s); !ok {
			c.add("", "is not `step_` and a number of at least three digits")
		}
	})
	aMediaType = of(func(c *checker, s string) {
		if !isMediaType(s) {
			c.add("", noMediaType, maxMediaTypeBytes)
		}
	})
	aResultKind = of(func(c *checker, s string) {
		if !slices.Contains(compress.Kinds(), compress.Strategy(s)) {
			c.add("", "is %q, it must be search, file, exec, api or text", Printable(s))
		}
	})
	aRelation = of(func(c *checker, s string) {
		if problem := record.RelationProblem(s); problem != "" {
			c.add("", "%s", problem)
		}
	})
	// anItem is one of a plan.
	anItem = of(func(c *checker, s string) {
		c.size("", len(s), working.MaxItemBytes)
		switch {
		case strings.TrimSpace(s) == "":
			c.add("", "is required")
		case strings.ContainsAny(s, "\r\n"):
			c.add("", "is more than one line")
		}
	})
	someTiers = list(record.LongTerm, between(2, record.LongTerm))
	// ofServer is a text that a request can't say.
	ofServer = of(func(c *checker, s string) {
		if s != "" {
			c.add("", setByServer)
		}
	})
)

const noMediaType = "is not a media type, such as `image/png`, of at most %d bytes"

// isMediaType reports whether a text is one, or empty.
func isMediaType(s string) bool { return s == "" || media.IsType(s) }
