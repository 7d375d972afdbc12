package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const exportHelp = `Write what an agent did, said and stored as files. The store is only read, and
no server may be running on it. In the directory of --out there are then

  workspace/history/step_001.json     each step in full
  workspace/history/step_001.compact  its one line
  workspace/history/step_001.original its result as it was given, where no other
                                      file has it
  workspace/outputs/read_002.txt ...  offloaded results, byte for byte, under every
                                      path that they have or had; those of the
                                      archive and the like in folders of their own
  steps.jsonl                         id, session, position and line of each step
  messages.jsonl                      the messages, in the order of the session
  folds.jsonl                         what stands in prompts in place of old steps,
                                      if anything does
  tasks.jsonl                         the tasks of each session, if there are any
  blobs.jsonl                         what is known of each offloaded result, and
                                      the files that it was written to

Each result is compared with its hash; one that is damaged is left out and told,
and the exit status is then 1. A path that the file system does not take is
written as renamed/{hash}, as blobs.jsonl says.`

// exportRequest is what to export, and where to.
type exportRequest struct {
	scope   kv.Scope
	session string // empty for all
	out     string
	force   bool
}

// exportCommand is the sub-command that writes an agent's history as files.
func exportCommand(getenv func(string) string, stdout, stderr io.Writer) *cobra.Command {
	var r exportRequest
	command := &cobra.Command{
		Use:   "export --agent ID --out DIR",
		Short: "Write an agent's steps, messages and offloaded results as files",
		Long:  exportHelp,
		Example: "  loom-bridge-server export --agent researcher-1 --out ./researcher-1\n" +
			"  loom-bridge-server export --data /var/lib/loom --agent researcher-1 --session s1 --out ./s1",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := loadConfig(cmd.Flags(), getenv)
			if err != nil {
				return err
			}
			return export(cmd.Context(), config, r, stdout, stderr)
		},
	}
	all, own := configFlags(), command.Flags()
	own.SortFlags = false
	own.AddFlag(all.Lookup(keyConfig))
	own.AddFlag(all.Lookup("data-dir"))
	own.AddFlag(all.Lookup("rules"))
	own.StringVar(&r.scope.Owner, "agent", "", "`id` of the agent (required)")
	own.StringVar(&r.session, "session", "", "`id` of one session; default all of the agent's")
	own.StringVar(&r.scope.Tenant, "tenant", "default", "`name` of the agent's tenant")
	own.StringVar(&r.out, "out", "", "`directory` to write to; made if it is not there (required)")
	own.BoolVar(&r.force, "force", false, "write into a directory that is not empty, over files of the same names")
	own.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "data" {
			name = "data-dir"
		}
		return pflag.NormalizedName(name)
	})
	return command
}

// check returns the first thing that is wrong with a request.
func (r *exportRequest) check(dataDir string) error {
	r.scope.Kind = kv.OwnerAgent
	switch {
	case r.scope.Owner == "":
		return &ConfigError{"agent", "", "is required: the id of the agent to export"}
	case r.out == "":
		return &ConfigError{"out", "", "is required: the directory to write to"}
	}
	if err := r.scope.Validate(); err != nil {
		return err
	}
	if _, err := os.Stat(dataDir); err != nil {
		return &ConfigError{"data-dir", dataDir, "there is no store: " + err.Error()}
	}
	if inside, err := within(r.out, dataDir); err != nil || inside {
		return &ConfigError{"out", r.out, "must not lie in the directory of the store"}
	}
	return nil
}

// within tells whether a path, which need not exist, is a directory or lies in
// it, links followed.
func within(path, dir string) (bool, error) {
	dir, err := resolved(dir)
	if err != nil {
		return false, err
	}
	path, err = resolved(path)
	if err != nil {
		return false, err
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)), err
}

// resolved is a path without links, as far as it exists.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := ""
	for {
		found, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(found, rest), nil
		}
		if !errors.Is(err, os.ErrNotExist) || filepath.Dir(path) == path {
			return "", err
		}
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
}

// export opens the store and the directory, and writes.
func export(ctx context.Context, config Config, r exportRequest, stdout, stderr io.Writer) (err error) {
	if err := r.check(config.DataDir); err != nil {
		return err
	}
	var opened closers
	defer func() { err = errors.Join(err, opened.close()) }()
	engine, err := openStore(config)
	if err != nil {
		return err
	}
	opened.add(engine.Close)
	writer := kv.NewWriter(engine, nil)
	opened.add(writer.Close)
	reduction, err := config.reduction()
	if err != nil {
		return err
	}
	e := &exporter{
		exportRequest: r, engine: engine, stderr: stderr, lines: reduction.Rules.Templates().Over(step.DesignTemplates()),
		log: session.New(engine, writer, nil), blobs: blob.New(engine, writer, nil),
	}
	if err := e.checkExists(ctx); err != nil {
		return err
	}
	if e.files, err = openFileTree(r.out, r.force); err != nil {
		return err
	}
	opened.add(e.files.Close)
	if err := e.run(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "exported %s of %s to %s\n", e.summary(), r.scope.Owner, r.out)
	if err == nil && e.damaged > 0 {
		err = fmt.Errorf("%w: %d offloaded results are damaged and were left out", errExportDamaged, e.damaged)
	}
	return err
}

// errExportDamaged: not everything could be exported.
var errExportDamaged = errors.New("export is not complete")
