package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	client "github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/mcp"
)

const (
	// envToken is the bearer token of a host's calls. It is no flag: others see those.
	envToken = "LOOM_BRIDGE_TOKEN"
	// reachTime is how long a server that runs already may take to answer.
	reachTime = 10 * time.Second
	// restartAfter is the time between two attempts to start a server in the place of
	// one that has ended.
	restartAfter = 500 * time.Millisecond
)

// shim speaks to one host over standard input and output, and to a server over gRPC.
type shim struct {
	config Config
	env    environment
	stdin  io.ReadCloser
	stdout io.Writer
	stderr io.Writer

	agent, session, authority string
}

// mcpCommand serves one host of the Model Context Protocol.
func mcpCommand(env environment, stdout, stderr io.Writer) *cobra.Command {
	s := &shim{env: env, stdin: os.Stdin, stdout: stdout, stderr: stderr}
	command := &cobra.Command{
		Use:   "mcp",
		Short: "Serve one host of the Model Context Protocol on standard input and output",
		Long: "Serve one host of the Model Context Protocol on standard input and output: it is what\n" +
			"a host starts. The calls go to the server on --addr. Without --addr all hosts that\n" +
			"work on one data directory share a server, which the first of them starts, with the\n" +
			"settings of a server, and the next takes over. A loopback address at which nobody\n" +
			"answers is served in the same way. " + envToken + " is the token of the calls.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := loadConfig(cmd.Flags(), env.get)
			if err != nil {
				return err
			}
			config.MCPServers = cmp.Or(config.MCPServers, env.get(envMCPServers))
			s.config = config
			if !cmd.Flags().Changed("addr") && env.get(envName("addr")) == "" && config.Addr == NewConfig().Addr {
				if s.config.Addr, err = ownSocket(config.DataDir); err != nil {
					return err
				}
			}
			return s.run(cmd.Context())
		},
	}
	command.Flags().AddFlagSet(configFlags())
	command.Flags().StringVar(&s.agent, "agent", mcp.DefaultAgent, "who the host acts as")
	command.Flags().StringVar(&s.session, "session", mcp.DefaultSession, "the session of its calls")
	command.Flags().StringVar(&s.authority, "server-ca", "", "PEM file of authorities: the server on --addr is spoken to over TLS")
	return command
}

// ownSocket is the socket that the hosts of one data directory share. It lies where no
// confined tool gets, in a folder that nobody else may enter.
func ownSocket(dataDir string) (string, error) {
	store, err := filepath.Abs(dataDir)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), os.TempDir()), fmt.Sprintf("loom-bridge-%d", os.Getuid()))
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(folder)
	if err != nil {
		return "", err
	}
	if !info.IsDir() || info.Mode().Perm() != 0o700 || !ownedByUs(info) {
		return "", fmt.Errorf("%s is there and is not a folder of this user alone; give --addr", folder)
	}
	hash := sha256.Sum256([]byte(store))
	return "unix:" + filepath.Join(folder, hex.EncodeToString(hash[:8])+".sock"), nil
}

// run serves the host until it leaves or ctx ends.
func (s *shim) run(ctx context.Context) error {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	conn, err := s.dial()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		leave(s.keep(ctx, conn))
	}()
	host := mcp.New(conn, &mcp.Options{Agent: s.agent, Session: s.session, Token: s.env.get(envToken), Version: buildVersion()})
	err = host.Run(ctx, &sdk.IOTransport{Reader: s.stdin, Writer: keepOpen{s.stdout}})
	cause := context.Cause(ctx)
	leave(nil)
	<-ended
	if cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// keepOpen is a writer that is not closed with the session.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// dial connects to the server, whether or not it is there yet: calls wait for it.
