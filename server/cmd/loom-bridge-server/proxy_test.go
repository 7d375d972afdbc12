package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

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
		{"GET", "/proxy/openai/v1/models", "", []string{key, acme}, 404, "--proxy-upstreams"},
		{"GET", "/v1/sessions/mine/conversation?agent_id=proxy", "", []string{"Authorization: Bearer " + "acme"}, 200, `"content":"Q"`},
		{"GET", "/v1/sessions?agent_id=proxy", "", []string{"Authorization: Bearer " + "umbrella"}, 200, `{}`},
	} {
		a.check(t, base)
	}
}
