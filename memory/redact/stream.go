package redact

import (
	"bytes"
	"io"
	"slices"
)

const (
	// readBytes is how much of a stream is looked through at once.
	readBytes = 64 << 10
	// waitBytes of the end of what was read wait for what follows: a secret that begins
	// before them ends within them.
	waitBytes = MaxSecretBytes + 1024
	// beforeBytes of the text passed on are kept as the context before a secret.
	beforeBytes = 128
)

// Reader redacts a stream. Counts may be nil; they are complete when the stream ends, and
// are written by Read.
func (r *Redactor) Reader(from io.Reader, counts *Counts) io.Reader {
	if r == nil {
		return from
	}
	return &reader{r: r, from: from, counts: counts, ahead: waitBytes}
}

type reader struct {
	r      *Redactor
	from   io.Reader
	counts *Counts
	kinds  uint32
	begun  bool
	raw    []byte // what was read: before bytes that were passed on, then what was not
	before int
	ahead  int    // how much is read beyond readBytes
	out    []byte // what is ready
	at     int
	err    error
}

// Read gives more of the stream.
func (s *reader) Read(p []byte) (int, error) {
	for s.at == len(s.out) {
		if s.err != nil {
			return 0, s.err
		}
		s.more()
	}
	n := copy(p, s.out[s.at:])
	s.at += n
	return n, nil
}

// more makes more ready.
func (s *reader) more() {
	s.out, s.at = s.out[:0], 0
	want := s.before + s.ahead + readBytes
	s.raw = slices.Grow(s.raw, max(0, want-len(s.raw)))
	for len(s.raw) < want && s.err == nil {
		n, err := s.from.Read(s.raw[len(s.raw):want])
		s.raw, s.err = s.raw[:len(s.raw)+n], err
	}
	if !s.begun {
		s.begun, s.kinds = true, ^uint32(0)
		if bytes.IndexByte(s.raw[:min(len(s.raw), 4096)], 0) >= 0 {
			s.kinds = ^s.r.textOnly
		}
	}
	b := blocks.Get().(*block)
	defer b.free()
	raw := string(s.raw)
	b.take(raw)
	from := b.at(s.before)
	until := len(b.text)
	if s.err == nil {
		if until -= waitBytes; until <= from { // all escapes
			s.ahead *= 2
			return
		}
	}
	s.r.find(b, from, until, s.kinds)
	var used int
	s.out, used = s.r.replace(s.out, b, raw, from, until, s.counts)
	keep := b.raw(max(0, b.at(used)-beforeBytes))
	s.before = used - keep
	s.raw = append(s.raw[:0], s.raw[keep:]...)
}
