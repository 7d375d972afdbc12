// Package checks are the commands that read back what a store holds, and that make a damaged
// one open again.
package checks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/loom-bridge/loom-bridge/bridge/integrity"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/progress"
)

// ErrFailed: the check found something.
var ErrFailed = errors.New("check failed")

// Options are what the commands work with. All are required.
type Options struct {
	// Store is where the settings have the store: in a directory that is there or, if far is
	// not empty, elsewhere.
	Store func() (dir, far string, err error)
	// DataDir is the directory of a store that has one.
	DataDir func() (string, error)
	// Read opens the store of the settings for reading, or that in another directory.
	Read func(ctx context.Context, dir string) (kv.Engine, error)
	// Language is that of its memory.
	Language func() (analysis.Language, error)
	// Unopened adds to an error what can be done about a store that can't be opened.
	Unopened func(err error, dir string) error
	// Out gets the findings, Progress how far the check is if it is a terminal.
	Out, Progress io.Writer
}

// Command is the sub-command that reads back everything in a store.
func (o Options) Command() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Read back everything in a store and report damage",
		Long: "Read back everything in a store and report damage: every byte of its files\n" +
			"against its checksum, then every record, step, message, fold, event and offloaded\n" +
			"result, and the memory index of every owner against its records. Nothing is\n" +
			"written, so that the right to read is enough. No server may be running on the data\n" +
			"directory; on a store in PostgreSQL one may. The exit status is 1 when something is damaged.\n" +
			"An index that was made in another language is not compared: it is made anew when a\n" +
			"server uses it.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, far, err := o.Store()
			switch {
			case err != nil:
				return err
			case far != "":
				return o.check(cmd.Context(), "", far)
			}
			return o.Check(cmd.Context(), dir)
		},
	}
}

// checking is one check of a store.
type checking struct {
	Options
	dir      string
	progress *progress.Line
	damaged  int   // findings
	failed   error // of writing to Out
}

// Check reads back the store in dir.
func (o Options) Check(ctx context.Context, dir string) error { return o.check(ctx, dir, "") }

// check reads back a store: one without a directory is far.
func (o Options) check(ctx context.Context, dir, far string) (err error) {
	c := &checking{Options: o, dir: dir, progress: progress.New(o.Progress)}
	if far != "" {
		c.say("files: %s has them; PostgreSQL reads them back itself (pg_amcheck, pg_checksums)\n", far)
	} else {
		err = c.files(ctx)
	}
	if err == nil {
		err = c.entries(ctx)
	}
	c.progress.Clear()
	switch {
	case err != nil:
		return err
	case c.damaged > 0:
		c.say("damaged: %d findings; restore the store from a backup\n", c.damaged)
	default:
		c.say("nothing is damaged\n")
	}
	if c.failed == nil && c.damaged > 0 {
		return ErrFailed
	}
	return c.failed
}

func (c *checking) say(format string, args ...any) {
	c.progress.Clear()
	if _, err := fmt.Fprintf(c.Out, format, args...); c.failed == nil {
		c.failed = err
	}
}

// files reads every byte of the store's files.
func (c *checking) files(ctx context.Context) error {
	damaged, bytes := 0, int64(0)
	err := rockskv.Examine(ctx, c.dir, kv.Verification{
		Found: func(damage *kv.DamageError) error {
			damaged++
			c.say("%s: %s %s\n", damage.Keyspace, damage.File, damage.Problem)
			return c.failed
		},
		Read: func(done, total int64) error {
			bytes = done
			c.progress.Show("files: %d of %d MiB", done>>20, total>>20)
			return nil
		},
	})
	if err != nil {
		return c.Unopened(err, c.dir)
	}
	c.damaged += damaged
	c.say("files: %d bytes, %d damaged\n", bytes, damaged)
	return nil
}

// entries reads what everybody has stored.
func (c *checking) entries(ctx context.Context) (err error) {
	language, err := c.Language()
	if err != nil {
		return err
	}
	engine, err := c.Read(ctx, c.dir)
	if errors.Is(err, kv.ErrDamaged) && c.damaged > 0 {
		c.say("entries: not read, because a store in this state is not opened\n")
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	writer := kv.NewWriter(engine, nil)
	defer func() { err = errors.Join(err, writer.Close()) }()
	memories := memory.New(engine, writer, &memory.Options{Language: language, SweepEvery: -1})
	defer func() { err = errors.Join(err, memories.Close()) }()
	read := int64(0)
	counts, err := integrity.Entries(ctx, engine, integrity.Options{
		Memory: memories,
		Found: func(f integrity.Finding) {
			c.damaged++
			c.say("%s\n", f)
		},
		Read: func(bytes int64) error {
			read += bytes
			c.progress.Show("entries: %d MiB", read>>20)
			return c.failed
		},
	})
	for _, ks := range kv.Keyspaces() {
		count, ok := counts[ks]
		if !ok {
			continue
		}
		outdated := ""
		if count.Outdated > 0 {
			outdated = fmt.Sprintf(", %d indexes not compared because they are made anew at their next use", count.Outdated)
		}
		c.say("%s: %d owners, %d bad, %d entries read%s\n", ks, count.Owners, count.Bad, count.Entries, outdated)
	}
	return err
}

// RepairCommand is the sub-command that gives up what follows the damage of a log.
func (o Options) RepairCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "repair",
		Short: "Repair a store with a damaged log, losing the last writes",
		Long: "Make a store open again whose log is damaged, cut or missing, or that has lost its\n" +
			"mark. What was written before the damage stays, everything behind it is given up, so\n" +
			"restore a backup instead if there is one. The files that are changed are kept as they\n" +
			"were, in a directory damaged-… inside the data directory. No server may be running on\n" +
			"it. Where other files are damaged nothing is done: only a backup can bring them back.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.repair() },
	}
}

func (o Options) repair() error {
	dir, err := o.DataDir()
	if err != nil {
		return err
	}
	done, err := rockskv.Repair(dir, time.Now())
	if errors.Is(err, rockskv.ErrNotDamaged) {
		_, err = fmt.Fprintln(o.Out, "nothing is damaged that keeps the store from opening")
		return err
	}
	if errors.Is(err, kv.ErrLocked) {
		return o.Unopened(err, dir)
	}
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s %s\nthe files as they were are in %s\n", done.Damage.File, done.Damage.Problem, done.Kept)
	if len(done.Cut) > 0 {
		text += fmt.Sprintf("given up: %d bytes of %v; run check before the next start\n", done.LostBytes, done.Cut)
	}
	_, err = fmt.Fprint(o.Out, text)
	return err
}
