package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// signIn trades a token for a cookie, and returns it with what opens it.
func signIn(tb testing.TB, base, token string) (cookie *http.Cookie, key string) {
	tb.Helper()
	answer, err := http.DefaultTransport.RoundTrip(exchange{method: "POST", path: "/sign-in", headers: []string{"Authorization: Bearer " + token, "Origin: " + base}}.request(tb, base))
	must(tb, err)
	defer func() { _ = answer.Body.Close() }()
	var said struct{ Key string }
	must(tb, json.NewDecoder(answer.Body).Decode(&said))
	set := answer.Cookies()
	if answer.StatusCode != http.StatusOK || len(set) != 1 || said.Key == "" {
		tb.Fatalf("signed in: %d, %v, %q", answer.StatusCode, set, said.Key)
	}
	return set[0], said.Key
}

// A page trades a token for a cookie, which no script can read, no other site sends, and which
// counts only with the key that the page has: neither half does anything alone, and what is
// forged of them is nothing. Programs go on giving their token.
//
// N13
func TestSignIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir, "--http-addr", "127.0.0.1:0", "--credentials", MustCallers(t, dir, "acme", "umbrella"))
	base := p.httpURL(t)
	cookie, key := signIn(t, base, "acme")
	if _, port, _ := strings.Cut(strings.TrimPrefix(base, "http://"), ":"); cookie.Name != "loom-bridge-"+port {
		t.Errorf("another server of the machine would have the same cookie: %s", cookie.Name)
	}
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Domain != "" || strings.Contains(cookie.Value, "acme") {
		t.Errorf("the cookie is %+v", cookie)
	}
	other, otherKey := signIn(t, base, "umbrella")
	exchange{"POST", "/v1/memories", `{"agent_id":"me","text":"x","id":"mine"}`, []string{"Authorization: Bearer acme"}, 200, `"id":"mine"`}.check(t, base)

	sent := func(c *http.Cookie) string { return "Cookie: " + c.Name + "=" + c.Value }
	opens := func(key string) string { return "Loom-Key: " + key }
	turned := func(value string) string { // the last whole byte is another one
		last := byte('A')
		if value[len(value)-2] == last {
			last = 'B'
		}
		return value[:len(value)-2] + string(last) + value[len(value)-1:]
	}
	mine := "/v1/memories/mine?agent_id=me"
	const ok, out, no = http.StatusOK, http.StatusUnauthorized, http.StatusForbidden
	for _, a := range []exchange{
		{"GET", mine, "", []string{sent(cookie), opens(key)}, ok, `"id":"mine"`},
		{"POST", "/v1/memories", `{"agent_id":"me","text":"y"}`, []string{sent(cookie), opens(key), "Origin: " + base, "Sec-Fetch-Site: same-origin"}, ok, `"id":`},
		{"GET", "/v1/memories:export?agent_id=me", "", []string{sent(cookie), opens(key)}, ok, "mine"},
		{"GET", "/metrics", "", []string{sent(cookie), opens(key)}, no, ""}, // it does not operate

		// Half of it: what a form, an image, another port, or a script that got in has.
		{"GET", mine, "", []string{sent(cookie)}, out, ""},
		{"POST", "/v1/memories", `{"agent_id":"me","text":"x"}`, []string{sent(cookie)}, out, ""},
		{"GET", mine, "", []string{opens(key)}, out, ""},
		// Forged.
		{"GET", mine, "", []string{sent(cookie), opens(otherKey)}, out, ""},
		{"GET", mine, "", []string{sent(other), opens(key)}, out, ""},
		{"GET", mine, "", []string{"Cookie: " + cookie.Name + "=" + turned(cookie.Value), opens(key)}, out, ""},
		{"GET", mine, "", []string{sent(cookie), opens(turned(key))}, out, ""},
		{"GET", mine, "", []string{"Cookie: " + cookie.Name + "=acme", opens(key)}, out, ""},
		{"GET", mine, "", []string{"Cookie: " + cookie.Name + "=", opens(key)}, out, ""},
		{"GET", mine, "", []string{sent(cookie), opens("")}, out, ""},
		{"GET", mine, "", []string{sent(cookie), opens("acme")}, out, ""},
		{"GET", mine, "", []string{"Cookie: loom-bridge-1=" + cookie.Value, opens(key)}, out, ""},
		// Pages of other sites, of other ports, and of names that somebody made lead here.
		{"POST", "/v1/memories", `{"agent_id":"me","text":"x"}`, []string{sent(cookie), opens(key), "Origin: http://evil.example"}, no, `"field":"Origin"`},
		{"POST", "/v1/memories", `{"agent_id":"me","text":"x"}`, []string{sent(cookie), opens(key), "Origin: http://127.0.0.1:1"}, no, `"field":"Origin"`},
		{"POST", "/v1/memories", `{"agent_id":"me","text":"x"}`, []string{sent(cookie), opens(key), "Sec-Fetch-Site: same-site"}, no, `"field":"Origin"`},
		{"GET", mine, "", []string{sent(cookie), opens(key), "Host: evil.example"}, no, `"field":"Host"`},
		{"POST", "/sign-in", "", []string{"Authorization: Bearer acme", "Origin: http://evil.example"}, no, `"field":"Origin"`},
		{"POST", "/sign-in", "", []string{"Authorization: Bearer acme", "Host: evil.example"}, no, `"field":"Host"`},
		{"DELETE", "/sign-in", "", []string{sent(cookie), "Origin: http://evil.example"}, no, `"field":"Origin"`},
		{"OPTIONS", "/sign-in", "", []string{"Origin: http://evil.example"}, http.StatusNotFound, ""},
		// A cookie is for pages.
		{"POST", "/mcp", "{}", []string{sent(cookie), opens(key)}, out, ""},
		{"POST", "/proxy/openai/v1/chat/completions", "{}", []string{sent(cookie), opens(key)}, out, ""},
		// A token is stronger, also if it is wrong.
		{"GET", mine, "", []string{sent(cookie), opens(key), "Authorization: Bearer umbrella"}, http.StatusNotFound, ""},
		{"GET", mine, "", []string{sent(cookie), opens(key), "Authorization: Bearer wrong"}, out, ""},

		{"POST", "/sign-in", "", nil, out, ""},
		{"POST", "/sign-in", "", []string{"Authorization: Bearer wrong"}, out, ""},
		{"POST", "/sign-in", "", []string{"Authorization: Basic acme"}, out, ""},
	} {
		a.check(t, base)
	}
	open := MustRun(t, t.TempDir(), "--http-addr", "127.0.0.1:0").httpURL(t)
	exchange{"POST", "/sign-in", "", nil, 400, `"field":"Authorization"`}.check(t, open)
}

