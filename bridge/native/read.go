package native

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/bridge/native/charset"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/text"
)

func (f *files) readFile(ctx context.Context, c tools.Input) (tools.Output, error) {
	lines, hasLines, err := lineRangeOf(c)
	if err != nil {
		return tools.Output{}, err
	}
	part, hasBytes, err := byteRangeOf(c, hasLines)
	if err != nil {
		return tools.Output{}, err
	}
	from, err := f.source(ctx, c, part)
	if err != nil {
		return tools.Output{}, err
	}
	name := c.String("path", "")
	if hasLines || hasBytes {
		defer from.body.Close()
	}
	switch {
	case hasBytes:
		return from.bytes(ctx, name, part)
	case hasLines:
		return from.lines(ctx, name, lines)
	}
	return from.whole(ctx, name)
}

// lineRangeOf reads which lines are asked for: offset and limit, or start_line
// and end_line, which mean the same. A first line of 0 is the first one, a limit
// of 0 none, and an end_line of -1 or 0 the last line: so loom-py's own reading
// tool has it, whose defaults ask for the whole file.
func lineRangeOf(c tools.Input) (want lineRange, ranged bool, err error) {
	first, hasFirst := c.Int("offset")
	if !hasFirst {
		first, hasFirst = c.Int("start_line")
	}
	first = max(first, 1)
	count, _ := c.Int("limit")
	hasCount := count > 0
	end, hasEnd := c.Int("end_line")
	switch toEnd := hasEnd && end <= 0; {
	case hasCount:
	case toEnd && first == 1:
		return want, false, nil
	case toEnd:
		count, hasCount = math.MaxInt64, true
	case hasEnd && end < first:
		return want, false, refuse("end_line", "must not be less than the first line")
	case hasEnd:
		count, hasCount = end-first+1, true
	default:
		count = DefaultRangeLines
	}
	return lineRange{first: first, count: count, maxBytes: MaxRangeBytes}, hasFirst || hasCount, nil
}

// byteRange is a part of a text: count bytes from byte first on, all with a
// count below zero.
type byteRange struct{ first, count int64 }

// byteRangeOf reads which bytes are asked for; all when none are.
func byteRangeOf(c tools.Input, hasLines bool) (want byteRange, ranged bool, err error) {
	first, hasFirst := c.Int("offset_bytes")
	count, hasCount := c.Int("limit_bytes")
	switch {
	case !hasFirst && !hasCount:
		return byteRange{count: -1}, false, nil
	case hasLines:
		return want, false, refuse("offset_bytes", "must not be combined with offset and limit, which count lines")
	case !hasCount:
		count = DefaultRangeBytes
	}
	// Less than a character would be no progress.
	return byteRange{max(first, 0), min(max(count, utf8.UTFMax), MaxRangeBytes)}, true, nil
}

func refuse(argument, problem string) *tools.ArgumentsError {
	return &tools.ArgumentsError{Violations: []tools.Violation{{Path: argument, Problem: problem}}}
}

// readSource is what a path leads to: a file, or something stored.
type readSource struct {
	body   io.ReadCloser // of the bytes that were asked for
	size   int64         // of all bytes
	path   string        // of the file whose bytes body has; empty for anything else
	stored *blob.Entry   // nil for a file
	coded  encoded       // how the file was written
}

// file opens a file of the workspace, as UTF-8 text where it is text.
func (f *files) file(ctx context.Context, c tools.Input, name string, part byteRange) (readSource, error) {
	named, err := encodingOf(c)
	if err != nil {
		return readSource{}, err
	}
	file, info, rel, err := f.open(ctx, c.Root, name)
	if err != nil {
		return readSource{}, err
	}
	s := readSource{body: file, size: info.Size(), path: rel}
	if named != nil {
		s.coded.Encoding = *named
	} else if s.coded.Encoding, err = detect(file, s.size); err != nil {
		_ = file.Close() // only read from
		return readSource{}, failure(name, err)
	}
	if !s.coded.Plain() {
		s.path = ""
		return s, s.decode(ctx, file, part)
	}
	if part.count >= 0 {
		s.body = closing{io.NewSectionReader(file, part.first, part.count), file}
	}
	return s, nil
}

