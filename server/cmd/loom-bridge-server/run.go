package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/loom-bridge/loom-bridge/bridge/approval"
	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/bridge/erasure/live"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/jobs"
	"github.com/loom-bridge/loom-bridge/bridge/retention"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/throttle"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/logs"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/moves"
	"github.com/loom-bridge/loom-bridge/server/compose"
	"github.com/loom-bridge/loom-bridge/server/observe"
)

// stopReserve is the time that cancelled calls get at shutdown, on top of the
// drain: a tool may finish a write that has begun.
const stopReserve = 600 * time.Millisecond

// closeReserve is the time that closing gets when calls were cut off: with drain and
// stopReserve it stays within what a stop may take.
const closeReserve = 200 * time.Millisecond

// run is the whole program: it returns when ctx ends and everything is stored
// and closed, or when something can't be started.
func run(ctx context.Context, args []string, env environment, stdout, stderr io.Writer) error {
	return runWith(ctx, args, env, stdout, stderr, serve)
}

// runWith is run with what serves the settings.
func runWith(ctx context.Context, args []string, env environment, stdout, stderr io.Writer, serve func(ctx context.Context, config Config, env environment, stdout, stderr io.Writer) error) error {
	root := &cobra.Command{
		Use:               "loom-bridge-server",
		Short:             "Serve memory, context, tools and events to agents over gRPC",
		Version:           buildVersion(),
		Args:              cobra.NoArgs,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := loadConfig(cmd.Flags(), env.get)
			if err != nil {
				return err
			}
			own := env
			env := env.withDotenv(config.Workspace)
			if config, err = loadConfig(cmd.Flags(), env.get); err != nil {
				return err
			}
			// What starts programs never comes from a file that agents can write.
			if err := config.programs(own.get); err != nil {
				return err
			}
			return serve(cmd.Context(), config, env, stdout, stderr)
		},
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", suggestFlag(cmd.Flags(), err), cmd.CommandPath())}
	})
	root.Flags().AddFlagSet(configFlags())
	root.AddCommand(checkCommand(env.get, stdout, stderr), repairCommand(env.get, stdout, stderr),
		exportCommand(env.get, stdout, stderr), doctorCommand(env.get, stdout), auditCommand(env.get, stdout), mcpCommand(env, stdout, stderr), localCommand(env, stdout, stderr),
		hookCommand(env, stdout, stderr), approvalsCommand(env, stdout), importCommand(env, stdout, stderr), recordsCommand(env, stdout, stderr), sessionsCommand(env, stdout, stderr), syncCommand(env, stdout, stderr), scopesCommand(env, stdout), backupCommand(env, stdout, stderr),
		eraseCommand(env.get, stdout), moves.Command(moves.Options{Refuse: refuse, Held: nameHolder, Out: stdout, Progress: stderr}), workspaceCommand(env, stdout), healthCommand(env, stdout))
	root.AddCommand(viewCommands(env, stdout, stderr)...)
	addHelp(root)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return suggestCommand(root.ExecuteContextC(ctx))
}

