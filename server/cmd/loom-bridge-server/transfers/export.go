package transfers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/export"
	"github.com/loom-bridge/loom-bridge/memory/record"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/formats"
)

// export writes the records of a memory.
func (d *desk) export(ctx context.Context, path, as string) (err error) {
	var n int
	switch as {
	case "lines":
		n, err = d.toFile(path, func(to io.Writer) (int, error) { return d.writeLines(ctx, to) })
	case "markdown":
		n, err = d.writeNotes(ctx, path)
	case "mcp-memory":
		n, err = d.toFile(path, func(to io.Writer) (int, error) { return d.writeGraph(ctx, to) })
	default:
		err = fmt.Errorf("--as %q is not lines, markdown or mcp-memory", as)
	}
	if err == nil && n == 0 {
		err = d.nothing("records")
	}
	if err != nil || path == "" {
		return err
	}
	_, err = fmt.Fprintf(d.Out, "exported %d records to %s\n", n, path)
	return err
}

// eachLine calls do with each line of the memory, and returns of how many records they are.
func (d *desk) eachLine(ctx context.Context, do func(line string) error) (records int, err error) {
	stream, err := d.lines.Export(ctx, &loombridgev1.ExportRequest{AgentId: d.agent, UserId: d.user, SpaceId: d.space})
	if err != nil {
		return 0, err
	}
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return records, err
		}
		for _, line := range part.GetLines() {
			if err := do(line); err != nil {
				return records, err
			}
			if !strings.HasPrefix(line, `{"earlier":true`) {
				records++
			}
		}
		d.Progress(records)
	}
}

func (d *desk) writeLines(ctx context.Context, to io.Writer) (records int, err error) {
	w := bufio.NewWriter(to)
	records, err = d.eachLine(ctx, func(line string) error {
		_, err := w.WriteString(line + "\n")
		return err
	})
	return records, errors.Join(err, w.Flush())
}

// eachRecord calls do with each record as it is now, and returns how many they are.
func (d *desk) eachRecord(ctx context.Context, do func(l record.Line) error) (records int, err error) {
	_, err = d.eachLine(ctx, func(line string) error {
		l, err := record.ParseLine([]byte(line))
		if err != nil || l.Earlier || l.Record.SupersededBy != "" {
			return err
		}
		records++
		return do(l)
	})
	return records, err
}

// writeNotes makes a folder of notes, which appears when it is whole.
func (d *desk) writeNotes(ctx context.Context, path string) (records int, err error) {
	if path == "" {
		return 0, errors.New("--as markdown needs --out, the folder to make")
	}
	if _, err := os.Lstat(path); err == nil {
		return 0, fmt.Errorf("--out %s is there already; give a new folder", path)
	}
	partial, err := os.MkdirTemp(filepath.Dir(path), filepath.Base(path)+".partial")
	if err != nil {
		return 0, err
	}
	tree, err := export.OpenTree(partial, false)
	if err == nil {
		records, err = d.eachRecord(ctx, func(l record.Line) error {
			name, text, err := formats.WriteNote(l.Record)
			if err != nil {
				return err
			}
			return tree.Write(name, text)
		})
		err = errors.Join(err, tree.Close())
	}
	if err == nil {
		d.Told()
		return records, os.Rename(partial, path)
	}
	return records, errors.Join(err, os.RemoveAll(partial))
}

func (d *desk) writeGraph(ctx context.Context, to io.Writer) (records int, err error) {
	g := formats.NewGraph()
	if records, err = d.eachRecord(ctx, g.Add); err != nil {
		return records, err
	}
	return records, g.Write(to)
}
