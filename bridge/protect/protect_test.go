package protect_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/protect"
	"github.com/loom-bridge/loom-bridge/bridge/protect/commands"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// MustWorkspace makes a workspace with some files; a value that begins with -> is a link.
func MustWorkspace(tb testing.TB, files map[string]string) *os.Root {
	tb.Helper()
	dir, err := filepath.EvalSymlinks(tb.TempDir())
	must(tb, err)
	for name, text := range files {
		place := filepath.Join(dir, name)
		must(tb, os.MkdirAll(filepath.Dir(place), 0o755))
		if to, ok := strings.CutPrefix(text, "->"); ok {
			must(tb, os.Symlink(to, place))
			continue
		}
		must(tb, os.WriteFile(place, []byte(strings.ReplaceAll(text, "$W", dir)), 0o644))
	}
	root, err := os.OpenRoot(dir)
	must(tb, err)
	tb.Cleanup(func() { _ = root.Close() })
	return root
}

// What settings of git name, and where links lead, is protected with the rest.
func TestFollow(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	for name, tt := range map[string]struct {
		files map[string]string
		want  []string
		not   []string
	}{
		"a folder of hooks":  {files: map[string]string{".git/config": "[core]\n\thooksPath = tools/hooks\n"}, want: []string{"tools/hooks"}},
		"in capitals":        {files: map[string]string{".git/config": "[CORE]\n\tHOOKSPATH = \"tools/hooks\" ; mine\n"}, want: []string{"tools/hooks"}},
		"absolute":           {files: map[string]string{".git/config": "[core]\nhooksPath=$W/tools\n"}, want: []string{"tools"}},
		"on the line":        {files: map[string]string{".git/config": "[core] hooksPath = h\n"}, want: []string{"h"}},
		"lines that go on":   {files: map[string]string{".git/config": "[core]\nhooksPath = to\\\nols\n"}, want: []string{"tools"}},
		"outside":            {files: map[string]string{".git/config": "[core]\nhooksPath = ../up\n[include]\npath = /etc/x\n"}, not: []string{"up", "../up"}},
		"a program":          {files: map[string]string{".git/config": "[core]\nfsmonitor = bin/watch --fast\n"}, want: []string{"bin/watch"}, not: []string{"--fast"}},
		"a program by name":  {files: map[string]string{".git/config": "[core]\npager = less\n", "less": "x"}, want: []string{"less"}},
		"words":              {files: map[string]string{".git/config": "[core]\npager = less\n"}, not: []string{"less"}},
		"a filter":           {files: map[string]string{".git/config": "[filter \"a b\"]\nclean = \"sh bin/clean %f\"\n"}, want: []string{"bin/clean"}},
		"an alias":           {files: map[string]string{".git/config": "[alias]\nx = \"!bin/x && bin/y\"\n"}, want: []string{"bin/x", "bin/y"}},
		"the old form":       {files: map[string]string{".git/config": "[diff.x]\ntextconv = bin/t\n"}, want: []string{"bin/t"}},
		"included":           {files: map[string]string{".git/config": "[include]\npath = ../more\n", "more": "[core]\nhooksPath = h\n"}, want: []string{"more", "h"}},
		"included in turn":   {files: map[string]string{".git/config": "[includeIf \"gitdir:x\"]\npath = ../a\n", "a": "[include]\npath = b\n", "b": "[include]\npath = a\n[core]\nhooksPath = h\n"}, want: []string{"a", "b", "h"}},
		"of a working tree":  {files: map[string]string{".git/config.worktree": "[core]\nhooksPath = h\n"}, want: []string{"h"}},
		"of a submodule":     {files: map[string]string{".git/modules/a/b/config": "[core]\nfsmonitor = bin/f\n"}, want: []string{"bin/f"}},
		"a repository below": {files: map[string]string{"a/b/.git/config": "[core]\nhooksPath = h\n"}, want: []string{"a/b/.git/config", "a/b/.git/hooks", "a/b/h"}},
		"a file below":       {files: map[string]string{"a/.git": "gitdir: x"}, want: []string{"a/.git"}},
		"a file at the top":  {files: map[string]string{".git": "gitdir: x"}, want: []string{".git"}},
		"a link":             {files: map[string]string{".env": "->conf/env", "conf/env": "x"}, want: []string{".env", "conf/env"}},
		"a link above":       {files: map[string]string{".github": "->gh", "gh/x": "x"}, want: []string{".github", "gh/hooks"}},
		"a link to outside":  {files: map[string]string{".env": "->/etc/passwd"}, want: []string{".env"}},
		"a link to nowhere":  {files: map[string]string{".env": "->gone"}, want: []string{".env"}},
		"nothing":            {files: map[string]string{"x": "x"}, not: []string{"x"}},
		"no settings":        {files: map[string]string{".git/config": "[\x00core\n=\nhooksPath\n[core\nhooksPath = h"}, not: []string{"h"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := MustWorkspace(t, tt.files)
			f := protect.NewFollower(nil)
			got := f.Paths(root, commands.Paths(), nil)
			set := f.Set(root, commands.Paths())
			for _, want := range tt.want {
				if !slices.Contains(got, want) || !set.Covers(want) {
					t.Errorf("%s is not in %v", want, got)
				}
			}
			for _, not := range tt.not {
				if slices.Contains(got, not) {
					t.Errorf("%s is in %v", not, got)
				}
			}
		})
	}
}

