package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	childRunning   = loombridgev1.ChildStatus_CHILD_STATUS_RUNNING
	childSucceeded = loombridgev1.ChildStatus_CHILD_STATUS_SUCCEEDED
	childFailed    = loombridgev1.ChildStatus_CHILD_STATUS_FAILED
)

// MustSpawn spawns a child of p, or of the parent that the request names.
func MustSpawn(tb testing.TB, s *servertest.Server, r *loombridgev1.SpawnAgentRequest) *loombridgev1.ChildAgent {
	tb.Helper()
	if r.GetAgentId() == "" {
		r.AgentId = "p"
	}
	if r.GetGoal() == "" {
		r.Goal = "find it"
	}
	made, err := s.Context.SpawnAgent(tb.Context(), r)
	must(tb, err)
	return made
}

// mustReturn returns the result of a child.
func mustReturn(tb testing.TB, s *servertest.Server, child, result string, grants ...string) *loombridgev1.ChildAgent {
	tb.Helper()
	done, err := s.Context.CompleteTask(tb.Context(), &loombridgev1.CompleteTaskRequest{
		AgentId: child, TaskId: child, Conclusion: result, Grants: grants,
	})
	must(tb, err)
	return done.GetChild()
}

func mustFailChild(tb testing.TB, s *servertest.Server, agent, child, problem string) {
	tb.Helper()
	_, err := s.Context.CompleteTask(tb.Context(), &loombridgev1.CompleteTaskRequest{AgentId: agent, TaskId: child, Failed: true, Error: problem})
	must(tb, err)
}

func mustWait(tb testing.TB, s *servertest.Server, timeout time.Duration, ids ...string) *loombridgev1.WaitAgentsResponse {
	tb.Helper()
	got, err := s.Context.WaitAgents(tb.Context(), &loombridgev1.WaitAgentsRequest{AgentId: "p", ChildIds: ids, Timeout: durationpb.New(timeout)})
	must(tb, err)
	return got
}

// stepsOf are the last steps of an agent in the session "default".
func stepsOf(tb testing.TB, s *servertest.Server, agent string) []*loombridgev1.Step {
	tb.Helper()
	got, err := s.Context.ListSteps(tb.Context(), &loombridgev1.ListStepsRequest{AgentId: agent, PageSize: 1000})
	must(tb, err)
	return got.GetSteps()
}

// write lets an agent write a file.
func write(tb testing.TB, s *servertest.Server, agent, path, content string) error {
	tb.Helper()
	args, err := json.Marshal(map[string]string{"path": path, "content": content})
	must(tb, err)
	_, err = s.Bridge.Tool(tb.Context(), &loombridgev1.ToolRequest{
		AgentId: agent, Name: "fs:write_file", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: string(args)},
	})
	return err
}

