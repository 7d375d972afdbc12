// Package transfers is the command line of what moves records between memories of running
// servers, and sessions between agents: it exports and imports both, and watches and relates
// records.
package transfers

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

const help = `Export, import, watch and relate the records of one memory, of the server on --addr.

  loom-bridge-server records export --agent researcher-1 --out memory.jsonl
  loom-bridge-server records import --agent researcher-2 memory.jsonl
  loom-bridge-server records export --agent researcher-1 --user ann > ann.jsonl
  loom-bridge-server records export --agent researcher-1 --space team > team.jsonl
  loom-bridge-server records export --agent researcher-1 --as markdown --out notes
  loom-bridge-server records undo --agent researcher-2 IMPORT
  loom-bridge-server records watch --agent researcher-1
  loom-bridge-server records relate --agent researcher-1 01M8E2 part_of 01M8F4
  loom-bridge-server records relations --agent researcher-1 01M8E2

An export is a file of JSON Lines with everything that was stored: vectors, versions,
times, relations. It imports into any memory of any server, and the export of that is the
same file. --as markdown writes a note for each record instead, --as mcp-memory the graph of
MCP's memory server. The command import takes both back, with what they can hold: notes all
but vectors, versions and relations, a graph texts and relations. Repeat an interrupted import: records that exist already are skipped. Undo
deletes the records that an import has saved and that are unchanged since.`

const (
	// maxLine bounds a line, as the server does.
	maxLine = 4 << 20
	// partBytes is about how much of an import is sent at once.
	partBytes = 256 << 10
	// partLines is how many lines are sent at once at most.
	partLines = 10_000
)

// Options are what the commands work with. All are required.
type Options struct {
	// Dial connects to the server; ctx then has what its calls carry.
	Dial func(ctx context.Context) (context.Context, *grpc.ClientConn, error)
	// Progress shows how many records, or lines, were moved.
	Progress func(records int)
	// Told is called before anything is written where Progress shows something.
	Told func()
	In   io.Reader
	Out  io.Writer
	// Err is where an export says that there was nothing.
	Err io.Writer
}

// desk is one run of a command.
type desk struct {
	Options
	agent, user, space string
	memory             loombridgev1.MemoryServiceClient
	lines              loombridgev1.TransferServiceClient
}

// Command is the command with its sub-commands.
func Command(o Options) *cobra.Command {
	d := &desk{Options: o}
	command := &cobra.Command{Use: "records", Short: "Export, import, watch and relate the records of a memory", Long: help, Args: cobra.NoArgs}
	command.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	command.PersistentFlags().StringVar(&d.agent, "agent", "", "`id` of the agent whose memory it is, or which works in a person's or a space's (required)")
	command.PersistentFlags().StringVar(&d.user, "user", "", "`id` of the person whose memory it is, in place of the agent's")
	command.PersistentFlags().StringVar(&d.space, "space", "", "`id` of the space whose memory it is, in place of the agent's")
	_ = command.MarkPersistentFlagRequired("agent") // the flag is there
	var out, as string
	export := d.sub("export", "Write a memory as lines of JSON, as notes or as a graph", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		return d.export(ctx, out, as)
	})
	export.Flags().StringVar(&out, "out", "", "the `file` to write, which appears when it is whole, or a new folder of notes; default: standard output")
	export.Flags().StringVar(&as, "as", "lines", "the `format`: lines, markdown or mcp-memory")
	var skip bool
	load := d.sub("import [FILE]", "Take lines of an export into a memory", cobra.MaximumNArgs(1), func(ctx context.Context, args []string) error {
		return d.load(ctx, args, skip)
	})
	load.Long = "Import lines into a memory, after the existing records: those of an export, plain texts, or\nobjects such as {\"text\": \"Ann likes pears\", \"id\": \"pears\", \"tags\": [\"food\"]}. The same line is\nthe same record however often it comes. Without FILE they are read from standard input."
	load.Flags().BoolVar(&skip, "skip-existing", false, "skip lines whose id exists with another content")
	undo := d.sub("undo IMPORT", "Delete the records that an import has saved", cobra.ExactArgs(1), func(ctx context.Context, args []string) error { return d.undo(ctx, args[0]) })
	undo.Long = "Delete the records that the import of an id has saved and that are unchanged since.\nIt prints how many were changed and stay. Import prints the id; records have it, too."
	var after string
	watch := d.sub("watch", "Write the changes of a memory as lines of JSON, until interrupted", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		return d.watch(ctx, after)
	})
	watch.Flags().StringVar(&after, "after", "", "the `position` of the last line that is known; default: every record first")
	command.AddCommand(export, load, undo, watch)
	command.AddCommand(d.relations()...)
	return command
}

