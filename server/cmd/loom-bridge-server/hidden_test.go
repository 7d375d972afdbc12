package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const hiddenText = "what nobody may read"

// A path that a profile hides is seen by no file tool and, where namespaces hold programs, by
// no program: under no other name, from nowhere outside, and not after its folder was to be
// moved. Nothing of it is changed.
func TestHiddenPaths(t *testing.T) {
	t.Parallel()
	eachPolicyTier(t, "[profile.work]\nhide = [\"secrets\", \"deep/er/key.pem\", \"door\"]\nhide_best_effort = true\nwrite = [\"$OUT/write\"]\n", func(t *testing.T, w *policyWorld) {
		for name, text := range map[string]string{
			"secrets/f": hiddenText, "secrets/s.py": "print(1) # " + hiddenText, "deep/er/key.pem": hiddenText, "deep/er/open": "seen", "room/f": hiddenText, "open": "seen",
		} {
			w.write(name, text)
		}
		for link, to := range map[string]string{"alias": "secrets", "deep/key": "er/key.pem", "door": "room"} {
			must(t, os.Symlink(to, filepath.Join(w.Workspace, link)))
		}
		home := filepath.Join(w.outside, "write", "home-"+w.tier)
		must(t, os.Symlink(w.Workspace, home))
		// The name of the link is hidden, not what it leads to.
		hidden := []string{"secrets", "deep/er/key.pem"}
		before := treeOf(t, w.Workspace, hidden)

		for _, path := range []string{
			"secrets/f", "secrets", "./secrets//f", "open/../secrets/f", "alias/f", "alias", "deep/er/key.pem", "deep/key", "door/f", "secrets/new",
			w.Workspace + "/secrets/f", home + "/secrets/f", home + "/alias/f", home + "/deep/er/key.pem", "/proc/self/cwd/" + w.Workspace + "/secrets/f",
		} {
			for tool, more := range map[string]object{
				"fs:read_file": nil, "fs:stat": nil, "fs:list_dir": nil, "fs:delete": nil, "fs:write_file": {"content": "x"},
				"fs:edit_file": {"old_text": "what", "new_text": "x", "edits": []any{object{"old_text": "what", "new_text": "x"}}}, "python:run_script": nil,
			} {
				args := object{"path": path}
				for name, value := range more {
					args[name] = value
				}
				got := w.callAs("a", "s1", tool, args)
				if said := got.GetOutputJson() + got.GetErrorMessage(); got.GetSuccess() || strings.Contains(said, "nobody may read") {
					t.Errorf("%s %s: %s", tool, path, said)
				} else if tool == "fs:read_file" && !strings.HasPrefix(path, "/proc") && !strings.HasSuffix(said, "is hidden") {
					t.Errorf("%s %s does not say why: %s", tool, path, said)
				}
			}
		}
		for _, path := range []string{".", "deep/er", home} {
			got := w.callAs("a", "s1", "fs:list_dir", object{"path": path, "recursive": true})
			if said := got.GetOutputJson() + got.GetErrorMessage(); strings.Contains(said, "secrets") || strings.Contains(said, "key.pem") || strings.Contains(said, "door") {
				t.Errorf("%s lists %s", path, said)
			}
		}
		if got := w.callAs("a", "s1", "fs:read_file", object{"path": home + "/open"}); !strings.Contains(got.GetOutputJson(), "seen") {
			t.Errorf("what is not hidden, from outside: %v", got)
		}
		if got := w.callAs("a", "s1", "system:shell", object{"command": "ls", "cwd": "secrets"}); got.GetSuccess() {
			t.Errorf("a command ran in a hidden folder: %v", got)
		}
		if got := w.sh("a", "cat deep/er/open"); !strings.Contains(got, "seen") {
			t.Errorf("beside what is hidden a program saw %q", got)
		}
		if w.tier == "namespaces" {
			for _, line := range []string{
				"cat secrets/f", "cat alias/f deep/key deep/er/key.pem", "cat $OUT/write/home-namespaces/secrets/f", "cat /proc/self/cwd/secrets/f", "cp -r . $OUT/write/copy; cat $OUT/write/copy/secrets/f",
				"mv secrets s2; cat s2/f", "mv deep d2; cat d2/er/key.pem", "mv deep/er deep/e; cat deep/e/key.pem", "ln secrets/f l; ln deep/er/key.pem l2; cat l l2", "rm -rf secrets deep",
				"echo x > secrets/new; echo x > deep/er/key.pem", "umount secrets; cat secrets/f",
				`python3 -c "import os; fd=os.open('.', os.O_PATH); print(os.popen('cat /proc/%d/fd/%d/secrets/f' % (os.getpid(), fd)).read())"`,
			} {
				if got := w.sh("a", line); strings.Contains(got, "nobody may read") {
					t.Errorf("%s: %s", line, got)
				}
				// A second program finds nothing that the first one moved.
				if got := w.sh("a", "cat s2/f d2/er/key.pem deep/e/key.pem l l2 secrets/f"); strings.Contains(got, "nobody may read") {
					t.Errorf("after %s: %s", line, got)
				}
			}
		}
		if now := treeOf(t, w.Workspace, hidden); len(now) != len(before) {
			t.Errorf("there is %v, was %v", now, before)
		} else {
			for name, was := range before {
				if now[name] != was {
					t.Errorf("%s is %s, was %s", name, now[name], was)
				}
			}
		}
	})
}

// childrenFile binds three parents: one never asks, one asks for everything, one only reads.
const childrenFile = `
[profile.wide]
mode = "open"
write = ["$OUT"]

[[bind]]
agent = "never"
approval = "never"
[[bind]]
agent = "strict"
approval = "always"
[[bind]]
agent = "reader"
profile = "read"
[[bind]]
agent = "child-*"
profile = "wide"
approval = "on-leave"
`

