package server_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
)

// needed are the fields that messages within requests require, so that what a test breaks
// is the only thing that is wrong.
var needed = map[protoreflect.FullName]proto.Message{
	"loombridge.v1.Injection":         &loombridgev1.Injection{Name: "x", Phase: systemPhase},
	"loombridge.v1.Example":           &loombridgev1.Example{Input: "x", Output: "y"},
	"loombridge.v1.Skill":             &loombridgev1.Skill{Name: "x"},
	"loombridge.v1.ToolDescriptor":    &loombridgev1.ToolDescriptor{Name: "x"},
	"loombridge.v1.Message":           &loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT},
	"loombridge.v1.ModelToolCall":     &loombridgev1.ModelToolCall{Id: "x", Name: "x"},
	"loombridge.v1.PlanItem":          &loombridgev1.PlanItem{Text: "x"},
	"loombridge.v1.Task":              &loombridgev1.Task{Action: "execute"},
	"loombridge.v1.TokenPrices":       &loombridgev1.TokenPrices{Input: 1},
	"loombridge.v1.RecordStepRequest": &loombridgev1.RecordStepRequest{ToolName: "x", Success: true},

	"loombridge.v1.AppendMessagesRequest": &loombridgev1.AppendMessagesRequest{Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_ASSISTANT}}},
	"loombridge.v1.ReportUsageRequest":    &loombridgev1.ReportUsageRequest{PromptId: "x", PromptTokens: 1},
	"loombridge.v1.CompressResultRequest": &loombridgev1.CompressResultRequest{ToolName: "x"},
	"loombridge.v1.UpdateBlobRequest":     &loombridgev1.UpdateBlobRequest{Name: "x", Tier: loombridgev1.BlobTier_BLOB_TIER_LONG_TERM},
	"loombridge.v1.SearchBlobsRequest":    &loombridgev1.SearchBlobsRequest{Name: "x", Pattern: &loombridgev1.SearchBlobsRequest_Literal{Literal: "x"}},
}

// free are fields that take what others don't, by the path that is to be refused in their
// place; empty where nothing is.
var free = map[string]string{
	"RecordStep output_upload.form": "output_upload", "RecordStep output_upload.media_type": "output_upload", // of UploadStep
	"CompressResult exit_code": "", // a signal's is negative
	// What the server alone sets is refused as a whole.
	"Assemble tools[0].profile.refused[0].key": "tools[0].profile", "Assemble tools[0].profile.refused[0].line": "tools[0].profile",
	"Assemble tools[0].profile.refused[0].reason": "tools[0].profile", "Assemble tools[0].profile.problem": "tools[0].profile",
}

// badValues are the wrong values of a field, by what is wrong with them.
func badValues(field protoreflect.FieldDescriptor) map[string]protoreflect.Value {
	switch field.Kind() {
	case protoreflect.EnumKind:
		return map[string]protoreflect.Value{"an unknown number": protoreflect.ValueOfEnum(99), "a negative number": protoreflect.ValueOfEnum(-1)}
	case protoreflect.Int32Kind:
		return map[string]protoreflect.Value{"negative": protoreflect.ValueOfInt32(-1), "the least": protoreflect.ValueOfInt32(math.MinInt32)}
	case protoreflect.Int64Kind:
		return map[string]protoreflect.Value{"negative": protoreflect.ValueOfInt64(-1), "the least": protoreflect.ValueOfInt64(math.MinInt64)}
	case protoreflect.DoubleKind:
		return map[string]protoreflect.Value{
			"NaN": protoreflect.ValueOfFloat64(math.NaN()), "infinite": protoreflect.ValueOfFloat64(math.Inf(1)),
			"negative": protoreflect.ValueOfFloat64(-2), "huge": protoreflect.ValueOfFloat64(math.MaxFloat64),
		}
	case protoreflect.StringKind:
		bad := map[string]protoreflect.Value{"too long": protoreflect.ValueOfString(strings.Repeat("x", 2<<20))}
		if isName(string(field.Name())) {
			bad["NUL"] = protoreflect.ValueOfString("a\x00b")
		}
		return bad
	}
	return nil
}

// isName reports whether a field names something, so that it can't hold a NUL.
func isName(field string) bool {
	names := []string{"name", "model", "preset", "tool", "category", "owner", "profile", "xml_tag", "action", "activate", "deactivate", "exclude", "event_actions", "agents_md", "tags"}
	return slices.Contains(names, field) || strings.HasSuffix(field, "_id") || strings.HasSuffix(field, "_ids") || strings.HasSuffix(field, "_name") || field == "id"
}

