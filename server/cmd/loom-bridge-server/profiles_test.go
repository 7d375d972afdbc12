package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// policyWorld is a server with profiles, and folders outside of its workspace.
type policyWorld struct {
	*shellWorld
	outside string
}

// eachPolicyTier is eachTier with a settings file, in which $OUT is a folder outside of the
// workspace with the folders read and write, each with a file f.
func eachPolicyTier(t *testing.T, settings string, test func(t *testing.T, w *policyWorld)) {
	t.Helper()
	out, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for _, name := range []string{"read", "write", "secret"} {
		must(t, os.MkdirAll(filepath.Join(out, name), 0o755))
		must(t, os.WriteFile(filepath.Join(out, name, "f"), []byte("text of "+name), 0o644))
	}
	file := filepath.Join(t.TempDir(), "loom.toml")
	must(t, os.WriteFile(file, []byte(strings.ReplaceAll(settings, "$OUT", out)), 0o600))
	eachTier(t, func(t *testing.T, w *shellWorld) { test(t, &policyWorld{w, out}) }, "--config", file,
		"--shell-allow", "cat,echo,ls,rm,mv,cp,ln,mkdir,sleep,true,python3")
}

// callAs calls a tool for an agent, and returns its answer when it has come.
func (w *shellWorld) callAs(agent, session, name string, args map[string]any) *loombridgev1.ToolResponse {
	w.tb.Helper()
	text, err := json.Marshal(args)
	must(w.tb, err)
	got, err := w.bridge().Tool(convert.AskText(context.WithoutCancel(w.tb.Context())), &loombridgev1.ToolRequest{
		AgentId: agent, SessionId: session, Name: name, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: string(text)},
	})
	if err != nil {
		return &loombridgev1.ToolResponse{ErrorMessage: err.Error()}
	}
	return got
}

// sh runs a line of the shell for an agent, and returns what it wrote, both streams, or why
// it was refused.
func (w *policyWorld) sh(agent, line string) string {
	w.tb.Helper()
	got := w.callAs(agent, "s1", "shell:run", map[string]any{"command": strings.ReplaceAll(line, "$OUT", w.outside)})
	if !got.GetSuccess() {
		return got.GetErrorMessage()
	}
	var p printed
	must(w.tb, json.Unmarshal([]byte(got.GetOutputJson()), &p))
	return p.Stdout + p.Stderr
}

func (w *shellWorld) write(name, text string) {
	w.tb.Helper()
	place := filepath.Join(w.Workspace, name)
	must(w.tb, os.MkdirAll(filepath.Dir(place), 0o755))
	must(w.tb, os.WriteFile(place, []byte(text), 0o644))
}

func (w *shellWorld) profile(agent, tool string) *loombridgev1.ToolProfile {
	w.tb.Helper()
	got, err := w.tools().ListTools(w.tb.Context(), &loombridgev1.ListToolsRequest{AgentId: agent, Tool: tool})
	must(w.tb, err)
	return got.GetProfile()
}

func profileText(p *loombridgev1.ToolProfile, name string) string {
	return p.GetRules().GetFields()[name].GetStringValue()
}

func profileList(p *loombridgev1.ToolProfile, name string) []*structpb.Value {
	return p.GetRules().GetFields()[name].GetListValue().GetValues()
}

func profileLimit(p *loombridgev1.ToolProfile, name string) int64 {
	return int64(p.GetRules().GetFields()["limits"].GetStructValue().GetFields()[name].GetNumberValue())
}

