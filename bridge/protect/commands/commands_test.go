package commands_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/protect/commands"
)

// Each row says whose it is, what runs and where that is written, names a path inside of the
// workspace, and no other row's.
func TestTable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range commands.Table() {
		if r.Tool == "" || r.Runs == "" || r.Source == "" {
			t.Errorf("a row says too little: %+v", r)
		}
		rest := strings.TrimPrefix(r.Path, "**/")
		if !filepath.IsLocal(rest) || filepath.Clean(rest) != rest || seen[r.Path] {
			t.Errorf("%q is no path, or there twice", r.Path)
		}
		seen[r.Path] = true
	}
	if !slices.Equal(commands.Paths(), slices.Collect(func(yield func(string) bool) {
		for _, r := range commands.Table() {
			if !yield(r.Path) {
				return
			}
		}
	})) {
		t.Error("the paths are not those of the table")
	}
}

// Names are covered as they are spelt, in another case, and with what a disk leaves out.
func TestCovers(t *testing.T) {
	t.Parallel()
	s := commands.NewSet(append(commands.Paths(), "keep", "deep/er/own"))
	for name, want := range map[string]bool{
		".env": true, ".ENV": true, ".environment": false, "x/.env": false, ".vscode": true, ".vscode/tasks.json": true, ".VSCode/a/b": true,
		".git/config": true, ".git/hooks/pre-commit": true, ".git/HEAD": false, ".git": false, "a/b/.git/config": true, "a/b/.GIT/Config": true,
		".g\u200cit/hooks/x": true, "bare.git/hooks/x": true, ".git/modules/m/config": true, ".git/modules": true, ".git/worktrees/w/commondir": true,
		".git/worktrees/w/HEAD": false, ".github/hooks/x.json": true, ".github/workflows/x.yml": false, "x.code-workspace": true, "y/x.code-workspace": false,
		"keep": true, "keep/f": true, "keeper": false, "deep/er/own/f": true, "deep/er": false, "deep": false, ".": false, "": false, "opencode.jsonc": true,
		"lefthook-local.yml": true, "lefthook": false, "src/main.go": false, ".config/mise.toml": true, ".config/nvim": false, "Makefile": false, "package.json": false,
	} {
		if got := s.Covers(name); got != want {
			t.Errorf("%q is covered: %t", name, got)
		}
	}
	for name, want := range map[string]bool{
		".git": true, ".GIT": true, "a/.git": true, "x.git": true, ".git/worktrees": true, ".git/info": true, ".github": true, ".config": true, "deep": true, "deep/er": true,
		"a": false, "keep": false, ".vscode": false, "": false, ".": false,
	} {
		if got := s.Leads(name); got != want {
			t.Errorf("%q leads: %t", name, got)
		}
	}
	var none *commands.Set
	if none.Covers(".env") || none.Leads(".git") {
		t.Error("the nil set has something")
	}
}

// A name lies in a repository if nothing but git's own rules covers it.
func TestRepository(t *testing.T) {
	t.Parallel()
	s := commands.NewSet(append(commands.Paths(), "old/.git/config"))
	for name, want := range map[string]string{
		".git/config": ".git", "a/x.git/hooks/y": "a/x.git", "a/.git/worktrees/w/config.worktree": "a/.git", ".env": "", "old/.git/config": "", "old/.git/hooks": "old/.git", "x": "",
	} {
		if got, ok := s.Repository(name); got != want || ok != (want != "") {
			t.Errorf("%q is in %q, %t", name, got, ok)
		}
	}
}

// Whatever is covered is so for every name below it, and each folder above leads to it.
func FuzzSet(f *testing.F) {
	for _, p := range commands.Paths() {
		f.Add(strings.ReplaceAll(strings.TrimPrefix(p, "**/"), "*", ""), "x")
	}
	s := commands.NewSet(commands.Paths())
	f.Fuzz(func(t *testing.T, name, more string) {
		if !filepath.IsLocal(name) || !filepath.IsLocal(more) {
			return
		}
		name, more = filepath.Clean(name), filepath.Clean(more)
		if s.Covers(name) && name != "." && !s.Covers(filepath.Join(name, more)) && filepath.IsLocal(filepath.Join(name, more)) && !strings.HasPrefix(more, "..") {
			t.Errorf("%q is covered, what is below is not: %q", name, more)
		}
		if s.Covers(strings.ToUpper(name)) != s.Covers(name) && strings.EqualFold(strings.ToUpper(name), name) {
			t.Errorf("%q is another in capitals", name)
		}
	})
}

func BenchmarkCovers(b *testing.B) {
	s := commands.NewSet(commands.Paths())
	for b.Loop() {
		s.Covers("src/package/internal/deep/file.go")
	}
}
