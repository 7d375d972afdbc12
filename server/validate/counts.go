package validate

import (
	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/lexical/rank"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/relations"
	"github.com/loom-bridge/loom-bridge/server/admission"
)

const (
	// maxJSONValues bounds the values of JSON in protobuf's own types, where its
	// text may have 1 MiB. Text has no such bound: it takes less memory.
	maxJSONValues = 50_000
	// textPerValue is the least text that a value of JSON takes: what may have so
	// many bytes of text needs no more values than this allows.
	textPerValue = 2
)

// Counts is how much of everything that can be counted a request of the native
// API may hold. Each number is stated in the field's comment in the protos;
// changing one breaks clients.
func Counts() admission.ItemLimits {
	return admission.ItemLimits{
		"google.protobuf.FieldMask.paths": maxMaskPaths,

		"loombridge.v1.AttachHello.topics":             maxTopics,
		"loombridge.v1.AttachHello.tools":              maxProvidedTools,
		"loombridge.v1.AttachHello.metadata":           maxAgentMetadata,
		"loombridge.v1.ToolDescriptor.cli_equivalents": maxEquivalents,
		"loombridge.v1.AttachHello.capabilities":       maxCapabilities,
		"loombridge.v1.AttachUnsubscribe.topics":       maxUnsubscribed,
		"loombridge.v1.AttachToolResult.output":        maxJSONValues,
		"loombridge.v1.SubscribeRequest.topics":        maxTopics,
		"loombridge.v1.McpServerDefinition.args":       mcp.MaxServerFields,
		"loombridge.v1.McpServerDefinition.env":        mcp.MaxServerFields,
		"loombridge.v1.McpServerDefinition.headers":    mcp.MaxServerFields,
		"loombridge.v1.TopicPosition.event_types":      maxEventTypes,
		"loombridge.v1.TopicPosition.headers":          maxFilterHeaders,
		"loombridge.v1.EmitRequest.payload":            maxJSONValues,
		"loombridge.v1.EmitRequest.headers":            store.MaxHeaders,
		"loombridge.v1.EmitRequest.tags":               store.MaxTags,
		"loombridge.v1.DirectMessage.metadata":         messages.MaxMetadataBytes / textPerValue,
		"loombridge.v1.DeleteMessagesRequest.task_ids": maxDeletedMessages,

		"loombridge.v1.SpawnAgentRequest.tools":     children.MaxTools,
		"loombridge.v1.SpawnAgentRequest.grants":    children.MaxGrants,
		"loombridge.v1.CompleteTaskRequest.grants":  children.MaxGrants,
		"loombridge.v1.WaitAgentsRequest.child_ids": children.MaxWaited,

		"loombridge.v1.MemoryQueryRequest.embedding":       record.MaxEmbedding,
		"loombridge.v1.MemoryQueryRequest.owners":          maxOwners,
		"loombridge.v1.MemoryQueryRequest.tiers":           record.LongTerm,
		"loombridge.v1.MemoryQueryRequest.without_signals": len(rank.Signals()),
		"loombridge.v1.ListRecordsRequest.tiers":           record.LongTerm,
		"loombridge.v1.DeleteRecordsRequest.tiers":         record.LongTerm,
		"loombridge.v1.MemorySaveRequest.metadata":         record.MaxMetadataBytes / textPerValue,
		"loombridge.v1.MemorySaveRequest.tags":             record.MaxTags,
		"loombridge.v1.MemorySaveRequest.embedding":        record.MaxEmbedding,
		"loombridge.v1.MemorySaveRequest.derived_from":     record.MaxDerivedFrom,
		"loombridge.v1.BatchSaveRequest.records":           memory.MaxBatchRecords,
		"loombridge.v1.ImportRequest.lines":                maxLines,
		"loombridge.v1.MemorySaveRequest.relations":        record.MaxRelations,
		"loombridge.v1.RelateRecordsRequest.relations":     memory.MaxRelated,
		"loombridge.v1.UnrelateRecordsRequest.relations":   memory.MaxRelated,
		"loombridge.v1.ListRelationsRequest.names":         relations.MaxNames,
		"loombridge.v1.RelatedOptions.names":               relations.MaxNames,

		"loombridge.v1.AppendMessagesRequest.messages": session.MaxMessages,
		"loombridge.v1.CountTokensRequest.messages":    session.MaxMessages,
		"loombridge.v1.CompactHistoryRequest.step_ids": assemble.MaxCompactedSteps,
		"loombridge.v1.CompleteTaskRequest.step_ids":   assemble.MaxCompactedSteps,
		"loombridge.v1.Message.tool_calls":             session.MaxToolCalls,
		"loombridge.v1.RecordStepRequest.arguments":    maxJSONValues,
		"loombridge.v1.RecordStepRequest.output":       maxJSONValues,
		"loombridge.v1.Task.parameters":                session.MaxParametersBytes / textPerValue,
		"loombridge.v1.Task.tags":                      session.MaxTaskTags,
		"loombridge.v1.UpdateBlobRequest.tags":         blob.MaxTags,
		"loombridge.v1.SearchBlobsRequest.tags":        blob.MaxTags,

		"loombridge.v1.Plan.items":                      working.MaxItems,
		"loombridge.v1.UpdateWorkingRequest.activate":   working.MaxSkills,
		"loombridge.v1.UpdateWorkingRequest.deactivate": working.MaxSkills,

		"loombridge.v1.UpdateWorkingRequest.signals":          working.MaxSignals,
		"loombridge.v1.AttachHeartbeat.signals":               working.MaxSignals,
		"loombridge.v1.UpdateWorkingRequest.acknowledge":      working.MaxSignals,
		"loombridge.v1.UpdateWorkingRequest.add_questions":    working.MaxQuestions,
		"loombridge.v1.UpdateWorkingRequest.remove_questions": working.MaxQuestions,
		"loombridge.v1.UpdateWorkingRequest.add_evidence":     working.MaxFound,

		"loombridge.v1.AssembleRequest.tools":        settings.MaxToolDefinitions,
		"loombridge.v1.PromptSettings.few_shot":      settings.MaxExamples,
		"loombridge.v1.PromptSettings.skills":        settings.MaxSkills,
		"loombridge.v1.PromptSettings.injections":    settings.MaxInjections,
		"loombridge.v1.Skill.tools":                  settings.MaxSkillTools,
		"loombridge.v1.ToolSelection.levels":         settings.MaxLevels,
		"loombridge.v1.ToolSelection.names":          settings.MaxToolPatterns,
		"loombridge.v1.SourceSettings.exclude":       settings.MaxExcluded,
		"loombridge.v1.SourceSettings.memory_layers": settings.MaxLayers,
		"loombridge.v1.SourceSettings.event_actions": settings.MaxEventActions,
		"loombridge.v1.SourceSettings.instructors":   settings.MaxInstructors,
		"loombridge.v1.InjectionLimits.sections":     settings.MaxCaps,

		"loombridge.v1.ToolRequest.arguments":   maxJSONValues,
		"loombridge.v1.ListToolsRequest.levels": tools.LevelScript,
	}
}