// Programs and file tools keep to the profile that their call is bound to, in both tiers;
// status and audit name it.
func TestProfiles(t *testing.T) {
	t.Parallel()
	eachPolicyTier(t, `
[profile.tools]
read = ["$OUT/read"]
write = ["$OUT/write"]
protect = ["keep"]
environment = { COLOUR = "blue" }

[profile.brief]
extends = "tools"
limits = { wall = "500ms" }

[[bind]]
agent = "brief"
profile = "brief"
[[bind]]
agent = "reader*"
profile = "read"
[[bind]]
agent = "builder"
profile = "tools"
`, func(t *testing.T, w *policyWorld) {
		w.write("keep/f", "kept")
		for line, want := range map[string]string{
			"cat $OUT/read/f": "text of read",
			"echo x > $OUT/read/g; ls $OUT/read/g || echo absent": "absent",
			"cat $OUT/write/f":                          "text of write",
			"echo new > $OUT/write/n; cat $OUT/write/n": "new",
			"cat $OUT/secret/f || echo absent":          "absent",
			"echo $COLOUR":                              "blue",
			"echo x > made; cat made":                   "x",
		} {
			if got := w.sh("builder", line); !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q", line, got, want)
			}
		}
		if got := w.sh("brief", "sleep 20; echo awake"); strings.Contains(got, "awake") {
			t.Errorf("the wall limit let it run: %q", got)
		}
		for line, want := range map[string]string{
			"cat made": "x", "echo y > made; cat made": "x", "cat $OUT/read/f || echo absent": "absent", "echo colour=$COLOUR": "colour=\n",
		} {
			if got := w.sh("reader-1", line); !strings.Contains(got, want) {
				t.Errorf("reader: %s: %q, want %q", line, got, want)
			}
		}
		files := []struct{ agent, tool, path, want string }{
			{"builder", "fs:read_file", w.outside + "/read/f", "text of read"},
			{"builder", "fs:list_dir", w.outside + "/write", `"name":"n"`},
			{"builder", "fs:write_file", w.outside + "/write/o", `"path":"` + w.outside + `/write/o"`},
			{"builder", "fs:write_file", w.outside + "/read/o", "Permission denied: Path traversal detected"},
			{"builder", "fs:read_file", w.outside + "/secret/f", "Permission denied: Path traversal detected"},
			{"builder", "fs:read_file", w.outside + "/read/../secret/f", "Permission denied: Path traversal detected"},
			{"builder", "fs:write_file", "keep/f", "Permission denied: keep is protected from changes"},
			{"builder", "fs:write_file", "keep/new/g", "Permission denied"},
			{"builder", "fs:delete", "keep/f", "Permission denied"},
			{"builder", "fs:read_file", "keep/f", "kept"},
			{"reader-1", "fs:read_file", "made", "x"},
			{"reader-1", "fs:write_file", "made", "Permission denied: the profile read lets nothing be changed"},
			{"reader-1", "fs:read_file", w.outside + "/read/f", "Permission denied: Path traversal detected"},
			{"nobody", "fs:read_file", w.outside + "/read/f", "Permission denied: Path traversal detected"},
		}
		for _, f := range files {
			args := map[string]any{"path": f.path}
			if f.tool == "fs:write_file" {
				args["content"] = "c"
			}
			got := w.callAs(f.agent, "s1", f.tool, args)
			if said := got.GetOutputJson() + got.GetErrorMessage(); !strings.Contains(said, f.want) {
				t.Errorf("%s: %s %s: %q, want %q", f.agent, f.tool, f.path, said, f.want)
			}
		}
		list, err := w.tools().ListAudit(t.Context(), &loombridgev1.ListAuditRequest{AgentId: "x", CallerId: "builder", Tool: "shell:run", PageSize: 1})
		must(t, err)
		if r := list.GetRecords()[0]; r.GetProfile() != "tools" || r.GetTier() != w.tier {
			t.Errorf("the audit has the profile %q and the tier %q: %v", r.GetProfile(), r.GetTier(), r)
		}
	})
}

// The file of a workspace takes away what it says; what would give more is refused, told and
// logged, and changes nothing. Tools can't write it.
func TestWorkspaceFileOnlyNarrows(t *testing.T) {
	t.Parallel()
	eachPolicyTier(t, "[profile.work]\nread = [\"$OUT/read\", \"$OUT/write\"]\nlimits = { processes = 64 }\n", func(t *testing.T, w *policyWorld) {
		narrow := `
mode = "open"
write = ["` + w.outside + `/write"]
read = ["` + w.outside + `/read"]
protect = ["keep"]
environment = { A = "b" }
extends = "off"
limits = { processes = 128, memory = "64MiB" }
[[allow]]
host = "example.com"
`
		w.write(".loom/sandbox.toml", narrow)
		w.write("keep/f", "kept")
		got := w.profile("a", "shell:run")
		refused := map[string]int32{}
		for _, r := range got.GetRefused() {
			refused[r.GetKey()] = r.GetLine()
			if r.GetReason() == "" {
				t.Errorf("%s has no reason", r.GetKey())
			}
			w.told(t, "key="+regexp.QuoteMeta(r.GetKey()))
		}
		for key, line := range map[string]int32{"mode": 2, "write": 3, "environment": 6, "extends": 7, "limits.processes": 8, "allow[0]": 9} {
			if refused[key] != line {
				t.Errorf("%s, line %d, is not refused: %v", key, line, got.GetRefused())
			}
		}
		p := got
		if len(refused) != 6 || profileText(p, "mode") != "work" || len(profileList(p, "write")) != 0 || len(profileList(p, "read")) != 1 || len(profileList(p, "environment")) != 0 ||
			profileLimit(p, "processes") != 64 || profileLimit(p, "memory") != 64<<20 {
			t.Errorf("profile %v, refused %v", p, refused)
		}
		if said := w.sh("a", "cat $OUT/read/f; cat $OUT/write/f || echo absent"); !strings.Contains(said, "text of read") || !strings.Contains(said, "absent") {
			t.Errorf("narrowed, and %q", said)
		}
		for _, line := range []string{
			"echo > .loom/sandbox.toml", "rm -rf .loom", "mv .loom away; mkdir .loom; echo > .loom/sandbox.toml", "ln -sf /dev/null .loom/sandbox.toml",
			"cp .loom/sandbox.toml c; mv c .loom/sandbox.toml",
		} {
			w.sh("a", line)
			left, err := os.ReadFile(filepath.Join(w.Workspace, ".loom/sandbox.toml"))
			if err != nil || string(left) != narrow {
				t.Errorf("%s: %v %q", line, err, left)
			}
		}
		for _, path := range []string{".loom/sandbox.toml", "./.loom//sandbox.toml", "keep/../.loom/sandbox.toml"} {
			if got := w.callAs("a", "s1", "fs:write_file", map[string]any{"path": path, "content": ""}); got.GetSuccess() {
				t.Errorf("a tool wrote %s", path)
			}
		}
		must(t, os.Remove(filepath.Join(w.Workspace, ".loom/sandbox.toml")))
		w.sh("a", "mkdir -p .loom; echo 'mode = \"read\"' > .loom/sandbox.toml")
		if p := w.profile("a", "shell:run"); profileText(p, "mode") != "work" || len(profileList(p, "read")) != 2 {
			t.Errorf("a program made the file: %v", p)
		}
	})
}

