package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/backup"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/approvals"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/audits"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/backups"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/checks"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/erasures"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/exports"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/installs"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/logs"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/progress"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/scopes"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/stores"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/syncs"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/transfers"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/views"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/workspaces"
)

// refuse is the error about the value of a flag.
func refuse(flag, value, problem string) error { return &ConfigError{flag, value, problem} }

// offline is the store of the settings of a command that no server may have open.
type offline struct {
	flags  *pflag.FlagSet // those of the settings that the command has
	getenv func(string) string
}

// offlineOf has the settings with some names.
func offlineOf(getenv func(string) string, names ...string) offline {
	return offline{configFlags(names...), getenv}
}

func (o offline) load() (Config, error) { return loadConfig(o.flags, o.getenv) }

// given adds the flags to those of a command.
func (o offline) given(command *cobra.Command) *cobra.Command {
	command.Flags().AddFlagSet(o.flags)
	return command
}

// config are the settings, whose store is there.
func (o offline) config() (Config, error) {
	config, err := o.load()
	if err == nil {
		err = config.hasStore()
	}
	return config, err
}

func (o offline) dataDir() (string, error) {
	config, err := o.config()
	return config.DataDir, err
}

// files is the directory of a store that has one.
func (o offline) files() (string, error) {
	config, err := o.load()
	if err != nil {
		return "", err
	}
	return config.files(ownFiles)
}

// place is where the store is, for people.
func (o offline) place() (dir, far string, err error) {
	config, err := o.config()
	if err == nil && config.Store.Far() {
		far = config.Store.String()
	}
	return config.DataDir, far, err
}

// read opens the store for reading.
func (o offline) read() (kv.Engine, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	return config.readStore(context.Background())
}

// readAt is read, for a store in another directory unless that is empty.
func (o offline) readAt(ctx context.Context, dir string) (kv.Engine, error) {
	config, err := o.load()
	if err != nil {
		return nil, err
	}
	if dir != "" {
		config.DataDir, config.Store = dir, stores.Place{}
	}
	return config.readStore(ctx)
}

// open opens the store.
func (o offline) open() (kv.Engine, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	return config.openStore(context.Background(), nil)
}

func (o offline) logger(to io.Writer) (*slog.Logger, error) {
	config, err := o.load()
	if err != nil {
		return nil, err
	}
	level, _ := parseLevel(config.LogLevel)
	return logs.NewLogger(to, level, config.LogFormat), nil
}

func (o offline) language() (analysis.Language, error) {
	config, err := o.load()
	if err != nil {
		return 0, err
	}
	return config.language()
}

func (o offline) reduction() (step.Options, error) {
	config, err := o.load()
	if err != nil {
		return step.Options{}, err
	}
	return config.reduction()
}

func (o offline) checks(stdout, stderr io.Writer) checks.Options {
	return checks.Options{Store: o.place, DataDir: o.files, Read: o.readAt, Language: o.language, Unopened: storeError, Out: stdout, Progress: stderr}
}

// take adds settings to the flags of a command.
func take(flags *pflag.FlagSet, names ...string) {
	flags.AddFlagSet(configFlags(names...))
}

// ask adds the flags of a command that asks a server.
func (s *shim) ask(flags *pflag.FlagSet) {
	take(flags, "addr", keyConfig)
	flags.Lookup("addr").Usage = "the server to ask, or unix:/path"
	flags.StringVar(&s.authority, "server-ca", "", "PEM `file` of authorities: the server is spoken to over TLS; "+envToken+" is the token")
	s.asked = flags
}

// load reads the settings of a command that asks a server.
func (s *shim) load() (Config, error) { return loadConfig(s.asked, s.env.get) }

// checkCommand reads back everything in a store.
func checkCommand(getenv func(string) string, stdout, stderr io.Writer) *cobra.Command {
	store := offlineOf(getenv, keyConfig, keyStore, keyDataDir, keyMemoryLanguage)
	return store.given(store.checks(stdout, stderr).Command())
}

