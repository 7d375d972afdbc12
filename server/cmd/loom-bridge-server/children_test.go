package main

import (
	"fmt"
	"strings"
)

// write writes a file as the stand's agent, and says how that ended.
func (s *stand) write(name string, bytes int) string {
	s.tb.Helper()
	got := s.tool("fs:write_file", fmt.Sprintf(`{"path":%q,"content":%q}`, name, strings.Repeat("x", bytes)))
	if strings.Contains(got, "bytes_written") {
		return "written"
	}
	return got
}

// workspaceEffects are those of the folders of agents.
func workspaceEffects() []effect {
	return []effect{
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
