package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// broodShort is how many children there are in an ordinary run, broodLong with
	// LOOM_SOAK_ROUNDS.
	broodShort, broodLong = 60, 1000
	// broodDead: one of so many dies.
	broodDead = 20
	// broodSpawners spawn at the same time, and broodConns connections are shared by all.
	broodSpawners, broodConns = 16, 32
	broodParent               = "hen"
)

// brood is one server and all children of one parent.
type brood struct {
	tb       *testing.T
	conns    []*grpc.ClientConn
	size     int
	took     []time.Duration // of each spawn
	sessions []string        // of each child
}

func broodChild(n int) string { return fmt.Sprintf("%s-%04d", broodParent, n) }

// dies reports whether a child dies before it has returned: one whose stream ends, or one
// that nobody ever starts.
func (b *brood) dies(n int) (streamEnds, neverStarts bool) {
	return n%broodDead == 3 && n%(2*broodDead) == 3, n%broodDead == 3 && n%(2*broodDead) != 3
}

func (b *brood) contexts(n int) contexts.Client {
	return contexts.New(b.conns[n%len(b.conns)])
}

// each does something for every child, some at a time.
func (b *brood) each(at int, do func(n int)) {
	var all sync.WaitGroup
	next := make(chan int)
	for range at {
		all.Go(func() {
			for n := range next {
				do(n)
			}
		})
	}
	for n := range b.size {
		next <- n
	}
	close(next)
	all.Wait()
}

// spawn spawns a child. One that nobody starts has a second.
func (b *brood) spawn(n int) {
	r := &loombridgev1.SpawnAgentRequest{
		AgentId: broodParent, ChildId: broodChild(n), Goal: fmt.Sprint("find number ", n),
		Limits: &loombridgev1.ChildLimits{Timeout: durationpb.New(30 * time.Minute)},
	}
	if _, never := b.dies(n); never {
		r.Limits.Timeout = durationpb.New(time.Second)
	}
	began := time.Now()
	got, err := b.contexts(n).SpawnAgent(b.tb.Context(), r)
	if err != nil {
		b.tb.Errorf("spawn %d: %v", n, err)
	}
	b.took[n], b.sessions[n] = time.Since(began), got.GetSessionId()
}

// attach opens the stream of an agent and returns what ends it.
func (b *brood) attach(n int, agent string) (leave func()) {
	ctx, cancel := context.WithCancel(b.tb.Context())
	stream, err := loombridgev1.NewBridgeServiceClient(b.conns[n%len(b.conns)]).Attach(ctx)
	if err == nil {
		err = stream.Send(helloOf(agent))
	}
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		b.tb.Errorf("attach %s: %v", agent, err)
	}
	return cancel
}

// live is the life of a child: its prompt has its goal and nobody else's, it writes a file
// of its own, and returns once.
func (b *brood) live(n int) {
	ends, never := b.dies(n)
	if never {
		return
	}
	leave := b.attach(n, broodChild(n))
	defer leave()
	ctx, child := b.tb.Context(), broodChild(n)
	got, err := b.contexts(n).Assemble(ctx, &loombridgev1.AssembleRequest{AgentId: child, SessionId: b.sessions[n], WithoutTools: true})
	if err != nil {
		b.tb.Errorf("prompt %d: %v", n, err)
		return
	}
	var text strings.Builder
	for _, m := range got.GetMessages() {
		text.WriteString(m.GetContent() + "\n")
	}
	if goal := fmt.Sprint("Goal: find number ", n); strings.Count(text.String(), "Goal: ") != 1 || !strings.Contains(text.String(), goal+"\n") {
		b.tb.Errorf("the prompt of %d: %.300q", n, text.String())
	}
	if ends {
		return
	}
	if wrote, err := loombridgev1.NewBridgeServiceClient(b.conns[n%len(b.conns)]).Tool(ctx, &loombridgev1.ToolRequest{
		AgentId: child, Name: "fs:write_file",
		ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: fmt.Sprintf(`{"path":"found.txt","content":"%d"}`, n)},
	}); err != nil || !wrote.GetSuccess() {
		b.tb.Errorf("write %d: %v %v", n, wrote, err)
	}
	if _, err := b.contexts(n).CompleteTask(ctx, &loombridgev1.CompleteTaskRequest{AgentId: child, TaskId: child, Conclusion: fmt.Sprint("number ", n)}); err != nil {
		b.tb.Errorf("return %d: %v", n, err)
	}
}

