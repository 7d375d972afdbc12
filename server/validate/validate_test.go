package validate

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/context/conversation"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/admission"
	"github.com/loom-bridge/loom-bridge/server/page"
)

// fields are the fields that a check refused.
func fields(tb testing.TB, err error) []string {
	tb.Helper()
	if err == nil {
		return nil
	}
	request, ok := err.(*RequestError) //nolint:errorlint // checks return it bare
	if !ok {
		tb.Fatalf("%T: %v", err, err)
	}
	var names []string
	for _, v := range request.Violations {
		names = append(names, v.Field)
	}
	slices.Sort(names)
	return names
}

// checkCase is a request that is fine, changed by one edit at a time.
type checkCase[R proto.Message] struct {
	name string
	edit func(R)
	want []string
}

// counter counts as the codec does.
var counter = sync.OnceValue(func() *admission.Counter {
	hello := (&loombridgev1.AttachHello{}).ProtoReflect().Descriptor()
	return admission.NewCounter(Counts(), append(admission.Requests(nativePackage), hello)...)
})

// counted is what the codec says of how much a message holds.
func counted(m proto.Message) error {
	raw, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	if excess, found := counter().Check(m.ProtoReflect().Descriptor(), raw); found {
		return Refuse(excess.Field, excess.Problem)
	}
	return nil
}

// check is what a request meets: it is counted, then checked.
func check[R proto.Message](r R) error {
	if err := counted(r); err != nil {
		return err
	}
	return Request(r)
}

func runChecks[R proto.Message](t *testing.T, good R, check func(R) error, cases []checkCase[R]) {
	t.Helper()
	if err := check(good); err != nil {
		t.Fatalf("the good request: %v", err)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := proto.Clone(good).(R)
			c.edit(r)
			slices.Sort(c.want)
			if diff := cmp.Diff(c.want, fields(t, check(r))); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func long(n int) string { return strings.Repeat("x", n) }

func TestMemorySaveRequest(t *testing.T) {
	type r = *loombridgev1.MemorySaveRequest
	good := &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "t"}
	runChecks(t, good, check[r], []checkCase[r]{
		{"all at once", func(m r) { *m = loombridgev1.MemorySaveRequest{Importance: new(2.0)} }, []string{"agent_id", "text", "importance"}},
		{"agent with NUL", func(m r) { m.AgentId = "a\x00" }, []string{"agent_id"}},
		{"agent at its limit", func(m r) { m.AgentId = long(256) }, nil},
		{"agent over its limit", func(m r) { m.AgentId = long(257) }, []string{"agent_id"}},
		{"user over its limit", func(m r) { m.UserId = long(257) }, []string{"user_id"}},
		{"text at its limit", func(m r) { m.Text = long(256 << 10) }, nil},
		{"text over its limit", func(m r) { m.Text = long(256<<10 + 1) }, []string{"text"}},
		{"id over its limit", func(m r) { m.Id = long(129) }, []string{"id"}},
		{"key with NUL", func(m r) { m.Key = "\x00" }, []string{"key"}},
		{"kind over its limit", func(m r) { m.Kind = long(65) }, []string{"kind"}},
		{"session over its limit", func(m r) { m.SessionId = long(257) }, []string{"session_id"}},
		{"author over its limit", func(m r) { m.Author = long(257) }, []string{"author"}},
		{"no such time", func(m r) { m.EventTime = &timestamppb.Timestamp{Seconds: math.MaxInt64} }, []string{"event_time"}},
		{"metadata over its limit", func(m r) {
			m.MetadataForm = &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: long(64<<10 + 1)}
		}, []string{"metadata_json"}},
		{"64 tags", func(m r) { m.Tags = strings.Split(long(64), "") }, nil},
		{"65 tags", func(m r) { m.Tags = strings.Split(long(65), "") }, []string{"tags"}},
		{"empty and long tag", func(m r) { m.Tags = []string{"", long(129)} }, []string{"tags[0]", "tags[1]"}},
		{"importance is no number", func(m r) { m.Importance = new(math.NaN()) }, []string{"importance"}},
		{"importance under 0", func(m r) { m.Importance = new(-0.1) }, []string{"importance"}},
		{"importance 0", func(m r) { m.Importance = new(0.0) }, nil},
		{"ttl of nothing", func(m r) { m.Expiry = &loombridgev1.MemorySaveRequest_Ttl{Ttl: &durationpb.Duration{}} }, []string{"ttl"}},
		{"ttl too long", func(m r) {
			m.Expiry = &loombridgev1.MemorySaveRequest_Ttl{Ttl: durationpb.New(maxTTL + time.Hour)}
		}, []string{"ttl"}},
		{"embedding without space", func(m r) { m.Embedding = []float32{1} }, []string{"embedding_space"}},
		{"embedding not finite", func(m r) {
			m.Embedding, m.EmbeddingSpace = []float32{float32(math.Inf(1))}, "s"
		}, []string{"embedding"}},
		{"embedding too long", func(m r) { m.Embedding, m.EmbeddingSpace = make([]float32, 4097), "s" }, []string{"embedding"}},
		{"65 sources", func(m r) { m.DerivedFrom = strings.Split(long(65), "") }, []string{"derived_from"}},
		{"empty source", func(m r) { m.DerivedFrom = []string{""} }, []string{"derived_from[0]"}},
		{"unknown origin", func(m r) { m.Origin = 99 }, []string{"origin"}},
		{"request id over its limit", func(m r) { m.RequestId = long(129) }, []string{"request_id"}},
	})
}

