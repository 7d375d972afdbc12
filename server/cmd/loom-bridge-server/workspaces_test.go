package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// MustPlace starts a server with a folder of its own, which holds nothing else, on a store
// that others have, too.
func MustPlace(tb testing.TB, store, name, workspace string, args ...string) *process {
	tb.Helper()
	return MustRunIn(tb, noEnvironment, append([]string{
		"--addr", "127.0.0.1:0", "--data-dir", filepath.Join(tb.TempDir(), "local"), "--workspace", workspace, "--store", store, "--bridge-name", name,
	}, args...)...)
}

// workspace is which server has that of an agent, by the server's own word.
func (p *process) workspace(tb testing.TB, agent string) *loombridgev1.BridgeStatus {
	tb.Helper()
	got, err := loombridgev1.NewAdminServiceClient(p.conn).GetStatus(tb.Context(), &loombridgev1.GetStatusRequest{AgentId: agent})
	must(tb, err)
	return got.GetWorkspace()
}

// tryTool calls a tool as an agent.
func (p *process) tryTool(tb testing.TB, agent, name string, args object) (*loombridgev1.ToolResponse, error) {
	tb.Helper()
	text, err := json.Marshal(args)
	must(tb, err)
	return p.bridge().Tool(convert.AskText(tb.Context()), &loombridgev1.ToolRequest{
		AgentId: agent, SessionId: "s", Name: name, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: string(text)},
	})
}

// MustUse is tryTool for a call that succeeds and is recorded.
func (p *process) MustUse(tb testing.TB, agent, name string, args object) *loombridgev1.ToolResponse {
	tb.Helper()
	got, err := p.tryTool(tb, agent, name, args)
	must(tb, err)
	if !got.GetSuccess() || !got.GetRecorded() {
		tb.Fatalf("%s %v: %v", name, args, got)
	}
	return got
}

// runWorkspace runs the command that shows and moves workspaces.
func runWorkspace(tb testing.TB, p *process, args ...string) (string, error) {
	tb.Helper()
	var out, problems strings.Builder
	err := run(tb.Context(), append([]string{"workspace", "--addr", p.Address}, args...), noEnvironment, &out, &problems)
	return out.String(), err
}

// Where servers on one store have a folder each, the calls that touch the workspace run at the
// server that the first of them came to, wherever they are made and over either API: a file
// that is written by one is read by another, and a job that one has started is listed and
// stopped by another. What touches no workspace runs where it is called.
//
// Z18
func TestWorkspaceIsAtOneServer(t *testing.T) {
	t.Parallel()
	store, inA, inB := postgresPlace(t, pgtest.Address(t)), t.TempDir(), t.TempDir()
	a := MustPlace(t, store, "a", inA, "--mesh", "embedded", "--shell-allow", "sleep")
	b := MustPlace(t, store, "b", inB, "--mesh", "embedded", "--shell-allow", "sleep")
	if owner := a.workspace(t, "x"); owner != nil {
		t.Fatalf("before the first call it is at %v", owner)
	}
	a.MustUse(t, "x", "fs:write_file", object{"path": "plan.txt", "content": "sail at noon"})
	waitUntil(t, "b reaches a", func() bool {
		got, err := b.tryTool(t, "x", "fs:read_file", object{"path": "plan.txt"})
		return err == nil && strings.Contains(got.GetOutputJson(), "sail at noon")
	})
	b.MustUse(t, "y", "fs:write_file", object{"path": "more.txt", "content": "tide at ten"})
	if text, err := os.ReadFile(filepath.Join(inA, "more.txt")); err != nil || string(text) != "tide at ten" {
		t.Errorf("the file of a call at b: %q %v", text, err)
	}
	if left, err := os.ReadDir(inB); err != nil || len(left) > 0 {
		t.Errorf("b's own folder has %v %v", left, err)
	}

	var job jobTold
	must(t, json.Unmarshal([]byte(b.MustUse(t, "x", "system:shell", object{"command": "sleep", "args": []string{"600"}, "background": true}).GetOutputJson()), &job))
	if list := a.MustUse(t, "x", "job:list", object{}).GetOutputJson(); !strings.Contains(list, job.ID) {
		t.Errorf("a lists %s, b has started %s", list, job.ID)
	}
	if stopped := a.MustUse(t, "x", "job:stop", object{"job_id": job.ID}).GetOutputJson(); !strings.Contains(stopped, "stopped") {
		t.Errorf("stopped: %s", stopped)
	}

	loom, err := loomv1pb.NewToolServiceClient(b.conn).Call(t.Context(), &loomv1pb.ToolCall{Id: "1", Name: "fs:read_file", Arguments: `{"path":"plan.txt"}`})
	if err != nil || !strings.Contains(loom.GetOutput(), "sail at noon") {
		t.Errorf("by loom.v1 at b: %v %v", loom, err)
	}
	// A refusal comes back as the other server made it.
	missing, err := b.tryTool(t, "x", "fs:read_file", object{"path": "none.txt"})
	if err != nil || missing.GetSuccess() || missing.GetErrorCode() != loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_NOT_FOUND {
		t.Errorf("a file that is not there: %v %v", missing, err)
	}
	if _, err := b.tryTool(t, "x", "fs:read_file", object{"path": 7}); reasonOf(err) != "INVALID_ARGUMENTS" {
		t.Errorf("arguments that are none: %v %s", err, reasonOf(err))
	}
	b.MustUse(t, "x", "memory:save", object{"text": "the moon pulls"})

	for _, p := range []*process{a, b} {
		owner := p.workspace(t, "y")
		if owner.GetName() != "a" || owner.GetWorkspace() != "a:"+inA || owner.GetAway() || owner.GetAnswering() != (p == a) {
			t.Errorf("the workspace is at %v", owner)
		}
	}
	if shown := b.bridges(t)[1].GetWorkspace(); shown != "b:"+inB {
		t.Errorf("b says that its folder is %s", shown)
	}
}

