package hosts_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"github.com/loom-bridge/loom-bridge/bridge/protect/commands"
	"github.com/loom-bridge/loom-bridge/server/hosts"
)

// folders are the places of an installation, all new.
func folders(tb testing.TB) (places hosts.Places, kept string) {
	tb.Helper()
	dir := tb.TempDir()
	places = hosts.Places{Project: filepath.Join(dir, "project"), Home: filepath.Join(dir, "home"), Config: filepath.Join(dir, "config")}
	for _, folder := range []string{places.Project, places.Home, places.Config} {
		must(tb, os.Mkdir(folder, 0o700))
	}
	return places, filepath.Join(dir, "state", "kept")
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func write(tb testing.TB, path, text string) {
	tb.Helper()
	must(tb, os.MkdirAll(filepath.Dir(path), 0o700))
	must(tb, os.WriteFile(path, []byte(text), 0o640))
}

// tree is every file below a folder.
func tree(tb testing.TB, folder string) map[string]string {
	tb.Helper()
	all := map[string]string{}
	must(tb, filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			text, err := os.ReadFile(path)
			must(tb, err)
			all[strings.TrimPrefix(path, folder+"/")] = string(text)
		} else if err == nil && path != folder {
			all[strings.TrimPrefix(path, folder+"/")+"/"] = ""
		}
		return err
	}))
	return all
}

func same(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for name, text := range a {
		if other, ok := b[name]; !ok || other != text {
			return false
		}
	}
	return true
}

func apply(tb testing.TB, i hosts.Install, kept string) (diff string) {
	tb.Helper()
	changes, err := i.Changes(kept)
	must(tb, err)
	for _, c := range changes {
		diff += c.Diff()
		must(tb, c.Apply())
	}
	return diff
}

func undo(tb testing.TB, i hosts.Install, kept string) {
	tb.Helper()
	changes, err := i.Removals(kept)
	must(tb, err)
	for _, c := range changes {
		must(tb, c.Undo())
	}
}

// What a host has already, in all the ways in which people write it.
var already = map[string][]string{
	"claude-code": {
		"", "{}", "{ }\n", "{\n\t\"mcpServers\": {\n\t\t\"other\": {\"command\": \"x\"}\n\t}\n}",
		"{\"mcpServers\":{\"other\":{\"command\":\"a&b\",\"n\":12345678901234567890}},\"z\":1,\"a\":[1,2]}",
		"{\r\n    \"mcpServers\": {},\r\n    \"keep\": \"é\\u00e9\"\r\n}\r\n",
		"{\n  \"hooks\": {\"PostToolUse\": [{\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"mine hook claude-code-x PostToolUse\"}]}], \"Stop\": []}\n}\n",
	},
	"codex": {
		"", "model = \"gpt\"", "# a comment\nmodel = \"gpt\" # another\n\n[mcp_servers.docs]\ncommand = \"docs\"\n\n\n",
		"text = \"\"\"\n[mcp_servers.loom-bridge]\n\"\"\"\n", "[mcp_servers]\n[profiles.x]\nmodel = \"y\"\n",
	},
	"cursor": {"", "{\"version\": 1, \"hooks\": {\"stop\": [{\"command\": \"other\"}]}}\n"},
	"vscode": {
		"", "{\n  // what the team uses\n  \"servers\": {\n    \"docs\": {\"url\": \"https://docs\"}, // the manual\n  },\n  /* keys */ \"inputs\": [],\n}\n",
		"{\n  \"servers\": {\n    \"docs\": {} // no comma\n  }\n}\n", "// only a comment\n{\n  // inside\n}\n",
	},
}

// files are the names of a host's files in a project, that of the servers first.
var files = map[string][2]string{
	"claude-code": {".mcp.json", ".claude/settings.json"}, "codex": {".codex/config.toml", ".codex/hooks.json"},
	"cursor": {".cursor/mcp.json", ".cursor/hooks.json"}, "vscode": {".vscode/mcp.json", ".github/hooks/loom-bridge.json"},
}

func decode(tb testing.TB, name, text string) map[string]any {
	tb.Helper()
	out := map[string]any{}
	if strings.HasSuffix(name, ".toml") {
		must(tb, toml.Unmarshal([]byte(text), &out))
		return out
	}
	plain, err := hujson.Standardize([]byte(text))
	must(tb, err)
	must(tb, json.Unmarshal(plain, &out))
	return out
}