func TestMemoryQueryRequest(t *testing.T) {
	type r = *loombridgev1.MemoryQueryRequest
	good := &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "q"}
	runChecks(t, good, check[r], []checkCase[r]{
		{"no query", func(m r) { m.Query = "" }, []string{"query"}},
		{"query over its limit", func(m r) { m.Query = long(8<<10 + 1) }, []string{"query"}},
		{"limit 100", func(m r) { m.Limit = 100 }, nil},
		{"limit 101", func(m r) { m.Limit = 101 }, []string{"limit"}},
		{"limit under 0", func(m r) { m.Limit = -1 }, []string{"limit"}},
		{"filter over its limit", func(m r) { m.Filter = long(4<<10 + 1) }, []string{"filter"}},
		{"unknown mode", func(m r) { m.Mode = 9 }, []string{"mode"}},
		{"score over 1", func(m r) { m.MinScore = 1.1 }, []string{"min_score"}},
	})
}

func TestGetRecordRequest(t *testing.T) {
	type r = *loombridgev1.GetRecordRequest
	good := &loombridgev1.GetRecordRequest{AgentId: "a", Name: &loombridgev1.GetRecordRequest_Id{Id: "i"}}
	runChecks(t, good, check[r], []checkCase[r]{
		{"no name", func(m r) { m.Name = nil }, []string{"name"}},
		{"empty id", func(m r) { m.Name = &loombridgev1.GetRecordRequest_Id{} }, []string{"id"}},
		{"empty key", func(m r) { m.Name = &loombridgev1.GetRecordRequest_Key{} }, []string{"key"}},
		{"key over its limit", func(m r) { m.Name = &loombridgev1.GetRecordRequest_Key{Key: long(257)} }, []string{"key"}},
	})
}

