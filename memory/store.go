// Package memory is the long-term memory: records that are saved in one atomic write
// and found again by words, meaning, neighbours and time.
//
//   - A [Store] saves, changes, finds and reads records (memory/record) of any number
//     of scopes. Nothing is read across two but by a query that names both.
//   - A question (memory/question), narrowed by a filter (memory/filter), gets an
//     [Answer]: its hits and a [Receipt] that says how they came about. Within a number
//     of tokens long texts give passages (memory/passage).
//   - Records are related to each other by name (memory/relations); a query may add what is
//     related to its hits.
//   - A [Staging] puts a change into a commit of the caller's.
//
// A save, a batch, an update and a deletion are one commit each, with all that belongs
// to them, and the next query sees it. An update keeps what was as an earlier version
// and analyses the whole text again, as a move of a sliding expiry does. An expired
// record is gone for readers at once, and from the disk after [Store.Sweep]; until
// then it counts as a record of its scope. FORMAT.md is the layout on disk.
package memory

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/loom-bridge/loom-bridge/memory/access"
	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/memory/embed"
	"github.com/loom-bridge/loom-bridge/memory/embeddings"
	"github.com/loom-bridge/loom-bridge/memory/feed"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/packing"
	"github.com/loom-bridge/loom-bridge/memory/passage"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/redact"
)

// Options adjusts a Store. Nil and zero fields mean the defaults.
type Options struct {
	// Now returns the time. Default time.Now.
	Now func() time.Time
	// Logger gets what goes wrong in the background. Default: silent.
	Logger *slog.Logger
	// PackAfter is how many records of a scope wait to be packed before the
	// background packs them. Fewer make queries read less and saves cost more.
	// Default packing.DefaultAfter.
	PackAfter int
	// SweepEvery is how often expired records are taken off the disk; negative
	// means only when Sweep is called. Default DefaultSweepEvery.
	SweepEvery time.Duration
	// Language is the language whose stop words and endings the analysis of texts
	// and queries drops. An index that was made in another one is made anew from
	// the records when its scope is used first, which takes seconds for a large
	// scope; so stores of different languages on one engine are slow, each making
	// anew what the other made. Default Auto.
	Language analysis.Language
	// CountTokens counts what Query.MaxTokens bounds. It is called by many at
	// once. Default: a quarter of the bytes, rounded up.
	CountTokens func(text string) int
	// VectorWeight is how much the record with the nearest vector gains in a hybrid
	// query, from 0 to 1; the best record by words counts 1. It orders records that
	// words find too. The default suits a model that knows less than the words do:
	// with it such a model neither gains nor loses much. Use 0.3 to 0.5 for a model about
	// as good as the words or better. At any weight, a record whose vector stands out is
	// among the first hits, and where words find nothing, vectors decide alone. Zero or
	// less means the default, DefaultVectorWeight.
	VectorWeight float64
	// Embedder makes vectors of texts and queries. Nil: words only, and the
	// vectors that callers give.
	Embedder embed.Embedder
	// MaxVersions is how many earlier versions are kept of a record, at most
	// record.MaxVersions. A lower one than before holds for reads at once, and on the disk
	// from the next change of the record on. Default record.MaxVersions; negative: none.
	MaxVersions int
	// Hold are the origins of records that wait for review before queries find them.
	// Default none.
	Hold []record.Origin
	// Instructing are the kinds of records that instruct models. What a program has
	// saved of them no model changes, replaces or removes (writer.Model): such a call is an
	// *InstructsError. Default none.
	Instructing []string
	// Redact replaces secrets in saved texts by marks. Default nil: nothing is redacted.
	Redact *redact.Redactor
	// Duplicates says what becomes of a record that repeats one which is there, where
	// the caller of Save does not: KeepDuplicates, which is the default, or
	// ReinforceDuplicates.
	Duplicates Duplicates
	// MaxRecords is how many records outside the archive a memory may have before those
	// worth least go there, and MaxArchived how many there before the oldest of them are
	// deleted. Zero: no limit.
	MaxRecords, MaxArchived int
	// HolderOf says for whose share of a memory that several write to the records of an agent
	// count, such as the credential by which it calls. Default: each agent has its own.
	HolderOf func(tenant, agent string) string
	// CountAccesses counts how often records are found and read, in the background, so that
	// questions can weigh it (question.Question.AccessWeight), and limits spare what is in
	// use. Default false: nothing is written for reading.
	CountAccesses bool
	// Idle is called when a query begins to wait for the embedder, and what it returns
	// when it goes on: a bound on running queries need not count it
	// meanwhile. Default nil: nothing is called.
	Idle func(ctx context.Context) (resume func())
	// EmbedTimeout bounds how long a query waits for its vector. Default
	// embeddings.DefaultTimeout.
	EmbedTimeout time.Duration
}

