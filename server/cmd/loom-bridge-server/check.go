package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/loom-bridge/loom-bridge/bridge/integrity"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

// errCheckFailed: the check found something.
var errCheckFailed = errors.New("check failed")

// checkCommand is the sub-command that reads back everything in a store.
func checkCommand(getenv func(string) string, stdout, stderr io.Writer) *cobra.Command {
	command := &cobra.Command{
		Use:   "check",
		Short: "Read back everything in a store and say what is damaged",
		Long: "Read back everything in a store and say what is damaged: every byte of its files\n" +
			"against its checksum, then every record, step, message, fold, event and offloaded\n" +
			"result, and the memory index of every owner against its records. Nothing is\n" +
			"written, so that the right to read is enough. No server may be running on the data\n" +
			"directory. The exit status is 1 when something is damaged.\n" +
			"An index that was made in another language is not compared: it is made anew when a\n" +
			"server uses it.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := loadConfig(cmd.Flags(), getenv)
			if err != nil {
				return err
			}
			return check(cmd.Context(), config, stdout, stderr)
		},
	}
	all := configFlags()
	command.Flags().AddFlag(all.Lookup(keyConfig))
	command.Flags().AddFlag(all.Lookup(keyDataDir))
	command.Flags().AddFlag(all.Lookup(keyMemoryLanguage))
	return command
}

// checking is one check of a store.
type checking struct {
	config   Config
	stdout   io.Writer
	progress *progressLine
	damaged  int   // findings
	failed   error // of writing to stdout
}

func check(ctx context.Context, config Config, stdout, stderr io.Writer) error {
	if err := config.hasStore(); err != nil {
		return err
	}
	c := &checking{config: config, stdout: stdout, progress: newProgressLine(stderr)}
	err := c.files(ctx)
	if err == nil {
		err = c.entries(ctx)
	}
	c.progress.end()
	switch {
	case err != nil:
		return err
	case c.damaged > 0:
		c.say("damaged: %d findings; restore the store from a backup\n", c.damaged)
	default:
		c.say("nothing is damaged\n")
	}
	if c.failed == nil && c.damaged > 0 {
		return errCheckFailed
	}
	return c.failed
}

// hasStore refuses a data directory that is not there.
func (c Config) hasStore() error {
	if _, err := os.Stat(c.DataDir); err != nil {
		return &ConfigError{keyDataDir, c.DataDir, "there is no store: " + err.Error()}
	}
	return nil
}

func (c *checking) say(format string, args ...any) {
	c.progress.clear()
	if _, err := fmt.Fprintf(c.stdout, format, args...); c.failed == nil {
		c.failed = err
	}
}

// files reads every byte of the store's files.
func (c *checking) files(ctx context.Context) error {
	damaged, bytes := 0, int64(0)
	err := rockskv.Examine(ctx, c.config.DataDir, kv.Verification{
		Found: func(damage *kv.DamageError) error {
			damaged++
			c.say("%s: %s %s\n", damage.Keyspace, damage.File, damage.Problem)
			return c.failed
		},
		Read: func(done, total int64) error {
			bytes = done
			c.progress.show("files: %d of %d MiB", done>>20, total>>20)
			return nil
		},
	})
	if err != nil {
		return storeError(err, c.config)
	}
	c.damaged += damaged
	c.say("files: %d bytes, %d damaged\n", bytes, damaged)
	return nil
}

// entries reads what everybody has stored.
func (c *checking) entries(ctx context.Context) (err error) {
	language, err := c.config.language()
	if err != nil {
		return err
	}
	engine, err := rockskv.OpenReadOnly(c.config.DataDir, nil)
	if errors.Is(err, kv.ErrDamaged) && c.damaged > 0 {
		c.say("entries: not read, because a store in this state is not opened\n")
		return nil
	}
	if err != nil {
		return storeError(err, c.config)
	}
	var opened closers
	defer func() { err = errors.Join(err, opened.close()) }()
	opened.add(engine.Close)
	writer := kv.NewWriter(engine, nil)
	opened.add(writer.Close)
	memories := memory.New(engine, writer, &memory.Options{Language: language, SweepEvery: -1})
	opened.add(memories.Close)
	read := int64(0)
	counts, err := integrity.Entries(ctx, engine, integrity.Options{
		Memory: memories,
		Found: func(f integrity.Finding) {
			c.damaged++
			c.say("%s\n", f)
		},
		Read: func(bytes int64) error {
			read += bytes
			c.progress.show("entries: %d MiB", read>>20)
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

// progressLine is a line on a terminal that says how far something has come.
type progressLine struct {
	to    io.Writer // nil: there is no terminal
	last  time.Time
	shown bool
}

// progressLineEvery is the time between two changes of the line.
const progressLineEvery = 200 * time.Millisecond

// newProgressLine shows progress if w is a terminal.
func newProgressLine(w io.Writer) *progressLine {
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return &progressLine{to: w}
		}
	}
	return &progressLine{}
}

// show replaces the line, now and then. What can't be shown is not missed.
func (p *progressLine) show(format string, args ...any) {
	if now := time.Now(); p.to != nil && now.Sub(p.last) >= progressLineEvery {
		p.last, p.shown = now, true
		_, _ = fmt.Fprintf(p.to, "\r\x1b[K"+format, args...)
	}
}

// clear takes the line away, before something else is written.
func (p *progressLine) clear() {
	if p.shown {
		p.shown = false
		_, _ = fmt.Fprint(p.to, "\r\x1b[K")
	}
}

func (p *progressLine) end() { p.clear() }

// repairCommand is the sub-command that gives up what follows the damage of a log.
func repairCommand(getenv func(string) string, stdout io.Writer) *cobra.Command {
	command := &cobra.Command{
		Use:   "repair",
		Short: "Make a store with a damaged log open again, without what was written last",
		Long: "Make a store open again whose log is damaged, cut or missing, or that has lost its\n" +
			"mark. What was written before the damage stays, everything behind it is given up, so\n" +
			"restore a backup instead if there is one. The files that are changed are kept as they\n" +
			"were, in a directory damaged-… inside the data directory. No server may be running on\n" +
			"it. Where other files are damaged nothing is done: only a backup can bring them back.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := loadConfig(cmd.Flags(), getenv)
			if err != nil {
				return err
			}
			return repair(config, stdout)
		},
	}
	all := configFlags()
	command.Flags().AddFlag(all.Lookup(keyConfig))
	command.Flags().AddFlag(all.Lookup(keyDataDir))
	return command
}

func repair(config Config, stdout io.Writer) error {
	if err := config.hasStore(); err != nil {
		return err
	}
	done, err := rockskv.Repair(config.DataDir, time.Now())
	if errors.Is(err, rockskv.ErrNotDamaged) {
		_, err = fmt.Fprintln(stdout, "nothing is damaged that keeps the store from opening")
		return err
	}
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s %s\nthe files as they were are in %s\n", done.Damage.File, done.Damage.Problem, done.Kept)
	if len(done.Cut) > 0 {
		text += fmt.Sprintf("given up: %d bytes of %v; run check before the next start\n", done.LostBytes, done.Cut)
	}
	_, err = fmt.Fprint(stdout, text)
	return err
}

// storeError says where a store is that can't be opened, and what this program can do
// about it.
func storeError(err error, config Config) error {
	hint := ""
	if damage, ok := errors.AsType[*kv.DamageError](err); ok && damage.Repairable {
		hint = fmt.Sprintf(" (loom-bridge-server repair --%s %s)", keyDataDir, config.DataDir)
	}
	return fmt.Errorf("--%s (%s): %w%s", keyDataDir, envName(keyDataDir), err, hint)
}
