// Package backups is the command line of the copies of a store: it makes, lists, verifies,
// restores and prunes them.
package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/memory/kv/backup"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const help = `Make, list, verify, restore and prune copies of a store.

  loom-bridge-server --backup-dir /backups                 one a day, the newest 7 stay
  loom-bridge-server backup create                         one now, by the running server
  loom-bridge-server backup list --backup-dir /backups
  loom-bridge-server backup verify --backup-dir /backups   the newest: every byte, then every entry
  loom-bridge-server backup restore --backup-dir /backups --data-dir /var/lib/loom/store

A backup has all that was acknowledged before it was begun, of all tenants. It is a
directory that opens like the store itself; files that two backups have in common take
their room once. Copy the folder elsewhere with whatever keeps hard links (rsync -aH).`

// Options are what the commands work with. All are required.
type Options struct {
	// Dial connects to the server; ctx then has what its calls carry.
	Dial func(ctx context.Context) (context.Context, *grpc.ClientConn, error)
	// Local makes a backup of the store of a server that does not run.
	Local func(ctx context.Context, full bool, progress func(done, total int64)) (backup.Backup, error)
	// Folder is the folder of the settings.
	Folder func() (*backup.Folder, error)
	// DataDir is where the settings have the store.
	DataDir func() (string, error)
	// Check reads back all entries of a store.
	Check func(ctx context.Context, dir string) error
	// Progress shows how far something is.
	Progress func(done, total int64)
	Out      io.Writer
}

// Command is the command with its sub-commands.
func Command(o Options) *cobra.Command {
	command := &cobra.Command{Use: "backup", Short: "Make, list, verify, restore and prune copies of a store", Long: help, Args: cobra.NoArgs}
	command.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	command.AddCommand(o.create(), o.list(), o.verify(), o.restore(), o.prune())
	return command
}

// Share gives each sub-command those of the flags, by the names of settings, that mean something to it.
func Share(command *cobra.Command, flags *pflag.FlagSet) {
	for _, sub := range command.Commands() {
		not := []string{"addr", "server-ca", "data-dir", "store"}
		switch sub.Name() {
		case "create":
			not = nil
		case "restore":
			not = not[:2]
		}
		flags.VisitAll(func(flag *pflag.Flag) {
			if !slices.Contains(not, flag.Name) {
				sub.Flags().AddFlag(flag)
			}
		})
	}
}

func (o Options) create() *cobra.Command {
	var full, offline bool
	command := &cobra.Command{Use: "create", Short: "Make a backup now", Args: cobra.NoArgs}
	command.Long = "Make a backup now. The server on --addr does, in its own --backup-dir; with --offline\n" +
		"none may be running, and --data-dir and --backup-dir name the source and the target."
	command.Flags().BoolVar(&full, "full", false, "copy every file, share none with the backup before")
	command.Flags().BoolVar(&offline, "offline", false, "copy the store of a server that does not run")
	command.RunE = func(cmd *cobra.Command, _ []string) error {
		began := time.Now()
		create, not, why := o.remote, []string{"backup-dir"}, "the server that runs writes into its own; --offline is for one that does not run"
		if offline {
			create, not, why = o.Local, []string{"addr", "server-ca"}, "with --offline no server is asked"
		}
		for _, flag := range not {
			if cmd.Flags().Changed(flag) {
				return fmt.Errorf("--%s means nothing here: %s", flag, why)
			}
		}
		made, err := create(cmd.Context(), full, o.Progress)
		if err != nil {
			return err
		}
		return o.say("%s  %s, %s of it new, in %.1f s\n", made.Name, size(made.Bytes), size(made.NewBytes), time.Since(began).Seconds())
	}
	return command
}

// remote lets the server make a backup.
func (o Options) remote(ctx context.Context, full bool, progress func(done, total int64)) (made backup.Backup, err error) {
	ctx, conn, err := o.Dial(ctx)
	if err != nil {
		return made, err
	}
	defer func() { _ = conn.Close() }()
	stream, err := loombridgev1.NewAdminServiceClient(conn).CreateBackup(ctx, &loombridgev1.CreateBackupRequest{Full: full})
	if err != nil {
		return made, err
	}
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return made, nil
		}
		if err != nil {
			return made, err
		}
		progress(message.GetBytesDone(), message.GetBytesTotal())
		if b := message.GetBackup(); b != nil {
			made.Name, made.Bytes, made.NewBytes = b.GetName(), b.GetBytes(), b.GetNewBytes()
		}
	}
}

func (o Options) list() *cobra.Command {
	return &cobra.Command{Use: "list", Short: "List the backups, the newest first", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		folder, err := o.Folder()
		if err != nil {
			return err
		}
		all, err := folder.List()
		for _, b := range all {
			if err := o.say("%s  %9s  %9s new  %d files  made by %s\n", b.Name, size(b.Bytes), size(b.NewBytes), len(b.Files), b.Version); err != nil {
				return err
			}
		}
		if len(all) == 0 && err == nil {
			return o.say("there is no backup\n")
		}
		return err
	}}
}

func (o Options) verify() *cobra.Command {
	var filesOnly, every bool
	command := &cobra.Command{Use: "verify [NAME]", Short: "Read a backup back, the newest unless one is named", Args: cobra.MaximumNArgs(1)}
	command.Long = "Read a backup back, the newest unless one is named: every byte of its files against the\n" +
		"SHA-256 that was taken when it was made, then every entry, as `check` does."
	command.Flags().BoolVar(&filesOnly, "files-only", false, "compare the files alone")
	command.Flags().BoolVar(&every, "all", false, "read all backups back")
	command.RunE = func(cmd *cobra.Command, names []string) error {
		if every && len(names) > 0 {
			return errors.New("--all: a backup is named; leave out one of both")
		}
		folder, err := o.Folder()
		if err != nil {
			return err
		}
		if names, err = chosen(folder, names, every); err != nil {
			return err
		}
		var errs []error
		for _, name := range names {
			b, err := folder.Verify(cmd.Context(), name, o.Progress)
			if err == nil {
				err = o.say("%s: %d files, %s, as they were made\n", name, len(b.Files), size(b.Bytes))
			}
			if err == nil && !filesOnly {
				err = o.Check(cmd.Context(), folder.Path(name))
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
	return command
}

func (o Options) restore() *cobra.Command {
	command := &cobra.Command{Use: "restore [NAME]", Short: "Copy a backup, the newest unless one is named, to --data-dir", Args: cobra.MaximumNArgs(1)}
	command.Long = "Copy a backup, the newest unless one is named, to --data-dir, which must not exist or be\n" +
		"empty: move the old store away first. Each byte is compared with its SHA-256 on the way."
	command.RunE = func(cmd *cobra.Command, names []string) error {
		folder, err := o.Folder()
		if err != nil {
			return err
		}
		to, err := o.DataDir()
		if err != nil {
			return err
		}
		if names, err = chosen(folder, names, false); err != nil {
			return err
		}
		b, err := folder.Restore(cmd.Context(), names[0], to, o.Progress)
		if err != nil {
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%w; move the old store away, or give another --data-dir", err)
			}
			return err
		}
		return o.say("%s is in %s: %d files, %s\n", b.Name, to, len(b.Files), size(b.Bytes))
	}
	return command
}

func (o Options) prune() *cobra.Command {
	keep := 0
	command := &cobra.Command{Use: "prune --keep N", Short: "Remove all but the newest backups", Args: cobra.NoArgs}
	command.Flags().IntVar(&keep, "keep", 0, "how many `backups` stay (required, at least 1)")
	command.RunE = func(*cobra.Command, []string) error {
		if keep < 1 {
			return errors.New("--keep: say how many backups stay, at least 1")
		}
		folder, err := o.Folder()
		if err != nil {
			return err
		}
		removed, err := folder.Prune(keep)
		for _, name := range removed {
			if err := o.say("%s removed\n", name); err != nil {
				return err
			}
		}
		return err
	}
	return command
}

// chosen are the names that were given, or else the newest, or all.
func chosen(folder *backup.Folder, names []string, every bool) ([]string, error) {
	if len(names) > 0 {
		return names, nil
	}
	all, err := folder.List()
	if len(all) == 0 {
		return nil, errors.Join(backup.ErrNotFound, err)
	}
	for _, b := range all {
		if names = append(names, b.Name); !every {
			break
		}
	}
	return names, err
}

func (o Options) say(format string, args ...any) error {
	_, err := fmt.Fprintf(o.Out, format, args...)
	return err
}

// size is a number of bytes for people.
func size(bytes int64) string {
	switch {
	case bytes < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	case bytes < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}
