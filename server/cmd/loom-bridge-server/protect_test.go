package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/protect/commands"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/hosts"
)

// treeOf are the modes and contents below some paths of a folder.
func treeOf(tb testing.TB, dir string, paths []string) map[string]string {
	tb.Helper()
	found := map[string]string{}
	for _, path := range paths {
		err := filepath.WalkDir(filepath.Join(dir, path), func(place string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // it is not there
			}
			info, err := d.Info()
			must(tb, err)
			text := ""
			switch {
			case info.Mode().IsRegular():
				content, err := os.ReadFile(place)
				must(tb, err)
				text = string(content)
			case info.Mode().Type() == fs.ModeSymlink:
				text, _ = os.Readlink(place)
			}
			found[strings.TrimPrefix(place, dir)] = fmt.Sprint(info.Mode(), " ", text)
			return nil
		})
		must(tb, err)
	}
	return found
}

// protects starts a server for each tier in whose workspace there is what is protected, and
// returns those paths as they are.
func protects(t *testing.T, test func(t *testing.T, w *policyWorld, paths []string)) {
	t.Helper()
	eachPolicyTier(t, "[profile.work]\nprotect = [\"keep\"]\n", func(t *testing.T, w *policyWorld) {
		for _, name := range []string{".git/config", ".git/hooks/pre-commit", ".git/HEAD", ".env", "keep/f", "keep/deep/g"} {
			w.write(name, "text of "+name)
		}
		must(t, os.Chmod(filepath.Join(w.Workspace, ".git/hooks/pre-commit"), 0o755))
		must(t, os.Symlink("keep/f", filepath.Join(w.Workspace, ".profile")))
		test(t, w, append(commands.AtTop(sandbox.Protected()), "keep"))
	})
}

// python runs a program as an agent; its result may tell what it was kept from.
func (w *policyWorld) python(agent, program string) (refused []string, said string) {
	w.tb.Helper()
	const run = "import os, shutil, sys\nW=os.getcwd()\ntry: exec(sys.argv[1])\nexcept OSError as e: print(e, file=sys.stderr)\n"
	got := w.callAs(agent, "s1", "system:shell", map[string]any{"command": "python3", "args": []string{"-c", run, program}})
	var out struct {
		Refused []string `json:"refused"`
		Stderr  string   `json:"stderr"`
	}
	if !got.GetSuccess() {
		return nil, got.GetErrorMessage()
	}
	must(w.tb, json.Unmarshal([]byte(got.GetOutputJson()), &out))
	return out.Refused, out.Stderr
}

