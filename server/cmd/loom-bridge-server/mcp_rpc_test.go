package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

func (p *process) toolService() loombridgev1.ToolServiceClient {
	return loombridgev1.NewToolServiceClient(p.conn)
}

// definition is a server as ConnectMcpServer takes it, of what guest says.
func definition(name string, of object) *loombridgev1.McpServerDefinition {
	env, _ := of["env"].(map[string]string)
	command, _ := of["command"].(string)
	return &loombridgev1.McpServerDefinition{Name: name, Command: command, Env: env}
}

// ready waits until a server is ready.
func (p *process) ready(ctx context.Context, tb testing.TB, name string) *loombridgev1.McpServer {
	tb.Helper()
	var found *loombridgev1.McpServer
	eventually(tb, waitTime, func() error {
		got, err := p.toolService().ListMcpServers(ctx, &loombridgev1.ListMcpServersRequest{})
		must(tb, err)
		for _, s := range got.GetServers() {
			if found = s; s.GetDefinition().GetName() == name && s.GetState() == loombridgev1.McpServerState_MCP_SERVER_STATE_READY {
				return nil
			}
		}
		return fmt.Errorf("%v", got)
	})
	return found
}

// Servers are added, listed, refreshed and removed while the bridge serves; what was added
// is there after a restart, and secrets are never given back.
func TestMCPServersByRPC(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustServe(t, dir, object{"fixed": guest(t, dir, "good", nil)}, "--metrics-addr", "127.0.0.1:0")
	ctx := t.Context()
	added := definition("added", guest(t, dir, "good", map[string]string{"KEY": "k-secret"}))
	for range 2 { // the same again changes nothing
		_, err := p.toolService().ConnectMcpServer(ctx, &loombridgev1.ConnectMcpServerRequest{Definition: added})
		must(t, err)
	}
	got := p.ready(ctx, t, "added")
	if got.GetConfigured() || got.GetTools() == 0 || got.GetTokens() < 100 || got.GetDefinition().GetCommand() == "" || strings.Contains(got.String(), "k-secret") {
		t.Errorf("%v", got)
	}
	if s := p.ready(ctx, t, "fixed"); !s.GetConfigured() {
		t.Errorf("%v", s)
	}
	if answer := p.use(t, "added:look", `{}`); !strings.Contains(answer.GetOutputJson(), "knows ********") {
		t.Errorf("%v", answer)
	}
	list, err := p.toolService().ListTools(ctx, &loombridgev1.ListToolsRequest{AgentId: "a", Levels: []int32{2}})
	must(t, err)
	tokens := int32(0)
	for _, tool := range list.GetTools() {
		if strings.HasPrefix(tool.GetName(), "added:") {
			tokens += tool.GetTokens()
		}
	}
	if tokens != got.GetTokens() {
		t.Errorf("the tools take %d tokens, the server's %d", tokens, got.GetTokens())
	}
	figures := scrape(t, p.metrics(t))
	for name, want := range map[string]float64{"ready": 1, "tools": float64(got.GetTools()), "tool_tokens": float64(tokens)} {
		if figure := figures[`loom_bridge_mcp_server_`+name+`{server="added",tenant="default"}`]; figure != want {
			t.Errorf("the metrics have %v for %s, want %v", figure, name, want)
		}
	}

	// What can't be is refused, and changes nothing.
	add := func(d *loombridgev1.McpServerDefinition) error {
		_, err := p.toolService().ConnectMcpServer(ctx, &loombridgev1.ConnectMcpServerRequest{Definition: d})
		return err
	}
	remove := func(name string) error {
		_, err := p.toolService().RemoveMcpServer(ctx, &loombridgev1.RemoveMcpServerRequest{Name: name})
		return err
	}
	mixed := func(r *loombridgev1.ConnectMcpServerRequest) error {
		_, err := p.toolService().ConnectMcpServer(ctx, r)
		return err
	}
	other := definition("other", object{"command": "/else"})
	_, refresh := p.toolService().ConnectMcpServer(ctx, &loombridgev1.ConnectMcpServerRequest{Name: "no"})
	for name, test := range map[string]struct {
		err  error
		want codes.Code
	}{
		"another one of the name":   {add(definition("added", object{"command": "/else"})), codes.AlreadyExists},
		"one of the settings":       {remove("fixed"), codes.FailedPrecondition},
		"one that is not there":     {remove("no"), codes.NotFound},
		"a refresh of none":         {refresh, codes.NotFound},
		"nothing":                   {add(nil), codes.InvalidArgument},
		"a definition and a name":   {mixed(&loombridgev1.ConnectMcpServerRequest{Definition: other, Name: "added"}), codes.InvalidArgument},
		"its own name beside it":    {mixed(&loombridgev1.ConnectMcpServerRequest{Definition: other, Name: "other"}), codes.InvalidArgument},
		"a definition, accepted":    {mixed(&loombridgev1.ConnectMcpServerRequest{Definition: other, AcceptChanged: true}), codes.InvalidArgument},
		"neither program nor place": {add(definition("x", object{})), codes.InvalidArgument},
		"a bad name":                {add(definition("a:b", object{"command": "x"})), codes.InvalidArgument},
		"a version that is none":    {add(&loombridgev1.McpServerDefinition{Name: "x", Command: "x", ProtocolVersion: "1"}), codes.InvalidArgument},
		"headers that are none":     {add(&loombridgev1.McpServerDefinition{Name: "x", Url: "http://a.example", Headers: map[string]string{"a b": "c\nd"}}), codes.InvalidArgument},
		"a password in the address": {add(&loombridgev1.McpServerDefinition{Name: "x", Url: "http://a:b@a.example"}), codes.InvalidArgument},
		"too long":                  {add(&loombridgev1.McpServerDefinition{Name: "x", Command: strings.Repeat("x", 70<<10)}), codes.InvalidArgument},
	} {
		if status.Code(test.err) != test.want {
			t.Errorf("%s: %v, want %v", name, test.err, test.want)
		}
	}

	unchanged, err := p.toolService().ListMcpServers(ctx, &loombridgev1.ListMcpServersRequest{})
	must(t, err)
	if all := unchanged.GetServers(); len(all) != 2 || all[0].GetDefinition().GetName() != "added" || all[0].GetState() != loombridgev1.McpServerState_MCP_SERVER_STATE_READY {
		t.Errorf("what was refused left %v", all)
	}

	// A server that is gone is told as away, and can be called again after a refresh.
	_, err = p.toolService().ConnectMcpServer(ctx, &loombridgev1.ConnectMcpServerRequest{Definition: definition("dead", guest(t, dir, "dead", nil))})
	must(t, err)
	dead, err := p.toolService().ConnectMcpServer(ctx, &loombridgev1.ConnectMcpServerRequest{Name: "dead"})
	must(t, err)
	if s := dead; s.GetState() != loombridgev1.McpServerState_MCP_SERVER_STATE_AWAY || !strings.Contains(s.GetProblem(), "no key given") {
		t.Errorf("%v", s)
	}
	fresh, err := p.toolService().ConnectMcpServer(ctx, &loombridgev1.ConnectMcpServerRequest{Name: "added"})
	must(t, err)
	if fresh.GetState() != loombridgev1.McpServerState_MCP_SERVER_STATE_READY {
		t.Errorf("%v", fresh)
	}

	// Both are there after a restart; one that is removed is gone, also after the next.
	must(t, p.Stop())
	p = MustServe(t, dir, object{"fixed": guest(t, dir, "good", nil)})
	p.ready(ctx, t, "fixed")
	tools := p.ready(ctx, t, "added").GetTools()
	if tools == 0 {
		t.Error("a server that is ready has no tools")
	}
	for _, name := range []string{"added", "dead"} {
		_, err = p.toolService().RemoveMcpServer(ctx, &loombridgev1.RemoveMcpServerRequest{Name: name})
		must(t, err)
	}
	if names := p.offered(t); slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "added:") }) {
		t.Errorf("%v are offered", names)
	}
	must(t, p.Stop())
	p = MustServe(t, dir, object{"fixed": guest(t, dir, "good", nil)})
	left, err := p.toolService().ListMcpServers(ctx, &loombridgev1.ListMcpServersRequest{})
	must(t, err)
	if len(left.GetServers()) != 1 {
		t.Errorf("%v", left)
	}
}

