package read

import (
	"cmp"
	"context"
	"fmt"
	"iter"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
)

// Log is where sessions are read from. *session.Log is one, and documents the methods.
type Log interface {
	// Config returns the session's settings.
	Config(ctx context.Context, scope kv.Scope, sessionID string) (session.Config, error)
	// Folds returns what stands in place of entries.
	Folds(ctx context.Context, scope kv.Scope, sessionID string) (session.Folds, error)
	// Unfolded yields the entries in none of the folds, Range those between two
	// positions, both in order.
	Unfolded(ctx context.Context, scope kv.Scope, sessionID string, folds []history.Fold) iter.Seq2[session.Entry, error]
	Range(ctx context.Context, scope kv.Scope, sessionID string, first, last uint64) iter.Seq2[session.Entry, error]
	// Before yields the entries of a session that stand before a position, the newest
	// first; 0 is behind them all.
	Before(ctx context.Context, scope kv.Scope, sessionID string, position uint64) iter.Seq2[session.Entry, error]
	// Step returns a step by its number.
	Step(ctx context.Context, scope kv.Scope, number uint64) (session.Entry, error)
	// Working returns what the agent is at.
	Working(ctx context.Context, scope kv.Scope, sessionID string) (working.Working, error)
	// Anchor returns what a provider counted last.
	Anchor(ctx context.Context, scope kv.Scope, sessionID string) (tokens.Anchor, error)
	// Sprint is the number of the last renewal.
	Sprint(ctx context.Context, scope kv.Scope, sessionID string) (int, error)
}

// Snapshots is an engine that can be read as of one moment.
type Snapshots interface {
	kv.Reader
	Snapshot(ctx context.Context, refs ...kv.Ref) (kv.Snapshot, error)
}

// Sessions is where sessions are read from. Its methods are safe for concurrent use.
type Sessions struct {
	log    Log
	engine Snapshots
	// foresee adds what else a prompt reads of the engine.
	foresee func(along *kv.Reads, scope kv.Scope, sessionID string)
	bytes   int
	ends    *cache.Cache[sessionKey, End]
	// large and huge have a token for each prompt that holds much text.
	large, huge chan struct{}
}

type sessionKey struct {
	scope   kv.Scope
	session string
}

// New returns a source. engine is the engine that the log reads from; nil reads each part
// without a common snapshot. foresee adds other reads of a prompt; nil adds none. bytes
// bounds the text of entries read at once, if it can be folded before more is read; 0 is
// DefaultBytes.
func New(log Log, engine Snapshots, foresee func(along *kv.Reads, scope kv.Scope, sessionID string), bytes int) *Sessions {
	return &Sessions{
		log: log, engine: engine, foresee: foresee, bytes: cmp.Or(bytes, DefaultBytes), ends: cache.New[sessionKey, End](maxEnds),
		large: make(chan struct{}, maxLarge), huge: make(chan struct{}, maxHuge),
	}
}

// Forget drops the cached ends of the logs of matching scopes.
func (s *Sessions) Forget(match func(kv.Scope) bool) {
	s.ends.DeleteFunc(func(k sessionKey) bool { return match(k.scope) })
}

// State is the stored data of a session other than its log's entries. Open reads Config, Load
// the rest.
type State struct {
	Config  session.Config
	Folds   session.Folds
	Working working.Working
	// Anchor is the provider's last report.
	Anchor tokens.Anchor
	// Sprint is the number of the last renewal.
	Sprint int
	End    End
}

// Moment is a session as of one moment: a snapshot, so that its parts belong together, or
// the engine itself where a snapshot would be too old before the prompt is done. It is for
// one goroutine; Close ends it.
type Moment struct {
	State

	Scope     kv.Scope
	SessionID string
	// View is what is read from; nil without an engine.
	View kv.Reader

	source      *Sessions
	log         Log
	live        bool
	close       func()
	large, huge bool // it has one of the places of prompts with much text
}

// Open opens the present moment of a session; empty is the default one. live reads from the
// engine itself.
func (s *Sessions) Open(ctx context.Context, scope kv.Scope, sessionID string, live bool) (*Moment, error) {
	m := &Moment{Scope: scope, SessionID: cmp.Or(sessionID, session.DefaultSession), source: s, live: live}
	if err := m.open(ctx); err != nil {
		return nil, err
	}
	var err error
	if m.Config, err = m.log.Config(ctx, scope, m.SessionID); err != nil {
		m.close()
		return nil, fmt.Errorf("assemble: read settings: %w", err)
	}
	return m, nil
}

func (m *Moment) open(ctx context.Context) error {
	s, permit := m.source, kv.PermitOf(ctx)
	log, ok := s.log.(*session.Log)
	if s.engine == nil || !ok || m.live {
		m.log, m.View, m.close = s.log, s.engine, func() {}
		return permit.Meet(ctx, s.engine)
	}
	view, err := kv.SnapshotWith(ctx, s.engine, []kv.Ref{log.Ref(m.Scope)}, func(along *kv.Reads) {
		permit.Foresee(along)
		log.Foresee(along, m.Scope, m.SessionID)
		if s.foresee != nil {
			s.foresee(along, m.Scope, m.SessionID)
		}
	})
	if err != nil {
		return fmt.Errorf("assemble: open a snapshot: %w", err)
	}
	if err := permit.Meet(ctx, view); err != nil {
		_ = view.Close() // nothing was written to it
		return err
	}
	m.log, m.View = log.At(view), view
	m.close = func() { _ = view.Close() } // nothing was written to it
	return nil
}

// Close ends the moment.
func (m *Moment) Close() {
	m.release()
	m.close()
}

// Again goes on from the present moment, because something was folded.
func (m *Moment) Again(ctx context.Context) error {
	m.close()
	m.close = func() {}
	if err := m.open(ctx); err != nil {
		return err
	}
	return m.loadFolds(ctx)
}

// Load reads the state of the session.
func (m *Moment) Load(ctx context.Context) (err error) {
	if err := m.loadEnd(ctx); err != nil {
		return err
	}
	if err := m.loadFolds(ctx); err != nil {
		return err
	}
	if m.Working, err = m.log.Working(ctx, m.Scope, m.SessionID); err != nil {
		return fmt.Errorf("assemble: %w", err)
	}
	if m.Sprint, err = m.log.Sprint(ctx, m.Scope, m.SessionID); err != nil {
		return fmt.Errorf("assemble: %w", err)
	}
	if m.Anchor, err = m.log.Anchor(ctx, m.Scope, m.SessionID); err != nil {
		return fmt.Errorf("assemble: read anchor: %w", err)
	}
	return nil
}

func (m *Moment) loadFolds(ctx context.Context) (err error) {
	if m.Folds, err = m.log.Folds(ctx, m.Scope, m.SessionID); err != nil {
		return fmt.Errorf("assemble: read folds: %w", err)
	}
	return nil
}