// sub is a sub-command that talks to the server.
func (d *desk) sub(use, short string, args cobra.PositionalArgs, run func(ctx context.Context, args []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args, RunE: func(cmd *cobra.Command, given []string) error {
		ctx, conn, err := d.Dial(cmd.Context())
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		d.memory, d.lines = loombridgev1.NewMemoryServiceClient(conn), loombridgev1.NewTransferServiceClient(conn)
		return run(ctx, given)
	}}
}

// nothing says that there was nothing to export, since an id is easily misspelt.
func (d *desk) nothing(what string) error {
	kind, id := "agent", d.agent
	if d.user != "" {
		kind, id = "user", d.user
	}
	if d.space != "" {
		kind, id = "space", d.space
	}
	_, err := fmt.Fprintf(d.Err, "%s %q is unknown, or has no %s; `loom-bridge-server scopes` lists who has a memory\n", kind, id, what)
	return err
}

// toFile writes to a file that has its name when it is whole, or to the output without one.
func (d *desk) toFile(path string, write func(to io.Writer) (int, error)) (n int, err error) {
	if path == "" {
		return write(d.Out)
	}
	const private = 0o600
	partial := path + ".partial"
	f, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, private)
	if err != nil {
		return 0, err
	}
	n, err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(partial, path)
	}
	if err != nil {
		return n, errors.Join(err, os.Remove(partial))
	}
	d.Told()
	return n, nil
}

// load sends the lines of a file.
func (d *desk) load(ctx context.Context, files []string, skip bool) error {
	stream, err := d.lines.Import(ctx)
	if err != nil {
		return err
	}
	id := rand.Text() // known although the import ends early
	part := &loombridgev1.ImportRequest{AgentId: d.agent, UserId: d.user, SpaceId: d.space, SkipExisting: skip, ImportId: id}
	err = d.send(files, func(lines []string) error {
		lines = slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" })
		for i, line := range lines {
			lines[i] = asLine(line)
		}
		part.Lines = lines
		err := stream.Send(part)
		part = &loombridgev1.ImportRequest{AgentId: d.agent, UserId: d.user, SpaceId: d.space}
		return err
	})
	if err != nil && !errors.Is(err, io.EOF) { // then the answer says why
		return err
	}
	counts, err := stream.CloseAndRecv()
	if err != nil {
		return fmt.Errorf("%w; %s deletes the records it has saved", err, d.undoing(id))
	}
	d.Told()
	_, err = fmt.Fprint(d.Out, d.imported(counts, false))
	return err
}

// imported is the line that counts imported records by outcome.
func (d *desk) imported(counts *loombridgev1.ImportResponse, dry bool) string {
	how := ""
	if counts.GetSaved() > 0 && !dry {
		how = "; undo it with: " + d.undoing(counts.GetImportId())
	}
	return fmt.Sprintf("imported %d records; %d were there, %d were there as something else, %d had expired%s\n",
		counts.GetSaved(), counts.GetUnchanged(), counts.GetSkipped(), counts.GetExpired(), how)
}