// A child has its own session, which begins with its goal and nothing else, its own
// steps and its own workspace; its parent has a step when it is spawned and one when it
// returns.
//
// C01, C02, C03, C04, P18, P19
func TestSpawnAndResult(t *testing.T) {
	s := servertest.Start(t, nil)
	must(t, write(t, s, "p", "secret.txt", "of the parent"))
	child := MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: "r-2", Goal: "Research ML frameworks"})
	l := child.GetLimits()
	if l.GetSteps() != 20 || l.GetTokensPerStep() != 2000 || l.GetFiles() != 10 || l.GetBytes() != 1_000_000 || l.GetTimeout().AsDuration() != time.Minute {
		t.Errorf("limits %v", l)
	}
	if child.GetParentId() != "p" || child.GetDepth() != 1 || child.GetStatus() != childRunning || child.GetSessionId() == "" {
		t.Errorf("child %v", child)
	}
	said, err := s.Context.ListConversation(t.Context(), &loombridgev1.ListConversationRequest{AgentId: "r-2", SessionId: child.GetSessionId()})
	must(t, err)
	if all := said.GetEntries(); len(all) != 1 || all[0].GetMessage().GetContent() != "Goal: Research ML frameworks" ||
		all[0].GetMessage().GetRole() != loombridgev1.Role_ROLE_SYSTEM {
		t.Errorf("the child begins with %v", all)
	}
	if n := len(stepsOf(t, s, "r-2")); n != 0 {
		t.Errorf("the child has %d steps", n)
	}
	must(t, write(t, s, "r-2", "notes.md", "mine"))
	if got, err := os.ReadFile(filepath.Join(s.Workspace, "r-2", "notes.md")); err != nil || string(got) != "mine" {
		t.Errorf("the child's file: %q, %v", got, err)
	}
	done := mustReturn(t, s, "r-2", "PyTorch, by far")
	if done.GetStatus() != childSucceeded || done.GetResult() != "PyTorch, by far" {
		t.Errorf("completed: %v", done)
	}
	steps := stepsOf(t, s, "p")
	if len(steps) != 3 {
		t.Fatalf("the parent has %d steps", len(steps))
	}
	spawn, result := steps[1], steps[2]
	if spawn.GetToolName() != "agent:spawn" || spawn.GetObservation() != "Spawned sub-agent r-2" || spawn.GetId() != child.GetStepId() {
		t.Errorf("step of the spawn: %v", spawn)
	}
	if result.GetToolName() != "agent:result" || result.GetObservation() != "Received sub result from r-2" || result.GetInline() != "PyTorch, by far" ||
		result.GetOutcomeRef() != "" || result.GetId() != done.GetResultStepId() {
		t.Errorf("step of the result: %v", result)
	}
}

// A result of 1,000 bytes stands inline, one byte more is offloaded as well.
//
// C04
func TestLongResult(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, n := range []int{999, 1000, 1001} {
		id := fmt.Sprint("c", n)
		MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: id})
		mustReturn(t, s, id, strings.Repeat("x", n))
		steps := stepsOf(t, s, "p")
		if last := steps[len(steps)-1]; (last.GetOutcomeRef() != "") != (n > 1000) {
			t.Errorf("%d bytes: %v", n, last)
		}
	}
}

