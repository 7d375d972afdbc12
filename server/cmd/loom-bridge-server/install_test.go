package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/pelletier/go-toml/v2"

	"github.com/loom-bridge/loom-bridge/server/hosts"
)

// installed runs `mcp install` or `uninstall` in a project, with what somebody types.
func installed(t *testing.T, project, typed string, args ...string) (string, error) {
	t.Helper()
	t.Chdir(project)
	t.Setenv("HOME", filepath.Join(project, "home"))
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(project, "config"))
	var stdout bytes.Buffer
	env := environment{vars: map[string]string{"XDG_STATE_HOME": filepath.Join(project, "state"), envToken: "secret", "XDG_RUNTIME_DIR": "/run/user/1"}}
	command := mcpCommand(env, &stdout, &stdout)
	command.SetArgs(args)
	command.SetIn(strings.NewReader(typed))
	command.SilenceErrors, command.SilenceUsage = true, true
	err := command.ExecuteContext(t.Context())
	return stdout.String(), err
}

// What would be written is shown, nothing is written until somebody agrees, and it goes
// away as it came.
func TestInstall(t *testing.T) {
	for _, host := range hosts.Names() {
		project := t.TempDir()
		shown, err := installed(t, project, "", "install", host, "--print", "--", "--agent", "anna")
		must(t, err)
		if !strings.Contains(shown, "+++ ") || !strings.Contains(shown, "anna") || !strings.Contains(shown, "hook "+host) || strings.Contains(shown, "secret") {
			t.Errorf("%s: shown %s", host, shown)
		}
		if _, err := installed(t, project, "n\n", "install", host, "--", "--agent", "anna"); err == nil || !strings.Contains(err.Error(), "nothing is written") {
			t.Errorf("%s: without agreement: %v", host, err)
		}
		if left, err := os.ReadDir(project); err != nil || len(left) != 0 {
			t.Errorf("%s: there is %v, %v", host, left, err)
		}
		written, err := installed(t, project, "y\n", "install", host, "--", "--agent", "anna")
		must(t, err)
		if strings.Count(written, "Written: "+project) != 2 || !strings.HasPrefix(written, shown) {
			t.Errorf("%s: it says %s", host, written)
		}
		if again, err := installed(t, project, "", "install", host, "--", "--agent", "anna"); err != nil || again != "Nothing to change.\n" {
			t.Errorf("%s: again: %v, %s", host, err, again)
		}
		undo := []string{"uninstall", host, "--yes"}
		if host == "cursor" {
			undo = []string{"install", host, "--undo", "--yes"}
		}
		_, err = installed(t, project, "", undo...)
		must(t, err)
		if left, err := filepath.Glob(filepath.Join(project, ".*")); err != nil || len(left) != 0 {
			t.Errorf("%s: left behind: %v, %v", host, left, err)
		}
	}
}

// What is typed wrongly is refused before anything is read.
func TestInstallRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"unknown host":         {"install", "emacs"},
		"unknown scope":        {"install", "codex", "--scope", "world"},
		"nearest is --agent":   {"install", "codex", "--", "--agnt", "x"},
		"is no flag":           {"install", "codex", "--", "x"},
		"max-receive-bytes":    {"install", "codex", "--", "--max-receive-bytes", "many"},
		"nothing is written":   {"install", "codex"},
		"requires at least 1":  {"install"},
		"accepts 1 arg(s)":     {"uninstall"},
		"unknown flag: --many": {"install", "codex", "--many"},
	} {
		project := t.TempDir()
		if _, err := installed(t, project, "", args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q in it", args, err, want)
		}
		if left, err := os.ReadDir(project); err != nil || len(left) != 0 {
			t.Errorf("%v: there is %v, %v", args, left, err)
		}
	}
}

// The user's own configuration has the server alone where hooks are not wanted, and names
// the variables that the server needs of the host.
func TestInstallForUser(t *testing.T) {
	project := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(project, "home"), 0o700))
	_, err := installed(t, project, "", "install", "codex", "--scope", "user", "--no-hooks", "--yes")
	must(t, err)
	text, err := os.ReadFile(filepath.Join(project, "home", ".codex", "config.toml"))
	must(t, err)
	if !strings.Contains(string(text), "env_vars = ['XDG_RUNTIME_DIR', '"+envToken+"']") {
		t.Errorf("written: %s", text)
	}
	if left, err := os.ReadDir(filepath.Join(project, "home", ".codex")); err != nil || len(left) != 1 {
		t.Errorf("there is %v, %v", left, err)
	}
}