// withDefaults fills in what was left out.
func withDefaults(opts *Options) Options {
	o := *cmp.Or(opts, &Options{})
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.VectorWeight <= 0 {
		o.VectorWeight = DefaultVectorWeight
	}
	if o.PackAfter <= 0 {
		o.PackAfter = packing.DefaultAfter
	}
	if o.MaxVersions == 0 || o.MaxVersions > record.MaxVersions {
		o.MaxVersions = record.MaxVersions
	}
	o.SweepEvery = cmp.Or(o.SweepEvery, DefaultSweepEvery)
	if o.CountTokens == nil {
		const bytesPerToken = 4 // on average in English text
		o.CountTokens = func(text string) int { return (len(text) + bytesPerToken - 1) / bytesPerToken }
	}
	return o
}

// Store saves, finds and reads records. Its lasting state is all in the engine. All methods
// are safe for concurrent use.
type Store struct {
	engine      kv.Engine
	writer      *kv.Writer
	leases      *lease.Holder // of the work in the background
	now         func() time.Time
	logger      *slog.Logger
	analyzer    *analysis.Analyzer
	index       *lexical.Index
	ids         *ulid.LockedMonotonicReader
	packer      *packing.Packer
	embeddings  *embeddings.Embeddings
	slides      *packing.Waiting[slide]
	accesses    *access.Recorder // nil where they are not counted
	remembered  remembered
	bell        feed.Bell // wakes followers of a scope
	countTokens func(text string) int
	packed      *passage.Memo   // of records that fitted a number of tokens
	hold        []record.Origin // wait for review
	instructing []string
	redact      *redact.Redactor
	reinforce   bool // Options.Duplicates says so
	maxVersions int  // that are kept of a record
	limits      memoryLimits
	trimming    *trimming
	holderOf    func(tenant, agent string) string // nil: each agent has its own share
	// vectorWeight is Options.VectorWeight.
	vectorWeight float64
	onRemoved    atomic.Pointer[func(ids []string)]
	closed       atomic.Bool
	stop         context.CancelFunc
	running      sync.WaitGroup
	// spare holds *segment.Document to use again: a document's maps are most
	// of the memory that a save needs.
	spare sync.Pool
}

// New returns a store on engine that writes through writer. Both stay the
// caller's to close, after the store. Close the store: it works in the
// background. Of the stores that several processes have on one engine, one at a time
// does each piece of that work.
func New(engine kv.Engine, writer *kv.Writer, opts *Options) *Store {
	o := withDefaults(opts)
	analyzer := analysis.New(&analysis.Options{Language: o.Language})
	index := lexical.New(&lexical.Options{Analysis: analyzer.Name()})
	leases := lease.NewHolder(engine, writer, nil)
	s := &Store{
		engine:       engine,
		writer:       writer,
		leases:       leases,
		now:          o.Now,
		logger:       o.Logger,
		analyzer:     analyzer,
		index:        index,
		ids:          &ulid.LockedMonotonicReader{MonotonicReader: ulid.Monotonic(rand.Reader, 0)},
		packer:       packing.New(index, engine, writer, leases, o.Logger, o.PackAfter),
		embeddings:   embeddings.New(engine, writer, leases, embeddings.Options{Embedder: o.Embedder, Timeout: o.EmbedTimeout, Idle: o.Idle, Logger: o.Logger}),
		slides:       packing.NewList[slide](),
		remembered:   newRemembered(maxRememberedBytes),
		countTokens:  o.CountTokens,
		packed:       passage.NewMemo(),
		hold:         o.Hold,
		instructing:  o.Instructing,
		redact:       o.Redact,
		reinforce:    o.Duplicates == ReinforceDuplicates,
		maxVersions:  max(0, o.MaxVersions),
		limits:       memoryLimits{records: o.MaxRecords, archived: o.MaxArchived},
		trimming:     newTrimming(),
		holderOf:     o.HolderOf,
		vectorWeight: o.VectorWeight,
	}
	if o.CountAccesses {
		s.accesses = access.NewRecorder(writer, o.Now, o.Logger)
	}
	s.start(o.SweepEvery)
	return s
}

// OnRemoved has a function called with the ids of records after each commit of this store by
// which they say no more what they said: deleted, expired, removed to make room, with another
// text or rejected. It must be quick and not keep the slice. A later function takes the place of
// an earlier one.
func (s *Store) OnRemoved(removed func(ids []string)) { s.onRemoved.Store(&removed) }

// start begins the work on what expires.
func (s *Store) start(sweepEvery time.Duration) {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.running.Go(func() { s.slideRead(ctx) })
	if s.limits != (memoryLimits{}) {
		s.running.Go(func() { s.trimAll(ctx) })
	}
	if sweepEvery > 0 {
		s.running.Go(func() { s.sweepEvery(ctx, sweepEvery) })
	}
}

// Forget drops pending writes about an erased scope. Other caches need no reset: they are
// keyed by the index's sequence, which has gone up.
func (s *Store) Forget(scope kv.Scope) { s.accesses.Forget(scope) }

// Close ends the background work and waits for it. Later calls are ErrClosed,
// closing again is harmless.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.stop()
	s.running.Wait()
	s.accesses.Close()
	s.embeddings.Close()
	s.packer.Close()
	if err := s.leases.Close(); err != nil {
		s.logger.Warn("memory: leases not given back, they run out", "error", err)
	}
	return nil
}

// begin refuses work on a closed store or for an invalid scope.
func (s *Store) begin(scope kv.Scope) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return scope.Validate()
}