// Bad spawns are refused with a typed error and change nothing.
//
// C02, C22, P19
func TestBadSpawns(t *testing.T) {
	s := servertest.Start(t, nil)
	must(t, os.WriteFile(filepath.Join(s.Workspace, "taken"), nil, 0o600))
	must(t, os.Mkdir(filepath.Join(s.Workspace, "folder"), 0o755))
	_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{
		AgentId: "known", Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: "hi"}},
	})
	must(t, err)
	MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: "c", Tools: []string{"fs:read_file"}})
	_, err = s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
		AgentId: "p", ToolName: "x:y", Success: true, OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: strings.Repeat("long\n", 999)},
	})
	must(t, err)
	steps := stepsOf(t, s, "p")
	before, kept := len(steps), steps[len(steps)-1].GetOutcomeRef()
	for name, tt := range map[string]struct {
		r      *loombridgev1.SpawnAgentRequest
		code   codes.Code
		reason string
	}{
		"no child":     {&loombridgev1.SpawnAgentRequest{Goal: "g"}, codes.InvalidArgument, "INVALID_REQUEST"},
		"blank goal":   {&loombridgev1.SpawnAgentRequest{ChildId: "x", Goal: " "}, codes.InvalidArgument, "INVALID_REQUEST"},
		"slash":        {&loombridgev1.SpawnAgentRequest{ChildId: "a/b", Goal: "g"}, codes.InvalidArgument, "INVALID_REQUEST"},
		"backslash":    {&loombridgev1.SpawnAgentRequest{ChildId: `a\b`, Goal: "g"}, codes.InvalidArgument, "INVALID_REQUEST"},
		"dots":         {&loombridgev1.SpawnAgentRequest{ChildId: "a..b", Goal: "g"}, codes.InvalidArgument, "INVALID_REQUEST"},
		"hidden":       {&loombridgev1.SpawnAgentRequest{ChildId: ".loom", Goal: "g"}, codes.InvalidArgument, "INVALID_REQUEST"},
		"NUL":          {&loombridgev1.SpawnAgentRequest{ChildId: "a\x00b", Goal: "g"}, codes.InvalidArgument, "INVALID_REQUEST"},
		"itself":       {&loombridgev1.SpawnAgentRequest{ChildId: "p", Goal: "g"}, codes.InvalidArgument, "INVALID_REQUEST"},
		"an agent":     {&loombridgev1.SpawnAgentRequest{ChildId: "known", Goal: "g"}, codes.AlreadyExists, "AGENT_EXISTS"},
		"a child":      {&loombridgev1.SpawnAgentRequest{ChildId: "c", Goal: "g"}, codes.AlreadyExists, "AGENT_EXISTS"},
		"a file":       {&loombridgev1.SpawnAgentRequest{ChildId: "taken", Goal: "g"}, codes.AlreadyExists, "AGENT_EXISTS"},
		"a folder":     {&loombridgev1.SpawnAgentRequest{ChildId: "folder", Goal: "g"}, codes.AlreadyExists, "AGENT_EXISTS"},
		"no such tool": {&loombridgev1.SpawnAgentRequest{ChildId: "x", Goal: "g", Tools: []string{"no:tool"}}, codes.InvalidArgument, "INVALID_REQUEST"},
		"not parent's": {&loombridgev1.SpawnAgentRequest{AgentId: "c", ChildId: "x", Goal: "g", Tools: []string{"fs:write_file"}}, codes.InvalidArgument, "INVALID_REQUEST"},
		"no profile":   {&loombridgev1.SpawnAgentRequest{ChildId: "x", Goal: "g", Profile: "none"}, codes.InvalidArgument, "INVALID_REQUEST"},
		"no such blob": {&loombridgev1.SpawnAgentRequest{ChildId: "x", Goal: "g", Grants: []string{"step_001"}}, codes.NotFound, "BLOB_NOT_FOUND"},
		"negative":     {&loombridgev1.SpawnAgentRequest{ChildId: "x", Goal: "g", Limits: &loombridgev1.ChildLimits{Steps: new(int64(-1))}}, codes.InvalidArgument, "INVALID_REQUEST"},
		"tools and none": {
			&loombridgev1.SpawnAgentRequest{ChildId: "x", Goal: "g", Tools: []string{"fs:read_file"}, WithoutTools: true}, codes.InvalidArgument, "INVALID_REQUEST",
		},
	} {
		if tt.r.AgentId == "" {
			tt.r.AgentId = "p"
			tt.r.Grants = append(tt.r.Grants, kept)
		}
		_, err := s.Context.SpawnAgent(t.Context(), tt.r)
		t.Run(name, func(t *testing.T) { MustFail(t, err, tt.code, tt.reason) })
	}
	if after := len(stepsOf(t, s, "p")); after != before {
		t.Errorf("refused spawns left %d steps", after-before)
	}
	tier := func() loombridgev1.BlobTier {
		got, err := s.Context.ListBlobs(t.Context(), &loombridgev1.ListBlobsRequest{AgentId: "p"})
		must(t, err)
		return got.GetBlobs()[0].GetTier()
	}
	if was := tier(); was != loombridgev1.BlobTier_BLOB_TIER_WORKING {
		t.Errorf("refused spawns made a blob %s", was)
	}
	MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: "granted", Grants: []string{kept}})
	if is := tier(); is != loombridgev1.BlobTier_BLOB_TIER_LONG_TERM {
		t.Errorf("a granted blob is %s", is)
	}
	if _, err := os.Lstat(filepath.Join(s.Workspace, "x")); err == nil {
		t.Error("a refused spawn left a folder")
	}
}