// What is written starts the server on every machine of a team, if it was started by what
// they all have: a package's runner, or the program on the PATH.
func TestInstallForATeam(t *testing.T) {
	t.Parallel()
	binary := copyAlone(t)
	for _, test := range []struct {
		name, folder, onPath, command, hook string
		args                                []string
	}{
		{"wheel", "lib/python3.12/site-packages/loombridge_server", "uvx", "uvx", "uvx loombridge-server hook", []string{"loombridge-server", "mcp"}},
		{"npm", "node_modules/@loom-bridge/linux-x64/bin", "npx", "npx", "npx -y loom-bridge hook", []string{"-y", "loom-bridge", "mcp"}},
		{"wheel without uvx", "loombridge_server", "npx", "", " hook", []string{"mcp"}},
		{"another package's bin", "node_modules/@other/linux-x64/bin", "npx", "", " hook", []string{"mcp"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			project := t.TempDir()
			folder := filepath.Join(project, test.folder)
			must(t, os.MkdirAll(folder, 0o755))
			program := filepath.Join(folder, "loom-bridge-server")
			must(t, os.Link(binary, program))
			bin := filepath.Join(project, "tools")
			must(t, os.Mkdir(bin, 0o755))
			must(t, os.WriteFile(filepath.Join(bin, test.onPath), nil, 0o755))

			install := exec.CommandContext(t.Context(), program, "mcp", "install", "claude-code", "--yes")
			install.Dir = project
			install.Env = []string{asServer + "=1", "HOME=" + project, "PATH=" + bin}
			if said, err := install.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, said)
			}

			text, err := os.ReadFile(filepath.Join(project, ".mcp.json"))
			must(t, err)
			var written struct {
				MCPServers map[string]struct {
					Command string
					Args    []string
				}
			}
			must(t, json.Unmarshal(text, &written))
			got := written.MCPServers["loom-bridge"]
			if want := cmp.Or(test.command, program); got.Command != want || !slices.Equal(got.Args, test.args) {
				t.Errorf("the host starts %q %q, want %q %q", got.Command, got.Args, want, test.args)
			}
			hooks, err := os.ReadFile(filepath.Join(project, ".claude", "settings.json"))
			must(t, err)
			if !strings.Contains(string(hooks), test.hook+" claude-code Stop") {
				t.Errorf("the hooks are %s", hooks)
			}
		})
	}
}

// What is written for Codex names no folder of this machine, and its server and its hooks
// have the store of the project wherever in it they are started.
func TestInstallForCodexAnywhere(t *testing.T) {
	t.Parallel()
	project, runtime := t.TempDir(), t.TempDir()
	binary := copyAlone(t)
	env := []string{asServer + "=1", "HOME=" + project, "PATH=" + filepath.Dir(binary), "XDG_RUNTIME_DIR=" + runtime}
	install := exec.CommandContext(t.Context(), binary, "mcp", "install", "codex", "--yes")
	install.Dir, install.Env = project, env
	if said, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	text, err := os.ReadFile(filepath.Join(project, ".codex", "config.toml"))
	must(t, err)
	var written struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `toml:"mcp_servers"`
	}
	must(t, toml.Unmarshal(text, &written))
	hooks, err := os.ReadFile(filepath.Join(project, ".codex", "hooks.json"))
	must(t, err)
	server := written.Servers["loom-bridge"]
	if server.Command != "loom-bridge-server" || strings.Contains(string(text)+string(hooks), project) {
		t.Fatalf("written: %s and %s", text, hooks)
	}

	deep := filepath.Join(project, "src", "deep")
	must(t, os.MkdirAll(deep, 0o755))
	command := exec.Command(binary, server.Args...)
	command.Dir, command.Env = deep, env
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: command}, nil)
	must(t, err)
	t.Cleanup(func() { _ = session.Close() })
	codex := host{t, session}
	codex.works("memory_save", object{"text": "saved from a folder of the project"}, nil)

	line := regexp.MustCompile(`"command": "(.* codex SessionStart.*)"`).FindStringSubmatch(string(hooks))
	hook := exec.CommandContext(t.Context(), "/bin/sh", "-c", line[1])
	hook.Dir, hook.Env = t.TempDir(), env
	hook.Stdin = strings.NewReader(`{"session_id":"s","hook_event_name":"SessionStart","source":"startup","cwd":"` + deep + `"}`)
	if said, err := hook.CombinedOutput(); err != nil || !strings.Contains(string(said), "saved from a folder") {
		t.Errorf("the hook: %v: %s", err, said)
	}
	must(t, session.Close())
	if _, err := os.Stat(filepath.Join(project, ".loom", "store", "LOOM-FORMAT")); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(deep); err != nil || len(left) != 0 {
		t.Errorf("where it was started there is %v, %v", left, err)
	}

	elsewhere := exec.CommandContext(t.Context(), binary, server.Args...)
	elsewhere.Dir, elsewhere.Env = t.TempDir(), env
	if said, err := elsewhere.CombinedOutput(); err == nil || !strings.Contains(string(said), "mcp install codex") {
		t.Errorf("outside of the project: %v: %s", err, said)
	}
}
