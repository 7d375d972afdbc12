package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Who runs the server reads over HTTP which settings hold, and for each whether it is a flag, a
// variable, the file or the default that says so. No key and no password stands there.
//
// N13
func TestSettingsInForce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "loom.toml")
	must(t, os.WriteFile(file, []byte("max-jobs = 7\nmax-tools = 8\nmax-calls = 9\nredact = [\"secrets\"]\n"), 0o600))
	credentials := filepath.Join(dir, "callers.toml")
	text := callersText("acme") + "[[credential]]\ntoken_sha256 = \"" + hashOf("boss") + "\"\ntenant = \"acme\"\nagents = [\"*\"]\noperates = true\n"
	must(t, os.WriteFile(credentials, []byte(text), 0o600))
	const secret = "s3cr3t-of-the-settings"
	env := environment{vars: map[string]string{
		"LOOM_BRIDGE_MAX_TOOLS": "80", "LOOM_BRIDGE_MAX_CALLS": "90", "LOOM_BRIDGE_LLM_KEY": secret + "-1", "VLLM_MODEL": "small",
		"BRAVE_API_KEY": secret + "-2", "LOOM_BRIDGE_LLM_URL": "https://ann:" + secret + "@models.example/v1?key=" + secret, "RUST_LOG": "warn",
	}}
	p := MustRunIn(t, env, "--addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "store"), "--workspace", dir, "--embedder", "off",
		"--config", file, "--credentials", credentials, "--max-calls", "900", "--log-level", "info",
		"--knowledge-endpoint", "https://knows.example/"+secret+"-3", "--proxy-upstreams", "a=https://a.example,b=https://b.example")
	base := p.httpURL(t)
	exchange{"GET", "/settings", "", nil, 401, ""}.check(t, base)
	exchange{"GET", "/settings", "", []string{"Authorization: Bearer acme"}, 403, ""}.check(t, base)
	said := exchange{"GET", "/settings", "", []string{"Authorization: Bearer boss"}, 200, "max-jobs"}.check(t, base)
	if before, _, found := strings.Cut(said, secret); found {
		t.Errorf("a secret is shown behind %s", before[max(0, len(before)-200):])
	}
	var found struct{ Settings []inForce }
	must(t, json.Unmarshal([]byte(said), &found))
	got := map[string]inForce{}
	for _, s := range found.Settings {
		got[s.Name] = s
	}
	if len(got) != len(settingNames()) || len(got) != len(found.Settings) {
		t.Errorf("%d of %d settings", len(got), len(settingNames()))
	}
	for name, want := range map[string]inForce{
		"max-jobs":           {Value: "7", By: "file", From: file},
		"redact":             {Value: "secrets", By: "file", From: file},
		"max-tools":          {Value: "80", By: "environment", From: "LOOM_BRIDGE_MAX_TOOLS"},
		"max-calls":          {Value: "900", By: "flag", From: "--max-calls"},
		"log-level":          {Value: "info", By: "flag", From: "--log-level"},
		"llm-model":          {Value: "small", By: "environment", From: "VLLM_MODEL"},
		"llm-key":            {Value: hidden, By: "environment", From: "LOOM_BRIDGE_LLM_KEY"},
		"search-key":         {Value: hidden, By: "environment", From: "BRAVE_API_KEY"},
		"llm-url":            {Value: "https://models.example/v1", By: "environment", From: "LOOM_BRIDGE_LLM_URL"},
		"knowledge-endpoint": {Value: hidden, By: "flag", From: "--knowledge-endpoint"},
		"proxy-upstreams":    {Value: "a=https://a.example,b=https://b.example", By: "flag", From: "--proxy-upstreams"},
		"store":              {By: "default"},
		"max-receive-bytes":  {Value: "4MiB", By: "default"},
		"credentials":        {Value: credentials, By: "flag", From: "--credentials"},
	} {
		s := got[name]
		if s.Group == "" || s.Help == "" {
			t.Errorf("%s says not what it is: %+v", name, s)
		}
		if s.Value != want.Value || s.By != want.By || s.From != want.From {
			t.Errorf("%s is %+v, want %+v", name, s, want)
		}
	}
}