// breakFields calls f with a request for each wrong value of each of its fields.
func breakFields(input protoreflect.MessageDescriptor, f func(path, why string, request proto.Message)) {
	fresh := func() protoreflect.Message {
		kind, err := protoregistry.GlobalTypes.FindMessageByName(input.FullName())
		if err != nil {
			panic(err)
		}
		m := kind.New()
		if required := needed[input.FullName()]; required != nil {
			proto.Merge(m.Interface(), required)
		}
		m.Set(input.Fields().ByName("agent_id"), protoreflect.ValueOfString(agent))
		return m
	}
	var walk func(prefix string, within protoreflect.MessageDescriptor, reach func(protoreflect.Message) protoreflect.Message, depth int)
	walk = func(prefix string, within protoreflect.MessageDescriptor, reach func(protoreflect.Message) protoreflect.Message, depth int) {
		for i := range within.Fields().Len() {
			field := within.Fields().Get(i)
			path := prefix + string(field.Name())
			switch {
			case field.IsMap():
				for why, value := range badValues(field.MapValue()) {
					m := fresh()
					reach(m).Mutable(field).Map().Set(protoreflect.ValueOfString("x").MapKey(), value)
					f(fmt.Sprintf("%s[%q]", path, "x"), why, m.Interface())
				}
			case field.Message() != nil && strings.HasPrefix(string(field.Message().FullName()), "google.protobuf."):
				if field.Message().FullName() != "google.protobuf.Duration" {
					continue
				}
				for why, seconds := range map[string]int64{"negative": -1, "too long": math.MaxInt64} {
					m := fresh()
					d := reach(m).Mutable(field).Message()
					d.Set(d.Descriptor().Fields().ByName("seconds"), protoreflect.ValueOfInt64(seconds))
					f(path, why, m.Interface())
				}
			case field.Message() != nil && depth < 5:
				walk(path+map[bool]string{true: "[0]."}[field.IsList()]+map[bool]string{false: "."}[field.IsList()], field.Message(), func(m protoreflect.Message) protoreflect.Message {
					outer := reach(m)
					var inner protoreflect.Message
					if list := outer.Mutable(field); field.IsList() && list.List().Len() > 0 {
						inner = list.List().Get(0).Message()
					} else if field.IsList() {
						inner = list.List().AppendMutable().Message()
					} else {
						inner = outer.Mutable(field).Message()
					}
					if required := needed[field.Message().FullName()]; required != nil {
						proto.Merge(inner.Interface(), required)
					}
					return inner
				}, depth+1)
			default:
				for why, value := range badValues(field) {
					m := fresh()
					at := path
					if field.IsList() {
						reach(m).Mutable(field).List().Append(value)
						at += "[0]"
					} else {
						reach(m).Set(field, value)
					}
					f(at, why, m.Interface())
				}
			}
		}
	}
	walk("", input, func(m protoreflect.Message) protoreflect.Message { return m }, 0)
}

// Every field of every request about sessions, prompts, blobs and agents refuses what it can't be by its own path,
// and nothing is changed by what was refused.
func TestBadInputOfContext(t *testing.T) {
	s := servertest.Start(t, nil)
	MustTell(t, s, loombridgev1.Role_ROLE_USER, "Hello")
	before := stateOf(t, s)
	everyMethod(func(method string, d protoreflect.MethodDescriptor) {
		service, name, _ := strings.Cut(strings.TrimPrefix(method, "/loombridge.v1."), "/")
		if !slices.Contains([]string{"SessionService", "PromptService", "BlobService", "AgentService"}, service) || d.IsStreamingClient() {
			return
		}
		breakFields(d.Input(), func(path, why string, request proto.Message) {
			if instead, ok := free[name+" "+path]; ok {
				if path = instead; path == "" {
					return
				}
			}
			err := call(t.Context(), s.Conn(), method, d, request)
			fields := fieldsOf(err)
			if status.Code(err) != codes.InvalidArgument || !slices.ContainsFunc(fields, func(f string) bool { return f == path }) {
				t.Errorf("%s: %s is %s: %v %v %.200v", method, path, why, status.Code(err), fields, err)
			}
		})
	})
	if after := stateOf(t, s); after != before {
		t.Errorf("refused requests changed\n%s\nto\n%s", before, after)
	}
}

// stateOf is what an agent's sessions hold.
func stateOf(tb testing.TB, s *servertest.Server) string {
	tb.Helper()
	sessions, err := s.Context.ListSessions(tb.Context(), &loombridgev1.ListSessionsRequest{AgentId: agent})
	must(tb, err)
	said, err := s.Context.ListConversation(tb.Context(), &loombridgev1.ListConversationRequest{AgentId: agent})
	must(tb, err)
	config, err := s.Context.ConfigureSession(tb.Context(), &loombridgev1.ConfigureSessionRequest{AgentId: agent})
	must(tb, err)
	working, err := s.Context.UpdateWorking(tb.Context(), &loombridgev1.UpdateWorkingRequest{AgentId: agent})
	must(tb, err)
	return fmt.Sprint(sessions, said, config, working)
}

