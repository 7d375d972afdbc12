package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func MustDotenv(tb testing.TB, dir, text string) {
	tb.Helper()
	must(tb, os.MkdirAll(dir, 0o755))
	must(tb, os.WriteFile(filepath.Join(dir, ".env"), []byte(text), 0o600))
}

// The nearest .env file is read, in the current folder or above, and never
// overrides the environment. A setting of the server is read from the nearest
// file that no agent can write.
func TestDotenv(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	MustDotenv(t, root, "LOOM_BRIDGE_ADDR=127.0.0.1:1\nFAR=away\nRUST_LOG=debug\n")
	MustDotenv(t, filepath.Join(root, "project"), "# settings\nexport LOOM_BRIDGE_ADDR=\"127.0.0.1:2\"\nNEAR=here\nEMPTY=full\n")
	deep := filepath.Join(root, "project", "agents", "deep")
	must(t, os.MkdirAll(deep, 0o755))
	for workspace, address := range map[string]string{deep: "127.0.0.1:2", filepath.Join(root, "project"): "127.0.0.1:1", root: ""} {
		e := environment{vars: map[string]string{"RUST_LOG": "error", "EMPTY": ""}, dir: deep}.withDotenv(workspace)
		for name, want := range map[string]string{"LOOM_BRIDGE_ADDR": address, "RUST_LOG": "error", "FAR": "", "NEAR": "here", "OTHER": "", "EMPTY": ""} {
			if got := e.get(name); got != want {
				t.Errorf("workspace %s: %s is %q, want %q", workspace, name, got, want)
			}
		}
	}
}

// A broken file is left out; the warning names it and shows nothing of it.
func TestBrokenDotenv(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	MustDotenv(t, dir, "BRAVE_API_KEY=secret-key\nsettings without a sign\n")
	e := environment{vars: map[string]string{"BRAVE_API_KEY": "given"}, dir: dir}.withDotenv(dir)
	if got := e.get("BRAVE_API_KEY"); got != "given" {
		t.Errorf("the environment is lost: %q", got)
	}
	if len(e.ignored) != 1 || e.ignored[0].path != filepath.Join(dir, ".env") || strings.Contains(e.ignored[0].why, "secret") || strings.Contains(e.ignored[0].why, "settings") {
		t.Errorf("ignored %+v", e.ignored)
	}
}

// A .env file outside the workspace decides where is served and what is logged,
// and nothing that widens what agents reach.
func TestDotenvCannotWidenTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var text strings.Builder
	for _, name := range settingNames() {
		text.WriteString(envName(name) + "=/\n")
	}
	MustDotenv(t, dir, text.String())
	e := environment{dir: dir}.withDotenv(filepath.Join(dir, "workspace"))
	if len(e.ignored) != 1 || !slices.Contains(e.ignored[0].names, "LOOM_BRIDGE_WORKSPACE") {
		t.Errorf("ignored %+v", e.ignored)
	}
	for _, name := range settingNames() {
		if allowed := name == "addr" || name == keyLogLevel; (e.get(envName(name)) != "") != allowed {
			t.Errorf("%s is %q", name, e.get(envName(name)))
		}
	}
}

// What an agent writes into its workspace changes nothing of the next start, also
// through a link or a linked workspace, and the log says so.
func TestAgentCannotWriteSettings(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	MustDotenv(t, workspace, "LOOM_BRIDGE_ADDR=127.0.0.1:1\nLOOM_BRIDGE_LOG_LEVEL=off\nRUST_LOG=off\nLOOM_DASHBOARD=true\nLOOM_DASHBOARD_DEBUG=true\n")
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(workspace, link))
	outside := t.TempDir()
	must(t, os.Symlink(filepath.Join(workspace, ".env"), filepath.Join(outside, ".env")))
	for _, test := range []struct{ dir, workspace string }{{workspace, workspace}, {workspace, link}, {link, workspace}, {outside, workspace}} {
		p := MustRunIn(t, environment{dir: test.dir}, "--addr", "127.0.0.1:0", "--workspace", test.workspace, "--data-dir", t.TempDir())
		save(t, p, "served")
		must(t, p.Stop())
		for _, want := range []string{"is serving", "LOOM_BRIDGE_ADDR, LOOM_BRIDGE_LOG_LEVEL, LOOM_DASHBOARD, LOOM_DASHBOARD_DEBUG, RUST_LOG", "agents can write the file"} {
			p.told(t, want)
		}
	}
}

// A variable that looks like a setting and is none is told with the nearest one.
func TestMisspeltVariable(t *testing.T) {
	t.Parallel()
	env := environment{vars: map[string]string{
		"LOOM_BRIDGE_ADDRESS": "x", "LOOM_BRIDGE_DATADIR": "sk-secret", "LOOM_BRIDGE_SERVER": "bin/loom-bridge-server", "LOOM_BRIDGE_PORT": "", "LOOM_OTHER": "x",
	}}
	p := MustRunIn(t, env, "--addr", "127.0.0.1:0", "--workspace", t.TempDir(), "--data-dir", t.TempDir())
	must(t, p.Stop())
	p.toldTimes(t, "no setting has its name", 2)
	log := p.Log.String()
	for _, want := range []string{"variable=LOOM_BRIDGE_ADDRESS nearest=LOOM_BRIDGE_ADDR", "variable=LOOM_BRIDGE_DATADIR nearest=LOOM_BRIDGE_DATA_DIR"} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in the log\n%s", want, log)
		}
	}
	if n := strings.Count(log, "no setting has its name"); n != 2 || strings.Contains(log, "secret") {
		t.Errorf("%d variables are told\n%s", n, log)
	}
}

func TestUnknownFlag(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--adr=x":               "unknown flag: --adr, nearest is --addr; see loom-bridge-server --help",
		"check --data-dri x":    "unknown flag: --data-dri, nearest is --data-dir; see loom-bridge-server check --help",
		"export --agents x":     "nearest is --agent;",
		"-x":                    "unknown shorthand flag",
		"--max-calls=many":      `--max-calls (LOOM_BRIDGE_MAX_CALLS) "many": is not a whole number`,
		"--trust-network=maybe": "is not true or false",
	} {
		if err := runBriefly(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
