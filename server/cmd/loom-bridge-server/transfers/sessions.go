package transfers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const sessionsHelp = `Export and import the sessions of an agent, of the server on --addr.

  loom-bridge-server sessions export --agent researcher-1 --session s1 --out s1.jsonl
  loom-bridge-server sessions export --agent researcher-1 > all.jsonl
  loom-bridge-server sessions import --agent researcher-1 s1.jsonl

An export is a file of JSON Lines with all that is stored of a session: messages, steps,
folds, settings, working state, snapshots, tasks, and the offloaded results with every
byte. It imports into an agent of any server that has none of its steps, and the export of
that is the same file. Each session comes whole or not at all, but one of more than 8 MiB
without its results, of which an import that was interrupted may leave the beginning; made
again it goes on. For files to read there is the command export.`

// Sessions is the command of sessions with its sub-commands.
func Sessions(o Options) *cobra.Command {
	d := &desk{Options: o}
	command := &cobra.Command{Use: "sessions", Short: "Export and import the sessions of an agent", Long: sessionsHelp, Args: cobra.NoArgs}
	command.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	command.PersistentFlags().StringVar(&d.agent, "agent", "", "`id` of the agent whose sessions they are (required)")
	_ = command.MarkPersistentFlagRequired("agent") // the flag is there
	var out, id string
	export := d.sub("export", "Write sessions as lines of JSON", cobra.NoArgs, func(ctx context.Context, _ []string) error { return d.exportSessions(ctx, id, out) })
	export.Flags().StringVar(&out, "out", "", "the `file` to write, which appears when it is whole; default: standard output")
	export.Flags().StringVar(&id, "session", "", "`id` of the one session; default: all")
	load := d.sub("import [FILE]", "Take lines of an export into an agent", cobra.MaximumNArgs(1), d.loadSessions)
	load.Long = "Take lines of an export into an agent. Without FILE they are read from standard input."
	command.AddCommand(export, load)
	return command
}

func (d *desk) exportSessions(ctx context.Context, id, path string) error {
	n, err := d.toFile(path, func(to io.Writer) (int, error) {
		n, err := d.writeSessions(ctx, id, to)
		if err == nil && n == 0 && id != "" {
			err = fmt.Errorf("agent %q has no session %q", d.agent, id)
		}
		return n, err
	})
	if err == nil && n == 0 {
		err = d.nothing("sessions")
	}
	if err != nil || path == "" {
		return err
	}
	_, err = fmt.Fprintf(d.Out, "exported %d sessions to %s\n", n, path)
	return err
}

// writeSessions writes the lines and returns of how many sessions they are.
func (d *desk) writeSessions(ctx context.Context, id string, to io.Writer) (sessions int, err error) {
	stream, err := d.lines.Export(ctx, &loombridgev1.ExportRequest{AgentId: d.agent, Sessions: true, SessionId: id})
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriter(to)
	for lines := 0; ; {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return sessions, w.Flush()
		}
		if err != nil {
			return sessions, err
		}
		for _, line := range part.GetLines() {
			if _, err := w.WriteString(line + "\n"); err != nil {
				return sessions, err
			}
			if strings.HasPrefix(line, `{"kind":"end"`) {
				sessions++
			}
			lines++
		}
		d.Progress(lines)
	}
}

func (d *desk) loadSessions(ctx context.Context, files []string) error {
	stream, err := d.lines.Import(ctx)
	if err != nil {
		return err
	}
	err = d.send(files, func(lines []string) error {
		return stream.Send(&loombridgev1.ImportRequest{AgentId: d.agent, Sessions: true, Lines: lines})
	})
	if err != nil && !errors.Is(err, io.EOF) { // then the answer says why
		return err
	}
	counts, err := stream.CloseAndRecv()
	if err != nil {
		return err
	}
	d.Told()
	_, err = fmt.Fprintf(d.Out, "imported %d sessions, %d were there; %d results\n", counts.GetSaved(), counts.GetUnchanged(), counts.GetResults())
	return err
}