// repairCommand makes a damaged store open again.
func repairCommand(getenv func(string) string, stdout, stderr io.Writer) *cobra.Command {
	store := offlineOf(getenv, keyConfig, keyStore, keyDataDir)
	return store.given(store.checks(stdout, stderr).RepairCommand())
}

// exportCommand writes an agent's history as files.
func exportCommand(getenv func(string) string, stdout, stderr io.Writer) *cobra.Command {
	store := offlineOf(getenv, keyConfig, keyStore, keyDataDir, "rules")
	command := store.given(exports.Command(exports.Options{
		DataDir: store.dataDir, Open: store.read, Reduction: store.reduction, Refuse: refuse, Out: stdout, Progress: stderr,
	}))
	command.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "data" {
			name = keyDataDir
		}
		return pflag.NormalizedName(name)
	})
	return command
}

// auditCommand works with the records of calls.
func auditCommand(getenv func(string) string, stdout io.Writer) *cobra.Command {
	store := offlineOf(getenv, keyConfig, keyStore, keyDataDir)
	command := audits.Command(audits.Options{Read: store.read, Open: store.open, Logger: store.logger, Refuse: refuse, Out: stdout})
	command.PersistentFlags().AddFlagSet(store.flags)
	return command
}

// backupCommand makes and restores copies of a store.
func backupCommand(env environment, stdout, stderr io.Writer) *cobra.Command {
	s := &shim{env: env}
	line := progress.New(stderr)
	store := offlineOf(env.get, keyBackupDir, keyStore, keyDataDir)
	s.ask(store.flags)
	folder := func() (*backup.Folder, error) {
		config, err := s.load()
		if err != nil {
			return nil, err
		}
		if config.Backups.Dir == "" {
			return nil, &ConfigError{keyBackupDir, "", "is required: where the backups lie"}
		}
		found, err := backup.Existing(config.Backups.Dir)
		if err != nil {
			return nil, &ConfigError{keyBackupDir, config.Backups.Dir, err.Error()}
		}
		return found, nil
	}
	command := backups.Command(backups.Options{
		Out: stdout, Folder: folder, Dial: s.connect,
		DataDir: func() (string, error) {
			config, err := s.load()
			if err != nil {
				return "", err
			}
			return config.DataDir, config.checkBackups()
		},
		Local: func(ctx context.Context, full bool, show func(done, total int64)) (backup.Backup, error) {
			config, err := s.load()
			if err != nil {
				return backup.Backup{}, err
			}
			return backUp(ctx, config, backup.Plan{Full: full, Progress: show})
		},
		Check: func(ctx context.Context, dir string) error {
			return store.checks(stdout, stderr).Check(ctx, dir)
		},
		Progress: func(done, total int64) {
			line.Show("%d of %d MiB", done>>20, total>>20)
			if done >= total {
				line.Clear()
			}
		},
	})
	backups.Share(command, store.flags)
	return command
}

// eraseCommand takes a subject out of a store, with proof.
func eraseCommand(getenv func(string) string, stdout io.Writer) *cobra.Command {
	store := offlineOf(getenv, keyConfig, keyStore, keyDataDir, keyBackupDir, keyMemoryLanguage)
	command := erasures.Command(erasures.Options{
		Open: store.open, Logger: store.logger, Refuse: refuse, Version: buildVersion(), Out: stdout,
		Place: func() (stores.Place, error) {
			config, err := store.config()
			return config.place(), err
		},
		Unopened: func(err error, place stores.Place) error {
			return Config{Store: place, DataDir: place.Dir}.storeError(err)
		},
		Backups: store.backups,
		Memory: func() (memory.Options, error) {
			config, err := store.load()
			if err != nil {
				return memory.Options{}, err
			}
			language, err := config.language()
			return memory.Options{Language: language}, err
		},
	})
	store.flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == keyBackupDir || f.Name == keyMemoryLanguage { // which say nothing to its sub-command
			command.Flags().AddFlag(f)
		} else {
			command.PersistentFlags().AddFlag(f)
		}
	})
	store.flags.Lookup(keyBackupDir).Usage = "name the backups in here, which may still hold what goes; none: name none"
	return command
}

