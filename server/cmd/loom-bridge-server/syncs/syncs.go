// Package syncs is the command line that keeps a memory of one server in step with that of another
// server, or with a folder of notes.
//
// A round reads what changed on both sides since the last one, from the positions of their watches, and
// decides about each record by the contents that were last equal. A change is made on condition
// that the record there is still what the decision was about, so a write meanwhile is never lost:
// the record is looked at again. What was done is found again by comparing, so a round may end
// anywhere and be made again.
package syncs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/context/text"
)

const help = `Keep a memory of the server on --addr in step with that of another server, or with a folder.

  loom-bridge-server sync --agent me --with team.example:50051 --with-ca team.pem --space team
  loom-bridge-server sync --agent me --folder ~/notes --watch

Changes and deletions go both ways, also those made while the other side could not be reached.
Where both sides have changed a record, the later change stays, and the other content is kept on
both sides as an archived record, which has the tag sync-conflict. A change wins over a deletion.
Where both have saved a key, the later record replaces the other. Each such case is told. What is
written is what the callers may write: what a side refuses stays as it is, is told, and is tried
again. ` + EnvToken + ` is the token for the other server.

Texts, kinds, authors, times, tags, metadata, importance, pins and expiry are kept in step. Versions,
vectors, relations, reviews and the archive are each server's own; of a new record, who saved it
and when go along. A folder has a note for each record that no other has replaced, as
"records export --as markdown" writes it; a note without loom_id becomes a record, and stays as it
is. Links, other files and notes of more than 1 MiB are left alone, which is told.

The state file says what was last equal. Without it all is compared, and what was deleted on one
side comes back. A round takes about 1,000 changes or 16 MiB of each side.`

// EnvToken is the environment variable with the token for the other server.
const EnvToken = "LOOM_BRIDGE_WITH_TOKEN"

// Options are what the command works with. All are required.
type Options struct {
	// Dial connects to the server on --addr, and says where that is.
	Dial func(ctx context.Context) (with context.Context, conn *grpc.ClientConn, place string, err error)
	// DialOther connects to another one, over TLS if an authority is given.
	DialOther func(ctx context.Context, addr, authority string) (context.Context, *grpc.ClientConn, error)
	// StateDir is where states are kept by default.
	StateDir func() (string, error)
	// Progress shows how many records were looked at, and Told takes that away.
	Progress func(records int)
	Told     func()
	Out      io.Writer
}

// command is one run of the command.
type command struct {
	Options
	here, there                                Owner
	with, authority, folder, filter, statePath string
	dry, watch, deletions, json                bool
	mu                                         sync.Mutex
}

// Command is the command.
func Command(o Options) *cobra.Command {
	c := &command{Options: o}
	cmd := &cobra.Command{Use: "sync", Short: "Keep a memory in step with another server's, or with a folder of notes", Long: help, Args: cobra.NoArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) }
	flags := cmd.Flags()
	flags.StringVar(&c.here.Agent, "agent", "", "`id` of the agent whose memory it is, or which works in a person's or a space's (required)")
	flags.StringVar(&c.here.User, "user", "", "`id` of the person whose memory it is, in place of the agent's")
	flags.StringVar(&c.here.Space, "space", "", "`id` of the space whose memory it is, in place of the agent's")
	flags.StringVar(&c.with, "with", "", "`address` of the other server")
	flags.StringVar(&c.authority, "with-ca", "", "PEM `file` of authorities: the other server is spoken to over TLS")
	flags.StringVar(&c.there.Agent, "with-agent", "", "`id` of the agent at the other server; default: --agent")
	flags.StringVar(&c.there.User, "with-user", "", "`id` of the person at the other server; default: --user, unless another memory is named there")
	flags.StringVar(&c.there.Space, "with-space", "", "`id` of the space at the other server; default: --space, unless another memory is named there")
	flags.StringVar(&c.folder, "folder", "", "the `folder` of notes, in place of another server")
	flags.StringVar(&c.filter, "filter", "", "only records that this `expression` lets through, as in queries")
	flags.StringVar(&c.statePath, "state", "", "the `file` of the state; default: one for these memories in the user's state directory")
	flags.BoolVar(&c.dry, "dry-run", false, "say what would be done, and change nothing")
	flags.BoolVar(&c.watch, "watch", false, "stay, and follow the changes until interrupted")
	flags.BoolVar(&c.deletions, "allow-deletions", false, "delete on one side although more than half is gone on the other")
	flags.BoolVar(&c.json, "json", false, "write lines of JSON")
	_ = cmd.MarkFlagRequired("agent") // the flag is there
	cmd.MarkFlagsOneRequired("with", "folder")
	cmd.MarkFlagsMutuallyExclusive("with", "folder")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "watch")
	return cmd
}