// A child has at most its profile, and so have its own children.
//
// C01
func TestChildProfile(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, r := range []*loombridgev1.SpawnAgentRequest{
		{ChildId: "reader", Profile: "read"},
		{AgentId: "reader", ChildId: "reader-2"},
		{ChildId: "worker"},
	} {
		MustSpawn(t, s, r)
	}
	for agent, want := range map[string]string{"reader": "read", "reader-2": "read", "worker": "work", "p": "work"} {
		got, err := s.Tools.ListTools(t.Context(), &loombridgev1.ListToolsRequest{AgentId: agent, Tool: "fs:write_file"})
		must(t, err)
		if mode := got.GetProfile().GetRules().GetFields()["mode"].GetStringValue(); mode != want {
			t.Errorf("%s has the mode %q, want %q", agent, mode, want)
		}
	}
}

// An agent at depth 5 has no children.
//
// C22, K52
func TestMaxDepth(t *testing.T) {
	s := servertest.Start(t, nil)
	parent := "p"
	for depth := range 5 {
		id := fmt.Sprint("d", depth+1)
		if c := MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{AgentId: parent, ChildId: id}); c.GetDepth() != int32(depth+1) {
			t.Errorf("%s is at depth %d", id, c.GetDepth())
		}
		parent = id
	}
	_, err := s.Context.SpawnAgent(t.Context(), &loombridgev1.SpawnAgentRequest{AgentId: parent, ChildId: "d6", Goal: "g"})
	MustFail(t, err, codes.FailedPrecondition, "MAX_DEPTH_EXCEEDED")
}

// The same request makes one child.
//
// P19
func TestSpawnAgain(t *testing.T) {
	s := servertest.Start(t, nil)
	r := &loombridgev1.SpawnAgentRequest{AgentId: "p", ChildId: "c", Goal: "g", RequestId: "r1"}
	first := MustSpawn(t, s, r)
	again := MustSpawn(t, s, r)
	if again.GetSessionId() != first.GetSessionId() || len(stepsOf(t, s, "p")) != 1 {
		t.Errorf("again: %v, first %v", again, first)
	}
	_, err := s.Context.SpawnAgent(t.Context(), &loombridgev1.SpawnAgentRequest{AgentId: "p", ChildId: "c", Goal: "other", RequestId: "r1"})
	MustFail(t, err, codes.AlreadyExists, "REQUEST_ID_REUSED")
}