func TestToolRequest(t *testing.T) {
	type r = *loombridgev1.ToolRequest
	good := &loombridgev1.ToolRequest{AgentId: "a", Name: "fs:stat"}
	runChecks(t, good, check[r], []checkCase[r]{
		{"no name", func(m r) { m.Name = "" }, []string{"name"}},
		{"name over its limit", func(m r) { m.Name = long(129) }, []string{"name"}},
		{"arguments over their limit", func(m r) {
			m.ArgumentsForm = &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: long(1<<20 + 1)}
		}, []string{"arguments_json"}},
		{"ten minutes", func(m r) { m.Timeout = durationpb.New(10 * time.Minute) }, nil},
		{"over ten minutes", func(m r) { m.Timeout = durationpb.New(10*time.Minute + 1) }, []string{"timeout"}},
		{"no time", func(m r) { m.Timeout = durationpb.New(0) }, []string{"timeout"}},
		{"thought over its limit", func(m r) { m.Thought = long(64<<10 + 1) }, []string{"thought"}},
		{"ids over their limit", func(m r) { m.TurnId, m.CallId, m.RequestId = long(129), long(4097), long(129) }, []string{"turn_id", "call_id", "request_id"}},
	})
}

func TestListToolsRequest(t *testing.T) {
	type r = *loombridgev1.ListToolsRequest
	runChecks(t, &loombridgev1.ListToolsRequest{AgentId: "a", Levels: []int32{1, 2, 3}}, check[r], []checkCase[r]{
		{"levels 0 and 4", func(m r) { m.Levels = []int32{0, 4} }, []string{"levels[0]", "levels[1]"}},
		{"four levels", func(m r) { m.Levels = []int32{1, 1, 1, 1} }, []string{"levels"}},
	})
}

func TestEmitRequest(t *testing.T) {
	type r = *loombridgev1.EmitRequest
	runChecks(t, &loombridgev1.EmitRequest{AgentId: "a", Topic: "t"}, check[r], []checkCase[r]{
		{"no topic", func(m r) { m.Topic = "" }, []string{"topic"}},
		{"topic over its limit", func(m r) { m.Topic = long(257) }, []string{"topic"}},
		{"payload over its limit", func(m r) {
			m.PayloadForm = &loombridgev1.EmitRequest_PayloadJson{PayloadJson: long(1<<20 + 1)}
		}, []string{"payload_json"}},
		{"bytes over their limit", func(m r) {
			m.PayloadForm = &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: make([]byte, 1<<20+1)}
		}, []string{"payload_bytes"}},
		{"33 headers", func(m r) {
			m.Headers = map[string]string{}
			for i := range 33 {
				m.Headers[long(i+1)] = ""
			}
		}, []string{"headers"}},
		{"unknown delivery", func(m r) { m.Delivery = 7 }, []string{"delivery"}},
		{"event id over its limit", func(m r) { m.EventId = long(129) }, []string{"event_id"}},
	})
}

func TestSubscribeRequest(t *testing.T) {
	type r = *loombridgev1.SubscribeRequest
	topic := func(name string) *loombridgev1.TopicPosition { return &loombridgev1.TopicPosition{Topic: name} }
	good := &loombridgev1.SubscribeRequest{AgentId: "a", Topics: []*loombridgev1.TopicPosition{topic("t")}}
	runChecks(t, good, check[r], []checkCase[r]{
		{"no topics", func(m r) { m.Topics = nil }, []string{"topics"}},
		{"a topic twice", func(m r) { m.Topics = append(m.Topics, topic("t")) }, []string{"topics[1].topic"}},
		{"empty topic", func(m r) { m.Topics = append(m.Topics, topic("")) }, []string{"topics[1].topic"}},
		{"before the beginning", func(m r) { m.Topics[0].AfterSequence = new(int64(-1)) }, []string{"topics[0].after_sequence"}},
		{"65 topics", func(m r) {
			m.Topics = nil
			for i := range 65 {
				m.Topics = append(m.Topics, topic(long(i+1)))
			}
		}, []string{"topics"}},
	})
}