// Programs can't change protected paths, nor make those where nothing is, in both tiers:
// nothing was ever there. Their results and the audit tell of it. File tools refuse the same.
func TestProtectedPathsAreKeptSoak(t *testing.T) {
	t.Parallel()
	protects(t, func(t *testing.T, w *policyWorld, paths []string) {
		before := treeOf(t, w.Workspace, paths)
		for _, attack := range []struct {
			program string
			refused string // what the result must name; empty: anything or nothing
		}{
			{"open('.env','w').write('x')", ".env"},
			{"os.remove('.env')", ".env"},
			{"open('n','w').close(); os.replace('n','.env')", ".env"},
			{"os.link('.env','e'); open('e','w').write('x')", ".env"},
			{"os.chmod('.env', 0o777)", ".env"},
			{"os.utime('.git/config', (1,1)); open('.git/config','a').write('[core]')", ""},
			{"open('.git/hooks/post-commit','w').write('x')", ".git/hooks/post-commit"},
			{"shutil.rmtree('.git/hooks')", ""},
			{"os.rename('.git','g')", ".git"},
			{"os.rename('.git','g2'); os.symlink('g2','.git')", ".git"},
			{"os.chmod('.git/hooks', 0)", ".git/hooks"},
			{"shutil.rmtree('keep'); open('keep','w').close()", ""},
			{"open('keep/deep/h','w').close()", "keep/deep/h"},
			{"os.rename('keep/deep','keep/d')", "keep/deep"},
			{"open('.envrc','w').write('x')", ".envrc"},
			{"os.makedirs('.vscode/a/b'); open('.vscode/a/b/c','w').close()", ".vscode"},
			{"os.symlink('/etc/passwd','.bashrc')", ".bashrc"},
			{"os.mkfifo('.mcp.json')", ".mcp.json"},
			{"open('.git/commondir','w').write('../evil')", ".git/commondir"},
			{"os.remove('.profile'); open('.profile','w').write('x')", ".profile"},
			{"open('.profile','w').write('x')", "keep/f"},
			{"os.makedirs('.loom', exist_ok=True); open('.loom/sandbox.toml','w').write('x')", ".loom/sandbox.toml"},
			{"os.makedirs('l'); open('l/sandbox.toml','w').close(); os.rename('.loom','l2'); os.rename('l','.loom')", ""},
			{"open('.claude','w').close()", ".claude"},
			{"open('.ENVRC','w').close()", ".ENVRC"},
		} {
			refused, said := w.python("a", attack.program)
			if now := treeOf(t, w.Workspace, paths); !maps.Equal(now, before) {
				t.Fatalf("after %s there is %v\nbefore %v", attack.program, now, before)
			}
			if attack.refused != "" && !slices.Contains(refused, attack.refused) {
				t.Errorf("%s: refused %v, %q", attack.program, refused, said)
			}
		}
		if _, err := os.Lstat(filepath.Join(w.Workspace, ".loom/undone")); err == nil {
			t.Error("something was moved away")
		}
		for _, path := range []string{".env", ".envrc", ".vscode/settings.json", "keep/new", ".git/hooks/x", ".git/commondir", "sub/.git/config", ".profile"} {
			if got := w.callAs("a", "s1", "fs:write_file", map[string]any{"path": path, "content": "x"}); !strings.HasPrefix(got.GetErrorMessage(), "Permission denied") {
				t.Errorf("a file tool wrote %s: %v", path, got)
			}
		}
		list, err := w.tools().ListAudit(t.Context(), &loombridgev1.ListAuditRequest{AgentId: "x", CallerId: "a", Tool: "workspace:protect", PageSize: 100})
		must(t, err)
		if text := fmt.Sprint(list.GetRecords()); !strings.Contains(text, ".envrc") || !strings.Contains(text, "AUDIT_OUTCOME_DENIED") || !strings.Contains(text, w.tier) {
			t.Errorf("the audit has %s", text)
		}
		// A repository in whose place a file says where it is.
		must(t, os.RemoveAll(filepath.Join(w.Workspace, ".git")))
		w.write(".git", "gitdir: ../real")
		before = treeOf(t, w.Workspace, []string{".git"})
		w.python("a", "open('.git','w').write('gitdir: evil')")
		w.python("a", "os.remove('.git'); os.makedirs('.git/hooks')")
		if now := treeOf(t, w.Workspace, []string{".git"}); !maps.Equal(now, before) {
			t.Errorf("the file of a repository is %v, was %v", now, before)
		}
	})
}

// everyWay tries to put something at each of some paths, in every way that there is.
const everyWay = `
import sys, json
def attempt(f, *a):
    try: return f(*a)
    except OSError: pass
def write(p, how='w'):
    with open(p, how) as f: f.write('x')
def fresh(n='fresh'):
    attempt(write, n); return n
for p in json.loads(sys.argv[1]):
    attempt(os.makedirs, os.path.dirname(p) or '.', 0o755, True)
    attempt(write, p); attempt(write, p, 'a'); attempt(write, p, 'r+')
    attempt(os.truncate, p, 0)
    attempt(os.rename, fresh(), p)
    attempt(os.link, fresh(), p)
    if attempt(os.link, p, 'other') is None: attempt(write, 'other'); attempt(os.remove, 'other')
    attempt(os.symlink, fresh(), p)
    attempt(os.makedirs, 'folder/deep', 0o755, True); attempt(write, 'folder/deep/f'); attempt(os.rename, 'folder', p)
    attempt(os.symlink, p, 'leads'); attempt(write, 'leads'); attempt(os.remove, 'leads')
    attempt(os.mkfifo, p); attempt(os.makedirs, p + '/deep')
    attempt(write, p.upper())
    d = attempt(os.open, os.path.dirname(p) or '.', os.O_RDONLY)
    if d is not None:
        f = attempt(lambda: os.open(os.path.basename(p), os.O_CREAT | os.O_WRONLY, dir_fd=d))
        if f is not None: os.write(f, b'x')
    top, _, rest = p.partition('/')
    if rest:
        attempt(os.makedirs, 'above/' + (os.path.dirname(rest) or '.'), 0o755, True); attempt(write, 'above/' + rest)
        attempt(os.rename, top, 'away'); attempt(os.rename, 'above', top); attempt(os.symlink, 'above', top)
        if not os.path.lexists(top): attempt(os.rename, 'away', top)
    attempt(os.remove, p); attempt(shutil.rmtree, p)
`