// check looks for exactly one result of each, wherever its parent has it.
func (b *brood) check() {
	results := map[string]string{}
	for done := false; !done; {
		got, err := b.contexts(0).WaitAgents(b.tb.Context(), &loombridgev1.WaitAgentsRequest{AgentId: broodParent, Timeout: durationpb.New(20 * time.Second)})
		must(b.tb, err)
		if done = len(got.GetPending()) == 0; !done {
			continue
		}
		for _, child := range got.GetChildren() {
			results[child.GetChildId()] = child.GetResult() + child.GetError()
		}
	}
	steps := map[string]int{}
	for r := (&loombridgev1.ListStepsRequest{AgentId: broodParent, PageSize: 1000}); ; {
		got, err := b.contexts(0).ListSteps(b.tb.Context(), r)
		must(b.tb, err)
		for _, step := range got.GetSteps() {
			steps[step.GetToolName()]++
		}
		if r.PageToken = got.GetNextPageToken(); r.PageToken == "" {
			break
		}
	}
	if steps["agent:spawn"] != b.size || steps["agent:result"] != b.size || len(results) != b.size {
		b.tb.Errorf("%d children have %d results, and their parent the steps %v", b.size, len(results), steps)
	}
	told := toldOf(b.tb, loombridgev1.NewEventServiceClient(b.conns[0]), broodParent, "agent."+broodParent+".results", b.size)
	for n := range b.size {
		want := fmt.Sprint("number ", n)
		switch ends, never := b.dies(n); {
		case ends:
			want = "disconnected"
		case never:
			want = "timeout"
		}
		if child := broodChild(n); results[child] != want || told[child] != 1 {
			b.tb.Errorf("%s returned %q, and its parent was told %d times; want %q", child, results[child], told[child], want)
		}
	}
}

// Many children at once of one parent: each lives with its own goal and returns once, and
// those that die are told of as such.
//
// C01, C03, C04, P18, P20
func TestChildrenAtOnceSoak(t *testing.T) {
	t.Parallel()
	b := &brood{tb: t, size: broodShort}
	if os.Getenv("LOOM_SOAK_ROUNDS") != "" {
		b.size = broodLong
	}
	b.took, b.sessions = make([]time.Duration, b.size), make([]string, b.size)
	server := MustStartChild(t, t.TempDir())
	for range broodConns {
		b.conns = append(b.conns, MustDial(t, server.Address))
	}
	pid := proc{t, server.Process.Pid}
	b.attach(0, "warm")() // the first of a kind takes more
	before := pid.status("VmRSS")
	began := time.Now()
	b.each(broodSpawners, b.spawn)
	spawned := time.Since(began)
	slices.Sort(b.took)
	idle := pid.status("VmRSS")
	b.each(b.size, b.live) // all at once
	lived := time.Since(began) - spawned
	peak := pid.status("VmHWM")
	b.check()
	t.Logf("%d children: spawned in %v, p50 %v, p99 %v each; lived in %v; memory %d KiB each when spawned, at most %d KiB",
		b.size, spawned, b.took[b.size/2], b.took[b.size*99/100], lived, (idle-before)>>10/int64(b.size), (peak-before)>>10/int64(b.size))
}

// manyForks are spawned of one prompt.
const manyForks = 100

// Many forks at once of one prompt: each begins as that did, and still does when the server
// was killed right behind the last one.
//
// C01
func TestManyForks(t *testing.T) {
	dir := t.TempDir()
	server := MustStartChild(t, dir)
	b := &brood{tb: t, size: manyForks, sessions: make([]string, manyForks), conns: []*grpc.ClientConn{MustDial(t, server.Address), MustDial(t, server.Address)}}
	for n := range 60 {
		_, err := b.contexts(0).RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
			AgentId: broodParent, SessionId: "s", ToolName: "my.tool", Success: true,
			OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: strings.Repeat(fmt.Sprint("found ", n, " "), 200)},
		})
		must(t, err)
	}
	ask := func(agent, session string) string {
		got, err := b.contexts(0).Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: session, Format: loombridgev1.PromptFormat_PROMPT_FORMAT_OPENAI_CHAT, MaxTokens: 100_000})
		must(t, err)
		return got.GetPromptJson()
	}
	parent := ask(broodParent, "s")
	began := time.Now()
	b.each(broodSpawners, func(n int) {
		got, err := b.contexts(n).SpawnAgent(t.Context(), &loombridgev1.SpawnAgentRequest{
			AgentId: broodParent, SessionId: "s", ChildId: broodChild(n), Goal: "look", ForkFrom: new(""),
		})
		if err != nil {
			t.Errorf("fork %d: %v", n, err)
		}
		b.sessions[n] = got.GetSessionId()
	})
	t.Logf("%d forks of a prompt of %d bytes in %v", manyForks, len(parent), time.Since(began))
	must(t, server.Process.Kill())
	_ = server.Wait()
	server = MustStartChild(t, dir)
	b.conns = []*grpc.ClientConn{MustDial(t, server.Address)}
	for n := range manyForks {
		if prompt := ask(broodChild(n), b.sessions[n]); !strings.HasPrefix(prompt, strings.TrimSuffix(parent, "]}")) {
			t.Fatalf("fork %d does not begin as its parent: %.300s", n, prompt)
		}
	}
}