// Who has no room left may connect anew to a server that is there, and remove it, but add none.
func TestMCPServersWithoutRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustServe(t, dir, object{"fixed": guest(t, dir, "good", nil)})
	ctx := t.Context()
	connect := func(r *loombridgev1.ConnectMcpServerRequest) error {
		_, err := p.toolService().ConnectMcpServer(ctx, r)
		return err
	}
	must(t, connect(&loombridgev1.ConnectMcpServerRequest{Definition: definition("added", guest(t, dir, "good", nil))}))
	p.ready(ctx, t, "added")
	save(t, p, "something")
	must(t, p.Stop())
	p = MustServe(t, dir, object{"fixed": guest(t, dir, "good", nil)}, "--max-store-bytes", "1")
	another := &loombridgev1.ConnectMcpServerRequest{Definition: definition("another", guest(t, dir, "good", nil))}
	eventually(t, waitTime, func() error { // when the store has been measured
		if err := connect(another); reasonOf(err) != "QUOTA_EXCEEDED" {
			_, _ = p.toolService().RemoveMcpServer(ctx, &loombridgev1.RemoveMcpServerRequest{Name: "another"})
			return fmt.Errorf("add: %w", err)
		}
		return nil
	})
	for _, name := range []string{"fixed", "added"} {
		must(t, connect(&loombridgev1.ConnectMcpServerRequest{Name: name}))
	}
	must(t, connect(&loombridgev1.ConnectMcpServerRequest{Name: "added", AcceptChanged: true}))
	_, err := p.toolService().RemoveMcpServer(ctx, &loombridgev1.RemoveMcpServerRequest{Name: "added"})
	must(t, err)
}