// Nothing that gives commands to others outside can be written by a program or a file tool:
// each row of the table, what the settings of git name, and what is in repositories below.
func TestWhatCommandsOthersIsKept(t *testing.T) {
	t.Parallel()
	protects(t, func(t *testing.T, w *policyWorld, _ []string) {
		w.write(".git/config", "[core]\n\thooksPath = scripts/git\n\tfsmonitor = tools/watch.sh\n[include]\n\tpath = ../shared/gitconfig\n[filter \"x\"]\n\tclean = \"sh bin/clean\"\n")
		w.write("shared/gitconfig", "[core]\n\tpager = bin/page\n")
		w.write("bin/clean", "#")
		w.write("sub/.git/config", "[core]\n\thooksPath = hooks\n")
		w.write("deep/er/sub/.git/hooks/x", "#")
		w.write(".git/modules/lib/config", "[core]\n")
		w.write(".git/info/x", "")
		w.write("wt/.git", "gitdir: ../.git/worktrees/wt")
		w.write(".git/worktrees/wt/gitdir", "../../../wt/.git")
		w.write("sub/.git/info/x", "")
		w.write("sub/.git/worktrees/m/x", "")
		names := []string{
			"scripts/git/pre-commit", "tools/watch.sh", "shared/gitconfig", "bin/clean", "bin/page", "sub/hooks/pre-commit", "sub/.git/config", "sub/.git/hooks/post-checkout",
			"deep/er/sub/.git/config", ".git/modules/lib/config", ".git/modules/lib/hooks/post-checkout", "wt/.git", ".git/worktrees/wt/config.worktree", ".git/worktrees/wt/commondir",
		}
		for _, row := range commands.Table() {
			path, deep := strings.CutPrefix(row.Path, "**/")
			path = strings.ReplaceAll(strings.Replace(path, "*.git", ".git", 1), "*", "wt")
			names = append(names, path)
			if deep {
				names = append(names, "sub/"+path)
			}
		}
		spelt := slices.Clone(names)
		for _, name := range names {
			spelt = append(spelt, strings.ToUpper(name))
		}
		before := treeOf(t, w.Workspace, spelt)
		for some := range slices.Chunk(names, 40) {
			list, err := json.Marshal(some)
			must(t, err)
			got := w.callAs("a", "s1", "system:shell", map[string]any{"command": "python3", "args": []string{"-c", "import os, shutil\n" + everyWay, string(list)}})
			if !got.GetSuccess() || !strings.Contains(got.GetOutputJson(), `"exit_code":0`) {
				t.Fatalf("the attacker said %v", got)
			}
			for _, name := range some {
				if now := treeOf(t, w.Workspace, []string{name, strings.ToUpper(name)}); len(now) != len(treesOf(before, name)) {
					t.Errorf("at %s there is %v", name, now)
				}
			}
		}
		for _, name := range names {
			if got := w.callAs("a", "s1", "fs:write_file", map[string]any{"path": name, "content": "x"}); got.GetSuccess() {
				t.Errorf("a file tool wrote %s", name)
			}
		}
		if now := treeOf(t, w.Workspace, spelt); !maps.Equal(now, before) {
			t.Errorf("behind all there is %v\nbefore %v", now, before)
		}
	})
}

// treesOf are the entries at and below a name.
func treesOf(tree map[string]string, name string) map[string]string {
	found := map[string]string{}
	for place, text := range tree {
		for _, spelt := range []string{name, strings.ToUpper(name)} {
			if place == "/"+spelt || strings.HasPrefix(place, "/"+spelt+"/") {
				found[place] = text
			}
		}
	}
	return found
}

