package main

import (
	"slices"
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// What a model did by commands it does by tools: each names the commands that do the like,
// and its level says where it stands.
//
// D01, D07, E01
func TestToolsForCommands(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir())
	got, err := loombridgev1.NewToolServiceClient(p.conn).ListTools(t.Context(), &loombridgev1.ListToolsRequest{AgentId: "a"})
	must(t, err)
	all := make(map[string]*loombridgev1.ToolDescriptor)
	for _, tool := range got.GetTools() {
		all[tool.GetName()] = tool
	}
	for name, want := range map[string]struct {
		level    int32
		commands []string
	}{
		"fs:read_file":      {1, []string{"cat", "head", "tail"}},
		"fs:write_file":     {1, []string{"echo", "tee"}},
		"fs:list_dir":       {1, []string{"ls"}},
		"web:search":        {1, []string{"curl"}},
		"browser:navigate":  {1, nil},
		"weather:get":       {1, nil},
		"system:shell":      {1, []string{"git", "python", "node"}},
		"shell:run":         {2, []string{"git", "python", "node"}},
		"python:run_script": {3, []string{"python"}},
	} {
		tool := all[name]
		if tool.GetLevel() != want.level {
			t.Errorf("%s: level %d, want %d", name, tool.GetLevel(), want.level)
		}
		for _, command := range want.commands {
			if !slices.Contains(tool.GetCliEquivalents(), command) {
				t.Errorf("%s stands for %v, not for %s", name, tool.GetCliEquivalents(), command)
			}
		}
	}
}