// The settings of the server's user hold in every repository.
func TestFollowsTheUsersSettings(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	must(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[core]\nhooksPath = .hooks\n"), 0o644))
	if got := protect.NewFollower(nil).Paths(MustWorkspace(t, nil), nil, nil); !slices.Contains(got, ".hooks") {
		t.Errorf("there is %v", got)
	}
}

// What a person changes in settings holds for the next program; what is below is looked for
// again after a while.
func TestFollowsChanges(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	root := MustWorkspace(t, map[string]string{".git/config": "[core]\n"})
	synctest.Test(t, func(t *testing.T) {
		f := protect.NewFollower(nil)
		if got := f.Paths(root, commands.Paths(), nil); len(got) > 0 {
			t.Errorf("at first %v", got)
		}
		must(t, root.WriteFile(".git/config", []byte("[core]\nhooksPath = h\n"), 0o644))
		if got := f.Paths(root, commands.Paths(), nil); !slices.Contains(got, "h") {
			t.Errorf("then %v", got)
		}
		must(t, root.MkdirAll("sub/.git", 0o755))
		time.Sleep(time.Minute)
		if got := f.Paths(root, commands.Paths(), nil); !slices.Contains(got, "sub/.git/config") {
			t.Errorf("later %v", got)
		}
	})
}

// runner is one whose outcomes are told.
type runner struct {
	sandbox.Runner
	mu   sync.Mutex
	jobs []sandbox.Job
	out  sandbox.RunOutcome
	err  error
}

func (r *runner) Run(_ context.Context, job sandbox.Job, _ sandbox.Streams) (sandbox.RunOutcome, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jobs = append(r.jobs, job)
	return r.out, r.err
}

// A job is told what is protected, and which repositories programs made before it.
func TestRunner(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	root := MustWorkspace(t, map[string]string{".git/config": "[core]\nhooksPath = h\n"})
	inner := &runner{out: sandbox.RunOutcome{Made: []sandbox.Folder{{Dev: 1, Ino: 2}}, Refused: []string{".envrc"}, Confinement: sandbox.Confinement{Tier: "namespaces"}}}
	var records []audit.Record
	failing := errors.New("no room")
	r := protect.New(inner, &protect.Options{Always: []string{"always"}, Now: func() time.Time { return time.Unix(5, 0) }, Audit: func(_ context.Context, record audit.Record) error {
		records = append(records, record)
		return failing
	}})
	for _, p := range [][]string{nil, {"keep"}} {
		out, err := r.Run(t.Context(), sandbox.Job{Root: root, Scope: kv.AgentScope("t", "a"), Policy: sandbox.Policy{Protect: p}}, sandbox.Streams{})
		if err != nil || !slices.Equal(out.Refused, []string{".envrc"}) {
			t.Fatalf("got %+v, %v", out, err)
		}
	}
	first, second := inner.jobs[0].Policy, inner.jobs[1].Policy
	for _, want := range append(sandbox.Protected(), "always", "h") {
		if !slices.Contains(first.Protect, want) {
			t.Errorf("%s is not protected", want)
		}
	}
	if !slices.Equal(second.Protect, []string{"keep", "always", "h"}) {
		t.Errorf("of a policy with paths of its own: %v", second.Protect)
	}
	if len(first.Own) != 0 || !slices.Equal(second.Own, []sandbox.Folder{{Dev: 1, Ino: 2}}) {
		t.Errorf("own were %v, then %v", first.Own, second.Own)
	}
	if len(records) != 2 || records[0].Tool != protect.ToolName || records[0].Outcome != audit.OutcomeDenied || records[0].Tenant != "t" || records[0].Agent != "a" ||
		records[0].Tier != "namespaces" || !strings.Contains(string(records[0].Args), ".envrc") {
		t.Errorf("the audit has %+v", records)
	}
	inner.out, inner.err = sandbox.RunOutcome{}, sandbox.ErrClosed
	if _, err := r.Run(t.Context(), sandbox.Job{Root: root}, sandbox.Streams{}); !errors.Is(err, sandbox.ErrClosed) || len(records) != 2 {
		t.Errorf("a run that failed: %v, %d records", err, len(records))
	}
}
