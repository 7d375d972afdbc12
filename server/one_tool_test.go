package server_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// A tool that is named comes alone, under its own name, with what calls of it may do; one that
// the agent may not call is none. A whole listing says nothing of profiles.
func TestListOneTool(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, name := range []string{"fs:read_file", "fs_read_file"} {
		got, err := s.Tools.ListTools(t.Context(), &loombridgev1.ListToolsRequest{AgentId: agent, Tool: name})
		must(t, err)
		if all := got.GetTools(); len(all) != 1 || all[0].GetName() != "fs:read_file" || got.GetProfile().GetRules().GetFields()["mode"].GetStringValue() != "work" {
			t.Errorf("%s: %v", name, got)
		}
	}
	all, err := s.Tools.ListTools(t.Context(), &loombridgev1.ListToolsRequest{AgentId: agent})
	must(t, err)
	if len(all.GetTools()) < 2 || all.GetProfile() != nil {
		t.Errorf("%d tools, the profile %v", len(all.GetTools()), all.GetProfile())
	}
	MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{AgentId: agent, ChildId: "kid", Tools: []string{"fs:stat"}})
	for asked, name := range map[string]string{agent: "no:tool", "kid": "fs:read_file"} {
		_, err := s.Tools.ListTools(t.Context(), &loombridgev1.ListToolsRequest{AgentId: asked, Tool: name})
		MustFail(t, err, codes.NotFound, "TOOL_NOT_FOUND")
	}
	_, err = s.Tools.ListTools(t.Context(), &loombridgev1.ListToolsRequest{AgentId: agent, Tool: "fs:stat", PageSize: 1})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
}
