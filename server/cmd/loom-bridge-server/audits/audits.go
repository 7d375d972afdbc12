// Package audits is the command that verifies, lists and erases the records of tool calls.
package audits

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// ErrFailed: the verification found something.
var ErrFailed = errors.New("audit verify found changes")

const verifyHelp = `Compare the records of all tool calls with the digests that seal them. Give the log of the
server with --log: the heads in it show whether the end was cut off. Nothing is written, so
read permission is enough. No server may be running on the data directory. The exit status
is 1 if a record was changed, added or removed.`

// Options are what the commands work with. All are required.
type Options struct {
	// Read opens the store of the settings for reading, Open for writing.
	Read, Open func() (kv.Engine, error)
	// Logger writes to a place as the settings say.
	Logger func(to io.Writer) (*slog.Logger, error)
	// Refuse is the error that says what is wrong with the value of a flag.
	Refuse func(flag, value, problem string) error
	Out    io.Writer
}

// Command is the command with its sub-commands.
func Command(o Options) *cobra.Command {
	command := &cobra.Command{Use: "audit", Short: "Verify, list or erase the records of tool calls", Args: cobra.NoArgs}
	command.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	command.AddCommand(o.verify(), o.list(), o.erase())
	return command
}

func (o Options) verify() *cobra.Command {
	var logs []string
	command := &cobra.Command{Use: "verify", Short: "Find records of calls that were changed or taken away", Long: verifyHelp, Args: cobra.NoArgs}
	command.RunE = func(cmd *cobra.Command, _ []string) error {
		heads, err := o.readHeads(logs)
		if err != nil {
			return err
		}
		return o.read(func(engine kv.Reader) error { return o.compare(cmd.Context(), engine, heads) })
	}
	command.Flags().StringArrayVar(&logs, "log", nil, "`file` with the log of the server; may be given again")
	return command
}

// read opens the store for reading.
func (o Options) read(read func(engine kv.Reader) error) (err error) {
	engine, err := o.Read()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	return read(engine)
}

func (o Options) readHeads(logs []string) ([]audit.LoggedHead, error) {
	var heads []audit.LoggedHead
	for _, path := range logs {
		file, err := os.Open(path)
		if err != nil {
			return nil, o.Refuse("log", path, err.Error())
		}
		found, err := audit.FindHeads(file)
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, o.Refuse("log", path, err.Error())
		}
		heads = append(heads, found...)
	}
	return heads, nil
}

func (o Options) compare(ctx context.Context, engine kv.Reader, heads []audit.LoggedHead) error {
	r, err := audit.Verify(ctx, engine, heads)
	if err != nil {
		return err
	}
	for _, finding := range r.Found {
		if _, err := fmt.Fprintln(o.Out, finding); err != nil {
			return err
		}
	}
	if r.More > 0 {
		if _, err := fmt.Fprintf(o.Out, "and %d more\n", r.More); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(o.Out, "%d records verified, %d deleted, %d not sealed; %d links of %d tenants; %d heads compared\n",
		r.Records, r.Removed, r.Unsealed, r.Links, r.Tenants, r.Heads)
	if err == nil && len(r.Found) > 0 {
		err = fmt.Errorf("%w: %d findings", ErrFailed, len(r.Found)+r.More)
	}
	return err
}

func (o Options) list() *cobra.Command {
	var tenant, agent, tool string
	command := &cobra.Command{Use: "list", Short: "Write the records of calls as lines of JSON, the oldest first", Args: cobra.NoArgs}
	command.RunE = func(cmd *cobra.Command, _ []string) error {
		return o.read(func(engine kv.Reader) error {
			var damage error // the first
			for r, err := range audit.All(cmd.Context(), engine, tenant) {
				if errors.Is(err, audit.ErrDamaged) {
					damage = cmp.Or(damage, err)
					continue
				}
				if err == nil && (agent == "" || r.Agent == agent) && (tool == "" || r.Tool == tool) {
					err = json.NewEncoder(o.Out).Encode(audit.Document(r))
				}
				if err != nil {
					return err
				}
			}
			return damage
		})
	}
	command.Flags().StringVar(&tenant, "tenant", "default", "`name` of the tenant")
	command.Flags().StringVar(&agent, "agent", "", "`id` of the agent whose calls; default all")
	command.Flags().StringVar(&tool, "tool", "", "`name` of the tool; default all")
	return command
}

func (o Options) erase() *cobra.Command {
	var tenant, agent string
	command := &cobra.Command{Use: "erase", Short: "Delete the records of an agent's calls; their digests stay", Args: cobra.NoArgs}
	command.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if agent == "" {
			return o.Refuse("agent", "", "is required: the id of the agent whose records to delete")
		}
		logger, err := o.Logger(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		engine, err := o.Open()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, engine.Close()) }()
		writer := kv.NewWriter(engine, nil)
		defer func() { err = errors.Join(err, writer.Close()) }()
		log := audit.New(engine, writer, &audit.Options{Retention: -1, Logger: logger})
		defer func() { err = errors.Join(err, log.Close()) }()
		n, err := log.Erase(cmd.Context(), tenant, agent, "", 0)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(o.Out, "deleted %d records of %s; their digests stay\n", n, agent)
		return err
	}
	command.Flags().StringVar(&tenant, "tenant", "default", "`name` of the tenant")
	command.Flags().StringVar(&agent, "agent", "", "`id` of the agent (required)")
	return command
}