// A cookie ends with its token and survives the server, which keeps nothing of it; a page gives
// it back whatever it is worth.
func TestSignInEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := MustCallers(t, dir, "acme", "umbrella")
	p := MustRun(t, dir, "--http-addr", "127.0.0.1:0", "--credentials", path)
	base := p.httpURL(t)
	cookie, key := signIn(t, base, "acme")
	both := []string{"Cookie: " + cookie.Name + "=" + cookie.Value, "Loom-Key: " + key}
	exchange{"GET", "/v1/status", "", both, 200, `"version":`}.check(t, base)

	must(t, p.Stop())
	again := MustRun(t, dir, "--http-addr", "127.0.0.1:0", "--credentials", path)
	base = again.httpURL(t)
	name := "loom-bridge-" + base[strings.LastIndexByte(base, ':')+1:]
	both[0] = "Cookie: " + name + "=" + cookie.Value
	exchange{"GET", "/v1/status", "", both, 200, `"version":`}.check(t, base)

	must(t, os.WriteFile(filepath.Join(dir, "callers.toml"), []byte(callersText("umbrella")), 0o600))
	again.hangUp(t, "credentials were read again")
	for _, r := range []*http.Request{
		exchange{method: "GET", path: "/v1/status", headers: both}.request(t, base),
		exchange{method: "DELETE", path: "/sign-in", headers: both}.request(t, base),
	} {
		answer, err := http.DefaultTransport.RoundTrip(r)
		must(t, err)
		must(t, answer.Body.Close())
		set := answer.Cookies()
		if want := map[string]int{"GET": 401, "DELETE": 204}[r.Method]; answer.StatusCode != want || len(set) != 1 || set[0].MaxAge >= 0 || set[0].Name != name || set[0].Value != "" {
			t.Errorf("%s of an ended token: %d, %v", r.Method, answer.StatusCode, set)
		}
	}
}
