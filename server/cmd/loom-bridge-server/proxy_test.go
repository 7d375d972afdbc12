package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// What memory told a conversation of one agent is told to no caller that may not act for it, nor
// what the agent said: whoever begins with the same words asks nobody, but is refused all the same.
//
// N14
func TestProxyKeepsAgentsApart(t *testing.T) {
	t.Parallel()
	var got atomic.Value
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got.Store(string(body))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"A"}}]}`)
	}))
	t.Cleanup(upstream.Close)
	dir := t.TempDir()
	callers := filepath.Join(dir, "callers.toml")
	var text strings.Builder
	for _, agent := range []string{"alice", "bob"} {
		fmt.Fprintf(&text, "[[credential]]\ntoken_sha256 = %q\ntenant = \"acme\"\nagents = [%q]\n", hashOf(agent), agent)
	}
	must(t, os.WriteFile(callers, []byte(text.String()), 0o600))
	base := MustRun(t, dir, "--http-addr", "127.0.0.1:0", "--proxy-upstreams", "it="+upstream.URL, "--credentials", callers).httpURL(t)
	const path, question = "/proxy/it/v1/chat/completions", `{"role":"user","content":"What is the code of the vault?"}`
	ask := func(caller, messages, did string) {
		t.Helper()
		exchange{"POST", path, `{"messages":[` + messages + `]}`, []string{"Loom-Authorization: Bearer " + caller, "Loom-Agent-Id: alice"}, 200, did}.check(t, base)
	}
	exchange{"POST", "/v1/memories", `{"agent_id":"alice","text":"The code of the vault is 8841"}`, []string{"Authorization: Bearer " + "alice"}, 200, ""}.check(t, base)
	ask("alice", question, `"content":"A"`)
	if sent := got.Load().(string); !strings.Contains(sent, "8841") {
		t.Fatalf("alice's memory is not in %s", sent)
	}
	for _, messages := range []string{question, question + `,{"role":"assistant","content":"A"}`} {
		ask("bob", messages, `"content":"A"`)
		if sent := got.Load().(string); strings.Contains(sent, "8841") {
			t.Errorf("bob was told what alice's memory has: %s", sent)
		}
	}
}

// Who asks a model by the server is known by a header of its own, is recorded apart from others,
// and no page of another site can do it.
//
// N14
func TestProxyCallers(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			if value := r.Header.Get(name); value == "Bearer "+"acme" {
				t.Errorf("the upstream got the server's own token in %s", name)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"`+r.Header.Get("Authorization")+`"}}]}`)
	}))
	t.Cleanup(upstream.Close)
	dir := t.TempDir()
	p := MustRun(t, dir, "--http-addr", "127.0.0.1:0", "--proxy-upstreams", "it="+upstream.URL, "--credentials", MustCallers(t, dir, "acme", "umbrella"))
	base := p.httpURL(t)
	const path, ask = "/proxy/it/v1/chat/completions", `{"messages":[{"role":"user","content":"Q"}]}`
	key, acme := "Authorization: Bearer key", "Loom-Authorization: Bearer "+"acme"
	for _, a := range []exchange{
		{"POST", path, ask, []string{key}, 401, `"reason":"UNAUTHENTICATED"`},
		{"POST", path, ask, []string{"Authorization: Bearer " + "acme"}, 401, `"reason":"UNAUTHENTICATED"`},
		{"POST", path, ask, []string{key, acme, "Loom-Session-Id: mine"}, 200, `"content":"Bearer key"`},
		{"POST", path, ask, []string{key, acme, "Origin: http://evil.example"}, 403, "Origin"},
		{"POST", path, ask, []string{key, acme, "Sec-Fetch-Site: cross-site"}, 403, "Origin"},
		{"POST", path, ask, []string{key, acme, "Host: evil.example"}, 403, "Host"},
		{"GET", "/proxy/it/v1/%2e%2e/admin", "", []string{key, acme}, 400, ".. in it"},
		{"GET", "/proxy/it/v1/%252e%252e/admin", "", []string{key, acme}, 400, ".. in it"},
		{"GET", "/proxy/openai/v1/models", "", []string{key, acme}, 404, "--proxy-upstreams"},
		{"GET", "/v1/sessions/mine/conversation?agent_id=proxy", "", []string{"Authorization: Bearer " + "acme"}, 200, `"content":"Q"`},
		{"GET", "/v1/sessions?agent_id=proxy", "", []string{"Authorization: Bearer " + "umbrella"}, 200, `{}`},
	} {
		a.check(t, base)
	}
}