func TestAppendMessagesRequest(t *testing.T) {
	type r = *loombridgev1.AppendMessagesRequest
	good := &loombridgev1.AppendMessagesRequest{AgentId: "a", Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: "c"}}}
	runChecks(t, good, check[r], []checkCase[r]{
		{"no messages", func(m r) { m.Messages = nil }, []string{"messages"}},
		{"257 messages", func(m r) {
			for range 256 {
				m.Messages = append(m.Messages, m.GetMessages()[0])
			}
		}, []string{"messages"}},
		{"no role", func(m r) { m.Messages[0].Role = 0 }, []string{"messages[0].role"}},
		{"unknown role", func(m r) { m.Messages[0].Role = 9 }, []string{"messages[0].role"}},
		{"content over its limit", func(m r) { m.Messages[0].Content = long(1<<20 + 1) }, []string{"messages[0].content"}},
		{"name over its limit", func(m r) { m.Messages[0].Name = long(257) }, []string{"messages[0].name"}},
		{"empty call", func(m r) {
			m.Messages[0].ToolCalls = []*loombridgev1.ModelToolCall{{}}
		}, []string{"messages[0].tool_calls[0].name"}},
		{"129 calls", func(m r) {
			for range 129 {
				m.Messages[0].ToolCalls = append(m.Messages[0].ToolCalls, &loombridgev1.ModelToolCall{Id: "i", Name: "n"})
			}
		}, []string{"messages[0].tool_calls"}},
	})
}

func TestListStepsRequest(t *testing.T) {
	type r = *loombridgev1.ListStepsRequest
	good := &loombridgev1.ListStepsRequest{AgentId: "a", PageSize: 1000, PageToken: page.Token(7)}
	runChecks(t, good, check[r], []checkCase[r]{
		{"page over its limit", func(m r) { m.PageSize = 1001 }, []string{"page_size"}},
		{"page under 0", func(m r) { m.PageSize = -1 }, []string{"page_size"}},
		{"token without size", func(m r) { m.PageSize = 0 }, []string{"page_size"}},
		{"token of nobody", func(m r) { m.PageToken = "7" }, []string{"page_token"}},
	})
}

func TestListSessionsRequest(t *testing.T) {
	type r = *loombridgev1.ListSessionsRequest
	good := &loombridgev1.ListSessionsRequest{AgentId: "a", PageSize: 1000, PageToken: page.Sessions.Token(long(256))}
	runChecks(t, good, check[r], []checkCase[r]{
		{"no agent", func(m r) { m.AgentId = "" }, []string{"agent_id"}},
		{"page over its limit", func(m r) { m.PageSize = 1001 }, []string{"page_size"}},
		{"page under 0", func(m r) { m.PageSize = -1 }, []string{"page_size"}},
		{"token of nobody", func(m r) { m.PageToken = "7" }, []string{"page_token"}},
		{"token of a session that can't be", func(m r) { m.PageToken = page.Sessions.Token(long(257)) }, []string{"page_token"}},
	})
}

func TestListConversationRequest(t *testing.T) {
	type r = *loombridgev1.ListConversationRequest
	token := page.ConversationToken(conversation.Cursor{Position: 7, Task: 1<<63 - 1}, true)
	good := &loombridgev1.ListConversationRequest{
		AgentId: "a", SessionId: long(256), PageSize: 1000, PageToken: token, Order: loombridgev1.ConversationOrder_CONVERSATION_ORDER_NEWEST_FIRST,
	}
	runChecks(t, good, check[r], []checkCase[r]{
		{"session over its limit", func(m r) { m.SessionId = long(257) }, []string{"session_id"}},
		{"page over its limit", func(m r) { m.PageSize = 1001 }, []string{"page_size"}},
		{"unknown order", func(m r) { m.Order, m.PageToken = 9, "" }, []string{"order"}},
		{"token of the other order", func(m r) { m.Order = 0 }, []string{"page_token"}},
	})
}