func (s *shim) dial() (*grpc.ClientConn, error) {
	security := insecure.NewCredentials()
	if s.authority != "" {
		pem, err := os.ReadFile(s.authority)
		if err != nil {
			return nil, fmt.Errorf("--server-ca: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--server-ca: %s holds no certificate", s.authority)
		}
		security = credentials.NewTLS(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
	}
	if s.authority == "" && s.env.get(envToken) != "" && !s.local() {
		return nil, errors.New("a token would travel in plain text to another machine; give --server-ca")
	}
	quickly := backoff.Config{BaseDelay: restartAfter / 10, Multiplier: 1.5, MaxDelay: restartAfter}
	conn, err := grpc.NewClient(s.target(), grpc.WithTransportCredentials(security),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: quickly, MinConnectTimeout: reachTime}),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		return nil, &ConfigError{"addr", s.config.Addr, err.Error()}
	}
	return conn, nil
}

// target is the address as gRPC names it.
func (s *shim) target() string {
	if network, address, _ := splitAddr(s.config.Addr); network == "tcp" {
		return address
	}
	return s.config.Addr
}

// local tells whether the server is one of this machine.
func (s *shim) local() bool {
	network, address, _ := splitAddr(s.config.Addr)
	return network == "unix" || strings.HasPrefix(address, "127.") || strings.HasPrefix(address, "localhost:") || strings.HasPrefix(address, "[::1]:")
}

// keep sees to it that a server answers until ctx ends: where none does, it serves
// itself. It returns an error when there is none and none can be started at first.
func (s *shim) keep(ctx context.Context, conn *grpc.ClientConn) error {
	var reached atomic.Bool
	for {
		if s.reach(ctx, conn) {
			reached.Store(true)
			for state := connectivity.Ready; state == connectivity.Ready && conn.WaitForStateChange(ctx, state); {
				state = conn.GetState()
			}
			if ctx.Err() == nil {
				conn.Connect()
				continue
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if !s.local() || s.authority != "" {
			if !reached.Load() {
				return fmt.Errorf("no server answers at %s", s.config.Addr)
			}
			pause(ctx)
			continue
		}
		// Serving ends with ctx, or at once where another host was faster.
		err := s.serve(ctx, conn, &reached)
		if err != nil && !reached.Load() && !s.reach(ctx, conn) {
			return err
		}
	}
}

// reach tells whether the server answers. It waits for a while as long as that is open.
func (s *shim) reach(ctx context.Context, conn *grpc.ClientConn) bool {
	wait, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	for {
		conn.Connect()
		state := conn.GetState()
		if state == connectivity.Ready || state == connectivity.TransientFailure {
			return state == connectivity.Ready
		}
		if !conn.WaitForStateChange(wait, state) {
			return false
		}
	}
}

// serve is a server in this process, as without a sub-command, until ctx ends. Its
// output is the host's.
func (s *shim) serve(ctx context.Context, conn *grpc.ClientConn, reached *atomic.Bool) error {
	env := s.env.withDotenv(s.config.Workspace)
	listening := announced(func() { reached.Store(true); conn.ResetConnectBackoff() })
	err := serve(ctx, s.config, env, &listening, s.stderr)
	if err != nil && reached.Load() && ctx.Err() == nil {
		_, _ = fmt.Fprintln(s.stderr, "loom-bridge-server:", err)
	}
	if reached.Load() {
		pause(ctx)
	}
	return err
}

// pause waits until the next attempt.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(restartAfter):
	}
}

// announced is called when a server says that it listens.
type announced func()

func (a *announced) Write(p []byte) (int, error) {
	(*a)()
	return len(p), nil
}

// envMCPServers is where agents of loom.v1 say which MCP servers there are.
const envMCPServers = "LOOM_MCP_SERVERS"

// mcpServers are the servers whose tools agents of a tenant call. One that can't be used
// is no reason not to start.
func (c Config) mcpServers(known *auth.Credentials, logger *slog.Logger) (servers []client.Server, tenant string) {
	if c.MCPServers == "" {
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
	servers, bad, err := client.Parse(c.MCPServers)
	for _, err := range append(bad, err) {
		if err != nil {
			logger.Warn("an MCP server is left out", "error", err)
		}
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
