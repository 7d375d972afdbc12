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
	for setting, start := range map[string]func(tool string) (*process, error){
		"tool-limits": func(tool string) (*process, error) {
			return tryRun(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "a"), "--workspace", dir, "--tool-limits", tool+" 30/m", "--mcp-servers", `{"later":{"command":"/nowhere"}}`)
		},
		"tool-names": func(tool string) (*process, error) {
			return tryRun(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "b"), "--workspace", dir, "--tool-names", tool, "--mcp-servers", `{"later":{"command":"/nowhere"}}`)
		},
		"tool": func(tool string) (*process, error) {
			file := filepath.Join(dir, "loom.toml")
			must(t, os.WriteFile(file, []byte("[[bind]]\ntool = \""+tool+"\"\napproval = \"always\"\n[mcp.later]\ncommand = \"/nowhere\"\n"), 0o600))
			return tryRun(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "c"), "--workspace", dir, "--config", file)
		},
		"tool-level": func(tool string) (*process, error) {
			return tryRun(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "d"), "--workspace", dir, "--tool-level", tool+"=2")
		},
	} {
		for tool, bad := range map[string]bool{"nope": true, "fs:raed_file": true, "nope:*": true, "fs:read_file": false, "fs:*": false, "*": false, "later:any": false, "later:*": false} {
			if setting == "tool-level" && (strings.Contains(tool, "*") || strings.HasPrefix(tool, "later")) {
				continue
			}
			p, err := start(tool)
			if setting == "tool-level" {
				if (err != nil && strings.Contains(err.Error(), "is no tool of the server")) != bad {
					t.Errorf("--tool-level %s=2: %v", tool, err)
				}
			}
			if err != nil {
				if setting != "tool-level" {
					t.Error(err)
				}
				continue
			}
			must(t, p.Stop()) // and with it all of the log
			if said := p.Log.String(); setting != "tool-level" && (strings.Contains(said, "a setting names no tool") != bad || bad && !strings.Contains(said, setting)) {
				t.Errorf("%s %s: the log has %s", setting, tool, said)
			}
		}
	}
}