// A child has at most what its parents have: no question that they may not ask is asked for
// it, what they need a person for it needs one for, and what a person let an agent of its
// name do before it stood under them does not come to it. So also after a restart, whomever the
// child says that it belongs to.
func TestAChildsApprovalsAreAtMostItsParents(t *testing.T) {
	t.Parallel()
	out, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	dir, store, workspace := t.TempDir(), filepath.Join(t.TempDir(), "store"), t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "loom.toml"), []byte(strings.ReplaceAll(childrenFile, "$OUT", out+"/given")), 0o600))
	must(t, os.WriteFile(filepath.Join(out, "f"), []byte("text"), 0o644))
	must(t, os.Mkdir(filepath.Join(out, "given"), 0o755))
	start := func() *policyWorld {
		p := MustRunIn(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", store, "--workspace", workspace, "--config", filepath.Join(dir, "loom.toml"))
		return &policyWorld{&shellWorld{t, p, ""}, out}
	}
	w := start()
	watch := MustWatch(t, w.process)
	read := object{"path": out + "/f"}
	// asked says something to the next question, which must be about an agent.
	asked := func(agent string, say loombridgev1.ApprovalDecision) {
		t.Helper()
		pending := MustPending(t, watch)
		if pending.GetAgentId() != agent {
			t.Fatalf("asked for %v, want one of %s", pending, agent)
		}
		must(t, w.answer(t, pending.GetId(), say))
	}
	// These are given something before they stand under a parent.
	for agent, say := range map[string]loombridgev1.ApprovalDecision{"child-agent": sayAgent, "child-session": saySession} {
		for range 2 { // the second time nobody is asked
			waits := w.later(agent, "s1", "fs:read_file", read)
			if say != sayOnce {
				asked(agent, say)
				say = sayOnce
			}
			if got := <-waits; !got.GetSuccess() {
				t.Fatalf("%s: %v", agent, got)
			}
		}
	}
	attach := func(child, parent string) {
		t.Helper()
		stream, err := w.bridge().Attach(t.Context())
		must(t, err)
		must(t, stream.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Hello{Hello: &loombridgev1.AttachHello{AgentId: child, ParentId: parent}}}))
		_, err = stream.Recv()
		must(t, err)
	}
	attach("child-agent", "parent")
	attach("child-session", "parent")
	for child, parent := range map[string]string{"child-never": "never", "child-strict": "strict", "child-reader": "reader"} {
		_, err := contexts.New(w.conn).SpawnAgent(t.Context(), &loombridgev1.SpawnAgentRequest{
			AgentId: parent, ChildId: child, Goal: "g", SessionId: "s1",
		})
		must(t, err)
	}
	_, err = contexts.New(w.conn).SpawnAgent(t.Context(), &loombridgev1.SpawnAgentRequest{AgentId: "child-never", ChildId: "child-grand", Goal: "g", SessionId: "s1"})
	must(t, err)
	for _, agent := range []string{"child-agent", "child-session"} {
		waits := w.later(agent, "s1", "fs:read_file", read)
		asked(agent, sayNo)
		if got := <-waits; got.GetSuccess() {
			t.Errorf("%s did what an agent of its name was allowed: %v", agent, got)
		}
		waits = w.later(agent, "s1", "fs:read_file", read)
		asked(agent, sayAgent)
		if got := <-waits; !got.GetSuccess() {
			t.Errorf("%s: %v", agent, got)
		}
		if got := w.callAs(agent, "s1", "fs:read_file", read); !got.GetSuccess() {
			t.Errorf("%s was allowed under its parent, and is not: %v", agent, got)
		}
	}
	held := func(w *policyWorld) {
		t.Helper()
		for _, agent := range []string{"child-never", "child-grand"} {
			if got := w.callAs(agent, "s1", "fs:read_file", read); got.GetSuccess() || got.GetErrorMessage() != "Permission denied: Path traversal detected" {
				t.Errorf("%s: %v", agent, got)
			}
			if got := profileText(w.profile(agent, "fs:read_file"), "approval"); !strings.Contains(got, "never") {
				t.Errorf("%s has the approval %q", agent, got)
			}
		}
		if p := w.profile("child-reader", "shell:run"); profileText(p, "mode") != "read" || len(profileList(p, "write")) > 0 {
			t.Errorf("below a reader: %v", p)
		}
		for _, path := range []string{"f", out + "/given/f"} {
			if got := w.callAs("child-reader", "s1", "fs:write_file", object{"path": path, "content": "x"}); got.GetSuccess() || !strings.HasPrefix(got.GetErrorMessage(), "Permission denied") {
				t.Errorf("the child of a reader wrote %s: %v", path, got)
			}
		}
	}
	held(w)
	waits := w.later("child-strict", "s1", "fs:list_dir", object{"path": "."})
	asked("child-strict", sayNo)
	if got := <-waits; got.GetSuccess() {
		t.Errorf("nobody allowed it: %v", got)
	}
	attach("child-reader", "boss")
	held(w)
	must(t, w.Stop())
	w = start()
	held(w)
	if got := w.callAs("child-strict", "s1", "fs:list_dir", object{"path": "."}); got.GetSuccess() {
		t.Errorf("nobody watches, and it ran: %v", got)
	}
	if got := w.callAs("child-agent", "s1", "fs:read_file", read); !got.GetSuccess() {
		t.Errorf("what is remembered under the parent is gone: %v", got)
	}
}