// serve opens everything, in order, serves until ctx ends, and closes
// everything in reverse. It holds the address before it touches the store.
func serve(ctx context.Context, config Config, env environment, stdout, stderr io.Writer) (err error) {
	var writers, opened closers
	defer func() { err = errors.Join(err, opened.close(), writers.close()) }()

	secrets := config.secrets()
	output, console := logs.NewWriter(stdout, secrets), logs.NewWriter(stderr, secrets)
	writers.add(output.Close)
	writers.add(console.Close)
	level, _ := parseLevel(config.LogLevel)
	logger := logs.NewLogger(console, level, config.LogFormat)

	if err := config.checkServedBackups(); err != nil {
		return err
	}
	credentials, transport, err := security(config)
	if err != nil {
		return err
	}
	opened.add(reloadOnHangup(credentials, transport, logger))
	listener, err := listen("addr", config.Addr)
	if err != nil {
		return config.usedToo(err)
	}
	opened.add(ignoreClosed(listener.Close))
	if credentials == nil && !config.TrustNetwork && !local(listener.Addr()) {
		return fmt.Errorf("--addr (%s) %q: %w; give --credentials, a loopback address such as 127.0.0.1:50051,"+
			" or --trust-network if only your agents can reach it",
			envName("addr"), config.Addr, server.ErrOpenToAll)
	}

	served := listeners{grpc: listener}
	if served.http, err = config.listenHTTP(logger); err != nil {
		return err
	}
	if served.http != nil {
		opened.add(ignoreClosed(served.http.Close))
	}
	if config.Ephemeral {
		if config.DataDir, err = makeEphemeral(&opened); err != nil {
			return err
		}
	}
	engine, err := config.joinStore(ctx, addressOf(listener), logger)
	if err != nil {
		return config.orEphemeral(err)
	}
	opened.add(engine.Close)
	others, stopJoining, err := config.Mesh.Open(ctx, registry.Of(engine), logger)
	if err != nil {
		return &ConfigError{keyMesh, config.Mesh.Mesh, err.Error()}
	}
	opened.add(stopJoining)
	opened.add(others.Close) // the domain has closed it, unless it was not opened
	places, err := hand.OpenFolders(config.Workspace, &hand.FolderOptions{PerTenant: credentials != nil, Store: config.DataDir})
	if err != nil {
		return &ConfigError{"workspace", config.Workspace, err.Error() + "; give a directory that exists and that the server may use"}
	}
	opened.add(places.Close)
	models, err := tokens.LoadModels(config.Models)
	if err != nil {
		return &ConfigError{"models", config.Models, err.Error()}
	}
	reduction, err := config.reduction()
	if err != nil {
		return err
	}
	language, err := config.language()
	if err != nil {
		return err
	}
	config, embedder, err := config.chooseEmbedder(ctx, engine)
	if err != nil {
		return err
	}
	metrics, metricsAddress, err := startMetrics(config, served.http, &opened)
	if err != nil {
		return err
	}
	traces, err := config.traces(ctx, logger, &opened)
	if err != nil {
		return err
	}
	runner := newRunner(config, logger)
	opened.add(runner.Close)
	confinement, shell, err := openSandbox(ctx, config, runner, logger)
	if err != nil {
		return err
	}
	asks, err := config.Web.options()
	if err != nil {
		return err
	}
	hosted, hostedFor := config.mcpServers(credentials, logger)
	config.Limits.MaxAnswerBytes = cmp.Or(config.Limits.MaxAnswerBytes, config.Limits.MaxRequestBytes)
	shares := server.NewShares(config.Limits, credentials == nil)
	parts, err := compose.Open(engine, places, &compose.Options{
		StoreDir: config.DataDir, Secrets: secrets, Mesh: others, MCP: hosted, MCPTenant: hostedFor, Path: config.ProgramPath, Shell: shell, Web: &asks, Egress: config.Web.egress(credentials == nil, env.get), Models: models, Reduction: reduction, History: config.history(), CloseSessions: config.SessionIdleTTL, EndSessions: config.SessionEndAfter, ToolLevels: config.LevelOf, Compress: config.compress(), Blobs: config.Blobs,
		Assemble: assemble.Options{Reference: config.ownPreset().Reference, ToolResultTokens: config.ToolResultMaxTokens, CacheBytes: config.cacheBytes()},
		Memory:   config.memory(language, metrics.CountEmbedder(embedder)), KnowledgeEndpoint: config.KnowledgeEndpoint, Logger: logger,
		Shares: shares, OneTenant: credentials == nil, HolderOf: holders(credentials),
		Children: children.Options{Grace: config.ChildGrace}, OwnWorkspaces: config.OwnWorkspace,
		Jobs:    jobs.Options{MaxRunning: config.Sharing.MaxJobs},
		Erasure: live.Options{Version: buildVersion(), Backups: config.knownBackups},
		Audit:   audit.Options{Retention: config.AuditRetention}, Retention: retention.Options{Records: config.RetainRecords, Sessions: config.RetainSessions}, Policies: config.Policies, Approval: approval.Options{Wait: config.ApprovalTimeout},
		Hand: hand.Options{Redact: config.Redact, MaxResultBytes: config.MaxResultBytes, MaxRunning: config.Sharing.MaxTools, Limits: throttle.New(config.Sharing.ToolLimits, nil)},
		Events: events.Options{
			Retention: config.Retention, MaxQueuedBytes: cmp.Or(config.Sharing.MaxQueuedEventBytes, int64(config.Limits.MaxRequestBytes)), MaxSubscriptions: config.Limits.MaxStreams,
		},
		Disk: share.Disk{Tenants: tenants(config, credentials), MaxBytes: config.Sharing.MaxStoreBytes, Every: config.Sharing.StoreCheckInterval},
	})
	if err != nil {
		return config.levelError(err)
	}
	opened.add(parts.Close)
	config.warnOfTools(parts.Registry, parts.MCP.All(), logger)
	if err := recoverCalls(ctx, parts.Hand, logger); err != nil {
		return err
	}

	logHealth(engine.Health(), logger, &opened)
	scrub := startScrub(config, engine, logger, &opened)
	copies, err := startBackups(config, engine, logger, &opened)
	if err != nil {
		return err
	}
	opened.add(metrics.Watch(parts, engine, scrub, logger))
	metrics.WatchBackups(copies)
	metrics.WatchMesh(others)
	metrics.WatchRedaction(config.Redact)
	options := server.Options{
		Limits: config.Limits, Shares: shares, Credentials: credentials, TrustNetwork: config.TrustNetwork, TLS: transport, Redact: config.Redact,
		Logger: logger, Metrics: metrics.Calls(), Trace: traces.Handler(),
		About:   server.About{Version: buildVersion(), Durability: config.Durability, StoreFormat: kv.Format},
		Sandbox: confinement, Store: engine.Health(), Scrubbed: func() time.Time { return scrub().End },
	}
	if traces.Contents() {
		options.Contents = observe.NewContents(config.Redact)
	}
	options.Bridges, options.Places = registry.Of(engine), parts.Places
	if copies != nil {
		options.Backups = copies
	}
	faces, err := openFaces(config, parts, options, served, metrics, &opened)
	if err != nil {
		return err
	}
	if err := announce(config, addressOf(listener), output, &opened); err != nil {
		return err
	}
	started{
		config: config, faces: faces, http: served.http, metrics: metricsAddress, embedder: embedder, credentials: credentials, encrypted: transport != nil, sandbox: confinement,
	}.log(console, logger)
	env.warn(logger, config.OTel)
	select {
	case err = <-faces.serve():
		err = fmt.Errorf("serve %s: %w", config.Addr, err)
	case <-ctx.Done():
		logger.Info("stopping")
	}
	stopped := faces.stop(config.Limits.DrainTimeout + stopReserve)
	if !errors.Is(stopped, context.DeadlineExceeded) {
		return errors.Join(err, stopped)
	}
	logger.Warn("calls were cut off that did not end when they were cancelled")
	// The store waits for them, and the process ends with them: acknowledged writes are on
	// disk, as far as the durability setting promises.
	closed, failed := opened.closeWithin(closeReserve)
	if !closed {
		logger.Warn("the store was not closed, because calls still use it; the next start reads its log")
	}
	return errors.Join(err, failed)
}

