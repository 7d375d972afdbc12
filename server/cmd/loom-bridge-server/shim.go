package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/socket"
	"github.com/loom-bridge/loom-bridge/server/hosts"
	"github.com/loom-bridge/loom-bridge/server/mcp"
)

const (
	// envToken is the bearer token of a host's calls. It is no flag: others see those.
	envToken = "LOOM_BRIDGE_TOKEN"
	// reachTime is how long a server that runs already may take to answer.
	reachTime = 10 * time.Second
	// greetTime is how long a command waits for a server, which may be starting.
	greetTime = 5 * time.Second
	// restartAfter is the time between two attempts to start a server in the place of
	// one that has ended.
	restartAfter = 500 * time.Millisecond
	// takeoverTime is how long another server that ends may hold the store: as long as a
	// stop takes, and a little.
	takeoverTime = stopTime + 500*time.Millisecond
	// stopTime is what a server promises to stop in.
	stopTime = 2 * time.Second
)

// shim speaks to one host over standard input and output, and to a server over gRPC.
type shim struct {
	config Config
	env    environment
	stdin  io.ReadCloser
	stdout io.Writer
	stderr io.Writer

	agent, session, authority string
	asked                     *pflag.FlagSet // the settings of a command that asks a server
	projectOf                 string         // a host; empty: the folder that the command works in is the project
}

// flags gives a command the flags of a server, and the flag for the host's identity.
func (s *shim) flags(command *cobra.Command) {
	command.Flags().AddFlagSet(configFlags())
	command.Flags().StringVar(&s.agent, "agent", "", "`id` of who the host acts as; none: the first that the token's credential names in full, or "+mcp.DefaultAgent)
	command.Flags().StringVar(&s.session, "session", mcp.DefaultSession, "`id` of the session of its calls")
	command.Flags().StringVar(&s.projectOf, hosts.ProjectFlag, "", "`host` whose project this is: the nearest folder, here or above, in which mcp install wrote for it")
	command.Flags().StringVar(&s.authority, "server-ca", "", "PEM `file` of authorities: the server on --addr is spoken to over TLS")
}

// configure reads the settings. What they don't name lies in the project, if there is one.
func (s *shim) configure(cmd *cobra.Command, project string) (err error) {
	if s.config, err = loadConfig(cmd.Flags(), s.env.get); err != nil {
		return err
	}
	s.config.StoreWait = takeoverTime
	if s.projectOf != "" {
		if project, err = hosts.ProjectOf(s.projectOf, cmp.Or(project, ".")); err != nil {
			return err
		}
	}
	if project != "" {
		s.config = s.config.inProject(project)
	}
	if cmd.Flags().Changed("addr") || s.env.get(envName("addr")) != "" || s.config.Addr != NewConfig().Addr {
		return nil
	}
	path, err := socket.Path(s.config.DataDir)
	s.config.Addr = "unix:" + path
	return err
}

