package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// spawns asks for a child of the stand's agent, and says how that ended.
func (s *stand) spawns(parent, child string) string {
	s.tb.Helper()
	_, err := s.contexts().SpawnAgent(s.ctx, &loombridgev1.SpawnAgentRequest{AgentId: parent, ChildId: child, Goal: "g"})
	return ended(err)
}

// inChild is a stand whose agent is a child.
func (s *stand) inChild() *stand {
	s.tb.Helper()
	if got := s.spawns("a", "c"); got != "OK" {
		s.tb.Fatalf("spawn: %s", got)
	}
	child := *s
	child.agent = "c"
	return &child
}

// write writes a file as the stand's agent, and says how that ended.
func (s *stand) write(name string, bytes int) string {
	s.tb.Helper()
	got := s.tool("fs:write_file", fmt.Sprintf(`{"path":%q,"content":%q}`, name, strings.Repeat("x", bytes)))
	if strings.Contains(got, "bytes_written") {
		return "written"
	}
	return got
}

// outcome is what came of the children of the stand's agent, waited for.
func (s *stand) outcome() string {
	s.tb.Helper()
	got, err := s.contexts().WaitAgents(s.ctx, &loombridgev1.WaitAgentsRequest{AgentId: "a", Timeout: durationpb.New(100 * time.Millisecond)})
	must(s.tb, err)
	return got.GetOutcome()
}

const overLimit = "AGENT_LIMIT_EXCEEDED"

// childEffects are those of the settings of children.
func childEffects() []effect {
	return []effect{
		{
			setting: "child-steps", args: []string{"--child-steps", "1"},
			see: func(s *stand) func() string {
				child := s.inChild()
				child.write("f", 1)
				return once(child.write("g", 1))
			},
			with: overLimit, without: "written",
		},
		{
			setting: "child-step-tokens", args: []string{"--child-step-tokens", "50"},
			see: func(s *stand) func() string {
				got := s.inChild().record("", "x:y", "{}", fmt.Sprintf("%q", strings.Repeat("some words ", 500)))
				return once(fmt.Sprint(len(got.GetStep().GetInline()) < 1000))
			},
			with: "true", without: "false",
		},
		{
			setting: "child-files", args: []string{"--child-files", "1"},
			see: func(s *stand) func() string {
				child := s.inChild()
				child.write("f", 1)
				return once(child.write("g", 1))
			},
			with: overLimit, without: "written",
		},
		{
			setting: "child-bytes", args: []string{"--child-bytes", "10"},
			see:  func(s *stand) func() string { return once(s.inChild().write("f", 11)) },
			with: overLimit, without: "written",
		},
		{
			setting: "child-timeout", args: []string{"--child-timeout", "50ms"}, after: 300 * time.Millisecond,
			see: func(s *stand) func() string {
				s.inChild()
				return s.outcome
			},
			with: "[c] ✗ timeout", without: "",
		},
		{
			setting: "child-grace", args: []string{"--child-grace", "50ms"}, after: 500 * time.Millisecond,
			see: func(s *stand) func() string {
				s.inChild()
				ctx, leave := context.WithCancel(s.ctx)
				stream, err := s.bridge().Attach(ctx)
				must(s.tb, err)
				must(s.tb, stream.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Hello{Hello: &loombridgev1.AttachHello{AgentId: "c"}}}))
				_, err = stream.Recv()
				must(s.tb, err)
				leave()
				return s.outcome
			},
			with: "[c] ✗ disconnected", without: "",
		},
		{
			setting: "max-depth", args: []string{"--max-depth", "1"},
			see: func(s *stand) func() string {
				s.inChild()
				return once(s.spawns("c", "d"))
			},
			with: "MAX_DEPTH_EXCEEDED", without: "OK",
		},
		{
			setting: "max-children", args: []string{"--max-children", "1"},
			see: func(s *stand) func() string {
				s.inChild()
				return once(s.spawns("a", "d") + ", another parent: " + s.spawns("b", "e"))
			},
			with: overLimit + ", another parent: OK", without: "OK, another parent: OK",
		},
		{
			setting: "max-tenant-children", args: []string{"--max-tenant-children", "1"},
			see: func(s *stand) func() string {
				s.inChild()
				return once(s.spawns("b", "e"))
			},
			with: overLimit, without: "OK",
		},
		{
			setting: "own-workspace", args: []string{"--own-workspace"},
			see: func(s *stand) func() string {
				s.write("f", 1)
				return once(s.exists("a/f"))
			},
			with: "there", without: "not there",
		},
	}
}