// With authentication only who runs the server changes servers, each tenant has its own,
// and one that was added reaches no private network.
func TestMCPServersBelongToTenants(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var file strings.Builder
	for _, c := range []struct{ token, tenant, more string }{{"boss", "one", "operates = true"}, {"other", "two", "operates = true"}, {"agent", "one", ""}} {
		sum := sha256.Sum256([]byte(c.token))
		fmt.Fprintf(&file, "[[credential]]\ntoken_sha256 = %q\ntenant = %q\nagents = [\"a\"]\n%s\n", hex.EncodeToString(sum[:]), c.tenant, c.more)
	}
	credentials := filepath.Join(dir, "credentials.toml")
	must(t, os.WriteFile(credentials, []byte(file.String()), 0o600))
	must(t, os.MkdirAll(filepath.Join(dir, "one"), 0o755))
	p := MustServe(t, dir, object{}, "--credentials", credentials)
	as := func(token string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
	}
	program := definition("mine", guest(t, filepath.Join(dir, "one"), "good", map[string]string{"KEY": "k"}))
	if _, err := p.toolService().ConnectMcpServer(as("agent"), &loombridgev1.ConnectMcpServerRequest{Definition: program}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("an agent adds a server: %v", err)
	}
	_, err := p.toolService().ConnectMcpServer(as("boss"), &loombridgev1.ConnectMcpServerRequest{Definition: program})
	must(t, err)
	p.ready(as("boss"), t, "mine")
	if s := p.ready(as("agent"), t, "mine"); s.GetDefinition().GetCommand() != "" || len(s.GetDefinition().GetEnv()) > 0 {
		t.Errorf("an agent sees %v", s)
	}
	got, err := p.bridge().Tool(as("agent"), &loombridgev1.ToolRequest{AgentId: "a", Name: "mine:echo"})
	must(t, err)
	if !got.GetSuccess() {
		t.Errorf("%v", got)
	}
	if _, err := p.bridge().Tool(as("other"), &loombridgev1.ToolRequest{AgentId: "a", Name: "mine:echo"}); status.Code(err) != codes.NotFound {
		t.Errorf("another tenant: %v", err)
	}
	for token, want := range map[string]codes.Code{"agent": codes.PermissionDenied, "other": codes.NotFound} {
		if _, err := p.toolService().RemoveMcpServer(as(token), &loombridgev1.RemoveMcpServerRequest{Name: "mine"}); status.Code(err) != want {
			t.Errorf("%s removes: %v", token, err)
		}
		if _, err := p.toolService().ConnectMcpServer(as(token), &loombridgev1.ConnectMcpServerRequest{Name: "mine"}); status.Code(err) != want {
			t.Errorf("%s refreshes: %v", token, err)
		}
	}
	asked := atomic.Bool{}
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
	defer private.Close()
	for _, address := range []string{private.URL, "http://169.254.169.254/latest", "http://[::1]:1/mcp", "http://10.0.0.1/mcp", "http://[::ffff:127.0.0.1]:1/mcp"} {
		_, err = p.toolService().ConnectMcpServer(as("boss"), &loombridgev1.ConnectMcpServerRequest{Definition: &loombridgev1.McpServerDefinition{Name: "near", Url: address}})
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", address, err)
		}
	}
	if asked.Load() {
		t.Error("the server has asked an address of its own machine")
	}
}

