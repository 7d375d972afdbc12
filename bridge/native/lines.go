package native

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// lineRange is a part of a text: count lines from line first on.
type lineRange struct {
	first, count int64
	maxBytes     int
	// total asks to read on to the end and count all lines.
	total bool
}

// excerpt is what a line range holds.
type excerpt struct {
	text  []byte
	lines int64 // how many lines text has
	// limited says that fewer lines were taken than asked for, because of
	// maxBytes; cut that a single line was longer and is not whole.
	limited, cut bool
	// more says that lines follow behind the text.
	more bool
	// end is, for a text that was cut, the byte behind it, counted from the
	// beginning of all.
	end int64
	// total is how many lines there are; -1 when that was not found out.
	total int64
}

// readLines takes a line range out of a text, in bounded memory however long
// the text and its lines are.
func readLines(ctx context.Context, r io.Reader, want lineRange) (excerpt, error) {
	s := &lineScan{want: want, in: bufio.NewReaderSize(r, blockBytes)}
	for {
		if err := ctx.Err(); err != nil {
			return excerpt{}, err
		}
		piece, err := s.in.ReadSlice('\n')
		if len(piece) > 0 && !s.take(piece) {
			s.out.more, s.out.total = true, -1
			if !s.want.total {
				return s.out, nil
			}
			var err error
			s.out.total, err = s.countRest(ctx, piece)
			return s.out, err
		}
		switch {
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			s.endLine()
			s.out.total = s.seen
			return s.out, nil
		default:
			return excerpt{}, err
		}
	}
}

// lineScan is the state of readLines.
type lineScan struct {
	want lineRange
	in   *bufio.Reader
	out  excerpt
	// at is how many bytes stand before the piece at hand.
	at int64
	// seen counts the lines begun; open says that the last of them has not
	// ended, start where it begins in out.text.
	seen  int64
	open  bool
	start int
}

// take adds a piece of a line, and returns false when the piece lies behind the wanted
// range.
func (s *lineScan) take(piece []byte) bool {
	if !s.open {
		if s.out.cut || s.seen-s.want.first >= s.want.count-1 {
			return false
		}
		s.seen++
		s.open, s.start = true, len(s.out.text)
	}
	if s.seen >= s.want.first {
		if len(s.out.text) == 0 {
			s.out.end = s.at
		}
		if !s.add(piece) {
			return false
		}
	}
	s.at += int64(len(piece))
	if piece[len(piece)-1] == '\n' {
		s.endLine()
	}
	return true
}

func (s *lineScan) endLine() {
	if s.open && s.seen >= s.want.first {
		s.out.lines++
	}
	s.open = false
}

// add puts a piece into the text. A line that has no room is left out, and add
// returns false; the first line is cut instead, so that there is progress.
func (s *lineScan) add(piece []byte) bool {
	room := s.want.maxBytes - len(s.out.text)
	if len(piece) <= room {
		s.out.text = append(s.out.text, piece...)
		return true
	}
	s.out.limited = true
	if s.start > 0 {
		s.out.text = s.out.text[:s.start]
		s.seen--
		return false
	}
	if !s.out.cut {
		s.out.cut = true
		s.out.text = text.WholeChars(append(s.out.text, piece[:room]...))
		s.out.end += int64(len(s.out.text))
		s.want.maxBytes = len(s.out.text)
	}
	return true
}

func (s *lineScan) countRest(ctx context.Context, block []byte) (int64, error) {
	total, open := s.seen, false
	buffer := make([]byte, blockBytes)
	for {
		if len(block) > 0 {
			total += int64(bytes.Count(block, newline))
			open = block[len(block)-1] != '\n'
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n, err := s.in.Read(buffer)
		block = buffer[:n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	if open {
		total++
	}
	return total, nil
}

var newline = []byte{'\n'}
