package compose

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"github.com/loom-bridge/loom-bridge/bridge/egress"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// ProfileMCP is the profile under which servers of the Model Context Protocol run, if the
// operator has one of that name, and the agent whose workspace they have.
const ProfileMCP = "mcp"

// openMCP begins to connect to servers of the Model Context Protocol.
func (d *Domain) openMCP(engine kv.Engine, writer *kv.Writer, workspaces hand.Workspaces, o Options) error {
	var allowed sandbox.Policy
	var allowedHosts egress.Policy
	if own, ok := o.Policies.Profile(ProfileMCP); ok {
		allowed, allowedHosts = own.Sandbox(), egress.FromProfile(own)
	}
	clients, err := mcp.Start(context.Background(), map[string][]mcp.Server{o.MCPTenant: o.MCP}, mcp.Options{
		Engine: engine, Writer: writer, Runner: o.Shell.Runner, Policy: allowed, Path: o.Path, Trusted: !o.OneTenant,
		Takes: d.Tools.Takes, Called: d.Tools.Called, Count: func(t tools.Descriptor) int { return ToolTokens(d.Tokens, t) },
		Root: func(tenant string) (*os.Root, error) { return workspaces.Root(kv.AgentScope(tenant, ProfileMCP)) },
		Network: func(tenant string, s mcp.Server, configured bool) (http.RoundTripper, func(), error) {
			return MCPNetwork(d.Egress, tenant, s, configured, allowedHosts)
		},
		Key: keyFile(o.StoreDir), Secrets: o.Secrets, Logger: o.Logger, Now: o.Now,
	})
	if err != nil {
		return err
	}
	d.MCP = clients
	d.Tools.Add(clients)
	d.onClose(clients.Close)
	return nil
}

// keyFile is where the key of this machine lies. A backup of the store has it not.
func keyFile(storeDir string) string {
	if storeDir == "" {
		return ""
	}
	return filepath.Join(storeDir, "keys", "mcp-servers")
}

// MCPNetwork is the way to a server on a network. A server of the settings is reached
// anywhere. A server chosen by callers is reached on the public internet, and elsewhere only
// if the operator's profile for such servers allows it: otherwise this machine, private
// networks, and the metadata services of clouds are refused.
func MCPNetwork(gate *egress.Gate, tenant string, s mcp.Server, configured bool, profile egress.Policy) (http.RoundTripper, func(), error) {
	address, err := url.Parse(s.URL)
	if err != nil {
		return nil, nil, err
	}
	allowed, err := egress.PublicEndpoint(address)
	switch {
	case configured:
		allowed, err = egress.Endpoint(address, nil)
	case profile.Allows(address):
		allowed, err = profile, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w, and no host of [profile.%s] names it", err, ProfileMCP)
	}
	way, err := gate.Session(egress.Caller{Tenant: tenant, Agent: ProfileMCP, Tool: s.Name + ":"}, allowed)
	if err != nil {
		return nil, nil, err
	}
	return way, func() { _ = way.Close() }, nil
}

// ToolTokens is about what a tool takes in a prompt, whatever the model; 0 where it can't
// be counted.
func ToolTokens(counter *tokens.Counter, t tools.Descriptor) int {
	count, err := counter.Tools("", []tokens.ToolDefinition{{Name: t.Name, Description: t.Description, Schema: t.Schema}})
	if err != nil {
		return 0
	}
	return count.Tokens
}
