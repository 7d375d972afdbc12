package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/approvals"
)

// errAuditFailed: the verification found something.
var errAuditFailed = errors.New("audit verify found changes")

const auditVerifyHelp = `Compare the records of all tool calls with the digests that seal them. Give the log of the
server with --log: the heads in it show whether the end was cut off. Nothing is written, so
that the right to read is enough. No server may be running on the data directory. The exit
status is 1 when something was changed, added or taken away.`

// auditCommand is the sub-command with what there is to do with the records of calls.
func auditCommand(getenv func(string) string, stdout io.Writer) *cobra.Command {
	command := &cobra.Command{Use: "audit", Short: "Verify, list or erase the records of tool calls", Args: cobra.NoArgs}
	command.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	command.AddCommand(auditVerify(getenv, stdout), auditList(getenv, stdout), auditErase(getenv, stdout))
	return command
}

// auditSub is a sub-command of audit on a store that is there.
func auditSub(getenv func(string) string, use, short string, run func(cmd *cobra.Command, config Config) error) *cobra.Command {
	command := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		config, err := loadConfig(cmd.Flags(), getenv)
		if err == nil {
			err = config.hasStore()
		}
		if err != nil {
			return err
		}
		return run(cmd, config)
	}}
	settings := configFlags()
	command.Flags().AddFlag(settings.Lookup(keyConfig))
	command.Flags().AddFlag(settings.Lookup(keyDataDir))
	return command
}

func auditVerify(getenv func(string) string, stdout io.Writer) *cobra.Command {
	var logs []string
	command := auditSub(getenv, "verify", "Find records of calls that were changed or taken away", func(cmd *cobra.Command, config Config) error {
		heads, err := readHeads(logs)
		if err != nil {
			return err
		}
		return readStore(config, func(engine kv.Reader) error { return verifyAudit(cmd.Context(), engine, heads, stdout) })
	})
	command.Long = auditVerifyHelp
	command.Flags().StringArrayVar(&logs, "log", nil, "`file` with the log of the server; may be given again")
	return command
}

// readStore opens the store for reading.
func readStore(config Config, read func(engine kv.Reader) error) (err error) {
	engine, err := rockskv.OpenReadOnly(config.DataDir, nil)
	if err != nil {
		return storeError(err, config)
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	return read(engine)
}

func readHeads(logs []string) ([]audit.Head, error) {
	var heads []audit.Head
	for _, path := range logs {
		file, err := os.Open(path)
		if err != nil {
			return nil, &ConfigError{"log", path, err.Error()}
		}
		found, err := audit.FindHeads(file)
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, &ConfigError{"log", path, err.Error()}
		}
		heads = append(heads, found...)
	}
	return heads, nil
}

func verifyAudit(ctx context.Context, engine kv.Reader, heads []audit.Head, stdout io.Writer) error {
	r, err := audit.Verify(ctx, engine, heads)
	if err != nil {
		return err
	}
	for _, finding := range r.Found {
		if _, err := fmt.Fprintln(stdout, finding); err != nil {
			return err
		}
	}
	if r.More > 0 {
		if _, err := fmt.Fprintf(stdout, "and %d more\n", r.More); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(stdout, "%d records verified, %d deleted, %d not sealed; %d links of %d tenants; %d heads compared\n",
		r.Records, r.Removed, r.Unsealed, r.Links, r.Tenants, r.Heads)
	if err == nil && len(r.Found) > 0 {
		err = fmt.Errorf("%w: %d findings", errAuditFailed, len(r.Found)+r.More)
	}
	return err
}

func auditList(getenv func(string) string, stdout io.Writer) *cobra.Command {
	var tenant, agent, tool string
	command := auditSub(getenv, "list", "Write the records of calls as lines of JSON, the oldest first", func(cmd *cobra.Command, config Config) error {
		return readStore(config, func(engine kv.Reader) error {
			for r, err := range audit.All(cmd.Context(), engine, tenant) {
				if err == nil && (agent == "" || r.Agent == agent) && (tool == "" || r.Tool == tool) {
					err = json.NewEncoder(stdout).Encode(audit.Document(r))
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
	command.Flags().StringVar(&tenant, "tenant", "default", "`name` of the tenant")
	command.Flags().StringVar(&agent, "agent", "", "`id` of the agent whose calls; default all")
	command.Flags().StringVar(&tool, "tool", "", "`name` of the tool; default all")
	return command
}

func auditErase(getenv func(string) string, stdout io.Writer) *cobra.Command {
	var tenant, agent string
	command := auditSub(getenv, "erase", "Delete the records of an agent's calls; their digests stay", func(cmd *cobra.Command, config Config) (err error) {
		if agent == "" {
			return &ConfigError{"agent", "", "is required: the id of the agent whose records to delete"}
		}
		engine, err := openStore(config)
		if err != nil {
			return err
		}
		var opened closers
		defer func() { err = errors.Join(err, opened.close()) }()
		opened.add(engine.Close)
		writer := kv.NewWriter(engine, nil)
		opened.add(writer.Close)
		level, _ := parseLevel(config.LogLevel)
		log := audit.New(engine, writer, &audit.Options{Retention: -1, Logger: newLogger(cmd.ErrOrStderr(), level, config.LogFormat)})
		opened.add(log.Close)
		n, err := log.Erase(cmd.Context(), tenant, agent)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(stdout, "deleted %d records of %s; their digests stay\n", n, agent)
		return err
	})
	command.Flags().StringVar(&tenant, "tenant", "default", "`name` of the tenant")
	command.Flags().StringVar(&agent, "agent", "", "`id` of the agent (required)")
	return command
}

// approvalsCommand answers calls that wait at a server that runs.
func approvalsCommand(env environment, stdout io.Writer) *cobra.Command {
	s := &shim{env: env}
	var command *cobra.Command
	command = approvals.Command(approvals.Options{In: os.Stdin, Out: stdout, Dial: func(ctx context.Context) (context.Context, *grpc.ClientConn, error) {
		return s.connect(ctx, func() (Config, error) { return loadConfig(command.PersistentFlags(), env.get) })
	}})
	command.Long = "Answer calls of agents that wait for a person at the server on --addr. " + envToken + " is the\n" +
		"token; its credential must say whose calls it approves."
	settings := configFlags()
	command.PersistentFlags().AddFlag(settings.Lookup("addr"))
	command.PersistentFlags().AddFlag(settings.Lookup(keyConfig))
	command.PersistentFlags().StringVar(&s.authority, "server-ca", "", "PEM `file` of authorities: the server is spoken to over TLS")
	return command
}
