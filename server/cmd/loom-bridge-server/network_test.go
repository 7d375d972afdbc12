package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// webFile are settings under which the agent web reaches the hosts of a site, and the agent
// open every public one; others have no network.
const webFile = `
[profile.web]
extends = "builtin:net"
[[profile.web.allow]]
host = "site.test"
address = "$HOST"
[[profile.web.allow]]
host = "127.0.0.1"
ports = [$PORT]
[[profile.web.allow]]
host = "example.com"
address = "$SECURE"
secret = { env = "API_TOKEN", from = "file:$DIR/token", header = "Authorization" }

[[bind]]
agent = "web"
profile = "web"

[[bind]]
agent = "open"
profile = "open"
`

// networked starts a server with the profiles of webFile in a tier, and a site.
func networked(t *testing.T, tier string) (*shellWorld, *fakeSite) {
	t.Helper()
	site, dir := MustSite(t), t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "token"), []byte("the-real-token-of-the-api\n"), 0o600))
	_, port, _ := strings.Cut(site.host(), ":")
	file := strings.NewReplacer("$HOST", site.host(), "$PORT", port, "$SECURE", site.secure.Listener.Addr().String(), "$DIR", dir).Replace(webFile)
	must(t, os.WriteFile(filepath.Join(dir, "settings.toml"), []byte(file), 0o600))
	p := MustRunIn(t, noEnvironment,
		"--addr", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "store"), "--workspace", t.TempDir(), "--sandbox-tier", tier,
		"--config", filepath.Join(dir, "settings.toml"), "--egress-ca", site.cert)
	w := &shellWorld{t, p, tier}
	if s := w.status().GetSandbox(); s.GetTier() != tier {
		lacks(t, tier, s.GetProblems())
	}
	return w, site
}

// as calls a tool as an agent.
func (w *shellWorld) as(agent, name string, args map[string]any) *loombridgev1.ToolResponse {
	w.tb.Helper()
	text, err := json.Marshal(args)
	must(w.tb, err)
	got, err := w.bridge().Tool(convert.AskText(w.tb.Context()), &loombridgev1.ToolRequest{
		AgentId: agent, Name: name, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: string(text)},
		CallId: "call-1",
	})
	must(w.tb, err)
	return got
}

// A program reaches the hosts of its agent's profile and no others, says so, and never sees
// the secret that it uses; an agent without a network reaches none.
func TestNetworkOfPrograms(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"namespaces", "landlock"} {
		t.Run(tier, func(t *testing.T) {
			w, site := networked(t, tier)
			sh := func(agent, script string) string {
				got := w.as(agent, "shell:run", map[string]any{"command": script})
				if !got.GetSuccess() {
					return got.GetErrorMessage()
				}
				return got.GetOutputJson()
			}
			for _, c := range []struct{ agent, script, want string }{
				{"web", "curl -sS http://site.test/plain", "plain text"},
				{"web", "curl -sS --noproxy nothing " + site.URL + "/plain", "plain text"},
				{"web", "curl -sS https://example.com/plain", "plain text"},
				{"web", "curl -sS http://other.test/", `Permission denied: host other.test:80 needs the approval`},
				{"web", "curl -sS https://other.test/ || echo failed", `"network_denied":["Permission denied: no connection to other.test:443`},
				{"open", "curl -sS http://169.254.169.254/latest/", "not on the public internet"},
				{"open", "curl -sS http://site.test/", "No connection to site.test:80"},
			} {
				if got := sh(c.agent, c.script); !strings.Contains(strings.ReplaceAll(got, `Permission denied: no connection to other.test:80 by the profile \"web\": host`, "Permission denied: host"), c.want) {
					t.Errorf("%s: %s\ngave %s\nwant %s", c.agent, c.script, got, c.want)
				}
			}
			if got := sh("other", "curl -sS --max-time 5 http://site.test/plain; env | grep -i proxy; echo end"); strings.Contains(got, "plain text") || strings.Contains(got, "3128") {
				t.Errorf("an agent without a network got %s", got)
			}
			if got := sh("web", `curl -sS -H "Authorization: Bearer $API_TOKEN" https://example.com/brave; env`); strings.Contains(got, "the-real-token") {
				t.Errorf("the secret is inside: %s", got)
			}
			if got := site.last().header.Get("Authorization"); got != "Bearer the-real-token-of-the-api" {
				t.Errorf("the host got %q", got)
			}
			w.wantConnections(t)
			hosts := profileList(w.profile("web", "shell:run"), "hosts")
			host := func(i int, field string) string { return hosts[i].GetStructValue().GetFields()[field].GetStringValue() }
			if len(hosts) != 3 || host(0, "address") != site.host() || host(1, "address") != "" || host(2, "secret_variable") != "API_TOKEN" {
				t.Errorf("the profile has the hosts %v", hosts)
			}
		})
	}
}

// wantConnections sees the audit's records of connections.
func (w *shellWorld) wantConnections(t *testing.T) {
	t.Helper()
	outcomes := map[string]int{}
	got, err := loombridgev1.NewToolServiceClient(w.conn).ListAudit(t.Context(), &loombridgev1.ListAuditRequest{AgentId: "web", Tool: "net:connect", PageSize: 100})
	must(t, err)
	for _, r := range got.GetRecords() {
		outcomes[fmt.Sprint(r.GetOutcome(), " ", r.GetAgentId())]++
		if text := r.String(); !strings.Contains(text, "call-1") || strings.Contains(text, "the-real-token") {
			t.Errorf("got %s", text)
		}
	}
	if outcomes["AUDIT_OUTCOME_OK web"] < 4 || outcomes["AUDIT_OUTCOME_DENIED web"] != 2 || outcomes["AUDIT_OUTCOME_DENIED open"] != 1 {
		t.Errorf("got %v", outcomes)
	}
}
