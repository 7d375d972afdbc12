package server_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// A session that ends with a reward of at least 0.7 becomes a playbook of what was done, one
// for each, which stands in no prompt before somebody approves it.
//
// P44, M18
func TestSessionsBecomePlaybooks(t *testing.T) {
	s := servertest.Start(t, nil)
	work := func(session string) {
		c := as(t, s, agent)
		_, err := c.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: session, Messages: []*loombridgev1.Message{user("Repair the pump\nin the cellar")}})
		must(t, err)
		for _, call := range []struct {
			tool, thought string
			good          bool
		}{{"look", "Where does it leak?", true}, {"order", "A new seal", false}, {"order", "Another seal", true}, {"order", "", true}, {"look", "Is it dry?", true}} {
			_, err := s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
				AgentId: agent, SessionId: session, ToolName: call.tool, Thought: call.thought, Success: call.good,
				ErrorMessage: map[bool]string{false: "sold out"}[call.good],
			})
			must(t, err)
		}
	}
	end := func(session string, reward float64) string {
		t.Helper()
		_, err := s.Context.EndSession(t.Context(), &loombridgev1.EndSessionRequest{AgentId: agent, SessionId: session, Reward: &reward, TaskType: "repair"})
		must(t, err)
		drafts, err := s.Memory.ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: agent, Filter: fmt.Sprintf(`kind = "playbook" AND metadata.source_session_id = %q`, session)})
		must(t, err)
		if len(drafts.GetRecords()) == 0 {
			return ""
		}
		if n := len(drafts.GetRecords()); n > 1 {
			t.Errorf("session %s has %d drafts", session, n)
		}
		return drafts.GetRecords()[0].GetId()
	}
	for session, test := range map[string]struct {
		reward float64
		made   bool
	}{"bad": {-1, false}, "nearly": {0.69, false}, "just": {0.7, true}, "more": {0.71, true}, "best": {1, true}} {
		work(session)
		if got := end(session, test.reward); (got != "") != test.made {
			t.Errorf("a reward of %v: %q", test.reward, got)
		}
	}
	// One for each session.
	id := end("just", 0.9)
	work("just")
	if again := end("just", 0.8); again != id || id == "" {
		t.Errorf("a second one: %s, %s", id, again)
	}
	got, err := s.Memory.GetRecord(convert.AskText(t.Context()), &loombridgev1.GetRecordRequest{AgentId: agent, Name: &loombridgev1.GetRecordRequest_Id{Id: id}})
	must(t, err)
	var entry map[string]any
	must(t, json.Unmarshal([]byte(got.GetMetadataJson()), &entry))
	want := `{"created_at":"2026-03-01T12:00:00Z","description":"Repair the pump in the cellar","name":"Repair the pump in the cellar",` +
		`"quality_metrics":{"avg_reward":0.7,"avg_turns":5,"success_rate":0.8},"source":"auto","source_session_id":"just","status":"draft",` +
		`"strategy":{"execution_strategy":"sequential","max_turns":5},"tool_sequence":[{"purpose":"Where does it leak?","tool":"look"},` +
		`{"is_critical":true,"purpose":"Another seal","tool":"order"},{"purpose":"Is it dry?","tool":"look"}],"trigger":{"task_types":["repair"]},"updated_at":"2026-03-01T12:00:00Z"}`
	if text := string(mustJSON(t, entry)); text != want || got.GetKind() != "playbook" {
		t.Errorf("the record is %s\n%s, want\n%s", got.GetKind(), text, want)
	}
	prompt := func() string { return wholeText(promptFor(t, s, "new", "Repair the pump in the cellar", patient(""))) }
	if text := prompt(); strings.Contains(text, "<playbook_hint") {
		t.Errorf("a draft is shown:\n%s", text)
	}
	_, err = s.Memory.UpdateRecord(t.Context(), &loombridgev1.UpdateRecordRequest{
		AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Id{Id: id}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"metadata.status"}},
		Record: &loombridgev1.MemorySaveRequest{MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: `{"status":"approved"}`}},
	})
	must(t, err)
	s.Clock.Advance(time.Hour)
	if text := prompt(); !strings.Contains(text, "Tools: look → order → look\nAverage 5 steps, success 80%") {
		t.Errorf("it is approved, and not shown:\n%s", text)
	}
	// What can't become one: nothing was done, or nobody said what for.
	must(t, tell(t, s, "talk"))
	if got := end("talk", 1) + end("nothing", 1); got != "" {
		t.Errorf("a playbook of nothing: %s", got)
	}
	for field, r := range map[string]*loombridgev1.EndSessionRequest{
		"reward":    {Reward: new(1.1)},
		"task_type": {Reward: new(1.0), TaskType: strings.Repeat("x", 129)},
	} {
		r.AgentId, r.SessionId = agent, "just"
		_, err := s.Context.EndSession(t.Context(), r)
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
		if got := fieldsOf(err); len(got) != 1 || got[0] != field {
			t.Errorf("%s: refused are %v", field, got)
		}
	}
	_, err = s.Context.EndSession(t.Context(), &loombridgev1.EndSessionRequest{AgentId: agent, Reward: new(math.NaN())})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
}
