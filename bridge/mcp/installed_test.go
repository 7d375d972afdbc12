package mcp

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A program's own installation is what it reads, and never more.
func TestFind(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	write := func(text string, parts ...string) string {
		t.Helper()
		path := at(parts...)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil { //nolint:gosec // programs
			t.Fatal(err)
		}
		return path
	}
	link := func(to string, parts ...string) string {
		t.Helper()
		path := at(parts...)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	python := write("ELF", "pythons", "3.11", "bin", "python3.11")
	write("", "pythons", "3.11", "lib", "os.py")
	link(python, "venv", "bin", "python")
	write("home = "+at("pythons", "3.11", "bin")+"\n", "venv", "pyvenv.cfg")
	tool := write("#!"+at("venv", "bin", "python")+"\nimport this\n", "venv", "bin", "tool")
	index := write("", "project", "node_modules", "server", "dist", "index.js")
	link("../server/dist/index.js", "project", "node_modules", ".bin", "server")
	link(at("venv"), "current")
	lone := write("ELF", "lone")
	loop := link("loop", "loop")

	pythonReads := []string{at("venv"), at("pythons", "3.11", "bin"), at("pythons", "3.11", "lib")}
	for what, c := range map[string]struct {
		command, search string
		args            []string
		path            string
		reads           []string
	}{
		"a script of a virtual environment": {command: tool, path: tool, reads: pythonReads},
		"its interpreter":                   {command: at("venv", "bin", "python"), path: at("venv", "bin", "python"), reads: pythonReads},
		"by a link to its folder":           {command: at("current", "bin", "tool"), path: tool, reads: pythonReads},
		"by its name":                       {command: "tool", search: "relative:" + at("venv", "bin"), path: tool, reads: pythonReads},
		"of npm":                            {command: at("project", "node_modules", ".bin", "server"), path: at("project", "node_modules", ".bin", "server"), reads: []string{at("project", "node_modules")}},
		"a script for node":                 {command: "sh", args: []string{index, at("lone"), "/etc/shadow"}, path: "sh", reads: []string{at("project", "node_modules")}},
		"one file":                          {command: lone, path: lone, reads: []string{lone}},
		"of the system":                     {command: "/usr/bin/env", path: "/usr/bin/env"},
		"in the workspace":                  {command: "./server", path: "./server"},
		"nowhere":                           {command: "no-such-program", path: "no-such-program"},
		"a link to itself":                  {command: loop, path: loop, reads: []string{loop}},
	} {
		got := find(c.command, c.search, c.args)
		slices.Sort(c.reads)
		if got.path != c.path || !slices.Equal(got.reads, c.reads) {
			t.Errorf("%s: %s reads %q, want %s and %q", what, got.path, got.reads, c.path, c.reads)
		}
	}
	t.Setenv("HOME", at("project"))
	i := installed{}
	for _, wide := range []string{"/", "/root", "/home", "/etc", at("project")} {
		if i.add(wide); len(i.reads) > 0 {
			t.Errorf("%s is read", wide)
		}
	}
}
