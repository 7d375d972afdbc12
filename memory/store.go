package memory

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
)

// Options adjusts a Store. Nil and zero fields mean the defaults.
type Options struct {
	// Now tells the time. Default time.Now.
	Now func() time.Time
	// Logger gets what goes wrong in the background. Default: silent.
	Logger *slog.Logger
	// PackAfter is how many records of a scope wait to be packed before the
	// background packs them. Fewer make queries read less and saves cost more.
	// Default DefaultPackAfter.
	PackAfter int
	// CacheBytes bounds the memory for what is remembered of the index.
	// Default lexical.DefaultCacheBytes.
	CacheBytes int
}

// Store saves, finds and reads records. It holds no truth of its own: all of
// it is in the engine. All methods are safe for concurrent use.
type Store struct {
	engine   kv.Engine
	writer   *kv.Writer
	now      func() time.Time
	analyzer *analysis.Analyzer
	index    *lexical.Index
	ids      *ulid.LockedMonotonicReader
	packer   *packer
	closed   atomic.Bool
	// spare holds *lexical.Document to use again: a document's maps are most
	// of the memory that a save needs.
	spare sync.Pool
}

// New returns a store on engine that writes through writer. Both stay the
// caller's to close, after the store. Close the store: it works in the
// background.
func New(engine kv.Engine, writer *kv.Writer, opts *Options) *Store {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.PackAfter <= 0 {
		o.PackAfter = DefaultPackAfter
	}
	index := lexical.New(&lexical.Options{CacheBytes: o.CacheBytes})
	return &Store{
		engine:   engine,
		writer:   writer,
		now:      o.Now,
		analyzer: analysis.New(),
		index:    index,
		ids:      &ulid.LockedMonotonicReader{MonotonicReader: ulid.Monotonic(rand.Reader, 0)},
		packer:   newPacker(index, engine, writer, o.Logger, o.PackAfter),
	}
}

// Close ends the background work and waits for it. Later calls are ErrClosed,
// closing again is harmless.
func (s *Store) Close() error {
	if !s.closed.Swap(true) {
		s.packer.close()
	}
	return nil
}

// begin refuses work on a closed store or for a scope that is none.
func (s *Store) begin(scope kv.Scope) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return scope.Validate()
}

// newID makes an id that sorts behind those made before.
func (s *Store) newID(now time.Time) (string, error) {
	id, err := ulid.New(ulid.Timestamp(now), s.ids)
	if err != nil {
		return "", fmt.Errorf("memory: make an id: %w", err)
	}
	return id.String(), nil
}

// Get returns the record with that id, also when another one has replaced it.
// One that is not there or has expired is a *NotFoundError.
func (s *Store) Get(ctx context.Context, scope kv.Scope, id string) (Record, error) {
	if err := s.begin(scope); err != nil {
		return Record{}, err
	}
	if err := checkID("id", id); err != nil {
		return Record{}, err
	}
	r, ok, err := readRecord(ctx, s.engine, scope, id)
	if err != nil {
		return Record{}, wrap("memory: get record", err)
	}
	if !ok || r.expiredAt(s.now()) {
		return Record{}, &NotFoundError{"id", id}
	}
	return r, nil
}

// GetByKey returns the record that has the key, as Get does.
func (s *Store) GetByKey(ctx context.Context, scope kv.Scope, key string) (Record, error) {
	if err := s.begin(scope); err != nil {
		return Record{}, err
	}
	if key == "" {
		return Record{}, &InvalidError{"key", "is empty"}
	}
	if err := checkName("key", key, MaxKeyBytes); err != nil {
		return Record{}, err
	}
	r, ok, err := readByKey(ctx, s.engine, scope, key)
	if err != nil {
		return Record{}, wrap("memory: get record by key", err)
	}
	if !ok || r.expiredAt(s.now()) {
		return Record{}, &NotFoundError{"key", key}
	}
	return r, nil
}

// Stats returns counts of a scope.
func (s *Store) Stats(ctx context.Context, scope kv.Scope) (Stats, error) {
	if err := s.begin(scope); err != nil {
		return Stats{}, err
	}
	var stats Stats
	err := s.view(ctx, func(view kv.Snapshot) error {
		counts, segments, err := s.index.Statistics(ctx, view, scope)
		if err != nil {
			return err
		}
		sequences, err := view.Sequence(ctx, lexical.Ref(scope))
		if err != nil {
			return err
		}
		stats = Stats{
			Records:       int64(counts.Documents),
			Words:         int64(counts.BodyWords + counts.HeaderWords),
			Tail:          counts.Tail(),
			Segments:      segments,
			IndexSequence: sequences[0],
		}
		return nil
	})
	if err != nil {
		return Stats{}, wrap("memory: stats", err)
	}
	return stats, nil
}

// view runs do on a snapshot.
func (s *Store) view(ctx context.Context, do func(view kv.Snapshot) error) error {
	view, err := s.engine.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer view.Close()
	return do(view)
}

// getter is what reading needs of a kv.Reader or a kv.Tx.
type getter interface {
	Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error)
}

// readRecord returns the record with that id; false when there is none.
func readRecord(ctx context.Context, from getter, scope kv.Scope, id string) (Record, bool, error) {
	values, err := from.Get(ctx, kv.Records, recordKey(scope, id))
	if err != nil || values[0] == nil {
		return Record{}, false, err
	}
	r, err := decodeRecord(values[0])
	return r, err == nil, err
}

// readByKey returns the record that has the key; false when there is none.
func readByKey(ctx context.Context, from getter, scope kv.Scope, key string) (Record, bool, error) {
	values, err := from.Get(ctx, kv.Records, keyKey(scope, key))
	if err != nil || values[0] == nil {
		return Record{}, false, err
	}
	r, ok, err := readRecord(ctx, from, scope, string(values[0]))
	if err == nil && !ok {
		err = fmt.Errorf("%w: key %q names record %q, which is not there", ErrDamaged, key, values[0])
	}
	return r, ok, err
}

// expiredAt tells whether the record is gone for readers.
func (r Record) expiredAt(now time.Time) bool {
	return !r.ExpireTime.IsZero() && !r.ExpireTime.After(now)
}
