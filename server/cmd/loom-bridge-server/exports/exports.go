// Package exports is the command that writes what an agent did, said, remembers and emitted
// as files.
package exports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/export"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/paths"
)

const help = `Write what an agent did, said, remembers and emitted as files. Nothing is written to
the store, so that the right to read it is enough; no server may be running on it. In
the directory of --out there are then

  workspace/history/step_001.json     each step in full
  workspace/history/step_001.compact  its one line
  workspace/history/step_001.original its result as it was given, where no other
                                      file has it
  workspace/outputs/read_002.txt ...  offloaded results, byte for byte, under every
                                      path that they have or had; archived ones
                                      and the like in separate folders
  steps.jsonl                         id, session, position and line of each step
  messages.jsonl                      the messages, in the order of the session
  folds.jsonl                         what stands in prompts in place of old steps,
                                      if anything does
  tasks.jsonl                         the tasks of each session, which are tier L1 of
                                      its memory; L2 to L4 are records of these tiers
  blobs.jsonl                         a description of each offloaded result, and
                                      the files that it was written to
  records.jsonl                       the agent's records, without vectors
  memory/ID.txt                       the text of each record
  versions.jsonl                      earlier versions of records
  events.jsonl                        the durable events that the agent emitted, and
                                      events of the topics agent.ID and below
  audit.jsonl                         the tool calls: caller, tool and outcome

Empty files are not made. Records saved for a person (user_id) belong to no agent and are
left out. Each result is compared with its hash. What is damaged, of whatever kind, is left out
and has a line in damaged.jsonl; the exit status is then 1. A path that the file system does not accept is written as
renamed/{hash}, as blobs.jsonl says.`

// Options are what the command works with. All are required.
type Options struct {
	// DataDir is where the settings have the store.
	DataDir func() (string, error)
	// Open opens that store for reading.
	Open func() (kv.Engine, error)
	// Reduction is how the settings have results reduced.
	Reduction func() (step.Options, error)
	// Refuse is the error that says what is wrong with the value of a flag.
	Refuse func(flag, value, problem string) error
	// Out gets the summary, Progress the progress and any damage.
	Out, Progress io.Writer
}

// ErrDamaged: not everything could be exported.
var ErrDamaged = errors.New("export is not complete")

// request is what to export, and where to.
type request struct {
	Options
	scope   kv.Scope
	session string // empty for all
	out     string
	force   bool
}

// Command is the command.
func Command(o Options) *cobra.Command {
	r := request{Options: o}
	command := &cobra.Command{
		Use:   "export --agent ID --out DIR",
		Short: "Write what an agent did, said, remembers and emitted as files",
		Long:  help,
		Example: "  loom-bridge-server export --agent researcher-1 --out ./researcher-1\n" +
			"  loom-bridge-server export --data /var/lib/loom --agent researcher-1 --session s1 --out ./s1",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd.Context()) },
	}
	own := command.Flags()
	own.SortFlags = false
	own.StringVar(&r.scope.Owner, "agent", "", "`id` of the agent (required)")
	own.StringVar(&r.session, "session", "", "`id` of one session; default all of the agent's")
	own.StringVar(&r.scope.Tenant, "tenant", "default", "`name` of the agent's tenant")
	own.StringVar(&r.out, "out", "", "`directory` to write to; made if it is not there (required)")
	own.BoolVar(&r.force, "force", false, "write into a directory that is not empty, over files of the same names")
	return command
}

// check returns the first thing that is wrong with a request.
func (r *request) check() error {
	dataDir, err := r.DataDir()
	if err != nil {
		return err
	}
	r.scope.Kind = kv.OwnerAgent
	switch {
	case r.scope.Owner == "":
		return r.Refuse("agent", "", "is required: the id of the agent to export")
	case r.out == "":
		return r.Refuse("out", "", "is required: the directory to write to")
	}
	if err := r.scope.Validate(); err != nil {
		return err
	}
	if inside, err := paths.Within(r.out, dataDir); err != nil || inside {
		return r.Refuse("out", r.out, "must not lie in the directory of the store")
	}
	return nil
}