// The 21st step, the 11th file and the byte too many are refused by the name of the limit,
// and nothing is recorded; a long step is cut in prompts and kept whole.
//
// P18, K52
func TestChildLimits(t *testing.T) {
	s := servertest.Start(t, nil)
	limited := func(t *testing.T, err error, limit string) {
		t.Helper()
		if detail := MustFail(t, err, codes.ResourceExhausted, "AGENT_LIMIT_EXCEEDED"); detail.GetMetadata()["limit"] != limit {
			t.Errorf("limit %v, want %s", detail.GetMetadata(), limit)
		}
	}
	t.Run("steps", func(t *testing.T) {
		MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: "steps"})
		record := func() error {
			_, err := s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{AgentId: "steps", ToolName: "x:y", Success: true})
			return err
		}
		for range 20 {
			must(t, record())
		}
		limited(t, record(), "steps")
		limited(t, write(t, s, "steps", "f", "x"), "steps")
		if n := len(stepsOf(t, s, "steps")); n != 20 {
			t.Errorf("%d steps", n)
		}
		if _, err := os.Lstat(filepath.Join(s.Workspace, "steps", "f")); err == nil {
			t.Error("the tool ran")
		}
	})
	t.Run("files", func(t *testing.T) {
		MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: "files"})
		for i := range 10 {
			must(t, write(t, s, "files", fmt.Sprint("f", i), "x"))
		}
		limited(t, write(t, s, "files", "f10", "x"), "files")
		must(t, write(t, s, "files", "f9", "other"))
		if n := len(stepsOf(t, s, "files")); n != 11 {
			t.Errorf("%d steps", n)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: "bytes"})
		must(t, write(t, s, "bytes", "a", strings.Repeat("x", 999_999)))
		must(t, write(t, s, "bytes", "b", "x"))
		limited(t, write(t, s, "bytes", "c", "x"), "bytes")
		limited(t, write(t, s, "bytes", "b", "xx"), "bytes")
		must(t, write(t, s, "bytes", "b", "y"))
	})
	t.Run("tokens of a step", func(t *testing.T) {
		MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: "tokens"})
		var long strings.Builder
		for i := range 1500 {
			fmt.Fprintf(&long, "line %d\n", i)
		}
		_, err := s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
			AgentId: "tokens", ToolName: "x:y", Success: true, OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: long.String()},
		})
		must(t, err)
		step := stepsOf(t, s, "tokens")[0]
		counted, err := s.Context.CountTokens(t.Context(), &loombridgev1.CountTokensRequest{AgentId: "p", Text: step.GetInline()})
		must(t, err)
		if n := counted.GetTokens(); n > 2000 || n < 1000 || step.GetOutcomeRef() == "" {
			t.Errorf("%d tokens, ref %q", n, step.GetOutcomeRef())
		}
		_, whole := MustReadBlob(t, s, &loombridgev1.ReadBlobRequest{AgentId: "tokens", Name: step.GetOutcomeRef()})
		if string(whole) != long.String() {
			t.Errorf("kept %d bytes of %d", len(whole), long.Len())
		}
	})
	t.Run("none", func(t *testing.T) {
		zero := new(int64(0))
		MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: "free", Limits: &loombridgev1.ChildLimits{Files: zero, Steps: zero, Timeout: durationpb.New(0)}})
		for i := range 21 {
			must(t, write(t, s, "free", fmt.Sprint("f", i), "x"))
		}
		if c := MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{AgentId: "files", ChildId: "below", Limits: &loombridgev1.ChildLimits{Files: zero}}); c.GetLimits().GetFiles() != 10 {
			t.Errorf("a child of a child has %d files, more than its parent", c.GetLimits().GetFiles())
		}
	})
}

// A child that takes too long has the result that says so, and can do nothing any more.
//
// P18, P19
func TestChildTimeout(t *testing.T) {
	s := servertest.Start(t, nil)
	MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: "c"})
	s.Clock.Advance(time.Minute - time.Millisecond)
	must(t, write(t, s, "c", "f", "x"))
	s.Clock.Advance(time.Millisecond)
	MustFail(t, write(t, s, "c", "f", "y"), codes.FailedPrecondition, "AGENT_ENDED")
	got := mustWait(t, s, 10*time.Second, "c")
	if c := got.GetChildren()[0]; len(got.GetPending()) > 0 || c.GetStatus() != childFailed || c.GetError() != "timeout" || got.GetOutcome() != "[c] ✗ timeout" {
		t.Errorf("outcome %v", got)
	}
	_, err := s.Context.CompleteTask(t.Context(), &loombridgev1.CompleteTaskRequest{AgentId: "c", TaskId: "c", Conclusion: "late"})
	MustFail(t, err, codes.FailedPrecondition, "AGENT_ENDED")
	steps := stepsOf(t, s, "p")
	if last := steps[len(steps)-1]; last.GetToolName() != "agent:result" || last.GetSuccess() || last.GetError() != "timeout" {
		t.Errorf("step of the result: %v", last)
	}
}

