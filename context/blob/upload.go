package blob

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Upload takes in the bytes of one blob. It is an io.Writer and an
// io.ReaderFrom, for one goroutine. An upload that is neither finished nor
// aborted holds up to a chunk of memory and nothing else.
type Upload struct {
	store *Store
	scope kv.Scope
	// writeAhead commits one full chunk of a body of so many bytes till now. It
	// holds the context of Create, because Write has none.
	writeAhead func(chunk []byte, size int64) ([32]byte, error)

	ahead  int64  // bytes that were written ahead
	buf    []byte // the chunk that is not full yet
	chunks [][32]byte
	whole  hash.Hash // of all chunks before buf; nil while there are none
	size   int64
	head   []byte
	tail   []byte // the end of what was before buf
	text   textScan
	isJSON bool  // the content is known to be JSON text
	err    error // what ended the upload
}

// Create begins an upload into a scope. ctx is for the chunks that are written
// ahead.
func (s *Store) Create(ctx context.Context, scope kv.Scope) *Upload {
	u := &Upload{store: s, scope: scope, err: scope.Validate()}
	u.writeAhead = func(chunk []byte, size int64) ([32]byte, error) {
		// Unstaged chunks of other uploads take room, too.
		if err := s.hasRoom(ctx, scope, size+s.unstaged.of(scope, s.now())-u.ahead); err != nil {
			return [32]byte{}, err
		}
		hash, written, err := s.writeChunk(ctx, scope, chunk)
		if written {
			u.ahead += int64(len(chunk))
			s.unstaged.add(scope, int64(len(chunk)), s.now())
		}
		return hash, err
	}
	return u
}

// minRead is the first size of the buffer: most files are shorter.
const minRead = 8 << 10

// Write adds p. A failure to write a chunk ahead ends the upload; so does a
// body longer than MaxBytes (ErrTooLarge), and one of several chunks for which
// the owner has no room, even after its garbage was collected (*QuotaError).
func (u *Upload) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		if err := u.makeRoom(len(p)); err != nil {
			return written, err
		}
		// Appending more than fits would make the buffer longer than a chunk.
		n := min(len(p), cap(u.buf)-len(u.buf))
		u.buf = append(u.buf, p[:n]...)
		p = p[n:]
		written += n
		u.size += int64(n)
	}
	return written, u.err
}