// backups are the names of those in the folder of the settings.
func (o offline) backups() ([]string, error) {
	config, err := o.load()
	if err != nil {
		return nil, err
	}
	return config.knownBackups()
}

// knownBackups are the names of those in the folder of the settings; none without one.
func (c Config) knownBackups() ([]string, error) {
	if c.Backups.Dir == "" {
		return nil, nil
	}
	folder, err := backup.Existing(c.Backups.Dir)
	if err != nil {
		return nil, &ConfigError{keyBackupDir, c.Backups.Dir, err.Error()}
	}
	all, err := folder.List()
	names := make([]string, len(all))
	for i, b := range all {
		names[i] = b.Name
	}
	return names, err
}

// approvalsCommand answers calls that wait at a server that runs.
func approvalsCommand(env environment, stdout io.Writer) *cobra.Command {
	s := &shim{env: env}
	command := approvals.Command(approvals.Options{In: os.Stdin, Out: stdout, Dial: s.connect})
	command.Long = "Answer calls of agents that wait for a person at the server on --addr. The credential of\n" +
		envToken + " must say whose calls it approves."
	s.ask(command.PersistentFlags())
	return command
}

// workspaceCommand shows and changes which server has a workspace.
func workspaceCommand(env environment, stdout io.Writer) *cobra.Command {
	s := &shim{env: env}
	command := workspaces.Command(workspaces.Options{Out: stdout, Dial: s.connect})
	s.ask(command.PersistentFlags())
	return command
}

// recordsCommand moves records between memories of servers that run.
func recordsCommand(env environment, stdout, stderr io.Writer) *cobra.Command {
	return transferCommand(&shim{env: env}, transfers.Command, "records", stdout, stderr)
}

// sessionsCommand moves sessions between agents of servers that run.
func sessionsCommand(env environment, stdout, stderr io.Writer) *cobra.Command {
	s := &shim{env: env}
	command := transferCommand(s, transfers.Sessions, "lines", stdout, stderr)
	command.Short = "List, show, export and import the sessions of an agent"
	command.AddCommand(views.Sessions(s.views(stdout, stderr))...)
	return command
}

// viewCommands show what a server that runs knows.
func viewCommands(env environment, stdout, stderr io.Writer) (all []*cobra.Command) {
	for _, of := range []func(views.Options) *cobra.Command{views.Memory, views.Prompt, views.Agents, views.Events, views.Tools, views.Jobs, views.Top} {
		s := &shim{env: env}
		command := of(s.views(stdout, stderr))
		s.ask(command.PersistentFlags())
		all = append(all, command)
	}
	return all
}

func (s *shim) views(stdout, stderr io.Writer) views.Options {
	return views.Options{In: os.Stdin, Out: stdout, Console: stderr, Getenv: s.env.get, Refuse: refuse, Dial: s.connect}
}

// importCommand brings conversations and memories of other programs to a server that runs.
func importCommand(env environment, stdout, stderr io.Writer) *cobra.Command {
	return transferCommand(&shim{env: env}, transfers.Foreign, "lines", stdout, stderr)
}

// syncCommand keeps a memory of a server in step with that of another one, or with a folder.
func syncCommand(env environment, stdout, stderr io.Writer) *cobra.Command {
	s, line := &shim{env: env}, progress.New(stderr)
	command := syncs.Command(syncs.Options{
		Out: stdout, Told: line.Clear, Progress: func(n int) { line.Show("%d records", n) },
		Dial: func(ctx context.Context) (context.Context, *grpc.ClientConn, string, error) {
			ctx, conn, err := s.connect(ctx)
			return ctx, conn, s.config.Addr, err
		},
		DialOther: func(ctx context.Context, addr, authority string) (context.Context, *grpc.ClientConn, error) {
			other := &shim{env: environment{vars: map[string]string{envToken: env.get(syncs.EnvToken)}}, authority: authority, config: NewConfig()}
			other.config.Addr = addr
			if _, _, err := splitAddr(addr); err != nil {
				return nil, nil, &ConfigError{"with", addr, err.Error()}
			}
			return other.greet(ctx, "")
		},
		StateDir: func() (string, error) {
			if dir := env.get("XDG_STATE_HOME"); dir != "" {
				return filepath.Join(dir, "loom-bridge"), nil
			}
			if home := env.get("HOME"); home != "" {
				return filepath.Join(home, ".local", "state", "loom-bridge"), nil
			}
			return "", errors.New("is required where HOME is not set")
		},
	})
	s.ask(command.Flags())
	return command
}

