package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// stepMark stands in all that a step with a number says, in its call and in its result.
func stepMark(n int) string { return fmt.Sprintf("word-of-the-step-%03d-alone", n) }

// stepped is an agent whose steps stand in every place that the API leads to.
type stepped struct {
	*servertest.Server
	t *testing.T
}

func (s stepped) say(session string, messages ...*loombridgev1.Message) {
	s.t.Helper()
	_, err := s.Context.AppendMessages(s.t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: "a", SessionId: session, Messages: messages})
	must(s.t, err)
}

// step records a step, which a task and an event tell of.
func (s stepped) step(session, callID string, n, lines int) {
	s.t.Helper()
	ctx, m := s.t.Context(), stepMark(n)
	output, err := json.Marshal(strings.Repeat("the result has "+m+" in it\n", lines))
	must(s.t, err)
	args := fmt.Sprintf(`{"question":"what of %s?"}`, m)
	_, err = s.Context.RecordStep(ctx, &loombridgev1.RecordStepRequest{
		AgentId: "a", SessionId: session, ToolName: "own:tool", Success: true, CallId: callID, RequestId: m, Thought: "I think of " + m,
		ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: args},
		OutputForm:    &loombridgev1.RecordStepRequest_OutputJson{OutputJson: string(output)},
		Task:          &loombridgev1.Task{TaskId: fmt.Sprint("t", n), Action: "node.tool_result", Result: "it gave " + m, Tags: []string{m}},
	})
	must(s.t, err)
	_, err = s.Bridge.Emit(ctx, &loombridgev1.EmitRequest{
		AgentId: "a", SessionId: session, Topic: "steps", PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: fmt.Sprintf(`{"told":"the result has %s in it"}`, m)},
	})
	must(s.t, err)
}

func (s stepped) prompt(session string) string {
	s.t.Helper()
	p, err := s.Context.Assemble(s.t.Context(), &loombridgev1.AssembleRequest{AgentId: "a", SessionId: session, Goal: "a goal", MaxTokens: 100_000})
	must(s.t, err)
	return p.String()
}

func calling(content string, numbers ...int) *loombridgev1.Message {
	m := &loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT, Content: content}
	for _, n := range numbers {
		m.ToolCalls = append(m.ToolCalls, &loombridgev1.ModelToolCall{Id: fmt.Sprint("c", n), Name: "own_tool", ArgumentsJson: fmt.Sprintf(`{"question":"what of %s?"}`, stepMark(n))})
	}
	return m
}

// furnishSteps has the agent take ten steps of all sorts, which are folded, shown, told and
// moved up.
func furnishSteps(t *testing.T, server *servertest.Server) stepped {
	t.Helper()
	s := stepped{server, t}
	user := func(text string) *loombridgev1.Message {
		return &loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: text}
	}
	s.say("s", user("begin"))
	s.step("s", "", 1, 3)
	s.step("s", "", 2, 900) // offloaded
	s.say("s", calling("a word before", 3))
	s.step("s", "c3", 3, 3)
	s.say("s", calling("two at once", 4, 5))
	s.step("s", "c4", 4, 3)
	s.step("s", "c5", 5, 3)
	s.say("s", &loombridgev1.Message{Role: loombridgev1.Role_ROLE_TOOL, ToolCallId: "c5", Content: "the result has " + stepMark(5) + " in it"})
	blocks := fmt.Sprintf(`[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"three"},{"type":"tool_use","id":"c6","name":"own_tool","input":{"question":%q}},{"type":"tool_use","id":"c7","name":"own_tool","input":{"question":%q}}]`, stepMark(6), stepMark(7))
	s.say("s", &loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT, BlocksJson: blocks})
	s.step("s", "c6", 6, 3)
	s.step("s", "c7", 7, 3)
	s.say("s", user("go on"))
	s.step("s", "", 8, 3)
	s.prompt("s")
	_, err := s.Context.CompactHistory(t.Context(), &loombridgev1.CompactHistoryRequest{AgentId: "a", SessionId: "s"})
	must(t, err)
	s.step("s", "", 9, 3)
	s.prompt("s")
	_, err = s.Context.SpawnAgent(t.Context(), &loombridgev1.SpawnAgentRequest{AgentId: "a", SessionId: "s", ChildId: "achild", Goal: "watch the sea", ForkFrom: new("")}) // step 10
	must(t, err)
	s.step("other", "", 11, 3)
	s.prompt("other")
	return s
}

func eraseStep(session string, n int) *loombridgev1.EraseScopeRequest {
	r := eraseAgent("a")
	r.Subject.SessionId, r.Subject.StepId = session, fmt.Sprintf("step_%03d", n)
	return r
}

// sound reports whether the prompts of the session can be sent in every format, and whether the
// store is whole.
func (s stepped) sound(engine kv.Engine) {
	s.t.Helper()
	for number, name := range loombridgev1.PromptFormat_name {
		p, err := s.Context.Assemble(s.t.Context(), &loombridgev1.AssembleRequest{AgentId: "a", SessionId: "s", Goal: "a goal", MaxTokens: 100_000, Format: loombridgev1.PromptFormat(number), DryRun: true})
		must(s.t, err)
		if strings.Contains(p.String(), "No result of this call") {
			s.t.Errorf("%s: a call lacks its result: %s", name, p)
		}
	}
	must(s.t, session.Check(s.t.Context(), engine, kv.AgentScope("default", "a"), func(err error) { s.t.Error(err) }))
}

