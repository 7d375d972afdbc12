package blob

import (
	"cmp"
	"context"
	"encoding/hex"
	"iter"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/loom-bridge/loom-bridge/context/turn"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
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

// Defaults of Options.
const (
	// DefaultMaxOwnerBytes is the quota of an owner: far more than an agent's
	// work needs, and so little that one that runs wild does not fill the disk.
	DefaultMaxOwnerBytes = 10 << 30
	// DefaultCollectBytes is when an owner has so much that its garbage is
	// collected out of turn.
	DefaultCollectBytes = 100 << 20
	// DefaultCollectEvery is the time between two collections of everybody's
	// garbage.
	DefaultCollectEvery = 10 * time.Minute
	// DefaultSearchTime is enough for some gigabytes, or for 100 MB and a pattern without a
	// fixed text.
	DefaultSearchTime = 10 * time.Second
)

// Options adjusts a Store. Nil and zero fields mean the defaults.
type Options struct {
	// Now gives the time of chunks, and of entries that have none. Default
	// time.Now.
	Now func() time.Time
	// TTL is how long blobs of a category stay before they expire; negative: for
	// ever. It holds for blobs made from now on. Default, for each category that is
	// not in it: shell 30 min, search and page 6 h, note 7 days, report for ever,
	// all others 24 h.
	TTL map[string]time.Duration
	// MaxOwnerBytes bounds what one owner's blobs take, equal content counted
	// once; negative: no bound. Default DefaultMaxOwnerBytes.
	MaxOwnerBytes int64
	// CollectBytes collects an owner's garbage as soon as its blobs take more;
	// negative: never for that reason. Default DefaultCollectBytes.
	CollectBytes int64
	// CollectEvery is the time between two collections of everybody's garbage;
	// negative: never. Default DefaultCollectEvery. Nothing is collected in the
	// background without Sessions.
	CollectEvery time.Duration
	// Namer says how the blobs of steps are called. Default: by the number of the step.
	Namer Namer
	// Sessions knows which sessions are open. Default nil: all are, for ever.
	Sessions Sessions
	// Closed reports whether a session is closed, so that listings leave out what only
	// belongs to it. Default: none is.
	Closed func(ctx context.Context, scope kv.Scope, sessionID string) (bool, error)
	// Backfill knows of which tenants all mentions are there. Nothing of the others is
	// collected. Default nil: of all.
	Backfill *mention.Backfill
	// SearchTime bounds how long one search scans, the time not counted in which it
	// waits for its turn or its caller; negative: no bound. Default
	// DefaultSearchTime.
	SearchTime time.Duration
	// Searches bounds the searches under way. Default that of package turn.
	Searches turn.Options
	// Words cuts a text into the words by which the archive is searched. It may
	// be called from several goroutines. Default: runs of letters and digits in
	// lower case.
	Words func(text string) iter.Seq[string]
	// Logger logs collections that failed. Default silent.
	Logger *slog.Logger
}

func withDefaults(opts *Options) Options {
	o := *cmp.Or(opts, &Options{})
	if o.Now == nil {
		o.Now = time.Now
	}
	ttl := defaultTTLs()
	maps.Copy(ttl, o.TTL)
	o.TTL = ttl
	o.MaxOwnerBytes = cmp.Or(o.MaxOwnerBytes, DefaultMaxOwnerBytes)
	o.CollectBytes = cmp.Or(o.CollectBytes, DefaultCollectBytes)
	o.CollectEvery = cmp.Or(o.CollectEvery, DefaultCollectEvery)
	o.SearchTime = cmp.Or(o.SearchTime, DefaultSearchTime)
	if o.Words == nil {
		o.Words = plainWords
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

// Store keeps blobs. All methods are safe for concurrent use.
type Store struct {
	engine  kv.Reader
	writer  *kv.Writer
	leases  *lease.Holder // of the collecting in the background
	opts    Options
	encoder *zstd.Encoder
	decoder *zstd.Decoder
	rooms   sync.Pool // of *[]byte, what chunks are packed into
	// searches are those under way.
	searches *turn.Pool
	// unstaged is what uploads have written ahead.
	unstaged unstaged

	due     chan kv.Scope // owners whose garbage is to be collected out of turn
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	latest  map[kv.Scope]time.Time
	orphans time.Time
}

// New returns a store on an engine and the writer that writes to it. Both stay
// the caller's to close, after the store.
func New(engine kv.Reader, writer *kv.Writer, opts *Options) *Store {
	o := withDefaults(opts)
	s := &Store{
		engine:   engine,
		writer:   writer,
		leases:   lease.NewHolder(engine, writer, nil),
		opts:     o,
		encoder:  newEncoder(),
		decoder:  newDecoder(),
		rooms:    sync.Pool{New: newRoom},
		due:      make(chan kv.Scope, maxDue),
		stop:     func() {},
		searches: turn.NewPool(&o.Searches),
		latest:   make(map[kv.Scope]time.Time),
	}
	if s.opts.Sessions != nil && s.opts.CollectEvery > 0 {
		s.startCollecting()
	}
	return s
}

// Close ends the collecting in the background and waits for it. Closing twice
// is harmless. A store that collects nothing in the background need not be
// closed.
func (s *Store) Close() error {
	s.stop()
	s.running.Wait()
	if err := s.leases.Close(); err != nil {
		s.opts.Logger.Warn("blob: leases not given back, they run out", "error", err)
	}
	return nil
}

func (s *Store) now() time.Time { return s.opts.Now() }

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
	// MediaType is the content's format, such as "image/png".
	MediaType string
	// Binary says that the content holds a NUL or is not UTF-8.
	Binary bool
	// UTF8 says that the content is UTF-8, with or without NUL.
	UTF8 bool
	// Head is all of the content, or the first HeldBytes of a longer one, and
	// then Tail its last HeldBytes. They must not be changed.
	Head, Tail []byte

	// packed is the only chunk as it will be stored, nil if there are several.
	packed *packing
	// chunks are the hashes of several chunks, which are written already.
	chunks [][32]byte
	// ahead are the bytes of them that were written for this upload.
	ahead *aheadBytes
}

// Held is how many bytes of memory it takes until it is staged. It waits until a long chunk is
// packed, which goes on beside the caller's work. Staging waits, too, but then other commits
// wait with it.
func (s Stored) Held() int64 { return int64(len(s.packed.wait()) + 32*len(s.chunks)) }

// Ref returns the hash in hex: the blob's name.
func (s Stored) Ref() string { return hex.EncodeToString(s.SHA256[:]) }

// Add uploads all of data: the short way for bytes that are in memory. They must not be
// changed while Stored is in use.
func (s *Store) Add(ctx context.Context, scope kv.Scope, data []byte) (Stored, error) {
	return s.add(ctx, scope, data, false)
}

// AddJSON is Add for what the caller knows to be JSON text: whether it is takes a
// quarter of the time of an upload to find out.
func (s *Store) AddJSON(ctx context.Context, scope kv.Scope, data []byte) (Stored, error) {
	return s.add(ctx, scope, data, true)
}

func (s *Store) add(ctx context.Context, scope kv.Scope, data []byte, isJSON bool) (Stored, error) {
	u := s.Create(ctx, scope)
	u.isJSON = isJSON
	if len(data) <= ChunkBytes {
		u.buf, u.size = data, int64(len(data))
	} else if _, err := u.Write(data); err != nil {
		return Stored{}, err
	}
	return u.Finish(ctx)
}
