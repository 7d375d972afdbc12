package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// made is a prompt of session s with the tools of the server.
func (s *stand) made() *loombridgev1.AssembleResponse {
	s.tb.Helper()
	got, err := s.contexts().Assemble(s.ctx, &loombridgev1.AssembleRequest{AgentId: s.agent, SessionId: "s"})
	must(s.tb, err)
	return got
}

// offers reports whether a prompt offers a tool.
func offers(tool string) func(s *stand) func() string {
	return func(s *stand) func() string {
		return once(fmt.Sprint(strings.Contains(s.made().GetToolsJson(), tool)))
	}
}

// again reports whether the last of equal prompts is that of one before.
func again(s *stand) func() string {
	for range 3 {
		s.made()
	}
	return once(fmt.Sprint(s.made().GetReceipt().GetReused()))
}

func promptEffects() []effect {
	return []effect{
		{setting: "tool-names", args: []string{"--tool-names", "fs:s*"}, both: []string{"--tool-level", "fs:stat=2"}, see: offers("fs:stat"), with: "true", without: "false"},
		{
			setting: "tool-level", args: []string{"--tool-level", "fs:stat=2", "--tool-level", "fs:delete=3"}, see: offers("fs:stat"), with: "false", without: "true",
		},
		{setting: "assemble-cache", args: []string{"--assemble-cache"}, see: again, with: "true", without: "false"},
	}
}

// A level of what is no tool stops the server from starting, and says which setting it was.
func TestPromptSettingsThatStopAServer(t *testing.T) {
	t.Parallel()
	const want = `--tool-level (LOOM_BRIDGE_TOOL_LEVEL) "fs:stats=2": "fs:stats" is no tool of the server, nearest is fs:stat`
	err := runBriefly(t, "--addr", "127.0.0.1:0", "--data-dir", t.TempDir()+"/store", "--tool-level=fs:stats=2")
	if bad, ok := errors.AsType[*ConfigError](err); !ok || !strings.Contains(bad.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