// An installation is in the file as its host reads it, changes no line of others, does
// nothing the second time, and goes away without a trace.
func TestInstallAndUndo(t *testing.T) {
	for host, texts := range already {
		for n, text := range texts {
			for which, name := range files[host] {
				if which == 1 && host == "codex" && text != "" {
					continue // its hooks are JSON, as Claude Code's
				}
				places, kept := folders(t)
				if n > 0 {
					write(t, filepath.Join(places.Project, name), text)
				}
				before := tree(t, places.Project)
				i := hosts.Install{Host: host, Scope: hosts.Project, Places: places, Program: []string{"/opt/a b/loom-bridge-server"}, Arguments: []string{"--agent", "it's me"}}
				diff := apply(t, i, kept)
				after := tree(t, places.Project)
				installed(t, host, after)
				if !contains(after[name], text) {
					t.Errorf("%s %d: something of %q is gone from\n%s", host, n, text, after[name])
				}
				if !strings.Contains(diff, "+++ "+filepath.Join(places.Project, name)) || !strings.Contains(diff, "hook "+host) {
					t.Errorf("%s %d: shown as\n%s", host, n, diff)
				}
				if again := apply(t, i, kept); again != "" || !same(after, tree(t, places.Project)) {
					t.Errorf("%s %d: the second time it writes\n%s", host, n, again)
				}
				undo(t, i, kept)
				if got := tree(t, places.Project); !same(before, got) {
					t.Errorf("%s %d: after it was undone there is %q, before %q", host, n, got, before)
				}
				if left := tree(t, kept); len(left) != 0 {
					t.Errorf("%s %d: kept on %v", host, n, left)
				}
			}
		}
	}
}

// contains reports whether all of a text is in a longer one, in its order, but for blanks
// and commas.
func contains(long, text string) bool {
	rest := []byte(long)
	for _, c := range []byte(text) {
		if strings.IndexByte(" \t\r\n,", c) >= 0 {
			continue
		}
		at := bytes.IndexByte(rest, c)
		if at < 0 {
			return false
		}
		rest = rest[at+1:]
	}
	return true
}

// installed checks that a host finds the server and every hook.
func installed(t *testing.T, host string, all map[string]string) {
	t.Helper()
	servers := decode(t, files[host][0], all[files[host][0]])
	list := map[string]string{"claude-code": "mcpServers", "codex": "mcp_servers", "cursor": "mcpServers", "vscode": "servers"}[host]
	entry, ok := servers[list].(map[string]any)[hosts.Server].(map[string]any)
	if !ok || entry["command"] != "/opt/a b/loom-bridge-server" {
		t.Errorf("%s: its server is %v", host, entry)
	}
	if args, _ := json.Marshal(entry["args"]); !strings.HasPrefix(string(args), `["mcp",`) || !strings.HasSuffix(string(args), `"--agent","it's me"]`) {
		t.Errorf("%s: its arguments are %s", host, args)
	}
	hooks := decode(t, files[host][1], all[files[host][1]])
	if host == "cursor" && hooks["version"] != 1.0 {
		t.Errorf("cursor: version %v", hooks["version"])
	}
	for _, event := range hosts.Events(host) {
		elements, _ := hooks["hooks"].(map[string]any)[event].([]any)
		text, _ := json.Marshal(elements)
		want := `'/opt/a b/loom-bridge-server' hook ` + host + ` ` + event
		if n := strings.Count(string(text), want); n != 1 {
			t.Errorf("%s %s: %d hooks in %s", host, event, n, text)
		}
	}
}