// beginRequest is begin for a request that may be repeated.
func (s *Store) beginRequest(scope kv.Scope, requestID string) error {
	if err := s.begin(scope); err != nil {
		return err
	}
	return record.CheckName("request_id", requestID, MaxRequestIDBytes)
}

// newID makes an id that sorts behind those made before.
func (s *Store) newID(now time.Time) (string, error) {
	id, err := ulid.New(uint64(max(0, now.UnixMilli())), s.ids) // ids begin with 1970
	if err != nil {
		return "", fmt.Errorf("memory: make an id: %w", err)
	}
	return id.String(), nil
}

// Get returns the record with that id, also when another one has replaced it.
// One that is not there or has expired is a *NotFoundError.
func (s *Store) Get(ctx context.Context, scope kv.Scope, id string) (record.Record, error) {
	return s.Read(ctx, scope, Reading{ID: id})
}

// GetByKey returns the record that has the key, as Get does.
func (s *Store) GetByKey(ctx context.Context, scope kv.Scope, key string) (record.Record, error) {
	if key == "" {
		return record.Record{}, invalid.Field(ErrInvalid, "key", "is empty")
	}
	return s.Read(ctx, scope, Reading{Key: key})
}

// Reading says which record is read, and how.
type Reading struct {
	// ID names the record, or Key does. Give one of the two.
	ID, Key string
	// AsOf, unless zero, is a moment by the server's clock: the record as it was then, the
	// version that had been acknowledged last. Earlier versions have no vectors.
	AsOf time.Time
	// Peek leaves the life of a record with a sliding span as it is; so does AsOf.
	Peek bool
}

// Read returns a record, also when another one has replaced it, with its vector and the
// relations that go out from it. One that is not there or has expired is a *NotFoundError; as of a moment so is one that was saved
// later, or whose version of then is kept no longer.
func (s *Store) Read(ctx context.Context, scope kv.Scope, ask Reading) (r record.Record, err error) {
	if err := s.begin(scope); err != nil {
		return r, err
	}
	if err := checkNamed(ask.ID, ask.Key, 0); err != nil {
		return r, err
	}
	r, err = s.read(ctx, scope, ask, false)
	var replaced *replacedError
	if errors.As(err, &replaced) {
		s.restore(ctx, scope)
		r, err = s.read(ctx, scope, ask, true)
	}
	if err != nil {
		return record.Record{}, wrap("memory: get record", err)
	}
	if !ask.Peek && ask.AsOf.IsZero() {
		s.touched(scope, r)
		s.accesses.Add(scope, r.ID)
	}
	return r, nil
}

// read reads a record. Unless they were restored, a *replacedError says that what has expired
// had replaced it, or the one that has its key.
func (s *Store) read(ctx context.Context, scope kv.Scope, ask Reading, restored bool) (r record.Record, err error) {
	err = s.view(ctx, func(view kv.Snapshot) error {
		if r, err = s.named(ctx, view, scope, ask.ID, ask.Key); err != nil || r.SupersededBy != "" {
			if !restored && s.isReplacedByExpired(ctx, view, scope, r) {
				return &replacedError{scope}
			}
		}
		if err != nil {
			return err
		}
		at := record.StoredTime(ask.AsOf)
		if !at.IsZero() {
			if r, err = s.asOf(ctx, view, scope, r, at); err != nil {
				return err
			}
		}
		if err := readRelations(ctx, view, scope, at, &r); err != nil {
			return err
		}
		return s.embeddings.Complete(ctx, view, scope, &r)
	})
	return r, err
}

// isReplacedByExpired reports whether a record has expired that had replaced another, or has been
// replaced by one that has.
func (s *Store) isReplacedByExpired(ctx context.Context, view kv.Getter, scope kv.Scope, r record.Record) bool {
	now := s.now()
	if r.ExpiredAt(now) {
		return r.Supersedes != ""
	}
	if r.SupersededBy == "" {
		return false
	}
	by, ok, err := record.Read(ctx, view, scope, r.SupersededBy)
	return err == nil && ok && by.ExpiredAt(now)
}

// named reads the record of that id or, without one, of that key.
func (s *Store) named(ctx context.Context, view kv.Getter, scope kv.Scope, id, key string) (record.Record, error) {
	field, name, read := "id", id, record.Read
	if id == "" {
		field, name, read = "key", key, record.ReadNamed
	}
	r, ok, err := read(ctx, view, scope, name)
	if err == nil && (!ok || r.ExpiredAt(s.now())) {
		err = &NotFoundError{field, name}
	}
	return r, err
}

// view runs do on a snapshot, and again on another one if the first became too old.
// It is opened with refs.
func (s *Store) view(ctx context.Context, do func(view kv.Snapshot) error, refs ...kv.Ref) error {
	return kv.View(ctx, s.engine, refs, do)
}

// currentView is view where the index of the scope must be current.
func (s *Store) currentView(ctx context.Context, scope kv.Scope, do func(view kv.Snapshot) error, refs ...kv.Ref) error {
	return s.current(ctx, scope, func() error { return s.view(ctx, do, refs...) })
}