// The settings file names servers in tables, and doctor tells how each is.
func TestMCPServersInTables(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one := guest(t, dir, "good", nil)
	file := filepath.Join(dir, "loom.toml")
	write := func(text string) { must(t, os.WriteFile(file, []byte(text), 0o600)) }
	write(fmt.Sprintf("[mcp.tabled]\ncommand = %q\nenv = { %s = \"good\", KEY = \"env:MY_KEY\" }\n[mcp.keyless]\nurl = \"https://a.example\"\nheaders = { A = \"env:NOT_SET\" }\n", one["command"], asMCPServer))
	env := environment{vars: map[string]string{"MY_KEY": "k-7"}}
	p := MustRunIn(t, env, "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "store"), "--workspace", dir, "--config", file)
	p.waitFor(t, "tabled:look")
	if got := p.forward(t, "tabled:look", `{}`); !strings.Contains(got.GetOutput(), "knows k-7") {
		t.Errorf("%v", got)
	}
	p.told(t, "mcp.keyless: A: the variable NOT_SET is not set")
	must(t, p.Stop())
	var out strings.Builder
	_ = run(t.Context(), []string{"doctor", "--jobs=false", "--config", file, "--workspace", dir, "--mcp-servers", `{"gone":{"command":"/no/such/program"}}`}, environment{vars: map[string]string{"MY_KEY": "k"}}, &out, &out)
	for _, want := range []string{"MCP server tabled: ready (good 1, protocol 2026-07-28), 7 tools that take ", "MCP server gone: away ", "MCP server left out: mcp: mcp.keyless"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("doctor lacks %q: %s", want, out.String())
		}
	}
	for _, bad := range []string{"[mcp.x]\n", "[mcp.x]\ncommand = 7\n", "[mcp.x]\ncommand = \"a\"\ncolour = \"red\"\n", "[mcp.\"a:b\"]\ncommand = \"a\"\n", "[mcp]\nx = 1\n"} {
		write(bad)
		if err := runBriefly(t, "--addr=127.0.0.1:0", "--config="+file, "--data-dir="+t.TempDir(), "--workspace="+dir); err == nil || !strings.Contains(err.Error(), "mcp") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
