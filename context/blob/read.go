package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"iter"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Read yields the bytes of a blob from offset on, at most limit of them (a
// negative limit: to the end), in pieces of at most ChunkBytes that belong to
// the receiver. Only the chunks it touches are read, and each is checked
// against its hash first (*DamagedError); a read of the whole blob also checks
// the blob's own hash before it gives out the last piece. An offset behind the
// end yields nothing. An error comes last, with nil bytes.
func (s *Store) Read(ctx context.Context, scope kv.Scope, e Entry, offset, limit int64) iter.Seq2[[]byte, error] {
	return s.read(ctx, scope, e, offset, limit, true)
}

// read is Read; the hash of the whole blob is compared only when checkAll is
// set.
func (s *Store) read(ctx context.Context, scope kv.Scope, e Entry, offset, limit int64, checkAll bool) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if offset < 0 {
			yield(nil, fmt.Errorf("%w: negative offset", ErrInvalid))
			return
		}
		b, err := s.open(ctx, scope, e.Ref)
		if err != nil {
			yield(nil, err)
			return
		}
		end := b.size
		if limit >= 0 && limit < b.size-offset {
			end = offset + limit
		}
		// The only chunk's hash is the blob's.
		b.checkAll = checkAll && len(b.chunks) > 0 && offset == 0 && end == b.size
		b.pieces(ctx, offset, end, yield)
	}
}

// reader reads one blob.
type reader struct {
	manifest
	store *Store
	scope kv.Scope
	hash  [32]byte
	// checkAll compares the bytes of all chunks with hash.
	checkAll bool
}

func (s *Store) open(ctx context.Context, scope kv.Scope, ref string) (*reader, error) {
	if err := scope.Validate(); err != nil {
		return nil, err
	}
	hash, err := hex.DecodeString(ref)
	if err != nil || len(hash) != sha256.Size {
		return nil, fmt.Errorf("%w: %q is no ref", ErrNotFound, ref)
	}
	values, err := s.engine.Get(ctx, kv.Blobs, manifestKey(scope, hash))
	if err != nil {
		return nil, fmt.Errorf("blob: read %s: %w", ref, err)
	}
	if values[0] == nil {
		return nil, fmt.Errorf("blob: read %s: %w", ref, s.missing(ctx, scope, collectedRef, string(hash), ref))
	}
	m, err := decodeManifest(values[0])
	if err != nil {
		return nil, &DamagedError{Ref: ref, Chunk: WholeBlob, Problem: err.Error()}
	}
	return &reader{manifest: m, store: s, scope: scope, hash: [32]byte(hash)}, nil
}

// pieces yields the bytes from offset to end.
func (b *reader) pieces(ctx context.Context, offset, end int64, yield func([]byte, error) bool) {
	whole := sha256.New()
	for at := offset; at < end; {
		i := int(at / ChunkBytes)
		chunk, err := b.chunk(ctx, i)
		if err != nil {
			yield(nil, err)
			return
		}
		start := int64(i) * ChunkBytes
		piece := chunk[at-start : min(end-start, int64(len(chunk)))]
		if at += int64(len(piece)); b.checkAll {
			whole.Write(piece)
			if at == end && [32]byte(whole.Sum(nil)) != b.hash {
				yield(nil, b.damaged(WholeBlob, "the bytes do not match their hash"))
				return
			}
		}
		if !yield(piece, nil) {
			return
		}
	}
}

// chunk returns chunk i, checked.
func (b *reader) chunk(ctx context.Context, i int) ([]byte, error) {
	frame, hash := b.frame, b.hash
	if frame == nil {
		hash = b.chunks[i]
		values, err := b.store.engine.Get(ctx, kv.Blobs, chunkKey(b.scope, hash))
		if err != nil {
			return nil, fmt.Errorf("blob: read %x: %w", b.hash, err)
		}
		if frame = values[0]; frame == nil {
			return nil, b.gone(ctx, i)
		}
	}
	chunk, err := b.store.unpack(frame, hash)
	if err != nil {
		return nil, b.damaged(i, err.Error())
	}
	if int64(len(chunk)) != b.chunkSize(i) {
		return nil, b.damaged(i, "it has another length than the manifest says")
	}
	return chunk, nil
}

// gone is the error for a missing chunk: the blob may have been collected while
// it was read.
func (b *reader) gone(ctx context.Context, chunk int) error {
	values, err := b.store.engine.Get(ctx, kv.Blobs, manifestKey(b.scope, b.hash[:]))
	switch {
	case err != nil:
		return fmt.Errorf("blob: read %x: %w", b.hash, err)
	case values[0] == nil:
		return b.store.missing(ctx, b.scope, collectedRef, string(b.hash[:]), hex.EncodeToString(b.hash[:]))
	}
	return b.damaged(chunk, "it is missing")
}

func (b *reader) damaged(chunk int, problem string) error {
	return &DamagedError{Ref: hex.EncodeToString(b.hash[:]), Chunk: chunk, Problem: problem}
}

// NewReader makes an io.ReadCloser of what Read yields, for one goroutine. Close it; afterwards it reads ErrClosed.
func NewReader(pieces iter.Seq2[[]byte, error]) io.ReadCloser {
	next, stop := iter.Pull2(pieces)
	return &pulled{next: next, stop: stop}
}

type pulled struct {
	next func() ([]byte, error, bool)
	stop func()
	rest []byte
	err  error
}

// Read is io.Reader's.
func (p *pulled) Read(dst []byte) (int, error) {
	for len(p.rest) == 0 && p.err == nil {
		piece, err, ok := p.next()
		if !ok {
			err = io.EOF
		}
		p.rest, p.err = piece, err
	}
	if len(p.rest) == 0 {
		return 0, p.err
	}
	n := copy(dst, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// Close is io.Closer's.
func (p *pulled) Close() error {
	p.stop()
	p.rest, p.err = nil, ErrClosed
	return nil
}
