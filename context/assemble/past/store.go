package past

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
)

// Limits of what a session keeps.
const (
	// MaxPrompts is how many prompts a session keeps at least before the oldest go; it
	// keeps at most generationPrompts more.
	MaxPrompts = 512
	// MaxTextBytes bounds the texts that the records of a session keep, not counting the
	// newest generation, which is at least one prompt.
	MaxTextBytes = 32 << 20
	// generationPrompts share their texts, and go together.
	generationPrompts = 64
	// generationBytes end a generation before that.
	generationBytes = 8 << 20
	// chunkParts messages in a row are stored as one text; the next prompt shares it if it
	// begins with them.
	chunkParts = 32
	// maxPartBytes of a text stand in one value.
	maxPartBytes = 512 << 10
	// maxTextParts bounds a text: what is longer leaves no record.
	maxTextParts = 1 << 9
	// maxKnown bounds the sessions whose written texts are cached.
	maxKnown = 1 << 10
	// maxDeletes are made in one commit.
	maxDeletes = 1000
)

// hash names a text within a generation.
type hash [16]byte

func hashOf(text []byte) hash {
	sum := sha256.Sum256(text)
	return hash(sum[:16])
}

// generation is a run of prompts that share their texts.
type generation struct {
	number uint64
	// first is its first prompt, bytes what its texts take.
	first uint64
	bytes int
}

// Store keeps the records of all sessions. Its methods are safe for concurrent use.
type Store struct {
	engine kv.Reader
	writer *kv.Writer
	log    *session.Log
	// waiting is what SaveLater has not written yet.
	waiting waiting

	mu    sync.Mutex // guards the sessions, and what they hold
	known *cache.LRU[place, *kept]
}

type place struct {
	scope   kv.Scope
	session string
}

// kept describes a session's records.
type kept struct {
	last        uint64
	generations []generation
	texts       map[hash]bool // of the last generation
	// clean says that this process has removed what was stored before the generations.
	clean bool
}

// New returns a store on an engine and the writer that writes to it. Both stay the
// caller's to close, after the store.
func New(engine kv.Reader, writer *kv.Writer, log *session.Log) *Store {
	return &Store{
		engine: engine, writer: writer, log: log, known: cache.NewLRU[place, *kept](maxKnown),
		waiting: waiting{lines: make(map[kv.Scope][]*Later)},
	}
}

// Save keeps a record of a prompt, which gets the next number of its session. It
// survives the death of the process and is not synced.
func (s *Store) Save(ctx context.Context, scope kv.Scope, sessionID string, p Kept, messages []Message) error {
	at := place{scope, sessionID}
	b := batch{scope: scope, session: sessionID}
	if err := s.stage(ctx, at, &b, &p, messages); err != nil {
		return fmt.Errorf("past: save: %w", err)
	}
	err := s.writer.Do(ctx, kv.Request{
		Blind: []kv.Ref{{Keyspace: kv.Log, Scope: scope}},
		Stage: func(_ context.Context, tx *kv.Tx) error {
			for i := range b.puts {
				tx.Put(kv.Log, b.puts[i].Key, b.puts[i].Value)
			}
			return nil
		},
		Lazy: true,
	})
	if err == nil && len(b.ended) > 0 {
		err = s.sweep(ctx, at, &b)
	}
	if err != nil {
		s.forget(at)
		return fmt.Errorf("past: save: %w", err)
	}
	return nil
}

// Forget drops the cached state of a session whose records somebody has deleted.
func (s *Store) Forget(scope kv.Scope, sessionID string) { s.forget(place{scope, sessionID}) }

// ForgetAll drops the cached state of all sessions of scopes.
func (s *Store) ForgetAll(match func(kv.Scope) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known.DeleteFunc(func(p place) bool { return match(p.scope) })
}

// batch is what a record adds.
type batch struct {
	scope      kv.Scope
	session    string
	generation uint64
	texts      map[hash]bool
	puts       []kv.Pair
	bytes      int
	// ended are generations that go, kept the first prompt that stays; clean says that nothing
	// is stored before them.
	ended []generation
	kept  uint64
	clean bool
}

