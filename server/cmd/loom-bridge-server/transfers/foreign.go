package transfers

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/formats"
)

const foreignHelp = `Import what other programs keep of conversations and memories, into the server on --addr.

  loom-bridge-server import claude-code --agent coder --dry-run ~/.claude/projects
  loom-bridge-server import chatgpt --agent me --remember conversations.json
  loom-bridge-server import markdown --agent me ~/notes

Formats:
%s
Conversations become sessions of the agent, memories and notes its records; --remember also
saves what was said in conversations as records, which searches find. What is there as it
comes is passed over, so that an import which was interrupted goes on when it is made again,
and a conversation that has grown is continued; what is there as something else stays. All
files are read and checked first: one that is cut off or damaged is refused, with its line,
and changes nothing. Of branches that a person went back from, the one that its program shows is
taken; system prompts, thoughts of models and bytes of images are left out, and texts of more
than 768 KiB, or 256 KiB in records, are cut. Records are undone by ` + "`records undo`" + `, for
which the import prints its id.`

// Foreign is the command that imports files of other programs.
func Foreign(o Options) *cobra.Command {
	d := &desk{Options: o}
	var dry, remember bool
	command := d.sub("import FORMAT FILE...", "Import conversations and memories of other programs", cobra.MinimumNArgs(2), func(ctx context.Context, args []string) error {
		f, err := formats.Find(args[0])
		if err != nil {
			return err
		}
		if f.Sessions && !f.Memories && !remember && cmp.Or(d.user, d.space) != "" {
			return errors.New("sessions are an agent's own: --user and --space go with --remember, or with a format of memories")
		}
		return d.foreign(ctx, f, args[1:], dry, remember)
	})
	var about strings.Builder
	for _, f := range formats.All {
		fmt.Fprintf(&about, "  %-12s %s\n", f.Name, f.About)
	}
	command.Long = fmt.Sprintf(foreignHelp, about.String())
	flags := command.Flags()
	flags.StringVar(&d.agent, "agent", "", "`id` of the agent that gets the sessions, or whose memory it is (required)")
	flags.StringVar(&d.user, "user", "", "`id` of the person whose memory it is, in place of the agent's")
	flags.StringVar(&d.space, "space", "", "`id` of the space whose memory it is, in place of the agent's")
	flags.BoolVar(&dry, "dry-run", false, "say what would be imported, and change nothing")
	flags.BoolVar(&remember, "remember", false, "save what was said in conversations as records, too")
	_ = command.MarkFlagRequired("agent") // the flag is there
	return command
}

// foreign imports files: a run is a dry run, which reads and checks all, and then the same again.
func (d *desk) foreign(ctx context.Context, f formats.Format, files []string, dry, remember bool) error {
	var kinds []formats.What
	if f.Sessions {
		kinds = append(kinds, formats.Sessions)
	}
	switch {
	case remember:
		kinds = append(kinds, formats.Records)
	case f.Memories:
		kinds = append(kinds, formats.Memories)
	}
	id := rand.Text()
	for _, trying := range []bool{true, false} {
		said := ""
		for i, kind := range kinds {
			found, counts, err := d.foreignPart(ctx, f, files, kind, trying, id)
			switch {
			case err != nil && trying:
				return fmt.Errorf("%w; nothing was imported", err)
			case err != nil:
				return fmt.Errorf("%w; made again, the import goes on", err)
			case i == 0:
				var what []string
				if f.Sessions {
					what = append(what, fmt.Sprintf("%d sessions with %d messages", found.Sessions, found.Messages))
				}
				if f.Memories {
					what = append(what, fmt.Sprintf("%d records", found.Records))
				}
				said = fmt.Sprintf("read %s; %d parts left out, %d texts cut\n", strings.Join(what, " and "), found.LeftOut, found.Cut)
			}
			if trying {
				said += "dry run: "
			}
			if kind == formats.Sessions {
				said += fmt.Sprintf("imported %d sessions; %d were there, %d were there as something else\n", counts.GetSaved(), counts.GetUnchanged(), counts.GetSkipped())
			} else {
				said += d.imported(counts, trying)
			}
		}
		if trying != dry {
			continue
		}
		d.Told()
		_, err := fmt.Fprint(d.Out, said)
		return err
	}
	return nil
}

// foreignPart imports the sessions or the records of files.
func (d *desk) foreignPart(ctx context.Context, f formats.Format, files []string, kind formats.What, dry bool, id string) (formats.Counts, *loombridgev1.ImportResponse, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop() // of a stream whose lines could not all be read
	stream, err := d.lines.Import(ctx)
	if err != nil {
		return formats.Counts{}, nil, err
	}
	next := &loombridgev1.ImportRequest{AgentId: d.agent, SkipExisting: true, DryRun: dry}
	if kind == formats.Sessions {
		next.Sessions = true
	} else {
		next.UserId, next.SpaceId, next.ImportId = d.user, d.space, id
	}
	out := parts{progress: d.Progress, send: func(lines []string) error {
		next.Lines = lines
		err := stream.Send(next)
		next = &loombridgev1.ImportRequest{AgentId: d.agent, UserId: next.GetUserId(), SpaceId: next.GetSpaceId()}
		return err
	}}
	found, err := f.Read(files, kind, d.user, func(lines []string) error {
		for _, line := range lines {
			if err := out.add(line); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = out.send(out.lines)
	}
	if err != nil && !errors.Is(err, io.EOF) { // then the answer says why
		return found, nil, err
	}
	counts, err := stream.CloseAndRecv()
	return found, counts, err
}
