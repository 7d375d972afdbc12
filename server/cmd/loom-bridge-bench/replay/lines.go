package replay

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxValueBytes bounds one JSON value of a file: a run, or a message. It keeps
// a file that is no log from filling the memory.
const MaxValueBytes = 256 << 20

var errTooLarge = fmt.Errorf("a value is over %d bytes", MaxValueBytes)

// withoutMark is r without the byte order mark that some editors begin a file
// with.
func withoutMark(r io.Reader) io.Reader {
	buffered := bufio.NewReader(r)
	if begin, _ := buffered.Peek(len(mark)); string(begin) == mark {
		_, _ = buffered.Discard(len(mark))
	}
	return buffered
}

const mark = "\ufeff"

// values reads JSON values, one a line or laid out over many, and knows the line
// of each.
type values struct {
	decoder *json.Decoder
	source  *lineReader
}

func newValues(r io.Reader) *values {
	source := &lineReader{from: r}
	return &values{json.NewDecoder(source), source}
}

// next returns the next value and the line that it begins in; io.EOF at the
// end. An error with a line is the value's, one without the reader's.
func (v *values) next() (json.RawMessage, int, error) {
	v.source.limit = v.decoder.InputOffset() + MaxValueBytes
	var value json.RawMessage
	err := v.decoder.Decode(&value)
	end := v.decoder.InputOffset()
	bad, isSyntax := errors.AsType[*json.SyntaxError](err)
	switch {
	case isSyntax:
		return nil, v.source.line(max(bad.Offset-1, 0)), fmt.Errorf("not JSON: %w", err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, v.source.line(max(v.source.read-1, 0)), errors.New("not JSON: it ends within a value")
	case errors.Is(err, errTooLarge):
		return nil, v.source.line(end), err
	case err != nil:
		return nil, 0, err
	}
	return value, v.source.line(end - int64(len(value))), nil
}

// lineReader remembers where lines begin, from the line asked for last on.
type lineReader struct {
	from  io.Reader
	read  int64
	limit int64
	// passed counts the line feeds before feeds.
	passed int
	feeds  []int64
}

func (r *lineReader) Read(p []byte) (int, error) {
	if r.read > r.limit {
		return 0, errTooLarge
	}
	n, err := r.from.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			r.feeds = append(r.feeds, r.read+int64(i))
		}
	}
	r.read += int64(n)
	return n, err
}

// line is the number of the line that holds an offset. Offsets rise.
func (r *lineReader) line(offset int64) int {
	n := 0
	for n < len(r.feeds) && r.feeds[n] < offset {
		n++
	}
	r.passed += n
	r.feeds = r.feeds[n:]
	return r.passed + 1
}
