package native

import (
	"bytes"
	"context"
	"io"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
)

func (f *files) readFile(ctx context.Context, c tools.Call) (tools.Result, error) {
	part, ranged, err := rangeOf(c)
	if err != nil {
		return tools.Result{}, err
	}
	from, err := f.source(ctx, c)
	if err != nil {
		return tools.Result{}, err
	}
	if ranged {
		defer from.body.Close()
		return from.part(ctx, c.String("path", ""), part)
	}
	return from.whole(ctx, c.String("path", ""))
}

// rangeOf reads which lines are asked for: offset and limit, or start_line and
// end_line, which mean the same.
func rangeOf(c tools.Call) (want lineRange, ranged bool, err error) {
	first, hasFirst := c.Int("offset")
	if !hasFirst {
		first, hasFirst = c.Int("start_line")
	}
	count, hasCount := c.Int("limit")
	first = max(first, 1)
	if end, ok := c.Int("end_line"); ok && !hasCount {
		if end < first {
			return want, false, refuse("end_line", "must not be less than the first line")
		}
		count, hasCount = end-first+1, true
	}
	if !hasCount {
		count = DefaultRangeLines
	}
	return lineRange{first: first, count: max(count, 1), maxBytes: MaxRangeBytes}, hasFirst || hasCount, nil
}

func refuse(argument, problem string) *tools.ArgumentsError {
	return &tools.ArgumentsError{Violations: []tools.Violation{{Path: argument, Problem: problem}}}
}

// source is what a path leads to: a file, or a blob.
type source struct {
	body io.ReadCloser
	size int64
	file string      // its path in the workspace; empty for a blob
	blob *blob.Entry // nil for a file
}

// whole gives everything, as a body that is read later.
func (s source) whole(ctx context.Context, name string) (tools.Result, error) {
	if s.size > MaxReadBytes {
		_ = s.body.Close() // only read from
		return tools.Result{}, tooLong(name, s.size)
	}
	return tools.Result{
		Output:    map[string]any{},
		BodyKey:   contentKey,
		Body:      closing{limited(ctx, s.body), s.body},
		BodySize:  s.size,
		BodyPaged: true,
		File:      s.file,
		Blob:      s.blob,
	}, nil
}

// contentKey is where a result shows text that was read.
const contentKey = "content"

func tooLong(name string, size int64) *tools.Error {
	return tools.Errorf(tools.TooLarge,
		"%s has %d bytes, more than the limit of %d for one read; read it in parts with offset and limit (lines)",
		name, size, MaxReadBytes)
}

// part gives a range of lines, and where to read on.
func (s source) part(ctx context.Context, name string, want lineRange) (tools.Result, error) {
	// Counting the lines of a file that may be read whole costs no more than
	// that; of a longer one it would cost any amount.
	want.total = s.size <= MaxReadBytes
	got, err := readLines(ctx, s.body, want)
	if err != nil {
		return tools.Result{}, failure(name, err)
	}
	out := map[string]any{"offset": want.first, "lines": got.lines, "truncated": got.limited}
	if got.more {
		out["next_offset"] = want.first + got.lines
	}
	if got.total >= 0 {
		out["total_lines"] = got.total
	}
	return tools.Result{
		Output:   out,
		BodyKey:  contentKey,
		Body:     io.NopCloser(bytes.NewReader(got.text)),
		BodySize: int64(len(got.text)),
		Blob:     s.blob,
	}, nil
}

// limited reads from file until ctx ends, and fails when there is more than may
// be read whole: a file can grow while it is read.
func limited(ctx context.Context, file io.Reader) io.Reader {
	left := int64(MaxReadBytes)
	return readFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n, err := file.Read(p)
		if left -= int64(n); left < 0 {
			return 0, tools.Errorf(tools.TooLarge, "the file grew beyond the limit of %d bytes while it was read", MaxReadBytes)
		}
		return n, err
	})
}

type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// closing is a reader with what has to be closed behind it.
type closing struct {
	io.Reader
	io.Closer
}