// undoing is the command that undoes an import.
func (d *desk) undoing(id string) string {
	whose := ""
	for _, flag := range []struct{ name, value string }{{"user", d.user}, {"space", d.space}} {
		if flag.value != "" {
			whose += fmt.Sprintf(" --%s %s", flag.name, flag.value)
		}
	}
	return fmt.Sprintf("records undo --agent %s%s %s", d.agent, whose, id)
}

// undo deletes the records that an import has saved, except records changed since.
func (d *desk) undo(ctx context.Context, id string) error {
	ofImport := fmt.Sprintf("import_id = %q", id)
	request := &loombridgev1.DeleteRecordsRequest{AgentId: d.agent, UserId: d.user, SpaceId: d.space, Tiers: []int32{2, 3, 4}, Filter: ofImport + " AND import_changes = 0"}
	gone, err := d.memory.DeleteRecords(ctx, request)
	if err != nil {
		return err
	}
	request.Filter, request.DryRun = ofImport+" AND import_changes > 0", true
	changed, err := d.memory.DeleteRecords(ctx, request)
	if err != nil {
		return err
	}
	if gone.GetDeleted()+gone.GetNotOwned()+changed.GetDeleted()+changed.GetNotOwned() == 0 {
		return status.Errorf(codes.NotFound, "no record of this memory is of import %q, or all were deleted; nothing was changed", id)
	}
	d.Told()
	_, err = fmt.Fprintf(d.Out, "deleted %d records of import %s; %d were changed since and stay, %d are of other agents and stay\n",
		gone.GetDeleted(), id, changed.GetDeleted()+changed.GetNotOwned(), gone.GetNotOwned())
	return err
}

// send sends the lines of a file, or of the input without one, in messages; one at least.
func (d *desk) send(files []string, send func(lines []string) error) error {
	from := d.In
	if len(files) == 1 {
		f, err := os.Open(files[0])
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it was only read
		from = f
	}
	scanned := bufio.NewScanner(from)
	scanned.Buffer(make([]byte, 0, partBytes), maxLine)
	out := parts{send: send, progress: d.Progress}
	for scanned.Scan() {
		line := scanned.Text()
		if !utf8.ValidString(line) || strings.ContainsRune(line, 0) {
			return fmt.Errorf("line %d is no text in UTF-8: the file is damaged, or of another kind", out.sent+1)
		}
		if err := out.add(line); err != nil {
			return err
		}
	}
	switch err := scanned.Err(); {
	case errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%w: notes of a folder are taken by `loom-bridge-server import markdown`", err)
	case err != nil:
		return fmt.Errorf("line %d: %w", out.sent+1, err)
	}
	return send(out.lines)
}

// parts are the messages that lines are sent in.
type parts struct {
	send     func(lines []string) error
	progress func(sent int)
	lines    []string
	size     int
	sent     int // or waiting
}

// add sends what waits where the line does not fit.
func (p *parts) add(line string) error {
	if p.size+len(line) > partBytes && p.size > 0 || len(p.lines) == partLines {
		if err := p.send(p.lines); err != nil {
			return err
		}
		p.progress(p.sent)
		p.lines, p.size = nil, 0
	}
	p.lines = append(p.lines, line)
	p.size += len(line)
	p.sent++
	return nil
}

// asLine is a line of an export, or a record whose text is the line.
func asLine(line string) string {
	line = strings.TrimPrefix(line, "\ufeff") // some editors begin a file with it
	if bare := strings.TrimSpace(line); bare == "" || bare[0] == '{' {
		return line
	}
	out, err := json.Marshal(map[string]string{"text": line})
	if err != nil {
		return line
	}
	return string(out)
}

// watch writes what changes.
func (d *desk) watch(ctx context.Context, after string) error {
	stream, err := d.memory.WatchRecords(convert.AskText(ctx), &loombridgev1.WatchRecordsRequest{AgentId: d.agent, UserId: d.user, SpaceId: d.space, After: after})
	if err != nil {
		return err
	}
	for {
		change, err := stream.Recv()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := d.json(change); err != nil {
			return err
		}
	}
}
