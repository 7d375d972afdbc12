package hand

import (
	"bytes"
	"context"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// body is what a result's body became.
type body struct {
	// shown is its beginning, as much as an answer can show.
	shown []byte
	size  int64
	// stored is the upload; nil when there was none, or it failed.
	stored *blob.Stored
	// uploadErr is why it failed.
	uploadErr error

	lines      int64
	sha256     string
	head, tail []byte
	binary     bool
	// replaced says that bytes that are no UTF-8 are shown as U+FFFD.
	replaced bool
}

// text is the body, or its beginning. The step keeps little of a long one, so that shares
// memory with it.
func (b *body) text() string {
	if len(b.head) > step.HeldBodyBytes {
		return text.OfBytes(b.head)
	}
	return string(b.head)
}

// takeBody reads the body to its end, hands it to the blob store while it comes,
// and holds what an answer can show. An error is one of reading.
func (h *Hand) takeBody(ctx context.Context, c *call, result tools.Output) (body, error) {
	in := &showing{from: result.Body}
	in.kept.Grow(int(min(max(result.BodySize, 0)+1, MaxOutputBytes)))
	if readBack(result) && result.BodySize >= blob.ChunkBytes {
		return takeReadBack(in, result.Blob)
	}
	upload := h.Blobs.Create(ctx, c.Scope)
	defer upload.Abort()
	_, err := upload.ReadFrom(in)
	if in.err != nil {
		return body{}, in.err
	}
	var stored blob.Stored
	if err == nil {
		// All of it is here, so it counts even if the caller has just gone.
		stored, err = upload.Finish(context.WithoutCancel(ctx))
	}
	if err != nil && ctx.Err() != nil {
		// The tool was stopped, the store is not at fault. The tool may say more.
		if _, err := io.Copy(io.Discard, in); err != nil {
			return body{}, err
		}
		return body{}, ctx.Err()
	}
	if err != nil {
		// The result is still worth an answer: as much of it as can be shown.
		readErr := in.fill()
		shown := in.kept.Bytes()
		return body{
			shown:     shown,
			size:      in.size,
			uploadErr: err,
			head:      shown[:min(len(shown), step.HeldBodyBytes)],
			binary:    !utf8.Valid(text.WholeChars(shown)),
		}, readErr
	}
	b := bodyOf(stored)
	b.shown = in.kept.Bytes()
	if result.BodyLossy {
		b.replace()
	}
	return b, nil
}

// replace makes a text of a body that is one but for bytes that are no UTF-8, such as a file
// name in Latin-1: they become U+FFFD where it is shown, and the blob has them as they were.
// A body with a NUL is no text.
func (b *body) replace() {
	if !b.binary || bytes.IndexByte(b.shown, 0) >= 0 || bytes.IndexByte(b.head, 0) >= 0 || bytes.IndexByte(b.tail, 0) >= 0 {
		return
	}
	whole := int64(len(b.head)) == b.size
	mark := []byte("\uFFFD")
	b.shown, b.head, b.tail = bytes.ToValidUTF8(b.shown, mark), bytes.ToValidUTF8(b.head, mark), bytes.ToValidUTF8(b.tail, mark)
	if whole {
		b.size = int64(len(b.head))
	}
	b.binary, b.replaced = false, true
}

// readBack reports whether a body is stored already, in a blob or in the log.
func readBack(r tools.Output) bool { return r.Blob != nil || r.Origin != "" }

// takeReadBack takes in a long body that is stored already: it is not stored
// again, but read to the end, which compares a blob with its hash. The entry is
// nil for a body from the log.
func takeReadBack(in *showing, e *blob.Entry) (body, error) {
	if _, err := io.Copy(io.Discard, in); err != nil {
		return body{}, err
	}
	shown := in.kept.Bytes()
	b := body{
		shown: shown,
		size:  in.size,
		head:  shown[:min(len(shown), step.HeldBodyBytes)],
	}
	if e != nil {
		b.sha256 = e.Ref
		b.binary = e.Kind != blob.KindText && e.Kind != blob.KindJSON && e.Kind != blob.KindLog
	}
	return b, nil
}

// showing passes a body on and keeps its beginning.
type showing struct {
	from io.Reader
	kept bytes.Buffer
	size int64
	err  error // what reading ended with, its end aside
}

func (s *showing) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	s.size += int64(n)
	s.kept.Write(p[:min(n, MaxOutputBytes-s.kept.Len())])
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// fill reads on until there is nothing more to show.
func (s *showing) fill() error {
	_, err := io.CopyN(io.Discard, s, int64(MaxOutputBytes-s.kept.Len())+1)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// textFit returns how many bytes of text fit into limit bytes of JSON, whole
// characters only.
func textFit(text []byte, limit int) int {
	const longest = 6 // \u0000
	if len(text)*longest <= limit {
		return len(text)
	}
	used := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if used += jsonWidth(r, size); used > limit {
			return i
		}
		i += size
	}
	return len(text)
}

// jsonWidth is how many bytes a character has in JSON text.
func jsonWidth(r rune, size int) int {
	switch {
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t', r == '\b', r == '\f':
		return 2
	case r < ' ', r == '\u2028', r == '\u2029':
		return 6
	}
	return size
}