// What several children returned, as its parent sees it: in the order of spawning, equal
// results once, failures as such, and never as if it were complete when it is not.
//
// P20
func TestOutcomeOfSeveral(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, id := range []string{"b", "a", "d", "c", "e"} {
		MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: id, Goal: "same question"})
	}
	mustReturn(t, s, "c", "forty-two")
	mustReturn(t, s, "a", "It depends.\nOn what?")
	mustFailChild(t, s, "d", "d", "no network")
	mustReturn(t, s, "b", "forty-two")
	got := mustWait(t, s, 0)
	const want = "[b, c] forty-two\n\n[a] It depends.\nOn what?\n\n[d] ✗ no network"
	if len(got.GetPending()) == 0 || got.GetOutcome() != want || fmt.Sprint(got.GetPending()) != "[e]" || len(got.GetChildren()) != 5 {
		t.Errorf("outcome: complete %v, pending %v\n%s", len(got.GetPending()) == 0, got.GetPending(), got.GetOutcome())
	}
	waited := make(chan *loombridgev1.WaitAgentsResponse, 1)
	go func() {
		got, _ := s.Context.WaitAgents(t.Context(), &loombridgev1.WaitAgentsRequest{AgentId: "p", Timeout: durationpb.New(time.Minute)})
		waited <- got
	}()
	mustReturn(t, s, "e", "done")
	if got := <-waited; len(got.GetPending()) > 0 || got.GetOutcome() != want+"\n\n[e] done" || len(got.GetPending()) != 0 {
		t.Errorf("at the end: %v", got)
	}
	_, err := s.Context.WaitAgents(t.Context(), &loombridgev1.WaitAgentsRequest{AgentId: "other", ChildIds: []string{"a"}})
	MustFail(t, err, codes.NotFound, "AGENT_NOT_FOUND")
}

// A child has one result. The same one again is that; its parent can only end it as
// failed, and nobody else can.
//
// C06, P19
func TestOneResult(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, id := range []string{"c", "d"} {
		MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: id})
	}
	_, err := s.Context.CompleteTask(t.Context(), &loombridgev1.CompleteTaskRequest{AgentId: "p", TaskId: "c", Conclusion: "made up"})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	_, err = s.Context.CompleteTask(t.Context(), &loombridgev1.CompleteTaskRequest{AgentId: "d", TaskId: "c", Failed: true, Error: "mine"})
	MustFail(t, err, codes.NotFound, "AGENT_NOT_FOUND")
	mustReturn(t, s, "c", "once")
	mustReturn(t, s, "c", "once")
	_, err = s.Context.CompleteTask(t.Context(), &loombridgev1.CompleteTaskRequest{AgentId: "c", TaskId: "c", Conclusion: "twice"})
	MustFail(t, err, codes.FailedPrecondition, "AGENT_ENDED")
	mustFailChild(t, s, "p", "d", "not needed any more")
	if n := len(stepsOf(t, s, "p")); n != 4 {
		t.Errorf("the parent has %d steps", n)
	}
	MustFail(t, write(t, s, "d", "f", "x"), codes.FailedPrecondition, "AGENT_ENDED")
}

// A child is shown the tools that it was given, in the list and in its prompts, and none
// where it was given none.
func TestChildrenAreShownTheirTools(t *testing.T) {
	s := servertest.Start(t, nil)
	for child, given := range map[string][]string{"reads": {"fs:read_file", "fs:list_dir"}, "none": nil} {
		MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: child, Tools: given, WithoutTools: given == nil})
		list, err := s.Tools.ListTools(t.Context(), &loombridgev1.ListToolsRequest{AgentId: child})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range list.GetTools() {
			names = append(names, tool.GetName())
		}
		slices.Sort(given)
		if !slices.Equal(names, given) {
			t.Errorf("%s is listed %q, want %q", child, names, given)
		}
		prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: child, Goal: "g", DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		text := prompt.String()
		for _, tool := range []string{"fs:read_file", "fs:list_dir", "fs:write_file", "system:shell"} {
			name := strings.ReplaceAll(tool, ":", "_")
			if shown := strings.Contains(text, tool) || strings.Contains(text, name); shown != slices.Contains(given, tool) {
				t.Errorf("the prompt of %s shows %s: %v", child, tool, shown)
			}
		}
	}
}
