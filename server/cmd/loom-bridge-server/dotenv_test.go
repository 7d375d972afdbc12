package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func MustDotenv(tb testing.TB, dir, text string) {
	tb.Helper()
	must(tb, os.MkdirAll(dir, 0o755))
	must(tb, os.WriteFile(filepath.Join(dir, ".env"), []byte(text), 0o600))
}

// The nearest .env file is read, in the current folder or above, and never
// overrides the environment.
func TestDotenv(t *testing.T) {
	root := t.TempDir()
	MustDotenv(t, root, "LOOM_BRIDGE_ADDR=127.0.0.1:1\nFAR=away\n")
	MustDotenv(t, filepath.Join(root, "project"), "# settings\nexport LOOM_BRIDGE_ADDR=\"127.0.0.1:2\"\nRUST_LOG=debug\nEMPTY=full\n")
	inside := filepath.Join(root, "project", "agents", "deep")
	must(t, os.MkdirAll(inside, 0o755))
	environment := map[string]string{"RUST_LOG": "error", "EMPTY": ""}
	getenv, err := withDotenv(func(name string) (string, bool) {
		value, ok := environment[name]
		return value, ok
	}, inside)
	must(t, err)
	for name, want := range map[string]string{"LOOM_BRIDGE_ADDR": "127.0.0.1:2", "RUST_LOG": "error", "FAR": "", "OTHER": "", "EMPTY": ""} {
		if got := getenv(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// A broken file is left out; the warning names it and shows nothing of it.
func TestBrokenDotenv(t *testing.T) {
	dir := t.TempDir()
	MustDotenv(t, dir, "BRAVE_API_KEY=secret-key\nsettings without a sign\n")
	getenv, err := withDotenv(func(string) (string, bool) { return "given", true }, dir)
	if got := getenv("BRAVE_API_KEY"); got != "given" {
		t.Errorf("the environment is lost: %q", got)
	}
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, ".env")) {
		t.Fatalf("error %v", err)
	}
	if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "settings") {
		t.Errorf("the error shows the file: %v", err)
	}
}

// What an agent could write into its workspace must not change how far it
// reaches at the next start.
func TestDotenvCannotWidenTheServer(t *testing.T) {
	dir := t.TempDir()
	var text strings.Builder
	for _, key := range (Config{}).keys() {
		text.WriteString(envName(key) + "=/\n")
	}
	MustDotenv(t, dir, text.String())
	getenv, err := withDotenv(func(string) (string, bool) { return "", false }, dir)
	if err == nil || !strings.Contains(err.Error(), "LOOM_BRIDGE_WORKSPACE") {
		t.Errorf("error %v", err)
	}
	for _, key := range (Config{}).keys() {
		if allowed := key == "addr" || key == keyLogLevel; (getenv(envName(key)) != "") != allowed {
			t.Errorf("%s is %q", key, getenv(envName(key)))
		}
	}
}