// A file of a workspace that can't be trusted or understood stops its tools until it is
// mended.
func TestWorkspaceFileThatIsNone(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir())
	w := &shellWorld{tb: t, process: p}
	place := filepath.Join(w.Workspace, ".loom/sandbox.toml")
	must(t, os.MkdirAll(filepath.Dir(place), 0o755))
	w.write("real.toml", `mode = "read"`)
	for what, c := range map[string]struct {
		make func() error
		want string
	}{
		"link":    {func() error { return os.Symlink("../real.toml", place) }, "is a link"},
		"pipe":    {func() error { return syscall.Mkfifo(place, 0o644) }, "is no regular file"},
		"folder":  {func() error { return os.Mkdir(place, 0o755) }, "is no regular file"},
		"name":    {func() error { return os.Link(filepath.Join(w.Workspace, "real.toml"), place) }, "hard link"},
		"size":    {func() error { return os.WriteFile(place, []byte(strings.Repeat("#", 64<<10+1)), 0o644) }, "at most 65536 are read"},
		"no TOML": {func() error { return os.WriteFile(place, []byte("mode = "), 0o644) }, "line 1"},
		"key":     {func() error { return os.WriteFile(place, []byte("\nmod = \"read\""), 0o644) }, `line 2: mod: there is no such key, nearest is "mode"`},
		"mode":    {func() error { return os.WriteFile(place, []byte("mode = \"reed\""), 0o644) }, `"reed" is not read, work, net, open or off`},
	} {
		must(t, c.make())
		got := w.callAs("a", "s1", "fs:stat", map[string]any{"path": "real.toml"})
		if got.GetSuccess() || !strings.HasPrefix(got.GetErrorMessage(), "Permission denied: ") || !strings.Contains(got.GetErrorMessage(), c.want) {
			t.Errorf("%s: %q, want %q", what, got.GetErrorMessage(), c.want)
		}
		if problem := w.profile("a", "fs:stat").GetProblem(); !strings.Contains(problem, c.want) {
			t.Errorf("%s: problem %q", what, problem)
		}
		must(t, os.RemoveAll(place))
		if got := w.callAs("a", "s1", "fs:stat", map[string]any{"path": "real.toml"}); !got.GetSuccess() {
			t.Errorf("%s was mended, and %q", what, got.GetErrorMessage())
		}
	}
}

// A child of an agent has at most what its parent has, whatever it is bound to itself.
func TestAChildHasAtMostItsParents(t *testing.T) {
	t.Parallel()
	eachPolicyTier(t, `
[profile.wide]
write = ["$OUT/write"]
environment = { A = "1" }
[[bind]]
agent = "child*"
profile = "wide"
[[bind]]
agent = "lead"
profile = "read"
`, func(t *testing.T, w *policyWorld) {
		if p := w.profile("child", "shell:run"); profileText(p, "name") != "wide" || profileText(p, "mode") != "work" || len(profileList(p, "write")) != 1 {
			t.Errorf("without a parent: %v", p)
		}
		for child, parent := range map[string]string{"child": "between", "between": "lead"} {
			stream, err := w.bridge().Attach(t.Context())
			must(t, err)
			must(t, stream.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Hello{Hello: &loombridgev1.AttachHello{AgentId: child, ParentId: parent}}}))
			_, err = stream.Recv()
			must(t, err)
		}
		if p := w.profile("child", "shell:run"); profileText(p, "name") != "wide&work&read" || profileText(p, "mode") != "read" || len(profileList(p, "write"))+len(profileList(p, "environment")) != 0 {
			t.Errorf("below a reader: %v", p)
		}
		if got := w.sh("child", "echo x > made; echo x > $OUT/write/made; ls made $OUT/write/made; echo a=$A"); !strings.Contains(got, "a=\n") {
			t.Errorf("below a reader: %q", got)
		}
		for _, place := range []string{filepath.Join(w.Workspace, "made"), filepath.Join(w.outside, "write/made")} {
			if _, err := os.Stat(place); err == nil {
				t.Errorf("the child of a reader made %s", place)
			}
		}
	})
}