// Where somebody has changed a file since, only what is ours goes; a later installation
// keeps what others wrote.
func TestUndoAfterOthers(t *testing.T) {
	for host, names := range files {
		places, kept := folders(t)
		i := hosts.Install{Host: host, Scope: hosts.Project, Places: places, Program: []string{"loom-bridge-server"}}
		apply(t, i, kept)
		mine := map[string]string{"codex": "# mine\nmodel = \"x\"\n"}[host]
		path := filepath.Join(places.Project, names[0])
		text, err := os.ReadFile(path)
		must(t, err)
		if mine != "" {
			write(t, path, mine+string(text))
		} else {
			mine = "{\n  // mine\n  \"keep\": true"
			write(t, path, strings.Replace(string(text), "{", mine+",", 1))
		}
		i.Arguments = []string{"--agent", "anna"}
		if diff := apply(t, i, kept); !strings.Contains(diff, "anna") {
			t.Errorf("%s: the new arguments are not written: %s", host, diff)
		}
		write(t, path, tree(t, places.Project)[names[0]]+"\n")
		undo(t, i, kept)
		got := tree(t, places.Project)[names[0]]
		if !strings.Contains(got, mine) || strings.Contains(got, "loom-bridge") {
			t.Errorf("%s: left %q", host, got)
		}
		decode(t, names[0], got)
	}
}

// What can't be edited is refused with a word, and stays as it is.
func TestRefused(t *testing.T) {
	for _, test := range []struct {
		host, name, text string
		want             error
	}{
		{"claude-code", ".mcp.json", "{", hosts.ErrMalformed},
		{"claude-code", ".mcp.json", "[]", hosts.ErrMalformed},
		{"claude-code", ".mcp.json", `{"mcpServers": []}`, hosts.ErrMalformed},
		{"claude-code", ".claude/settings.json", `{"hooks": {"Stop": {}}}`, hosts.ErrMalformed},
		{"cursor", ".cursor/hooks.json", `{"hooks": "none"}`, hosts.ErrMalformed},
		{"codex", ".codex/config.toml", "model = ", hosts.ErrMalformed},
		{"codex", ".codex/config.toml", "[mcp_servers.loom-bridge]\ncommand = \"mine\"\n", hosts.ErrMalformed},
		{"codex", ".codex/config.toml", "mcp_servers = {}\n", hosts.ErrMalformed},
		{"codex", ".codex/config.toml", "# begin of loom-bridge: `loom-bridge-server mcp uninstall codex` takes it away\n", hosts.ErrMalformed},
		{"no-such", "", "", hosts.ErrUnknown},
	} {
		places, kept := folders(t)
		if test.name != "" {
			write(t, filepath.Join(places.Project, test.name), test.text)
		}
		before := tree(t, places.Project)
		i := hosts.Install{Host: test.host, Scope: hosts.Project, Places: places, Program: []string{"p"}}
		if _, err := i.Changes(kept); !errors.Is(err, test.want) {
			t.Errorf("%s %q: %v", test.name, test.text, err)
		}
		if !same(before, tree(t, places.Project)) {
			t.Errorf("%s %q was changed", test.name, test.text)
		}
	}
}

// A symbolic link leads nowhere, be it the file or its folder.
func TestLinks(t *testing.T) {
	places, kept := folders(t)
	outside := filepath.Join(places.Home, "secret.json")
	write(t, outside, "{}")
	must(t, os.Symlink(outside, filepath.Join(places.Project, ".mcp.json")))
	i := hosts.Install{Host: "claude-code", Scope: hosts.Project, Places: places, Program: []string{"p"}}
	if _, err := i.Changes(kept); !errors.Is(err, hosts.ErrLink) {
		t.Errorf("a link: %v", err)
	}
	must(t, os.Symlink(places.Home, filepath.Join(places.Project, ".cursor")))
	i.Host = "cursor"
	if changes, err := i.Changes(kept); !errors.Is(err, hosts.ErrLink) {
		for _, c := range changes {
			err = errors.Join(err, c.Apply())
		}
		t.Errorf("a folder that is a link: %v", err)
	}
	if got := tree(t, places.Home); len(got) != 1 || got["secret.json"] != "{}" {
		t.Errorf("outside there is %v", got)
	}
}

// A file that changed since it was shown is not written over.
func TestChangedMeanwhile(t *testing.T) {
	places, kept := folders(t)
	i := hosts.Install{Host: "claude-code", Scope: hosts.User, Places: places, Program: []string{"p"}}
	path := filepath.Join(places.Home, ".claude.json")
	write(t, path, `{"numStartups": 1}`)
	changes, err := i.Changes(kept)
	must(t, err)
	write(t, path, `{"numStartups": 2}`)
	if err := changes[0].Apply(); !errors.Is(err, hosts.ErrChanged) {
		t.Errorf("%v", err)
	}
	if got := tree(t, places.Home)[".claude.json"]; got != `{"numStartups": 2}` {
		t.Errorf("it is %s", got)
	}
	info, err := os.Stat(path)
	must(t, err)
	apply(t, i, kept)
	if now, err := os.Stat(path); err != nil || now.Mode() != info.Mode() {
		t.Errorf("its mode was %v, is %v", info.Mode(), now.Mode())
	}
}