// run serves the host until it leaves or ctx ends.
func (s *shim) run(ctx context.Context) error {
	err := s.with(ctx, func(ctx context.Context, conn *grpc.ClientConn) error {
		host := mcp.New(conn, &mcp.Options{Agent: s.actsAs(ctx, conn), Session: s.session, Token: s.env.get(envToken), Version: buildVersion()})
		return host.Run(ctx, mcp.Stdio(s.stdin, s.stdout))
	})
	if errors.Is(err, context.Canceled) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// with does something over a connection to the server, which this process is itself where
// no one else is.
func (s *shim) with(ctx context.Context, do func(ctx context.Context, conn *grpc.ClientConn) error) error {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	conn, err := s.dial(grpc.WaitForReady(true)) // it may be this process that serves soon
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		leave(s.keep(ctx, conn))
	}()
	err = do(ctx, conn)
	cause := context.Cause(ctx)
	leave(nil)
	<-ended
	if cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// actsAs is the agent that the host acts as. Who has a token and names none asks the server.
func (s *shim) actsAs(ctx context.Context, conn *grpc.ClientConn) string {
	if s.agent != "" || s.env.get(envToken) == "" {
		return cmp.Or(s.agent, mcp.DefaultAgent)
	}
	var header metadata.MD
	_, err := loombridgev1.NewToolServiceClient(conn).ListTools(s.authorized(ctx), &loombridgev1.ListToolsRequest{PageSize: 1}, grpc.Header(&header))
	if named := header.Get(auth.AgentKey); err == nil && len(named) > 0 {
		return named[0]
	}
	return mcp.DefaultAgent
}

// connect connects to the server of the settings, or of the data directory where they name
// no address; ctx then has the caller's token. One that
// does not answer within greetTime is an error.
func (s *shim) connect(ctx context.Context) (_ context.Context, _ *grpc.ClientConn, err error) {
	if s.config, err = s.load(); err != nil {
		return nil, nil, err
	}
	// The default address is that of the server of this directory, wherever it listens.
	looked := ""
	if s.config.Addr == NewConfig().Addr && s.authority == "" {
		if path, err := socket.Path(s.config.DataDir); err == nil && socket.Answers(path) {
			s.config.Addr = "unix:" + path
		}
		looked = fmt.Sprintf(", and none serves the data directory %s", absolute(s.config.DataDir))
	}
	return s.greet(ctx, looked)
}

// greet connects to the server of s.config; looked says where another one was looked for.
func (s *shim) greet(ctx context.Context, looked string) (context.Context, *grpc.ClientConn, error) {
	conn, err := s.dial()
	if err != nil {
		return nil, nil, err
	}
	wait, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	for !s.reach(wait, conn) {
		if wait.Err() != nil {
			_ = conn.Close()
			return nil, nil, unreachableError{fmt.Errorf("no server answers at %s%s; is one running there (loom-bridge-server --addr %[1]s), and do both sides agree on TLS?", s.config.Addr, looked)}
		}
		conn.WaitForStateChange(wait, connectivity.TransientFailure)
	}
	return s.authorized(ctx), conn, nil
}

// authorized adds the caller's token to ctx, if there is one.
func (s *shim) authorized(ctx context.Context) context.Context {
	if token := s.env.get(envToken); token != "" {
		return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	return ctx
}

// dial connects to the server, whether or not it is there yet.
func (s *shim) dial(calls ...grpc.CallOption) (*grpc.ClientConn, error) {
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
		grpc.WithDefaultCallOptions(calls...))
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

// local reports whether the server is one of this machine.
func (s *shim) local() bool {
	network, address, _ := splitAddr(s.config.Addr)
	return network == "unix" || strings.HasPrefix(address, "127.") || strings.HasPrefix(address, "localhost:") || strings.HasPrefix(address, "[::1]:")
}

// keep sees to it that a server answers until ctx ends: where none does, it serves
// itself. It returns an error when there is none and none can be started at first, be it
// because another one that ends is still in the way for too long.
func (s *shim) keep(ctx context.Context, conn *grpc.ClientConn) error {
	var reached atomic.Bool
	began := time.Now()
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
			kv.Sleep(ctx, restartAfter)
			continue
		}
		// Serving ends with ctx, or at once where another host was faster.
		err := s.serve(ctx, conn, &reached)
		if err == nil || reached.Load() || s.reach(ctx, conn) {
			continue
		}
		if _, taken := errors.AsType[takenError](err); !taken || time.Since(began) > reachTime {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(restartAfter / 10):
		}
	}
}

// reach reports whether the server answers. It waits for a while as long as that is open.
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
		kv.Sleep(ctx, restartAfter)
	}
	return err
}

// announced is called when a server says that it listens.
type announced func()

func (a *announced) Write(p []byte) (int, error) {
	(*a)()
	return len(p), nil
}

const (
	localHelp = `Serve the program that starts this, until that closes standard input or ends. The first line on
standard output is "listening on" and the address.

All programs and hosts that work on one data directory share a server: it is one that runs
already, or else the first of them starts it, and the next takes over. A server that is
started without a command is found as well.`

	localExamples = `  loom-bridge-server local
  loom-bridge-server local --data-dir ./.loom/store --workspace .`
)

// localCommand is a server for the program that starts it.
func localCommand(env environment, stdout, stderr io.Writer) *cobra.Command {
	s := &shim{env: env, stdin: os.Stdin, stdout: stdout, stderr: stderr}
	command := &cobra.Command{
		Use: "local", Short: "Serve the program that starts this, and end with it",
		Long: localHelp, Example: localExamples, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.configure(cmd, ""); err != nil {
				return err
			}
			if err := s.config.programs(env.get); err != nil {
				return err
			}
			if s.config.LogLevel == NewConfig().LogLevel {
				s.config.LogLevel = "warn" // standard error is the program's
			}
			return s.with(cmd.Context(), s.accompany)
		},
	}
	command.Flags().AddFlagSet(configFlags())
	return command
}

// accompany says where the server is, once it answers, and waits for the program's end.
func (s *shim) accompany(ctx context.Context, conn *grpc.ClientConn) error {
	if _, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{}); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(s.stdout, "listening on", s.config.Addr); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, s.stdin)
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}