// run opens the store and the directory, and writes.
func (r *request) run(ctx context.Context) (err error) {
	if err := r.check(); err != nil {
		return err
	}
	engine, err := r.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	writer := kv.NewWriter(engine, nil)
	defer func() { err = errors.Join(err, writer.Close()) }()
	reduction, err := r.Reduction()
	if err != nil {
		return err
	}
	e := &exporter{
		request: r, engine: engine,
		context: export.Selection{
			Log: session.New(engine, writer, nil), Blobs: blob.New(engine, writer, nil), Scope: r.scope, Session: r.session,
			Lines: reduction.Rules.Templates().Over(step.DesignTemplates()),
		},
		events: events.New(engine, writer, &events.Options{Retention: events.Retention{Every: -1}}), // deletes nothing
	}
	defer func() { err = errors.Join(err, e.events.Close()) }()
	if err := e.checkExists(ctx); err != nil {
		return err
	}
	if e.files, err = export.OpenTree(r.out, r.force); err != nil {
		return r.Refuse("out", r.out, err.Error())
	}
	defer func() { err = errors.Join(err, e.files.Close()) }()
	if err := e.write(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.Out, "exported %s of %s to %s\n", e.summary(), r.scope.Owner, r.out)
	if err == nil && e.counts.Damaged > 0 {
		err = fmt.Errorf("%w: %d entries are damaged and were left out; damaged.jsonl names them", ErrDamaged, e.counts.Damaged)
	}
	return err
}

// shownNames is how many agents or tenants are listed if the given name does not exist.
const shownNames = 5

// checkExists says so when there is nothing to export, and what there is.
func (e *exporter) checkExists(ctx context.Context) error {
	for _, ks := range []kv.Keyspace{kv.Log, kv.Blobs, kv.Records} {
		r := kv.Prefix(e.scope.AppendPrefix(nil))
		r.Limit = 1
		for _, err := range e.engine.Scan(ctx, ks, r) {
			if err != nil {
				return err
			}
			return e.checkSession(ctx)
		}
	}
	if some(e.ownEvents(ctx)) {
		return nil
	}
	agents, tenants, err := e.known(ctx)
	if err != nil {
		return err
	}
	problem := "has nothing stored in the tenant " + e.scope.Tenant
	switch {
	case len(agents) > 0:
		problem += "; known agents: " + strings.Join(agents, ", ")
	case len(tenants) > 0:
		problem += "; known tenants: " + strings.Join(tenants, ", ")
	}
	return e.Refuse("agent", e.scope.Owner, problem)
}

// some reports whether there is anything, be it damaged.
func some[T any](all iter.Seq2[T, error]) bool {
	found := false
	all(func(T, error) bool {
		found = true
		return false
	})
	return found
}

// checkSession says so when the session has nothing.
func (e *exporter) checkSession(ctx context.Context) error {
	if e.session == "" {
		return nil
	}
	last, err := e.context.Log.Last(ctx, e.scope, e.session)
	if errors.Is(err, session.ErrDamaged) || last > 0 {
		return nil // what is wrong with it the export finds
	}
	if err != nil {
		return err
	}
	if some(e.context.Log.AllTasks(ctx, e.scope, e.session)) || some(e.context.Blobs.All(ctx, e.scope, e.session)) {
		return nil
	}
	for r, err := range record.All(ctx, e.engine, e.scope) {
		if err != nil || r.SessionID == e.session {
			return nil
		}
	}
	if some(e.ownEvents(ctx)) {
		return nil
	}
	return e.Refuse("session", e.session, "has no entries, offloaded results, records and events of that agent")
}

// known are the first agents of the tenant that have anything stored, and the first
// tenants that have any.
func (e *exporter) known(ctx context.Context) (agents, tenants []string, err error) {
	for _, ks := range []kv.Keyspace{kv.Log, kv.Records, kv.Blobs} {
		for scope, err := range kv.Scopes(ctx, e.engine, ks) {
			if err != nil {
				return nil, nil, err
			}
			if scope.Kind != kv.OwnerAgent {
				continue
			}
			tenants = addName(tenants, scope.Tenant)
			if scope.Tenant == e.scope.Tenant {
				agents = addName(agents, scope.Owner)
			}
		}
	}
	return agents, tenants, nil
}

// addName adds a name once, and dots in place of the rest.
func addName(names []string, name string) []string {
	name = fmt.Sprintf("%q", name)
	switch {
	case slices.Contains(names, name) || len(names) > shownNames:
		return names
	case len(names) == shownNames:
		return append(names, "…")
	}
	return append(names, name)
}
