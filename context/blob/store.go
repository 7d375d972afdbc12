package blob

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Limits of blobs.
const (
	// ChunkBytes is the length of every chunk but the last, before compression.
	// It is what one value of the store holds.
	ChunkBytes = 1 << 20
	// MaxBytes bounds one blob. Its manifest, 32 bytes for each chunk, is then
	// half a value.
	MaxBytes = 16 << 30
	// HeldBytes is how much of a body's start, and of a longer one's end, a
	// Stored keeps in memory.
	HeldBytes = 64 << 10
)

// Options adjusts a Store. Nil and zero fields mean the defaults.
type Options struct {
	// Now gives the time of chunks, and of entries that have none. Default
	// time.Now.
	Now func() time.Time
}

// Store keeps blobs. All methods are safe for concurrent use.
type Store struct {
	engine  kv.Reader
	writer  *kv.Writer
	now     func() time.Time
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// New returns a store on an engine and the writer that writes to it. Both stay
// the caller's to close.
func New(engine kv.Reader, writer *kv.Writer, opts *Options) *Store {
	s := &Store{engine: engine, writer: writer, now: time.Now, encoder: newEncoder(), decoder: newDecoder()}
	if opts != nil && opts.Now != nil {
		s.now = opts.Now
	}
	return s
}

// Ref is what a request that stages an entry must name in its Refs.
func (s *Store) Ref(scope kv.Scope) kv.Ref { return kv.Ref{Keyspace: kv.Blobs, Scope: scope} }

// Stored is what an upload became. It can be staged any number of times, and
// copied.
type Stored struct {
	// SHA256 is the hash of all bytes.
	SHA256 [32]byte
	// Size is the number of bytes.
	Size int64
	// Lines is the number of lines; a final line feed opens no new one. It says
	// nothing about binary content.
	Lines int64
	// Kind is what the content looks like: text, json, image, audio or binary.
	Kind string
	// Binary says that the content holds a NUL or is not UTF-8.
	Binary bool
	// Head is all of the content, or the first HeldBytes of a longer one, and
	// then Tail its last HeldBytes. They must not be changed.
	Head, Tail []byte

	// frame is the only chunk as it will be stored, nil if there are several.
	frame []byte
	// chunks are the hashes of several chunks, which are written already.
	chunks [][32]byte
}

// Ref returns the hash in hex: the blob's name.
func (s Stored) Ref() string { return hex.EncodeToString(s.SHA256[:]) }

// Entry is a path that leads to a blob.
type Entry struct {
	// Path is where readers find it, such as "workspace/outputs/read_001.txt".
	Path string
	// Ref is the blob's hash in hex.
	Ref string
	// StepID is the step that made it, or empty.
	StepID string
	// SessionID is the session it was made in, or empty.
	SessionID string
	// Kind is text, json, log, image, audio or binary.
	Kind string
	// Category is read, list, search, page, shell or tool.
	Category string
	// Size is the number of bytes.
	Size int64
	// Time is when it was stored.
	Time time.Time
}

// Add uploads all of data: the short way for bytes that are in memory.
func (s *Store) Add(ctx context.Context, scope kv.Scope, data []byte) (Stored, error) {
	u := s.Create(ctx, scope)
	if _, err := u.Write(data); err != nil {
		return Stored{}, err
	}
	return u.Finish(ctx)
}