// What a field alone can't show is refused by the path of what is wrong, too.
func TestContradictions(t *testing.T) {
	s := servertest.Start(t, nil)
	tools := func(names ...string) *loombridgev1.AssembleRequest {
		r := &loombridgev1.AssembleRequest{AgentId: agent}
		for _, name := range names {
			r.Tools = append(r.Tools, &loombridgev1.ToolDescriptor{Name: name})
		}
		return r
	}
	chat := func(r *loombridgev1.AssembleRequest, f loombridgev1.PromptFormat) *loombridgev1.AssembleRequest {
		r.Format = f
		return r
	}
	schema := tools("b", "a")
	schema.Tools[0].ParametersSchemaJson = "[]"
	none := &loombridgev1.ToolSelection{None: true, Names: []string{"fs:*"}}
	for field, r := range map[string]*loombridgev1.AssembleRequest{
		"tools[1].name":                   tools("b", ""),
		"tools[0].name":                   tools("a b"),
		"tools[2].name":                   tools("a", "b", "b"),
		"tools[1].name ":                  tools("a", "line\nfeed"),
		"tools[1].name  ":                 chat(tools("a:b", "a_b"), loombridgev1.PromptFormat_PROMPT_FORMAT_OPENAI_CHAT),
		"tools[0].name   ":                chat(tools(strings.Repeat("x", 65)), loombridgev1.PromptFormat_PROMPT_FORMAT_OPENAI_CHAT),
		"tools[0].name    ":               chat(tools("1a"), loombridgev1.PromptFormat_PROMPT_FORMAT_GEMINI),
		"tools[0].parameters_schema_json": schema,
		"settings.tools.none":             {AgentId: agent, Settings: &loombridgev1.PromptSettings{Tools: none}},
		"settings.max_output_tokens":      {AgentId: agent, MaxTokens: 10, Settings: &loombridgev1.PromptSettings{MaxOutputTokens: 10}},
	} {
		_, err := s.Context.Assemble(t.Context(), r)
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
		if got := fieldsOf(err); !slices.Equal(got, []string{strings.TrimSpace(field)}) {
			t.Errorf("%s: refused are %v", field, got)
		}
	}
	_, err := s.Context.ConfigureSession(t.Context(), &loombridgev1.ConfigureSessionRequest{AgentId: agent, Prompt: &loombridgev1.PromptSettings{Tools: none}})
	if got := fieldsOf(err); !slices.Equal(got, []string{"prompt.tools.none"}) {
		t.Errorf("refused are %v: %v", got, err)
	}
	_, err = s.Context.UpdateWorking(t.Context(), &loombridgev1.UpdateWorkingRequest{AgentId: agent, Deactivate: []string{"nobody's"}})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	if got := fieldsOf(err); !slices.Equal(got, []string{"deactivate[0]"}) {
		t.Errorf("refused are %v", got)
	}
	// What is active can be put away although its record has gone.
	saved := remember(t, s, &loombridgev1.MemorySaveRequest{Kind: "skill", Key: "review", Text: "Read twice."})
	_, err = s.Context.UpdateWorking(t.Context(), &loombridgev1.UpdateWorkingRequest{AgentId: agent, Activate: []string{"review"}})
	must(t, err)
	_, err = s.Memory.DeleteRecords(t.Context(), &loombridgev1.DeleteRecordsRequest{AgentId: agent, Name: &loombridgev1.DeleteRecordsRequest_Id{Id: saved.GetId()}})
	must(t, err)
	_, err = s.Context.UpdateWorking(t.Context(), &loombridgev1.UpdateWorkingRequest{AgentId: agent, Deactivate: []string{"review"}})
	must(t, err)
}

// More bytes of messages that are never folded than an answer may have fit no prompt,
// whatever the policy, and the error says what to do.
func TestMessagesThatNeverFit(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Limits: server.Limits{MaxSendBytes: 64 << 10}}})
	for range 3 {
		MustTell(t, s, loombridgev1.Role_ROLE_USER, strings.Repeat("0123456789 ", 3000))
	}
	for policy := range loombridgev1.HistoryPolicy_name {
		history := &loombridgev1.HistorySettings{Policy: loombridgev1.HistoryPolicy(policy)}
		if policy == int32(loombridgev1.HistoryPolicy_HISTORY_POLICY_PRESET) {
			history.Preset = "three_phase"
		}
		_, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, MaxTokens: 1_000_000, History: history})
		info := MustFail(t, err, codes.ResourceExhausted, "TOO_LARGE")
		if info.GetMetadata()["limit"] != "65536" || !strings.Contains(info.GetMetadata()["advice"], "another session") {
			t.Errorf("policy %d: %v, %v", policy, err, info.GetMetadata())
		}
	}
}
