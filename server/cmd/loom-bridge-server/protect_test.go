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
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
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
		test(t, w, append(sandbox.Protected(), "keep"))
	})
}

// python runs a program as an agent; its result may tell what was put back.
func (w *policyWorld) python(agent, program string) (restored []string, said string) {
	w.tb.Helper()
	got := w.callAs(agent, "s1", "system:shell", map[string]any{"command": "python3", "args": []string{"-c", "import os, shutil\nW=os.getcwd()\n" + program}})
	var out struct {
		Restored []string `json:"restored"`
		Stderr   string   `json:"stderr"`
	}
	if !got.GetSuccess() {
		return nil, got.GetErrorMessage()
	}
	must(w.tb, json.Unmarshal([]byte(got.GetOutputJson()), &out))
	return out.Restored, out.Stderr
}

// Whatever a program does to protected paths, also to those where nothing is, they are as
// they were behind it, in both tiers; what it made is found where nothing uses it, its result
// and the audit tell of it. File tools refuse the same.
func TestProtectedPathsAreKept(t *testing.T) {
	t.Parallel()
	protects(t, func(t *testing.T, w *policyWorld, paths []string) {
		before := treeOf(t, w.Workspace, paths)
		for _, attack := range []struct {
			program string
			fresh   string // the path that is restored in both tiers; empty: namespaces keep it
		}{
			{"open('.env','w').write('x')", ""},
			{"os.remove('.env')", ""},
			{"open('n','w').close(); os.replace('n','.env')", ""},
			{"os.link('.env','e'); open('e','w').write('x')", ""},
			{"os.chmod('.env', 0o777)", ""},
			{"os.utime('.git/config', (1,1)); open('.git/config','a').write('[core]')", ""},
			{"open('.git/hooks/post-commit','w').write('x')", ""},
			{"shutil.rmtree('.git/hooks')", ""},
			{"os.rename('.git','g')", ""},
			{"os.rename('.git','g2'); os.symlink('g2','.git')", ""},
			{"os.chmod('.git/hooks', 0); os.chmod('.git', 0)", ""},
			{"shutil.rmtree('keep'); open('keep','w').close()", ""},
			{"open('keep/deep/h','w').close()", ""},
			{"os.rename('keep/deep','keep/d')", ""},
			{"open('.envrc','w').write('x')", ".envrc"},
			{"os.makedirs('.vscode/a/b'); open('.vscode/a/b/c','w').close(); os.chmod('.vscode/a', 0)", ".vscode"},
			{"os.symlink('/etc/passwd','.bashrc')", ".bashrc"},
			{"os.mkfifo('.mcp.json')", ".mcp.json"},
			{"open('.git/commondir','w').write('../evil')", ".git/commondir"},
			{"os.remove('.profile'); open('.profile','w').write('x')", ".profile"},
			{"os.makedirs('.loom', exist_ok=True); open('.loom/sandbox.toml','w').write('x')", ".loom/sandbox.toml"},
			{"open('.zshrc','w').close()\ntry: os.rename('.loom','l'); os.symlink('/tmp','.loom')\nexcept OSError: pass", ".zshrc"},
			{"open('.claude','w').close(); os.chmod(W, 0o555)", ".claude"},
			{"os.remove('.profile'); open('.profile','w').write('x')", ".profile"},
		} {
			restored, said := w.python("a", attack.program)
			if now := treeOf(t, w.Workspace, paths); !maps.Equal(now, before) {
				t.Fatalf("after %s there is %v\nbefore %v", attack.program, now, before)
			}
			fresh := attack.fresh
			if fresh != "" && !slices.Contains(restored, fresh) || fresh == "" && w.tier == "landlock" && len(restored) == 0 {
				t.Errorf("%s: restored %v, %q", attack.program, restored, said)
			}
			if fresh == "" && w.tier == "namespaces" && len(restored) > 0 {
				t.Errorf("%s: namespaces let it, restored %v", attack.program, restored)
			}
		}
		if text, err := os.ReadFile(filepath.Join(w.Workspace, ".loom/undone/.profile")); err != nil || string(text) != "x" {
			t.Errorf("what was taken away: %q, %v", text, err)
		}
		for _, path := range []string{".env", ".envrc", ".vscode/settings.json", "keep/new", ".git/hooks/x", ".git/commondir"} {
			if got := w.callAs("a", "s1", "fs:write_file", map[string]any{"path": path, "content": "x"}); !strings.HasPrefix(got.GetErrorMessage(), "Permission denied") {
				t.Errorf("a file tool wrote %s: %v", path, got)
			}
		}
		list, err := w.tools().ListAudit(t.Context(), &loombridgev1.ListAuditRequest{AgentId: "x", CallerId: "a", Tool: "workspace:restore", PageSize: 100})
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

// What a background job does to protected paths is undone while it runs, and at its end.
func TestProtectedPathsOfJobs(t *testing.T) {
	t.Parallel()
	protects(t, func(t *testing.T, w *policyWorld, paths []string) {
		before := treeOf(t, w.Workspace, paths)
		c := caller{w.shellWorld, "a", "s1"}
		program := "import os, time\nopen('.envrc','w').write('x')\ntry: open('.git/hooks/late','w').close()\nexcept OSError: pass\nprint('done', flush=True)\n"
		begun := c.job("system:shell", object{"background": true, "command": "python3", "args": []string{"-c", program + "time.sleep(1000)"}})
		c.untilPrinted(begun.ID, "done")
		for end := time.Now().Add(20 * time.Second); !maps.Equal(treeOf(t, w.Workspace, paths), before); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("while the job runs there is %v\nbefore %v", treeOf(t, w.Workspace, paths), before)
			}
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
		if text := c.try("job:list", object{}).GetOutputJson(); !strings.Contains(text, `"restored":[".envrc"`) && !strings.Contains(text, `".envrc"]`) {
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
	})
}

// What a program does to protected paths while the server is killed is put back when it
// starts again, and the audit tells of it. A folder that took the workspace's place, and one
// that is gone, are left alone.
func TestProtectedPathsOfAKilledServer(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"namespaces", "landlock"} {
		t.Run(tier, func(t *testing.T) {
			dir, store := t.TempDir(), filepath.Join(t.TempDir(), "store")
			args := []string{"--data-dir", store, "--workspace", dir, "--sandbox-tier", tier, "--shell-allow", "python3"}
			for name, text := range map[string]string{".git/config": "c", ".git/hooks/pre-commit": "h", ".git/HEAD": "x", ".env": "e"} {
				must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
				must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755)) //nolint:gosec // hooks are run
			}
			before := treeOf(t, dir, sandbox.Protected())
			for range 3 {
				c := MustStartChild(t, dir, args...)
				w := &shellWorld{t, &process{conn: MustDial(t, c.Address), Workspace: dir}, tier}
				if s := w.status().GetSandbox(); s.GetTier() != tier {
					lacks(t, tier, s.GetProblems())
				}
				program := "import os\nwhile True:\n  for p in ('.envrc','.git/hooks/pre-commit','.git/hooks/late'):\n    try: open(p,'w').write('evil')\n    except OSError: pass\n"
				(caller{w, "a", "s1"}).job("system:shell", object{"background": true, "command": "python3", "args": []string{"-c", program}})
				eventually(t, waitTime, func() error {
					_, err := os.Stat(filepath.Join(dir, ".envrc"))
					return err
				})
				must(t, c.Process.Kill())
				_ = c.Wait()
			}
			p := MustRunIn(t, noEnvironment, append([]string{"--addr", "127.0.0.1:0"}, args...)...)
			if now := treeOf(t, dir, sandbox.Protected()); !maps.Equal(now, before) {
				t.Errorf("behind the killed server there is %v\nbefore %v", now, before)
			}
			list, err := loombridgev1.NewToolServiceClient(p.conn).ListAudit(t.Context(), &loombridgev1.ListAuditRequest{AgentId: "x", CallerId: "a", Tool: "workspace:restore", PageSize: 100})
			must(t, err)
			if text := fmt.Sprint(list.GetRecords()); !strings.Contains(text, ".envrc") {
				t.Errorf("the audit has %s", text)
			}
			left, err := os.ReadDir(filepath.Join(store, "protect"))
			must(t, err)
			if len(left) > 0 {
				t.Errorf("the journal still has %v", left)
			}
		})
	}
}