func TestSmallRequests(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want []string
	}{
		{"step id", check(&loombridgev1.GetStepRequest{AgentId: "a", StepId: "step_1"}), []string{"step_id"}},
		{"good step id", check(&loombridgev1.GetStepRequest{AgentId: "a", StepId: "step_001"}), nil},
		{"goal", check(&loombridgev1.AssembleRequest{AgentId: "a", Goal: long(256<<10 + 1)}), []string{"goal"}},
		{"system", check(&loombridgev1.AssembleRequest{AgentId: "a", System: long(1<<20 + 1)}), []string{"system"}},
		{"budget", check(&loombridgev1.AssembleRequest{AgentId: "a", MaxTokens: -1}), []string{"max_tokens"}},
		{"format", check(&loombridgev1.AssembleRequest{AgentId: "a", Format: 99}), []string{"format"}},
		{"text to count", check(&loombridgev1.CountTokensRequest{AgentId: "a", Text: long(1<<20 + 1)}), []string{"text"}},
		{"nothing to count", check(&loombridgev1.CountTokensRequest{AgentId: "a"}), nil},
		{"messages to count", check(&loombridgev1.CountTokensRequest{AgentId: "a", Messages: slices.Repeat([]*loombridgev1.Message{{Role: 2}}, 256)}), nil},
		{"too many to count", check(&loombridgev1.CountTokensRequest{AgentId: "a", Messages: slices.Repeat([]*loombridgev1.Message{{Role: 2}}, 257)}), []string{"messages"}},
		{"text and messages to count", check(&loombridgev1.CountTokensRequest{AgentId: "a", Text: "x", Messages: []*loombridgev1.Message{{}}}), []string{"text", "messages[0].role"}},
		{"blobs of no step", check(&loombridgev1.ListBlobsRequest{AgentId: "a", StepId: "1", PageSize: 1001, Tier: 9, PageToken: "x"}), []string{"step_id", "tier", "page_size", "page_token"}},
		{"all blobs", check(&loombridgev1.ListBlobsRequest{AgentId: "a", PageToken: page.Blobs.Token("workspace/outputs/read_001.txt")}), nil},
		{"promotion to nothing", check(&loombridgev1.UpdateBlobRequest{AgentId: "a", Tier: 1, NewName: long(129), Category: long(65)}), []string{"name", "tier", "category", "new_name"}},
		{"good promotion", check(&loombridgev1.UpdateBlobRequest{AgentId: "a", Name: "n", Tier: 3, NewName: long(128), Category: long(64)}), nil},
		{"archive without name", check(&loombridgev1.UpdateBlobRequest{Archive: true, AgentId: "a", Tags: []string{""}, NewName: long(129)}), []string{"name", "tags[0]", "new_name"}},
		{"archive with many tags", check(&loombridgev1.UpdateBlobRequest{Archive: true, AgentId: "a", Name: "n", Tags: slices.Repeat([]string{"t"}, 33)}), []string{"tags"}},
		{"search of nothing", check(&loombridgev1.SearchBlobsRequest{AgentId: "a", Name: "n"}), []string{"pattern"}},
		{"deletion by name and filter", check(&loombridgev1.DeleteRecordsRequest{AgentId: "a", Filter: "version >= 1", Name: &loombridgev1.DeleteRecordsRequest_Id{Id: "r"}}), []string{"filter"}},
		{"deletion by name that counts", check(&loombridgev1.DeleteRecordsRequest{AgentId: "a", DryRun: true, Name: &loombridgev1.DeleteRecordsRequest_Id{Id: "r"}}), []string{"filter"}},
		{"deletion by an empty name", check(&loombridgev1.DeleteRecordsRequest{AgentId: "a", Name: &loombridgev1.DeleteRecordsRequest_Id{}}), []string{"id"}},
		{"deletion of nothing", check(&loombridgev1.DeleteRecordsRequest{AgentId: "a"}), []string{"filter"}},
		{"deletion by filter of a version", check(&loombridgev1.DeleteRecordsRequest{AgentId: "a", Filter: "version >= 1", ExpectedVersion: proto.Int64(1)}), []string{"name"}},
		{"deletion by filter of a request", check(&loombridgev1.DeleteRecordsRequest{AgentId: "a", Filter: "version >= 1", RequestId: "r"}), []string{"name"}},
		{"review and archive", check(&loombridgev1.UpdateRecordRequest{AgentId: "a", Name: &loombridgev1.UpdateRecordRequest_Id{Id: "r"}, Review: loombridgev1.Review_REVIEW_APPROVED, Archived: proto.Bool(true)}), []string{"archived"}},
		{"review and text", check(&loombridgev1.UpdateRecordRequest{AgentId: "a", Name: &loombridgev1.UpdateRecordRequest_Id{Id: "r"}, Review: loombridgev1.Review_REVIEW_APPROVED, Record: &loombridgev1.MemorySaveRequest{Text: "x"}}), []string{"record"}},
		{"archive and text", check(&loombridgev1.UpdateRecordRequest{AgentId: "a", Name: &loombridgev1.UpdateRecordRequest_Id{Id: "r"}, Archived: proto.Bool(false), Record: &loombridgev1.MemorySaveRequest{Text: "x"}}), []string{"record"}},
		{"review of no decision", check(&loombridgev1.UpdateRecordRequest{AgentId: "a", Name: &loombridgev1.UpdateRecordRequest_Id{Id: "r"}, Review: loombridgev1.Review_REVIEW_HELD}), []string{"review"}},
		{"blob archived for a while", check(&loombridgev1.UpdateBlobRequest{AgentId: "a", Name: "n", Archive: true, Tier: loombridgev1.BlobTier_BLOB_TIER_LONG_TERM}), []string{"tier"}},
		{"blob archived as important", check(&loombridgev1.UpdateBlobRequest{AgentId: "a", Name: "n", Archive: true, Important: true}), []string{"important"}},
		{"blob with tags outside the archive", check(&loombridgev1.UpdateBlobRequest{AgentId: "a", Name: "n", Tier: loombridgev1.BlobTier_BLOB_TIER_LONG_TERM, Tags: []string{"t"}}), []string{"tags"}},
		{"overflow with tokens", check(&loombridgev1.ReportUsageRequest{AgentId: "a", Overflow: true, PromptTokens: 1}), []string{"overflow"}},
		{"usage of a turn", check(&loombridgev1.ReportUsageRequest{AgentId: "a", PromptId: "p", PromptTokens: 1, TurnId: "t"}), []string{"turn_id"}},
		{"search with bad numbers", check(&loombridgev1.SearchBlobsRequest{AgentId: "a", Limit: 101, MaxMatches: 1001, PageToken: "s1.0.0"}), []string{"limit", "max_matches", "page_token"}},
		{"search with a bad token", check(&loombridgev1.SearchBlobsRequest{AgentId: "a", Name: "n", Pattern: &loombridgev1.SearchBlobsRequest_Literal{Literal: "l"}, PageToken: "s1.-1.0"}), []string{"page_token"}},
		{"words in one blob", check(&loombridgev1.SearchBlobsRequest{AgentId: "a", Name: "n", Pattern: &loombridgev1.SearchBlobsRequest_Words{Words: "w"}, Tags: []string{"t"}}), []string{"words", "name"}},
		{"empty pattern", check(&loombridgev1.SearchBlobsRequest{AgentId: "a", Pattern: &loombridgev1.SearchBlobsRequest_Regexp{}}), []string{"regexp"}},
		{"search of the archive", check(&loombridgev1.SearchBlobsRequest{AgentId: "a", Category: "general", Limit: 100, MaxMatches: 1000}), nil},
		{"collection", check(&loombridgev1.CollectGarbageRequest{AgentId: "a", RequestId: long(129)}), []string{"request_id"}},
		{"blob without name", check(&loombridgev1.ReadBlobRequest{AgentId: "a", Offset: -1, Limit: -1}), []string{"name", "offset", "limit"}},
	} {
		slices.Sort(test.want)
		if diff := cmp.Diff(test.want, fields(t, test.err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
