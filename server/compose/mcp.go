package compose

import (
	"net/http"
	"net/url"
	"os"

	"github.com/loom-bridge/loom-bridge/bridge/egress"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// profileMCP is the profile under which servers of the Model Context Protocol run, if the
// operator has one of that name.
const profileMCP = "mcp"

// openMCP begins to connect to servers of the Model Context Protocol.
func (d *Domain) openMCP(workspaces hand.Workspaces, o Options) {
	if len(o.MCP) == 0 {
		return
	}
	var allowed sandbox.Policy
	if o.Policies != nil {
		if own, ok := o.Policies.Profile(profileMCP); ok {
			allowed = own.Sandbox()
		}
	}
	clients := mcp.Start(o.MCP, mcp.Options{
		Tenant: o.MCPTenant, Runner: o.Shell.Runner, Policy: allowed, Takes: d.Tools.Takes, Logger: o.Logger,
		Root: func() (*os.Root, error) { return workspaces.Root(kv.AgentScope(o.MCPTenant, profileMCP)) },
		Network: func(s mcp.Server) (http.RoundTripper, func(), error) {
			address, err := url.Parse(s.URL)
			if err != nil {
				return nil, nil, err
			}
			allowed, err := egress.Endpoint(address, nil)
			if err != nil {
				return nil, nil, err
			}
			way, err := d.Egress.Session(egress.Caller{Tenant: o.MCPTenant, Agent: profileMCP, Tool: s.Name + ":"}, allowed)
			if err != nil {
				return nil, nil, err
			}
			return way, func() { _ = way.Close() }, nil
		},
	})
	d.Tools.Add(clients)
	d.onClose(clients.Close)
}
