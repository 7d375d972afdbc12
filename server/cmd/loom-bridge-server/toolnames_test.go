package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each setting that names tools tells at the start of a name that is none; names and patterns
// of tools that are there, and of those that an MCP server will bring, are taken without a word.
func TestUnknownToolNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for tool, bad := range map[string]bool{"nope": true, "fs:raed_file": true, "nope:*": true, "fs:read_file": false, "fs:*": false, "*": false, "later:any": false, "later:*": false} {
		file := filepath.Join(dir, "loom.toml")
		must(t, os.WriteFile(file, []byte("[[bind]]\ntool = \""+tool+"\"\napproval = \"always\"\n[mcp.later]\ncommand = \"/nowhere\"\n"), 0o600))
		p := MustRun(t, dir, "--config", file, "--tool-limits", tool+" 30/m", "--tool-names", tool)
		must(t, p.Stop()) // and with it all of the log
		for _, setting := range []string{"tool-limits", "tool-names", "bind[0].tool"} {
			warned := 0
			for line := range strings.Lines(p.Log.String()) {
				if strings.Contains(line, "a setting names no tool") && strings.Contains(line, "setting="+setting+" ") {
					warned++
				}
			}
			if (warned == 1) != bad || warned > 1 {
				t.Errorf("%s %s: warned %d times in %s", setting, tool, warned, p.Log)
			}
		}
		if strings.Contains(tool, "*") || strings.HasPrefix(tool, "later") {
			continue
		}
		_, err := tryRun(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", t.TempDir(), "--workspace", dir, "--tool-level", tool+"=2")
		if (err != nil && strings.Contains(err.Error(), "is no tool of the server")) != bad {
			t.Errorf("--tool-level %s=2: %v", tool, err)
		}
	}
}
