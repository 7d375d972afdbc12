package validate

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/filter"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// protoComments returns the comment of each field, by "Message.field".
func protoComments(tb testing.TB) map[string]string {
	tb.Helper()
	paths, err := filepath.Glob("../../proto/loombridge/v1/*.proto")
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no protos: %v", err)
	}
	comments := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		readComments(string(text), comments)
	}
	return comments
}

var (
	protoMessage = regexp.MustCompile(`^message (\w+) \{`)
	protoField   = regexp.MustCompile(`(\w+) = \d+;`)
)

func readComments(text string, into map[string]string) {
	message, comment := "", ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if part, ok := strings.CutPrefix(line, "//"); ok {
			comment += part
			continue
		}
		if m := protoMessage.FindStringSubmatch(line); m != nil {
			message = m[1]
		} else if m := protoField.FindStringSubmatch(line); m != nil {
			into[message+"."+m[1]] = comment
		}
		comment = ""
	}
}

// inWords spells a size as the comments do.
func inWords(n int) string {
	switch {
	case n >= mib && n%mib == 0:
		return strconv.Itoa(n/mib) + " MiB"
	case n >= kib && n%kib == 0:
		return strconv.Itoa(n/kib) + " KiB"
	}
	return strconv.Itoa(n)
}

// The comments of the protos state the limits that are checked.
func TestDocumentedLimits(t *testing.T) {
	comments := protoComments(t)
	for field, limit := range map[string]int{
		"MemorySaveRequest.text":            record.MaxTextBytes,
		"Record.text":                       record.MaxTextBytes,
		"MemorySaveRequest.id":              record.MaxIDBytes,
		"MemorySaveRequest.key":             record.MaxKeyBytes,
		"MemorySaveRequest.kind":            record.MaxKindBytes,
		"MemorySaveRequest.session_id":      session.MaxSessionIDBytes,
		"MemorySaveRequest.author":          record.MaxAuthorBytes,
		"MemorySaveRequest.tags":            record.MaxTagBytes,
		"MemorySaveRequest.embedding":       record.MaxEmbedding,
		"MemorySaveRequest.embedding_space": record.MaxEmbeddingSpaceBytes,
		"MemorySaveRequest.derived_from":    record.MaxDerivedFrom,
		"MemorySaveRequest.request_id":      MaxIDBytes,
		"MemoryQueryRequest.query":          question.MaxTextBytes,
		"MemoryQueryRequest.limit":          question.MaxLimit,
		"MemoryQueryRequest.filter":         filter.MaxBytes,
		"ToolRequest.name":                  tools.MaxNameBytes,
		"ToolRequest.thought":               maxThoughtBytes,
		"ToolRequest.turn_id":               MaxIDBytes,
		"EmitRequest.topic":                 pattern.MaxTopicBytes,
		"EmitRequest.headers":               store.MaxHeaders,
		"EmitRequest.event_id":              store.MaxIDBytes,
		"SubscribeRequest.topics":           maxTopics,
		"AppendMessagesRequest.messages":    session.MaxMessages,
		"Message.content":                   session.MaxMessageBytes,
		"Message.name":                      session.MaxNameBytes,
		"Message.tool_calls":                session.MaxToolCalls,
		"ModelToolCall.id":                  session.MaxCallIDBytes,
		"AssembleRequest.goal":              maxGoalBytes,
		"AssembleRequest.system":            maxSystemBytes,
		"AssembleRequest.max_tokens":        assemble.DefaultMaxTokens,
		"CountTokensRequest.text":           maxCountedBytes,
		"FindInPromptsRequest.text":         maxFoundBytes,
		"CountTokensRequest.messages":       session.MaxMessages,
		"CompactHistoryRequest.step_ids":    assemble.MaxCompactedSteps,
		"CompleteTaskRequest.step_ids":      assemble.MaxCompactedSteps,
	} {
		comment, ok := comments[field]
		if !ok {
			t.Errorf("no field %s in the protos", field)
		}
		numbers := regexp.MustCompile(`\b(` + inWords(limit) + `|` + strconv.Itoa(limit) + `)\b`)
		if !numbers.MatchString(strings.ReplaceAll(comment, ",", "")) {
			t.Errorf("the comment of %s does not say %s: %s", field, inWords(limit), comment)
		}
	}
	if maxTopics != events.MaxTopics || maxGoalBytes != assemble.MaxGoalBytes || maxSystemBytes != assemble.MaxSystemBytes {
		t.Error("a limit differs between the check and the domain")
	}
}
