package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loom-bridge/loom-bridge/bridge/egress"
	client "github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

// mcpCommand serves one host of the Model Context Protocol, and writes the configuration
// of hosts.
func mcpCommand(env environment, stdout, stderr io.Writer) *cobra.Command {
	s := &shim{env: env, stdin: os.Stdin, stdout: stdout, stderr: stderr}
	command := &cobra.Command{
		Use:     "mcp",
		Short:   "Serve one host of the Model Context Protocol on standard input and output",
		Long:    mcpHelp,
		Example: mcpExamples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.configure(cmd, ""); err != nil {
				return err
			}
			if err := s.config.programs(env.get); err != nil {
				return err
			}
			return s.run(cmd.Context())
		},
	}
	s.flags(command)
	command.AddCommand(installCommands(env, stdout)...)
	return command
}

const (
	mcpHelp = `Serve one host of the Model Context Protocol on standard input and output: it is what a
host such as Claude Code, Codex, Cursor or VS Code starts. ` + "`mcp install HOST`" + ` writes that
into the host's own configuration.

The calls go to the server on --addr. Without --addr all hosts that work on one data
directory share a server, which the first of them starts, with the settings of a server,
and the next takes over. A loopback address without a server is served in the same
way. ` + envToken + ` is the token of the calls.`

	mcpExamples = `  loom-bridge-server mcp install claude-code
  loom-bridge-server mcp install codex --scope user
  loom-bridge-server mcp install cursor --print
  loom-bridge-server mcp uninstall vscode
  loom-bridge-server mcp --data-dir ./.loom/store --workspace . --agent anna`
)

// envMCPServers is where agents of loom.v1 say which MCP servers there are.
const envMCPServers = "LOOM_MCP_SERVERS"

// envPath is where programs are looked for.
const envPath = "PATH"

// programs adds what the environment says of programs: the MCP servers, unless the settings
// have some, and where programs are looked for. Servers that can't be read at all are an
// error. Their text is not shown: it may hold keys.
func (c *Config) programs(getenv func(string) string) error {
	from := "--mcp-servers (" + envName("mcp-servers") + ")"
	if c.MCPServers == "" {
		c.MCPServers, from = getenv(envMCPServers), envMCPServers
	}
	c.ProgramPath = getenv(envPath)
	if c.MCPServers == "" {
		return nil
	}
	if _, _, err := client.Parse(c.MCPServers); err != nil {
		return fmt.Errorf(`%s: %w; give JSON such as {"files":{"command":"mcp-server-filesystem","args":["."]}}, or nothing`, from, err)
	}
	return nil
}

// mcpServers are the servers of the settings whose tools agents of a tenant call: first
// loom.v1's list, then the tables whose names are not in the list. An unusable one does not
// prevent the start.
func (c Config) mcpServers(known *auth.Credentials, logger *slog.Logger) (servers []client.Server, tenant string) {
	if c.MCPServers == "" && len(c.Hosted) == 0 {
		return nil, ""
	}
	tenant = auth.DefaultTenant
	if known != nil {
		tenant = c.LoomTenant
		if all := known.Tenants(); tenant == "" && len(all) == 1 {
			tenant = all[0]
		}
	}
	if tenant == "" {
		logger.Warn("MCP servers are not started: with several tenants, --loom-tenant says whose they are")
		return nil, ""
	}
	servers, bad := c.toolServers()
	for _, err := range bad {
		logger.Error("an MCP server is left out", "error", err)
	}
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.Name
	}
	if len(names) > 0 {
		logger.Info("Loading MCP servers from "+envMCPServers, "servers", strings.Join(names, ", "))
	}
	return servers, tenant
}

// toolServers are the servers of the settings, and why others are left out.
func (c Config) toolServers() (servers []client.Server, bad []error) {
	if c.MCPServers != "" {
		var err error
		if servers, bad, err = client.Parse(c.MCPServers); err != nil { // programs has read them
			bad = append(bad, err)
		}
	}
	for _, s := range c.Hosted {
		if !slices.ContainsFunc(servers, func(o client.Server) bool { return o.Name == s.Name }) {
			servers = append(servers, s)
		}
	}
	if len(servers) > client.MaxServers {
		bad = append(bad, fmt.Errorf("mcp: %d servers, at most %d: the last are left out", len(servers), client.MaxServers))
		servers = servers[:client.MaxServers]
	}
	return servers, append(bad, c.NotHosted...)
}

// doctorServers bounds how long doctor waits for the servers.
const doctorServers = 45 * time.Second

// tellServers connects to the servers of the settings, confined by runner, and says how each
// is. Those that were added to a running server are not among them.
func (c Config) tellServers(ctx context.Context, runner sandbox.Runner, stdout io.Writer) error {
	servers, bad := c.toolServers()
	for _, err := range bad {
		fmt.Fprintf(stdout, "MCP server left out: %s\n", err)
	}
	if len(servers) == 0 {
		return nil
	}
	counter, err := tokens.New(nil)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(c.Workspace)
	if err != nil {
		return &ConfigError{"workspace", c.Workspace, err.Error()}
	}
	defer root.Close()
	gate := egress.New(nil)
	defer gate.Close()
	var allowed sandbox.Policy
	if own, ok := c.Policies.Profile(compose.ProfileMCP); ok {
		allowed = own.Sandbox()
	}
	clients, err := client.Start(ctx, map[string][]client.Server{auth.DefaultTenant: servers}, client.Options{
		Runner: runner, Policy: allowed, Path: c.ProgramPath, Root: func(string) (*os.Root, error) { return root, nil },
		Network: func(tenant string, s client.Server, _ bool) (http.RoundTripper, func(), error) {
			return compose.MCPNetwork(gate, tenant, s, true, egress.Policy{})
		},
		Count: func(t tools.Descriptor) int { return compose.ToolTokens(counter, t) },
	})
	if err != nil {
		return err
	}
	defer clients.Close()
	ctx, cancel := context.WithTimeout(ctx, doctorServers)
	defer cancel()
	for _, s := range clients.Settle(ctx, auth.DefaultTenant) {
		if s.State != client.Ready {
			fmt.Fprintf(stdout, "MCP server %s: %s %s\n", s.Name, s.State, s.Problem)
			continue
		}
		fmt.Fprintf(stdout, "MCP server %s: ready (%s, protocol %s), %d tools that take %d tokens, %d left out\n", s.Name, s.Identity, s.Protocol, s.Tools, s.Tokens, s.LeftOut)
	}
	return nil
}