// A workspace outlives a restart of its server. While that is down, calls that touch it are
// refused with its name, and nothing else is; an operator gives it to another server. Without
// a mesh a call elsewhere is refused, with where it can be made. Servers that do not share one
// folder start beside none that does.
//
// Z26
func TestWorkspaceOfServerThatIsDown(t *testing.T) {
	t.Parallel()
	store, inA, inB := postgresPlace(t, pgtest.Address(t)), t.TempDir(), t.TempDir()
	a := MustPlace(t, store, "a", inA)
	b := MustPlace(t, store, "b", inB)
	a.MustUse(t, "x", "fs:write_file", object{"path": "plan.txt", "content": "sail at noon"})
	_, err := b.tryTool(t, "x", "fs:read_file", object{"path": "plan.txt"})
	if reason, details := detailOf(err); reason != "WORKSPACE_ELSEWHERE" || details["server"] != "a" || details["address"] != a.Address {
		t.Errorf("without a mesh: %v %s %v", err, reason, details)
	}

	once := &loombridgev1.ToolRequest{
		AgentId: "x", SessionId: "s", Name: "fs:write_file", RequestId: "r1",
		ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"path":"once.txt","content":"x"}`},
	}
	first, err := a.bridge().Tool(t.Context(), once)
	must(t, err)

	must(t, a.Stop())
	b.listed(t, "b")
	if again, err := b.bridge().Tool(t.Context(), once); err != nil || !again.GetReplayed() || again.GetStep().GetId() != first.GetStep().GetId() {
		t.Errorf("the answer of before: %v %v, want that of %v", again, err, first)
	}
	_, err = b.tryTool(t, "x", "fs:read_file", object{"path": "plan.txt"})
	if reason, details := detailOf(err); reason != "WORKSPACE_AWAY" || details["server"] != "a" {
		t.Errorf("its server is down: %v %s %v", err, reason, details)
	}
	if !b.workspace(t, "x").GetAway() {
		t.Error("it is not told that the server is away")
	}
	b.MustUse(t, "x", "memory:save", object{"text": "the moon pulls"})

	again := MustPlace(t, store, "a", inA)
	again.MustUse(t, "x", "fs:read_file", object{"path": "plan.txt"})

	if _, err := runWorkspace(t, b, "move", "--to", "c"); reasonOf(err) != "SERVER_NOT_FOUND" {
		t.Errorf("moved to nobody: %v", err)
	}
	out, err := runWorkspace(t, b, "move", "--to", "b")
	if err != nil || !strings.Contains(out, "No file was copied") || !strings.Contains(out, inA) || !strings.Contains(out, inB) {
		t.Errorf("move: %q %v", out, err)
	}
	if out, err := runWorkspace(t, again, "show"); err != nil || !strings.Contains(out, inB) {
		t.Errorf("show: %q %v", out, err)
	}
	if got, err := b.tryTool(t, "x", "fs:read_file", object{"path": "plan.txt"}); err != nil || got.GetSuccess() {
		t.Errorf("a move has copied the file: %v %v", got, err)
	}
	b.MustUse(t, "x", "fs:write_file", object{"path": "plan.txt", "content": "sail at one"})
	if _, err := again.tryTool(t, "x", "fs:read_file", object{"path": "plan.txt"}); reasonOf(err) != "WORKSPACE_ELSEWHERE" {
		t.Errorf("at the server that had it: %v", err)
	}

	_, err = tryRun(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "local"), "--workspace", t.TempDir(), "--store", store, "--workspace-shared")
	if err == nil || !strings.Contains(err.Error(), "workspace-shared") {
		t.Errorf("a server that shares its folder started beside those that do not: %v", err)
	}
}

// Servers that share one folder run each call where it is made, with no mesh.
func TestWorkspaceIsShared(t *testing.T) {
	t.Parallel()
	store, folder := postgresPlace(t, pgtest.Address(t)), t.TempDir()
	a := MustPlace(t, store, "a", folder, "--workspace-shared")
	b := MustPlace(t, store, "b", folder, "--workspace-shared")
	a.MustUse(t, "x", "fs:write_file", object{"path": "plan.txt", "content": "sail at noon"})
	if got := b.MustUse(t, "x", "fs:read_file", object{"path": "plan.txt"}).GetOutputJson(); !strings.Contains(got, "sail at noon") {
		t.Errorf("b reads %s", got)
	}
	b.MustUse(t, "x", "fs:edit_file", object{"path": "plan.txt", "old_string": "noon", "new_string": "one"})
	if got := a.MustUse(t, "x", "fs:read_file", object{"path": "plan.txt"}).GetOutputJson(); !strings.Contains(got, "sail at one") {
		t.Errorf("a reads %s", got)
	}
	if _, err := runWorkspace(t, a, "show"); reasonOf(err) != "WORKSPACE_ELSEWHERE" {
		t.Errorf("one folder for all belongs to nobody: %v", err)
	}
}

// A child that is spawned at one server has its folder where the workspace is, and an entry
// of that name there refuses it.
func TestWorkspaceOfChild(t *testing.T) {
	t.Parallel()
	store, inA, inB := postgresPlace(t, pgtest.Address(t)), t.TempDir(), t.TempDir()
	a := MustPlace(t, store, "a", inA, "--mesh", "embedded")
	b := MustPlace(t, store, "b", inB, "--mesh", "embedded")
	a.MustUse(t, "x", "fs:write_file", object{"path": "taken/plan.txt", "content": "sail at noon"})
	waitUntil(t, "b reaches a", func() bool {
		got, err := b.tryTool(t, "x", "fs:read_file", object{"path": "taken/plan.txt"})
		return err == nil && got.GetSuccess()
	})
	_, err := b.context().SpawnAgent(t.Context(), &loombridgev1.SpawnAgentRequest{AgentId: "x", ChildId: "taken", Goal: "sail", Limits: unhurried})
	if reasonOf(err) != "AGENT_EXISTS" {
		t.Errorf("a child of the name of a folder at a: %v", err)
	}
	_, err = b.context().SpawnAgent(t.Context(), &loombridgev1.SpawnAgentRequest{AgentId: "x", ChildId: "mate", Goal: "sail", Limits: unhurried})
	must(t, err)
	b.MustUse(t, "mate", "fs:write_file", object{"path": "log.txt", "content": "aye"})
	if text, err := os.ReadFile(filepath.Join(inA, "mate", "log.txt")); err != nil || string(text) != "aye" {
		t.Errorf("the child's file: %q %v", text, err)
	}
	if left, err := os.ReadDir(inB); err != nil || len(left) > 0 {
		t.Errorf("b's own folder has %v %v", left, err)
	}
}

// A prompt shows the AGENTS.md of the workspace, whichever server makes it: one that has a
// folder of its own reads at the server that has the workspace. While that is away the prompt
// is made without, and its receipt says where the file would be.
//
// Z42
func TestWorkspaceSaysWhatAgentsAreTold(t *testing.T) {
	t.Parallel()
	store, inA, inB := postgresPlace(t, pgtest.Address(t)), t.TempDir(), t.TempDir()
	for dir, text := range map[string]string{inA: "Use tabs.", inB: "Use nothing."} {
		must(t, os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte(text), 0o600))
	}
	a := MustPlace(t, store, "a", inA, "--mesh", "embedded")
	b := MustPlace(t, store, "b", inB, "--mesh", "embedded")
	told := func(p *process) (text string, receipt *loombridgev1.SectionInfo) {
		got, err := p.context().Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "x", SessionId: "s", Goal: "sail"})
		must(t, err)
		for _, s := range got.GetReceipt().GetSections() {
			if s.GetName() == "notes:agents_md" {
				receipt = s
			}
		}
		return got.String(), receipt
	}
	if text, _ := told(b); !strings.Contains(text, "Use nothing.") || b.workspace(t, "x") != nil {
		t.Errorf("of a workspace that is nobody's b shows its own, and does not take it: %s", text)
	}
	a.MustUse(t, "x", "fs:write_file", object{"path": "plan.txt", "content": "sail at noon"})
	waitUntil(t, "b shows what a has", func() bool {
		text, s := told(b)
		return strings.Contains(text, "Use tabs.") && !strings.Contains(text, "Use nothing.") && s.GetSource() == "AGENTS.md of the workspace, 9 bytes"
	})
	a.MustUse(t, "x", "fs:write_file", object{"path": "AGENTS.md", "content": "Use spaces."})
	waitUntil(t, "b shows what is written later", func() bool {
		text, _ := told(b)
		return strings.Contains(text, "Use spaces.")
	})
	must(t, a.Stop())
	waitUntil(t, "b says that a is away", func() bool {
		text, s := told(b)
		return s.GetOutcome() == loombridgev1.SectionOutcome_SECTION_OUTCOME_FAILED && strings.Contains(s.GetReason(), `server "a"`) && !strings.Contains(text, "Use spaces.")
	})
}