func transferCommand(s *shim, of func(transfers.Options) *cobra.Command, what string, stdout, stderr io.Writer) *cobra.Command {
	line := progress.New(stderr)
	command := of(transfers.Options{
		In: os.Stdin, Out: stdout, Err: stderr, Told: line.Clear, Dial: s.connect, Progress: func(n int) { line.Show("%d %s", n, what) },
	})
	s.ask(command.PersistentFlags())
	return command
}

// scopesCommand lists the owners of memories of a server that runs.
func scopesCommand(env environment, stdout io.Writer) *cobra.Command {
	s := &shim{env: env}
	command := scopes.Command(scopes.Options{Out: stdout, Refuse: refuse, Dial: s.connect})
	s.ask(command.Flags())
	return command
}

// healthCommand fails unless a server that runs can serve, as `Health/Check` of gRPC says.
func healthCommand(env environment, stdout io.Writer) *cobra.Command {
	s := &shim{env: env}
	command := &cobra.Command{
		Use: "health", Short: "Tell whether a server can serve, for what watches it", Args: cobra.NoArgs,
		Long: "Ask the server on --addr for its health, and fail unless it is SERVING: on a full disk, after a\n" +
			"failed sync and where none answers it is not. No token is needed.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, conn, err := s.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }()
			got, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{})
			if err == nil && got.GetStatus() != healthv1.HealthCheckResponse_SERVING {
				err = fmt.Errorf("the server at %s is %s; GetStatus tells why", s.config.Addr, got.GetStatus())
			}
			if err == nil {
				_, err = fmt.Fprintln(stdout, got.GetStatus())
			}
			return err
		},
	}
	s.ask(command.Flags())
	return command
}

// installCommands are `mcp install` and `mcp uninstall`.
func installCommands(env environment, stdout io.Writer) []*cobra.Command {
	o := installs.Options{
		Getenv: env.get, Out: stdout, Check: func(arguments []string) error {
			probe := &cobra.Command{}
			(&shim{}).flags(probe)
			if err := probe.ParseFlags(arguments); err != nil {
				return fmt.Errorf("behind --: %w", suggestFlag(probe.Flags(), err))
			}
			if rest := probe.Flags().Args(); len(rest) > 0 {
				return fmt.Errorf("behind --: %q is no flag", rest[0])
			}
			_, err := loadConfig(probe.Flags(), env.get)
			return err
		},
		Passed: []string{"XDG_RUNTIME_DIR", envToken}, // where hosts meet, and the token
	}
	return []*cobra.Command{installs.Install(o), installs.Uninstall(o)}
}

// hasStore refuses a data directory that is not there.
func (c Config) hasStore() error {
	if c.Store.Far() { // opening it reports errors
		return nil
	}
	if _, err := os.Stat(c.DataDir); err != nil {
		return &ConfigError{keyDataDir, c.DataDir, "there is no store: " + err.Error()}
	}
	return nil
}

// storeError names the setting of a store that can't be opened.
func (c Config) storeError(err error) error {
	if c.Store.Far() {
		return fmt.Errorf("--%s (%s) %s: %w", keyStore, envName(keyStore), c.Store, err)
	}
	return storeError(err, c.DataDir)
}

// storeError says where a store is that can't be opened, and what this program can do
// about it.
func storeError(err error, dir string) error {
	hint := ""
	if damage, ok := errors.AsType[*kv.DamageError](err); ok && damage.Repairable {
		hint = fmt.Sprintf(" (loom-bridge-server repair --%s %s)", keyDataDir, dir)
	}
	return fmt.Errorf("--%s (%s): %w%s", keyDataDir, envName(keyDataDir), nameHolder(err, dir), hint)
}