// detect finds out the encoding of a file. Bytes that are no text stay as they are.
func detect(file io.ReaderAt, size int64) (charset.Encoding, error) {
	head := make([]byte, min(size, detectBytes))
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return charset.Encoding{}, err
	}
	if e, isText := charset.Detect(head[:n], size <= detectBytes); isText {
		return e, nil
	}
	return charset.Encoding{}, nil
}

// decode makes a source give text. Parts of it are counted in bytes of that text, so
// everything in front of and behind them is read.
func (s *readSource) decode(ctx context.Context, file *os.File, part byteRange) error {
	decoded := s.coded.Reader(file)
	s.body = closing{decoded, file}
	if part.count < 0 {
		return nil
	}
	defer file.Close()
	words := limited(ctx, decoded)
	before, err := io.CopyN(io.Discard, words, part.first)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	kept, err := io.ReadAll(io.LimitReader(words, part.count))
	if err != nil {
		return err
	}
	behind, err := io.Copy(io.Discard, words)
	s.size = before + int64(len(kept)) + behind
	s.body = io.NopCloser(bytes.NewReader(kept))
	return err
}

// result is a result with where the body can be found again.
func (s readSource) result(output map[string]any, body io.ReadCloser, size int64) tools.Output {
	s.coded.addTo(output)
	r := tools.Output{Values: output, BodyKey: contentKey, Body: body, BodySize: size, BodyPaged: true}
	switch {
	case s.stored == nil:
	case s.stored.Ref == "":
		r.Origin = s.stored.Path
	default:
		r.Blob = s.stored
	}
	return r
}

// whole gives everything, as a body that is read later.
func (s readSource) whole(ctx context.Context, name string) (tools.Output, error) {
	if s.size > MaxReadBytes {
		_ = s.body.Close() // only read from
		return tools.Output{}, tools.Errorf(tools.TooLarge,
			"%s has %d bytes, more than the limit of %d for one read; read it in parts with offset and limit (lines)",
			name, s.size, MaxReadBytes)
	}
	r := s.result(map[string]any{}, closing{limited(ctx, s.body), s.body}, s.size)
	r.File = s.path
	return r, nil
}

// contentKey is where a result shows text that was read.
const contentKey = "content"

// lines gives a range of lines, and where to read on.
func (s readSource) lines(ctx context.Context, name string, want lineRange) (tools.Output, error) {
	// Counting the lines of a file that may be read whole costs no more than
	// that; of a longer one it would cost any amount.
	want.total = s.size <= MaxReadBytes
	got, err := readLines(ctx, s.body, want)
	if err != nil {
		return tools.Output{}, failure(name, err)
	}
	out := map[string]any{"offset": want.first, "lines": got.lines, "truncated": got.limited}
	if got.cut {
		out["next_offset_bytes"] = got.end // the rest of the line
	}
	if got.more {
		out["next_offset"] = want.first + got.lines
	}
	if got.total >= 0 {
		out["total_lines"] = got.total
	}
	return s.result(out, io.NopCloser(bytes.NewReader(got.text)), int64(len(got.text))), nil
}

// bytes gives a range of bytes that ends with a whole character, and where to
// read on.
func (s readSource) bytes(ctx context.Context, name string, want byteRange) (tools.Output, error) {
	words, err := io.ReadAll(limited(ctx, s.body))
	if err != nil {
		return tools.Output{}, failure(name, err)
	}
	out := map[string]any{"offset_bytes": want.first, "size": s.size}
	if end := want.first + int64(len(words)); end < s.size {
		words = text.WholeChars(words)
		out["next_offset_bytes"] = want.first + int64(len(words))
	}
	return s.result(out, io.NopCloser(bytes.NewReader(words)), int64(len(words))), nil
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