// What a person, or an installation for a host, makes while programs run stays where it is:
// each row of the table, beside a background job and a server of the Model Context Protocol.
func TestPersonsFilesStay(t *testing.T) { // not beside others: installations look at the process's own folder
	for _, tier := range []string{"namespaces", "landlock"} {
		t.Run(tier, func(t *testing.T) {
			dir := t.TempDir()
			p := MustServe(t, dir, object{"guest": guest(t, dir, "one", nil)}, "--sandbox-tier", tier, "--shell-allow", "python3,true", "--data-dir", filepath.Join(t.TempDir(), "store"))
			p.waitFor(t, "guest:echo")
			w := &shellWorld{t, p, tier}
			if s := w.status().GetSandbox(); s.GetTier() != tier {
				lacks(t, tier, s.GetProblems())
			}
			c := caller{w, "a", "s1"}
			begun := c.job("system:shell", object{"background": true, "command": "python3", "args": []string{"-c", "import time\nprint('up', flush=True)\ntime.sleep(1000)"}})
			c.untilPrinted(begun.ID, "up")
			var names []string
			for _, row := range commands.Table() {
				path := strings.ReplaceAll(strings.Replace(strings.TrimPrefix(row.Path, "**/"), "*.git", ".git", 1), "*", "m")
				names = append(names, path)
				must(t, os.MkdirAll(filepath.Dir(filepath.Join(p.Workspace, path)), 0o755))
				text := "# a person's"
				if path == ".loom/sandbox.toml" {
					text = ""
				}
				must(t, os.WriteFile(filepath.Join(p.Workspace, path), []byte(text), 0o644))
			}
			for _, host := range hosts.Names() {
				for _, name := range []string{".mcp.json", ".claude", ".codex", ".cursor", ".vscode", ".github/hooks"} {
					must(t, os.RemoveAll(filepath.Join(p.Workspace, name)))
				}
				_, err := installed(t, p.Workspace, "y\n", "install", host)
				must(t, err)
				tree := treeOf(t, p.Workspace, names)
				c.try("system:shell", object{"command": "true"})
				p.forward(t, "guest:echo", "{}")
				if now := treeOf(t, p.Workspace, names); !maps.Equal(now, tree) {
					t.Errorf("after an installation for %s there is %v\nwas %v", host, now, tree)
				}
			}
			tree := treeOf(t, p.Workspace, names)
			c.job("job:stop", object{"job_id": begun.ID})
			if now := treeOf(t, p.Workspace, names); !maps.Equal(now, tree) {
				t.Errorf("behind the job there is %v\nwas %v", now, tree)
			}
			if _, err := os.Lstat(filepath.Join(p.Workspace, ".loom/undone")); err == nil {
				t.Error("something was moved away")
			}
		})
	}
}

// A background job can't change protected paths either, and what it tells names them.
func TestProtectedPathsOfJobs(t *testing.T) {
	t.Parallel()
	protects(t, func(t *testing.T, w *policyWorld, paths []string) {
		before := treeOf(t, w.Workspace, paths)
		c := caller{w.shellWorld, "a", "s1"}
		program := "import os, time\ntry: open('.envrc','w').write('x')\nexcept OSError: pass\ntry: open('.git/hooks/late','w').close()\nexcept OSError: pass\nprint('done', flush=True)\n"
		begun := c.job("system:shell", object{"background": true, "command": "python3", "args": []string{"-c", program + "time.sleep(1000)"}})
		c.untilPrinted(begun.ID, "done")
		if now := treeOf(t, w.Workspace, paths); !maps.Equal(now, before) {
			t.Fatalf("while the job runs there is %v\nbefore %v", now, before)
		}
		c.job("job:stop", object{"job_id": begun.ID})
		begun = c.job("system:shell", object{"background": true, "command": "python3", "args": []string{"-c", program}})
		for range 100 {
			if told := c.job("job:read", object{"job_id": begun.ID, "wait": 10}); told.Status != "running" {
				break
			}
		}
		if now := treeOf(t, w.Workspace, paths); !maps.Equal(now, before) {
			t.Errorf("behind the job there is %v\nbefore %v", now, before)
		}
		if text := c.try("job:list", object{}).GetOutputJson(); !strings.Contains(text, `"refused":[".envrc"`) {
			t.Errorf("the list tells %s", text)
		}
	})
}

// A repository that programs make is theirs: they can set it up and commit to it.
func TestOwnRepository(t *testing.T) {
	t.Parallel()
	eachTier(t, func(t *testing.T, w *shellWorld) {
		got, failure := w.run("shell:run", object{"command": "git init -q . && git config user.email a@b.test && git config user.name a && echo 1 > f && git add f && git commit -qm one && git log --oneline | wc -l"})
		if failure != nil || got.Stdout != "1\n" {
			t.Errorf("got %+v, %v", got, failure)
		}
		if text, err := os.ReadFile(filepath.Join(w.Workspace, ".git/config")); err != nil || !strings.Contains(string(text), "a@b.test") {
			t.Errorf("its settings are %q, %v", text, err)
		}
		got, failure = w.run("shell:run", object{"command": "echo 2 >> f && git commit -qam two && git log --oneline | wc -l"})
		if failure != nil || got.Stdout != "2\n" {
			t.Errorf("then %+v, %v", got, failure)
		}
		// Also one below, by another program later, and to the end.
		if got, failure = w.run("shell:run", object{"command": "git clone -q . below/copy && git -C below/copy status --short && echo cloned"}); failure != nil || got.Stdout != "cloned\n" {
			t.Errorf("a clone: %+v, %v", got, failure)
		}
		if got, failure = w.run("shell:run", object{"command": "git -C below/copy config user.name b && git -C below/copy worktree add -q ../wt && find below -delete && echo gone"}); failure != nil || got.Stdout != "gone\n" {
			t.Errorf("then its end: %+v, %v", got, failure)
		}
	})
}