// The user's own files lie where each host looks for them.
func TestUserScope(t *testing.T) {
	for host, want := range map[string][2]string{
		"claude-code": {"home/.claude.json", "home/.claude/settings.json"}, "codex": {"home/.codex/config.toml", "home/.codex/hooks.json"},
		"cursor": {"home/.cursor/mcp.json", "home/.cursor/hooks.json"}, "vscode": {"config/Code/User/mcp.json", "home/.copilot/hooks/loom-bridge.json"},
	} {
		places, kept := folders(t)
		apply(t, hosts.Install{Host: host, Scope: hosts.User, Places: places, Program: []string{"p"}}, kept)
		all := tree(t, filepath.Dir(places.Home))
		for _, name := range want {
			if all[name] == "" {
				t.Errorf("%s: no %s", host, name)
			}
		}
	}
	places, kept := folders(t)
	places.Codex, places.Claude = places.Config, places.Config
	for _, host := range []string{"codex", "claude-code"} {
		apply(t, hosts.Install{Host: host, Scope: hosts.User, Places: places, Program: []string{"p"}}, kept)
	}
	if all := tree(t, places.Config); all["config.toml"] == "" || all["hooks.json"] == "" || all[".claude.json"] == "" || all["settings.json"] == "" {
		t.Errorf("in the folder that a variable names: %v", all)
	}
}

// The project of a host is found from any folder of it, and nothing of the machine stands in
// its files; what is no file of the host, or is a user's own, is no project.
func TestProjectOf(t *testing.T) {
	for _, host := range hosts.Names() {
		places, kept := folders(t)
		deep := filepath.Join(places.Project, "src", "deep")
		write(t, filepath.Join(deep, "file"), "")
		write(t, filepath.Join(places.Project, "src", files[host][0]), "{ model")
		if _, err := hosts.ProjectOf(host, deep); !errors.Is(err, hosts.ErrNoProject) || !strings.Contains(err.Error(), "mcp install "+host) {
			t.Errorf("%s: before: %v", host, err)
		}
		apply(t, hosts.Install{Host: host, Scope: hosts.Project, Places: places, Program: []string{"uvx", "loombridge-server"}}, kept)
		for _, folder := range []string{deep, places.Project} {
			if got, err := hosts.ProjectOf(host, folder); err != nil || got != places.Project {
				t.Errorf("%s: of %s: %q, %v", host, folder, got, err)
			}
		}
		for _, name := range files[host] {
			if text := tree(t, places.Project)[name]; strings.Contains(text, places.Project) {
				t.Errorf("%s: %s has the path of the project: %s", host, name, text)
			}
		}
	}
	if _, err := hosts.ProjectOf("emacs", "."); !errors.Is(err, hosts.ErrUnknown) {
		t.Errorf("a host that does not exist: %v", err)
	}
}

// Whatever an installation writes gives commands to a host: no tool may write it, neither in
// the project nor in a workspace that is somebody's home.
func TestWhatIsWrittenIsKeptFromTools(t *testing.T) {
	kept := commands.NewSet(commands.Paths())
	places, state := folders(t)
	places.Config = filepath.Join(places.Home, ".config")
	must(t, os.Mkdir(places.Config, 0o700))
	for _, host := range hosts.Names() {
		for scope, top := range map[string]string{hosts.Project: places.Project, hosts.User: places.Home} {
			changes, err := hosts.Install{Host: host, Scope: scope, Places: places, Program: []string{"loom"}}.Changes(state)
			must(t, err)
			for _, c := range changes {
				if name, err := filepath.Rel(top, c.Path); err != nil || !kept.Covers(filepath.ToSlash(name)) {
					t.Errorf("%s, %s: %s can be written by tools, %v", host, scope, c.Path, err)
				}
			}
			if len(changes) == 0 {
				t.Errorf("%s, %s writes nothing", host, scope)
			}
		}
	}
}
