package validate

import (
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// Limits of request fields that belong to no domain package. Each is stated in the field's
// comment in the protos; changing one breaks clients.
const (
	// MaxIDBytes bounds request, turn and call ids.
	MaxIDBytes = kv.MaxRequestIDBytes
	// maxModelBytes bounds the name of a model.
	maxModelBytes = 128
	// maxThoughtBytes bounds what a model said before a call.
	maxThoughtBytes = 64 * kib
	// maxGoalBytes bounds the goal of a prompt.
	maxGoalBytes = 256 * kib
	// maxSystemBytes bounds a system prompt.
	maxSystemBytes = mib
	// maxFoundBytes bounds the text of FindInPrompts.
	maxFoundBytes = 4 * kib
	// maxCountedBytes bounds the text of CountTokens.
	maxCountedBytes = mib
	// maxBlobNameBytes bounds a path, step id or ref.
	maxBlobNameBytes = 512
	// maxPageTokenBytes bounds a page token; ours are much shorter.
	maxPageTokenBytes = 128
	// maxTopics bounds the topics of one subscription.
	maxTopics = 64
	// maxToolTimeout bounds one tool call.
	maxToolTimeout = 10 * time.Minute
	// maxServiceBytes bounds the name in a health check: a watch keeps it for as
	// long as it lasts. Those that there are have much shorter names.
	maxServiceBytes = 256
	// maxTTL bounds how far ahead an expiry may lie.
	maxTTL = 100 * 365 * 24 * time.Hour

	// maxJSONValues bounds the values of JSON in protobuf's own types, where its
	// text may have 1 MiB. Text has no such bound: it takes less memory.
	maxJSONValues = 50_000
	// textPerValue is the least text that a value of JSON takes: what may have so
	// many bytes of text needs no more values than this allows.
	textPerValue = 2

	// maxOwners bounds the memories that one query searches.
	maxOwners = memory.MaxScopes
	// maxVersions bounds a page of versions, which are read whole.
	maxVersions = 100
	// maxMaskPaths bounds the paths of an update mask; there are ten fields.
	maxMaskPaths = 32
	// maxPathBytes bounds what an error shows of an unknown path.
	maxPathBytes = 256
	// maxQueryTokens bounds max_tokens, which is a size of prompts.
	maxQueryTokens = 1 << 24

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

	// maxProvidedTools bounds the tools of one agent: all of them stand in
	// prompts.
	maxProvidedTools = 256
	// maxEquivalents bounds commands that do the like of a tool, of which requests have none.
	maxEquivalents = 16
	// maxToolDescriptionBytes bounds what a tool says of itself.
	maxToolDescriptionBytes = 16 * kib
	// maxAgentMetadata and maxAgentMetadataBytes bound what describes an agent.
	maxAgentMetadata      = 32
	maxAgentMetadataBytes = 8 * kib
	// maxCapabilities and maxCapabilityBytes bound what others may look for.
	maxCapabilities    = 64
	maxCapabilityBytes = 256
	// maxUnsubscribed bounds the topics that are taken away at once: a stream has
	// fewer.
	maxUnsubscribed = 1024
	// maxEventTypes bounds those that one topic lets through.
	maxEventTypes = 64

	// DefaultHeartbeat, minHeartbeat and maxHeartbeat are how often an agent
	// says that it is alive: often enough to be missed soon, not so often that
	// a thousand agents are heard of most.
	DefaultHeartbeat = 5 * time.Second
	minHeartbeat     = 100 * time.Millisecond
	maxHeartbeat     = time.Hour

	// maxMediaTypeBytes bounds a media type.
	maxMediaTypeBytes = 128

	// maxPositionBytes bounds a position of a watch.
	maxPositionBytes = 64
	// maxLines bounds the lines of one message of an import.
	maxLines = 10_000
	// maxWait bounds one WaitAgents.
	maxWait = 10 * time.Minute
	// maxDeletedMessages bounds the messages of one deletion.
	maxDeletedMessages = 1000
	// DefaultSnapshots is how many snapshots a page has by default.
	DefaultSnapshots = 20
)
