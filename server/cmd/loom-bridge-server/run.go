package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/domain"
)

// storeFormat is the version of the on-disk format (memory/FORMAT.md).
const storeFormat = 1

// stopReserve is the time that cancelled calls get at shutdown, on top of the
// drain: a tool may finish a write that has begun.
const stopReserve = 600 * time.Millisecond

// run is the whole program: it returns when ctx ends and everything is stored
// and closed, or when something can't be started.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	root := &cobra.Command{
		Use:   "loom-bridge-server",
		Short: "Serve memory, context, tools and events to agents over gRPC",
		Long: "Serve memory, context, tools and events to agents over gRPC.\n\n" +
			"Every flag can be given in the environment as LOOM_BRIDGE_ and its name in\n" +
			"capitals (LOOM_BRIDGE_DATA_DIR), or in the file of --config without the dashes\n" +
			"in front (data-dir = \"/var/lib/loom\"). A flag is stronger than the environment,\n" +
			"the environment is stronger than the file. RUST_LOG sets the log level, too.\n\n" +
			"The file of --credentials has one table for each caller, with exactly one of\n" +
			"token_sha256 (the SHA-256 of its bearer token, in hex), token (the token itself)\n" +
			"and subject (a name in its client certificate):\n\n" +
			"  [[credential]]\n" +
			"  token_sha256 = \"2bb8...\"\n" +
			"  tenant = \"acme\"               # whose data it sees\n" +
			"  agents = [\"researcher-*\"]     # whom it may act for: ids, or a beginning and *\n" +
			"  provides = [\"research:*\"]    # tools these agents may provide; default all\n" +
			"  edits = [\"archivist\"]        # others whose records in people's memories it may change",
		Example: "  loom-bridge-server\n" +
			"  loom-bridge-server --addr 127.0.0.1:0 --addr-file /run/loom.addr --workspace ~/project\n" +
			"  loom-bridge-server --addr 0.0.0.0:50051 --credentials callers.toml --tls-cert cert.pem --tls-key key.pem\n" +
			"  loom-bridge-server --addr unix:/run/loom.sock --metrics-addr :9090\n" +
			"  loom-bridge-server check --data-dir ./.loom/store",
		Version:           buildVersion(),
		Args:              cobra.NoArgs,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := loadConfig(cmd.Flags(), getenv)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), config, getenv, stdout, stderr)
		},
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})
	root.Flags().SortFlags = false
	root.Flags().AddFlagSet(configFlags())
	root.AddCommand(checkCommand(getenv, stdout), exportCommand(getenv, stdout, stderr), benchCommand(stdout, stderr))
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root.ExecuteContext(ctx)
}

// serve opens everything, in order, serves until ctx ends, and closes
// everything in reverse. It holds the address before it touches the store.
func serve(ctx context.Context, config Config, getenv func(string) string, stdout, stderr io.Writer) (err error) {
	var opened closers
	defer func() { err = errors.Join(err, opened.close()) }()

	output, console := newPatientWriter(stdout), newPatientWriter(stderr)
	opened.add(output.Close)
	opened.add(console.Close)
	level, _ := parseLevel(config.LogLevel)
	logger := newLogger(console, level, config.LogFormat)

	credentials, transport, err := security(config)
	if err != nil {
		return err
	}
	listener, err := listen("addr", config.Addr)
	if err != nil {
		return err
	}
	opened.add(ignoreClosed(listener.Close))
	if credentials == nil && !config.TrustNetwork && !local(listener.Addr()) {
		return fmt.Errorf("--addr (%s) %q: %w; give --credentials, a loopback address such as 127.0.0.1:50051,"+
			" or --trust-network if nobody but your agents reaches it",
			envName("addr"), config.Addr, server.ErrOpenToAll)
	}

	engine, err := openStore(config)
	if err != nil {
		return err
	}
	opened.add(engine.Close)
	places, err := hand.OpenFolders(config.Workspace, &hand.FolderOptions{PerTenant: credentials != nil, Store: config.DataDir})
	if err != nil {
		return &ConfigError{"workspace", config.Workspace, err.Error() + "; give a directory that exists and that the server may use"}
	}
	opened.add(places.Close)
	models, err := loadModels(config.Models)
	if err != nil {
		return err
	}
	reduction, err := config.reduction()
	if err != nil {
		return err
	}
	language, err := config.language()
	if err != nil {
		return err
	}
	embedder, err := config.Embedder.open()
	if err != nil {
		return err
	}
	shares := server.NewShares(config.limits(), credentials == nil)
	parts, err := domain.Open(engine, places, &domain.Options{
		StoreDir: config.DataDir, Models: models, History: config.history(), Retention: config.retention(),
		Presets: config.preset, Reduction: reduction, Reference: referenceStyles()[config.byPreset().ReferenceStyle], Compress: config.compress(),
		ResultTokens: config.ToolResultMaxTokens, DropWritten: !config.WriteStoreContent, Blobs: config.blobs(), RegistrationIdle: config.RegistrationIdle,
		Memory: memory.Options{Language: language, Embedder: embedder, VectorWeight: config.VectorWeight}, Tiers: config.tiers(), Logger: logger,
		Shares: shares, OneTenant: credentials == nil, MaxTools: config.MaxTools, MaxRelayedCalls: config.MaxRelayedCalls,
		Tenants: tenants(config, credentials), MaxStoreBytes: int64(config.MaxStoreBytes), DiskEvery: config.StoreCheckInterval,
		MaxAgentToolBytes: config.MaxAgentToolBytes, MaxTenantToolBytes: config.MaxTenantToolBytes,
		MaxQueuedEventBytes: int64(config.MaxQueuedEventBytes), MaxSubscriptions: config.MaxStreams,
	})
	if err != nil {
		return err
	}
	opened.add(parts.Close)
	if err := recoverCalls(ctx, parts.Hand, logger); err != nil {
		return err
	}

	metrics, err := startMetrics(config, &opened)
	if err != nil {
		return err
	}
	options := server.Options{
		Limits: config.limits(), Shares: shares, Credentials: credentials, TrustNetwork: config.TrustNetwork, TLS: transport,
		Logger: logger, SlowCall: config.LogSlow, Metrics: metrics,
		About: server.About{Version: buildVersion(), Durability: config.Durability, StoreFormat: storeFormat},
	}
	faces, err := openFaces(config, parts, options, listener, &opened)
	if err != nil {
		return err
	}
	if err := announce(config, addressOf(listener), output, &opened); err != nil {
		return err
	}
	logger.Info("serving", "address", addressOf(listener), "data_dir", config.DataDir,
		"durability", config.Durability, "authentication", credentials != nil, "tls", transport != nil)

	if credentials == nil && !local(listener.Addr()) {
		logger.Warn("authentication is off: whoever reaches the address can do everything", "address", addressOf(listener))
	}
	if credentials != nil && transport == nil && !local(listener.Addr()) {
		logger.Warn("bearer tokens travel in plain text; give --tls-cert and --tls-key")
	}

	warnUnserved(logger, getenv)
	select {
	case err = <-faces.serve():
		err = fmt.Errorf("serve %s: %w", config.Addr, err)
	case <-ctx.Done():
		logger.Info("stopping")
	}
	return errors.Join(err, faces.stop(config.DrainTimeout+stopReserve))
}