// complete fills in what the other memory has from this one.
func (c *command) complete() error {
	if c.there.Agent == "" {
		c.there.Agent = c.here.Agent
	}
	if c.there == (Owner{Agent: c.there.Agent}) {
		c.there.User, c.there.Space = c.here.User, c.here.Space
	}
	if c.folder != "" {
		whole, err := filepath.Abs(c.folder)
		c.folder = whole
		return err
	}
	return nil
}

func (c *command) run(ctx context.Context) (err error) {
	if err := c.complete(); err != nil {
		return err
	}
	hereCtx, conn, place, err := c.Dial(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	between := fmt.Sprintf("%s, folder %s, filter %q", c.here, c.folder, c.filter)
	if c.folder == "" {
		between = fmt.Sprintf("%s, %s, filter %q", c.here, c.there, c.filter)
	}
	if c.statePath == "" {
		dir, err := c.StateDir()
		if err != nil {
			return fmt.Errorf("--state: %w", err)
		}
		c.statePath = filepath.Join(dir, "sync-"+digest([]byte(place+"\x00"+c.with+"\x00"+between))+".jsonl")
	}
	known, err := openState(c.statePath, between, c.dry)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, known.close()) }()
	s := &session{
		state: known, dry: c.dry, notes: c.folder != "", deletions: c.deletions, tell: c.tell, progress: c.Progress, now: time.Now,
		here: newServer(hereCtx, "here", conn, c.here, c.filter, c.folder != ""),
	}
	if c.folder != "" {
		paths := make(map[string]string)
		for id, p := range known.pairs {
			paths[id] = p.There.Path
		}
		folder, err := openNotes(c.folder, paths, c.tell)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, folder.close()) }()
		s.there = folder
	} else {
		thereCtx, other, err := c.DialOther(ctx, c.with, c.authority)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, other.Close()) }()
		s.there = newServer(thereCtx, "there", other, c.there, c.filter, false)
	}
	if c.watch {
		err = s.follow(ctx)
	} else {
		err = s.run(ctx)
	}
	return errors.Join(err, c.report(s.counts))
}

// tell writes what is told of a record.
func (c *command) tell(t tale) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Told()
	if c.json {
		_ = json.NewEncoder(c.Out).Encode(t)
		return
	}
	line := t.Event + ": " + t.Text
	if t.ID != "" {
		line = fmt.Sprintf("%s %s: %s", t.Event, t.ID, t.Text)
	}
	_, _ = fmt.Fprintln(c.Out, text.VisibleLine(line))
}

// report writes what was done.
func (c *command) report(n Counts) error {
	c.Told()
	if c.json {
		return json.NewEncoder(c.Out).Encode(struct {
			Event string `json:"event"`
			Counts
			DryRun bool   `json:"dry_run"`
			State  string `json:"state"`
		}{"done", n, c.dry, c.statePath})
	}
	how := ""
	if c.dry {
		how = "dry run: "
	}
	_, err := fmt.Fprintf(c.Out, "%s%d changed here, %d there, %d deleted, %d conflicts, %d refused; the state is in %s\n",
		how, n.Here, n.There, n.Removed, n.Conflicts, n.Refused, c.statePath)
	return err
}
