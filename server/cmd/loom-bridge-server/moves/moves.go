// Package moves is the command that copies a store to another place: from a directory to
// PostgreSQL, or back.
package moves

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/migration"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/progress"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/stores"
)

const help = `Copy everything in a store to another place and compare both: from RocksDB in a
directory to PostgreSQL, back, or to another one of the same kind.

  loom-bridge-server migrate --from rocksdb:/var/lib/loom --to postgres://loom@db/loom
  loom-bridge-server migrate --from postgres://loom@db/loom --to rocksdb:/var/lib/loom-2

No server may run on the source, which is only read. The target must be an empty or absent
directory, or an absent schema. A server refuses the copy until it is complete and compared.
Repeat the command to resume an interrupted copy; to discard one, remove the directory or
drop the schema.

For each keyspace there is a line with the entries, their bytes, the scopes and the SHA-256
of all of it, which is the same on both sides. Files outside the store belong to the
machine and are not copied: workspaces, credentials, backups.`

// Options are what the command works with. All are required.
type Options struct {
	// Refuse is the error that says what is wrong with the value of a flag.
	Refuse func(flag, value, problem string) error
	// Held adds to the error about a store in use which process has it.
	Held func(err error, dir string) error
	// Out gets the summary of the copy, Progress the progress if it is a terminal.
	Out, Progress io.Writer
}

// Command is the command.
func Command(o Options) *cobra.Command {
	var from, to string
	command := &cobra.Command{
		Use: "migrate --from STORE --to STORE", Short: "Copy a store to another place, such as from RocksDB to PostgreSQL", Long: help, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), from, to) },
	}
	command.Flags().SortFlags = false
	command.Flags().StringVar(&from, "from", "", "the `store` to copy: rocksdb:DIR or postgres://user@host:5432/database?schema=name")
	command.Flags().StringVar(&to, "to", "", "the `store` to make of it")
	return command
}

func (o Options) run(ctx context.Context, from, to string) (err error) {
	source, err := o.place("from", from)
	if err != nil {
		return err
	}
	target, err := o.place("to", to)
	if err != nil {
		return err
	}
	if err := target.Apart(source); err != nil {
		return o.Refuse("to", target.String(), err.Error())
	}
	reader, err := source.OpenSource(ctx)
	if err != nil {
		return fmt.Errorf("--from %s: %w", source, o.Held(err, source.Dir))
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	writer, err := target.OpenTarget(ctx, source)
	if err != nil {
		return fmt.Errorf("--to %s: %w", target, o.Held(err, target.Dir))
	}
	defer func() { err = errors.Join(err, writer.Close()) }()
	line, failed := progress.New(o.Progress), error(nil)
	defer line.Clear()
	say := func(format string, args ...any) {
		line.Clear()
		_, err := fmt.Fprintf(o.Out, format, args...)
		failed = errors.Join(failed, err)
	}
	err = migration.Run(ctx, reader, writer, migration.Watcher{
		Step: func(ks kv.Keyspace, stage migration.Stage, pairs int64) {
			line.Show("%s: %s, %d entries", ks, stage, pairs)
		},
		Done: func(ks kv.Keyspace, c migration.Count) {
			say("%s: %d entries of %d bytes and %d scopes, sha256 %s\n", ks, c.Pairs, c.Bytes, c.Sequences, c.Digest)
		},
		Again: func(ks kv.Keyspace) { say("%s: differs from what was begun before, and is copied anew\n", ks) },
	})
	if err != nil {
		return err
	}
	say("%s holds what %s does; serve it with --store\n", target, source)
	return failed
}

func (o Options) place(flag, text string) (stores.Place, error) {
	if text == "" {
		return stores.Place{}, o.Refuse(flag, "", "is required: rocksdb:DIR or postgres://user@host:5432/database")
	}
	p, err := stores.Parse(text)
	if err != nil {
		return stores.Place{}, o.Refuse(flag, stores.Hide(text), err.Error())
	}
	return p, nil
}