// ReadFrom adds everything from r until its end, without a buffer between.
func (u *Upload) ReadFrom(r io.Reader) (int64, error) {
	var total int64
	for {
		if len(u.buf) == ChunkBytes {
			n, err := u.probe(r)
			if total += int64(n); err != nil || n == 0 {
				return total, err
			}
		}
		if err := u.makeRoom(1); err != nil { // more would make room for the end
			return total, err
		}
		n, err := r.Read(u.buf[len(u.buf):cap(u.buf)])
		u.buf = u.buf[:len(u.buf)+n]
		u.size += int64(n)
		total += int64(n)
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// probe reads a little behind a full chunk, which may be the last: a body of
// exactly one chunk is not written ahead. Nothing and no error is the end.
func (u *Upload) probe(r io.Reader) (int, error) {
	var next [512]byte
	n, err := io.ReadAtLeast(r, next[:], 1)
	if err == io.EOF {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return u.Write(next[:n])
}

// makeRoom makes the buffer longer, up to a chunk, or empties it when it is a
// full one.
func (u *Upload) makeRoom(n int) error {
	if u.err == nil && u.size >= MaxBytes {
		u.err = fmt.Errorf("%w: more than %d bytes", ErrTooLarge, int64(MaxBytes))
	}
	if u.err != nil {
		return u.err
	}
	if len(u.buf) == ChunkBytes {
		return u.flush()
	}
	if free := cap(u.buf) - len(u.buf); free < n && cap(u.buf) < ChunkBytes {
		grown := make([]byte, len(u.buf), min(max(2*cap(u.buf), len(u.buf)+n, minRead), ChunkBytes))
		copy(grown, u.buf)
		u.buf = grown
	}
	return nil
}

// flush writes the full buffer ahead and empties it.
func (u *Upload) flush() error {
	if u.whole == nil {
		u.whole = sha256.New()
		u.head = append([]byte(nil), u.buf[:HeldBytes]...)
	}
	u.whole.Write(u.buf)
	u.text.add(u.buf)
	u.tail = append(u.tail, u.buf[max(len(u.buf)-HeldBytes, 0):]...)
	u.tail = u.tail[max(len(u.tail)-HeldBytes, 0):]
	hash, err := u.writeAhead(u.buf, u.size)
	if err != nil {
		u.err = err
		return err
	}
	u.chunks = append(u.chunks, hash)
	u.buf = u.buf[:0]
	return nil
}

// Finish ends the upload and returns what it became. Nothing leads to it before
// it is staged.
func (u *Upload) Finish(ctx context.Context) (Stored, error) {
	if err := ctx.Err(); u.err == nil && err != nil {
		u.err = err
	}
	if u.err != nil {
		return Stored{}, u.err
	}
	defer u.Abort()
	if u.whole == nil {
		// Content that the owner has already needs no room, so Stage decides; here
		// it is only made.
		if err := u.store.hasRoom(ctx, u.scope, u.size); err != nil && !errors.Is(err, ErrQuota) {
			return Stored{}, err
		}
		return u.finishSmall(), nil
	}
	return u.finishLarge()
}

func (u *Upload) finishSmall() Stored {
	u.text.add(u.buf)
	s := u.describe(u.buf)
	s.SHA256 = sha256.Sum256(u.buf)
	s.packed = u.store.packAlong(u.buf)
	s.Head = u.buf
	if len(u.buf) > HeldBytes {
		s.Head = append([]byte(nil), u.buf[:HeldBytes]...)
		s.Tail = append([]byte(nil), u.buf[len(u.buf)-HeldBytes:]...)
	}
	return s
}

func (u *Upload) finishLarge() (Stored, error) {
	if len(u.buf) > 0 {
		if err := u.flush(); err != nil {
			return Stored{}, err
		}
	}
	s := u.describe(nil)
	u.whole.Sum(s.SHA256[:0])
	s.chunks, s.Head, s.Tail, s.ahead = u.chunks, u.head, u.tail, &aheadBytes{bytes: u.ahead}
	return s, nil
}

// describe says what the content looks like; all is nil when it is not in
// memory any more.
func (u *Upload) describe(all []byte) Stored {
	s := Stored{Size: u.size, Lines: u.text.lines(), Binary: u.text.binary(), UTF8: u.text.utf8()}
	s.Kind, s.MediaType = kindOf(u.head, all, s.Binary, u.isJSON)
	return s
}

// Abort gives the upload up; afterwards, and after Finish, it does nothing.
func (u *Upload) Abort() {
	if u.err == nil {
		u.err = ErrClosed
	}
	u.buf = nil
}

// freshFor is how long a chunk counts as new. An upload writes a chunk again
// that is there already but older, so that garbage collection knows by its
// age that no upload is about to refer to it.
const freshFor = time.Hour

// writeChunk stores a chunk unless it is there and fresh, and reports whether it did.
// It is not synced: the commit that stages the blob is, and makes durable what came
// before it.
func (s *Store) writeChunk(ctx context.Context, scope kv.Scope, chunk []byte) (hash [32]byte, written bool, err error) {
	hash = sha256.Sum256(chunk)
	key := chunkKey(scope, hash)
	values, err := s.engine.Get(ctx, kv.Blobs, key)
	if err != nil {
		return hash, false, fmt.Errorf("blob: write chunk: %w", err)
	}
	now := s.now()
	if held := values[0]; held != nil {
		if _, err := s.unpack(held, hash); err == nil && frameAge(held, now) < freshFor {
			return hash, false, nil
		}
	}
	frame := s.pack(chunk, now)
	err = s.writer.Do(ctx, kv.Request{
		Blind: []kv.Ref{s.Ref(scope)},
		Stage: func(_ context.Context, tx *kv.Tx) error {
			tx.Put(kv.Blobs, key, frame)
			return nil
		},
		Lazy: true,
	})
	if err != nil {
		return hash, false, fmt.Errorf("blob: write chunk: %w", err)
	}
	return hash, true, nil
}