// stage makes the record.
func (s *Store) stage(ctx context.Context, at place, b *batch, p *Kept, messages []Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.session(ctx, at)
	if err != nil {
		return err
	}
	k.last++
	p.Number = k.last
	k.begin()
	g := &k.generations[len(k.generations)-1]
	b.generation, b.texts = g.number, k.texts
	p.generation = g.number
	if err := b.recipe(p, messages); err != nil {
		k.last--
		return err
	}
	g.bytes += b.bytes
	b.ended, b.kept = k.end()
	b.clean, k.clean = k.clean, k.clean || len(b.ended) > 0
	b.put(stateKey(at.scope, at.session), encodeState(k.generations))
	return nil
}

// session returns the cached state of a session; it is read if missing.
func (s *Store) session(ctx context.Context, at place) (*kept, error) {
	if k, ok := s.known.Get(at); ok {
		return k, nil
	}
	values, err := s.engine.Get(ctx, kv.Log, stateKey(at.scope, at.session))
	if err != nil {
		return nil, err
	}
	k := &kept{texts: make(map[hash]bool)}
	if k.generations, err = decodeState(values[0]); err != nil {
		return nil, err
	}
	newest := kv.Prefix(recordPrefix(at.scope, at.session))
	newest.Reverse, newest.Limit = true, 1
	for pair, err := range s.engine.Scan(ctx, kv.Log, newest) {
		if err != nil {
			return nil, err
		}
		k.last = recordNumber(pair.Key)
	}
	s.known.Put(at, k, 1)
	return k, nil
}

// forget drops the cached state of a session, which is read again.
func (s *Store) forget(at place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known.Delete(at)
}

// begin begins a generation with the last prompt, if the one before is full.
func (k *kept) begin() {
	n := len(k.generations)
	if n > 0 {
		g := k.generations[n-1]
		if k.last-g.first < generationPrompts && g.bytes < generationBytes {
			return
		}
	}
	next := generation{number: 1, first: k.last}
	if n > 0 {
		next.number = k.generations[n-1].number + 1
	}
	k.generations = append(k.generations, next)
	k.texts = make(map[hash]bool)
}

// end takes the oldest generations away while there are too many prompts or too much
// text. It returns those, and the first prompt that stays.
func (k *kept) end() (ended []generation, first uint64) {
	bytes := 0
	for _, g := range k.generations {
		bytes += g.bytes
	}
	for len(k.generations) > 1 {
		second := k.generations[1].first
		if k.last+1-second < MaxPrompts && bytes <= MaxTextBytes {
			break
		}
		ended = append(ended, k.generations[0])
		bytes -= k.generations[0].bytes
		k.generations = k.generations[1:]
	}
	return ended, k.generations[0].first
}

// sweep deletes the records of generations, and their texts.
func (s *Store) sweep(ctx context.Context, at place, b *batch) error {
	first, last := b.ended[0], b.ended[len(b.ended)-1]
	records := kv.Range{Start: recordKey(at.scope, at.session, first.first), End: recordKey(at.scope, at.session, b.kept)}
	texts := kv.Range{Start: generationPrefix(at.scope, at.session, first.number), End: generationPrefix(at.scope, at.session, last.number+1)}
	if !b.clean {
		// An interrupted sweep may have left older ones. Looking for them each time would
		// read over all keys that were deleted before.
		records.Start, texts.Start = recordPrefix(at.scope, at.session), textPrefix(at.scope, at.session)
	}
	for _, r := range []kv.Range{records, texts} {
		for more := true; more; {
			var err error
			if more, err = s.delete(ctx, at, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// delete deletes some keys of a range, and reports whether there may be more.
func (s *Store) delete(ctx context.Context, at place, r kv.Range) (more bool, err error) {
	r.Limit = maxDeletes
	var keys [][]byte
	for pair, err := range s.engine.Scan(ctx, kv.Log, r) {
		if err != nil {
			return false, err
		}
		keys = append(keys, pair.Key)
	}
	if len(keys) == 0 {
		return false, nil
	}
	err = s.writer.Do(ctx, kv.Request{
		Blind: []kv.Ref{{Keyspace: kv.Log, Scope: at.scope}},
		Stage: func(_ context.Context, tx *kv.Tx) error {
			for _, key := range keys {
				tx.Delete(kv.Log, key)
			}
			return nil
		},
		Lazy: true,
	})
	return len(keys) == maxDeletes, err
}
