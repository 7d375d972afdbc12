package secret

import "io"

const (
	// readBytes is how much of a stream is looked through at once.
	readBytes = 32 << 10
	// beforeBytes of the text passed on are searched again: a secret may begin there and
	// continue.
	beforeBytes = 16 * maxEscape
	// maxWaiting bounds what waits for what follows.
	maxWaiting = 16 * maxEscape
)

// stream masks what comes in parts.
type stream struct {
	mask   *Mask
	buffer []byte // text passed on, up to before, and text still held
	before int
}

// more takes in bytes, and returns what can be passed on: all of it at the end. It holds until
// the next call.
func (s *stream) more(data []byte, end bool) []byte {
	if keep := s.before - beforeBytes; keep > 0 {
		s.buffer = append(s.buffer[:0], s.buffer[keep:]...)
		s.before -= keep
	}
	s.buffer = append(s.buffer, data...)
	found, open := s.mask.find(s.buffer, end)
	if end {
		open = len(s.buffer)
	}
	until := max(open, len(s.buffer)-maxWaiting, s.before)
	out := append([]byte(nil), s.buffer[s.before:until]...)
	for _, f := range found {
		if from, to := max(f.from-s.before, 0), min(f.to-s.before, len(out)); from < to {
			fill(out[from:to])
		}
	}
	s.before = until
	return out
}

// Reader is a stream without the values. It reads no more of from than it passes on, but for
// what may be the beginning of one.
func (m *Mask) Reader(from io.Reader) io.Reader {
	if m == nil {
		return from
	}
	return &maskReader{stream: stream{mask: m}, from: from}
}

type maskReader struct {
	stream
	from io.Reader
	in   []byte
	out  []byte
	err  error
}

// Read gives more of the stream.
func (r *maskReader) Read(p []byte) (int, error) {
	for len(r.out) == 0 && r.err == nil {
		if r.in == nil {
			r.in = make([]byte, readBytes)
		}
		var n int
		n, r.err = r.from.Read(r.in)
		r.out = r.more(r.in[:n], r.err != nil)
	}
	n := copy(p, r.out)
	if r.out = r.out[n:]; n == 0 && len(r.out) == 0 {
		return 0, r.err
	}
	return n, nil
}

// Writer returns a writer that masks secrets on their way. Its Close passes on held text, and
// does not close to.
func (m *Mask) Writer(to io.Writer) io.WriteCloser {
	if m == nil {
		return passing{to}
	}
	return &maskWriter{stream: stream{mask: m}, to: to}
}

type passing struct{ io.Writer }

func (passing) Close() error { return nil }

type maskWriter struct {
	stream
	to io.Writer
}

func (w *maskWriter) Write(p []byte) (int, error) {
	if out := w.more(p, false); len(out) > 0 {
		if _, err := w.to.Write(out); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (w *maskWriter) Close() error {
	_, err := w.to.Write(w.more(nil, true))
	return err
}