// holders says who holds an agent; nil without credentials.
func holders(credentials *auth.Credentials) func(tenant, agent string) string {
	if credentials == nil {
		return nil
	}
	return credentials.HolderOf
}

// recoverCalls records what a killed server was doing.
func recoverCalls(ctx context.Context, hands *hand.Hand, logger *slog.Logger) error {
	recovered, err := hands.Recover(ctx)
	if err != nil {
		return fmt.Errorf("recover interrupted calls: %w", err)
	}
	if recovered > 0 {
		logger.Warn("tool calls were interrupted; their outcome is unknown", "steps", recovered)
	}
	hands.StartSettling()
	return nil
}

// announce prints the address of the server for the process that started it: the kernel
// queues connections from now on.
func announce(config Config, address string, output io.Writer, opened *closers) error {
	if config.AddrFile != "" {
		if err := writeAddrFile(config.AddrFile, address); err != nil {
			return &ConfigError{"addr-file", config.AddrFile, err.Error()}
		}
		opened.add(func() error { return removeAddrFile(config.AddrFile) })
	}
	_, err := fmt.Fprintln(output, "listening on", address)
	return err
}

// tenants returns a function that returns the tenants sharing the disk at each call:
// credentials may be read again.
func tenants(config Config, credentials *auth.Credentials) func() []string {
	if credentials == nil {
		return func() []string { return []string{auth.DefaultTenant} }
	}
	return func() []string {
		all := credentials.Tenants()
		if config.LoomTenant != "" && !slices.Contains(all, config.LoomTenant) {
			all = append(all, config.LoomTenant)
		}
		return all
	}
}

// closers close the opened things, in reverse order, all of them, even if some fail.
type closers []func() error

func (c *closers) add(closer func() error) { *c = append(*c, closer) }

func (c *closers) close() error {
	var errs []error
	for _, closer := range slices.Backward(*c) {
		errs = append(errs, closer())
	}
	*c = nil
	return errors.Join(errs...)
}

// closeWithin closes them, but waits no longer than that. It reports whether all was
// closed in time; what was not goes on by itself.
func (c *closers) closeWithin(wait time.Duration) (closed bool, err error) {
	all := *c
	*c = nil
	done := make(chan error, 1)
	go func() { done <- all.close() }()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case err := <-done:
		return true, err
	case <-timer.C:
		return false, nil
	}
}

// ignoreClosed closes what somebody else may have closed already.
func ignoreClosed(closer func() error) func() error {
	return func() error {
		if err := closer(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}