// Each step of a session is erased from a running server, whatever stands of it: no entry of the
// store says what it said, all other steps stand where they stood, and prompts are whole.
//
// Y49
func TestEraseScopeOfAStep(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 9; n++ {
		t.Run(fmt.Sprint("step ", n), func(t *testing.T) {
			t.Parallel()
			engine := memkv.New(nil)
			t.Cleanup(func() { must(t, engine.Close()) })
			s := furnishSteps(t, servertest.Start(t, &servertest.Options{Engine: engine}))
			ctx := t.Context()
			before := allSteps(ctx, t, s)
			counted, err := erase(ctx, s.Server, dry(eraseStep("s", n)))
			must(t, err)
			done, err := erase(ctx, s.Server, eraseStep("s", n))
			must(t, err)
			c := certified(t, done)
			if done.GetCounts()["steps"] != 1 || done.GetCounts()["audit_records"] > 1 || counted.GetCounts()["tasks"] != 1 || c.Subject.Step != uint64(n) {
				t.Errorf("erased were %v, a dry run found %v", done.GetCounts(), counted.GetCounts())
			}
			if left := named(t, engine, stepMark(n)); len(left) > 0 {
				t.Errorf("left is %s", strings.Join(left, "\n"))
			}
			for other := 1; other <= 11; other++ {
				if left := named(t, engine, stepMark(other)); other != n && other != 10 && len(left) < 3 {
					t.Errorf("of step %d are left %q", other, left)
				}
			}
			if after := allSteps(ctx, t, s); !slices.Equal(after, slices.DeleteFunc(slices.Clone(before), func(line string) bool { return strings.HasPrefix(line, fmt.Sprintf("step_%03d ", n)) })) {
				t.Errorf("the steps were %d and are %d", len(before), len(after))
			}
			_, err = s.Context.GetStep(ctx, &loombridgev1.GetStepRequest{AgentId: "a", StepId: fmt.Sprintf("step_%03d", n)})
			MustFail(t, err, codes.NotFound, "STEP_NOT_FOUND")
			s.sound(engine)
			s.step("s", "", 12, 3)
			if p := s.prompt("s"); strings.Contains(p, stepMark(n)) || !strings.Contains(p, stepMark(12)) {
				t.Errorf("the next prompt is %s", p)
			}
			_, err = erase(ctx, s.Server, eraseStep("s", n))
			MustFail(t, err, codes.NotFound, "SUBJECT_NOT_FOUND")
			_, err = erase(ctx, s.Server, eraseStep("other", 9-n%2))
			MustFail(t, err, codes.NotFound, "SUBJECT_NOT_FOUND")
		})
	}
}

// allSteps are the steps of both sessions as they are listed.
func allSteps(ctx context.Context, t *testing.T, s stepped) (all []string) {
	t.Helper()
	for _, session := range []string{"s", "other"} {
		listed, err := s.Context.ListSteps(ctx, &loombridgev1.ListStepsRequest{AgentId: "a", SessionId: session, PageSize: 100})
		must(t, err)
		for _, one := range listed.GetSteps() {
			all = append(all, one.GetId()+" "+one.String())
		}
	}
	return all
}

// mute is an engine that is closed once it has died: half of an erasure is no damage.
type mute struct{ *stopping }

func (m mute) Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error) {
	if m.left.Load() == 0 {
		return nil, kv.ErrClosed
	}
	return m.stopping.Get(ctx, ks, keys...)
}

func (m mute) Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	if m.left.Load() == 0 {
		return func(yield func(kv.Pair, error) bool) { yield(kv.Pair{}, kv.ErrClosed) }
	}
	return m.stopping.Scan(ctx, ks, r)
}

func (m mute) Snapshot(ctx context.Context, refs ...kv.Ref) (kv.Snapshot, error) {
	if m.left.Load() == 0 {
		return nil, kv.ErrClosed
	}
	return m.stopping.Snapshot(ctx, refs...)
}

// A server that dies at any write of an erasure of a step leaves what the next one ends by
// itself, and either all is there or nothing is.
//
// Y49
func TestEraseScopeOfAStepKilled(t *testing.T) {
	t.Parallel()
	made := memkv.New(nil)
	t.Cleanup(func() { must(t, made.Close()) })
	server := servertest.Start(t, &servertest.Options{Engine: made})
	furnishSteps(t, server)
	must(t, server.Face.Shutdown(t.Context()))
	deaths := int64(0)
	for died := true; died; deaths++ {
		engine := twin(t, made)
		t.Run(fmt.Sprint("dies at write ", deaths), func(t *testing.T) {
			dying := newStopping(engine, -1)
			s := servertest.Start(t, &servertest.Options{Engine: mute{dying}})
			dying.left.Store(deaths)
			_, err := erase(t.Context(), s, eraseStep("s", 2))
			died = err != nil
		})
		begun := len(holding(t, engine, "yerasures#", kv.Scope{})) > 0
		t.Run(fmt.Sprint("goes on behind write ", deaths), func(t *testing.T) {
			s := stepped{servertest.Start(t, &servertest.Options{Engine: engine}), t}
			done, err := erase(t.Context(), s.Server, eraseStep("s", 2))
			switch {
			case !died, begun && codeOf(err) == codes.NotFound: // it was through before the call came
				MustFail(t, err, codes.NotFound, "SUBJECT_NOT_FOUND")
			case err != nil || done.GetResumed() != begun:
				t.Errorf("begun: %t: %v, %v", begun, done, err)
			}
			s.sound(engine)
		})
		if left := named(t, engine, stepMark(2)); len(left) > 0 {
			t.Fatalf("%d writes: left is %q", deaths, left)
		}
	}
	if deaths < 5 {
		t.Errorf("it died %d times", deaths)
	}
}