// unserved are settings of loom.v1's core that mean nothing here, and what they
// would have done.
var unserved = []struct{ name, what string }{
	{"LOOM_MCP_SERVERS", "MCP servers are not started"},
	{"LOOM_DASHBOARD", "there is no dashboard"},
	{"OTEL_EXPORTER_OTLP_ENDPOINT", "no telemetry is exported"},
}

// warnUnserved says once what somebody asked for and does not get. It shows no
// values: they may hold keys.
func warnUnserved(logger *slog.Logger, getenv func(string) string) {
	for _, u := range unserved {
		if value := getenv(u.name); value != "" && value != "false" {
			logger.Info("this version does not serve what a variable asks for", "variable", u.name, "so", u.what)
		}
	}
}

// tenants are those that share the disk.
func tenants(config Config, credentials *server.Credentials) []string {
	if credentials == nil {
		return []string{server.DefaultTenant}
	}
	all := credentials.Tenants()
	if config.LoomTenant != "" && !slices.Contains(all, config.LoomTenant) {
		all = append(all, config.LoomTenant)
	}
	return all
}

func security(config Config) (*server.Credentials, *tls.Config, error) {
	var credentials *server.Credentials
	var transport *tls.Config
	var err error
	if config.Credentials != "" {
		if credentials, err = server.LoadCredentials(config.Credentials); err != nil {
			return nil, nil, fmt.Errorf("--credentials (%s): %w", envName("credentials"), err)
		}
	}
	if config.TLSCert != "" {
		if transport, err = server.LoadTLS(config.TLSCert, config.TLSKey, config.TLSClientCA); err != nil {
			return nil, nil, fmt.Errorf("--tls-cert, --tls-key, --tls-client-ca: %w", err)
		}
	}
	return credentials, transport, nil
}

// loadModels reads the user's table of models over the built-in one; nil means
// that alone.
func loadModels(path string) (*tokens.Models, error) {
	if path == "" {
		return nil, nil
	}
	models, err := tokens.BuiltinModels()
	if err != nil {
		return nil, err
	}
	table, err := os.ReadFile(path)
	if err == nil {
		models, err = models.With(table)
	}
	if err != nil {
		return nil, &ConfigError{"models", path, err.Error()}
	}
	return models, nil
}

func openStore(config Config) (*rockskv.DB, error) {
	durability, err := rockskv.ParseDurability(config.Durability)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(config.DataDir, 0o700); err != nil {
		return nil, &ConfigError{"data-dir", config.DataDir, err.Error()}
	}
	engine, err := rockskv.Open(config.DataDir, &rockskv.Options{Durability: durability})
	if err != nil {
		return nil, fmt.Errorf("--data-dir (%s): %w", envName("data-dir"), err)
	}
	return engine, nil
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
	return nil
}

func startMetrics(config Config, opened *closers) (prometheus.Registerer, error) {
	if config.MetricsAddr == "" {
		return nil, nil
	}
	listener, err := listen("metrics-addr", config.MetricsAddr)
	if err != nil {
		return nil, err
	}
	registry := newRegistry()
	opened.add(serveMetrics(listener, registry).Close)
	return registry, nil
}

// announce tells whoever started the server where it serves: the kernel queues
// connections from now on.
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
