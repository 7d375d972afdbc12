package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// DefaultSession is the session of callers that name none. An empty session id
// means it everywhere.
const DefaultSession = "default"

// MaxListed bounds the steps of one answer.
const MaxListed = 1000

// Options adjusts a Log. Nil and zero fields mean the defaults.
type Options struct {
	// Now gives the time of messages, and of steps that have none. Default
	// time.Now.
	Now func() time.Time
	// Defaults are the settings of sessions without their own. Default: the defaults of
	// package assemble.
	Defaults Config
	// CloseAfter is how long nothing is recorded in a session before it is closed, and
	// EndAfter before it needs its blobs no more, though it was not ended; negative: never.
	// Defaults DefaultCloseAfter and DefaultEndAfter.
	CloseAfter, EndAfter time.Duration
	// OnBegin is called after the first entry of a session of the scope was committed,
	// perhaps more than once when that request is repeated. It must not block. Default:
	// nothing is called.
	OnBegin func(scope kv.Scope)
	// OnEnd is called after a session was ended. Default: nothing is called.
	OnEnd func(scope kv.Scope, session string)
	// Settle is called before an entry of the scope is written: what it waits for is
	// written first. Default: nothing is waited for.
	Settle func(ctx context.Context, scope kv.Scope)
}

// Log is the store of all agents' logs. All methods are safe for concurrent
// use.
type Log struct {
	engine   kv.Reader
	writer   *kv.Writer
	now      func() time.Time
	defaults Config
	onBegin  func(scope kv.Scope)
	onEnd    func(scope kv.Scope, session string)
	settle   func(ctx context.Context, scope kv.Scope)
	folds    foldCache
	// closeAfter and endAfter are from Options.
	closeAfter, endAfter time.Duration
	// entryCache has the entries that prompts read.
	entryCache entryCache
}

// New returns a log on an engine and the writer that writes to it. Both stay
// the caller's to close.
func New(engine kv.Reader, writer *kv.Writer, opts *Options) *Log {
	o := *cmp.Or(opts, &Options{})
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OnBegin == nil {
		o.OnBegin = func(kv.Scope) {}
	}
	if o.OnEnd == nil {
		o.OnEnd = func(kv.Scope, string) {}
	}
	if o.Settle == nil {
		o.Settle = func(context.Context, kv.Scope) {}
	}
	return &Log{
		engine: engine, writer: writer, now: o.Now, defaults: o.Defaults, onBegin: o.OnBegin, onEnd: o.OnEnd, settle: o.Settle, folds: newFoldCache(maxCachedFoldBytes),
		closeAfter: cmp.Or(o.CloseAfter, DefaultCloseAfter), endAfter: cmp.Or(o.EndAfter, DefaultEndAfter),
		entryCache: newEntryCache(maxCachedEntryBytes),
	}
}

// Entry is one thing in a session: exactly one of Message and Step is set. It
// belongs to the receiver, but for what Unfolded and Before yield: these are shared, and
// for reading only.
type Entry struct {
	// Position is the entry's place in its session, from 1.
	Position uint64
	// Time is when it was written.
	Time    time.Time
	Message *Message
	Step    *step.Step
}

// Ref is what a request that stages anything of the scope's log must name in
// its Refs.
func (l *Log) Ref(scope kv.Scope) kv.Ref { return kv.Ref{Keyspace: kv.Log, Scope: scope} }

// StageStep appends a step to the scope's log. fill is called with the step's
// number and returns the step; its SessionID says which session it joins (empty
// means DefaultSession). The agent's numbers have no gap and no duplicate,
// because a number is taken only by the commit that writes its step; call Committed after it. It
// returns the step as it will be stored and its position. An error of fill is
// returned as it is.
func (l *Log) StageStep(ctx context.Context, tx *kv.Tx, scope kv.Scope, fill func(number uint64) (step.Step, error)) (step.Step, uint64, error) {
	counter := counterKey(scope)
	last, err := readCounter(ctx, tx, counter)
	if err != nil {
		return step.Step{}, 0, err
	}
	s, err := fill(last + 1)
	if err != nil {
		return step.Step{}, 0, err
	}
	if s.SessionID, err = sessionID(s.SessionID); err != nil {
		return step.Step{}, 0, err
	}
	s.Number = last + 1
	if s.Time.IsZero() {
		s.Time = l.now()
	}
	s.Time = s.Time.UTC().Truncate(time.Microsecond)
	positions, err := l.stageEntries(ctx, tx, scope, s.SessionID, []Entry{{Time: s.Time, Step: &s}})
	if err != nil {
		return step.Step{}, 0, err
	}
	tx.Put(kv.Log, counter, encodeCounter(s.Number))
	tx.Put(kv.Log, stepKey(scope, s.Number), encodePlace(s.SessionID, positions[0]))
	return s, positions[0], nil
}

// LastStep returns the number of the agent's last step, 0 when it has none.
func (l *Log) LastStep(ctx context.Context, scope kv.Scope) (uint64, error) {
	if err := scope.Validate(); err != nil {
		return 0, err
	}
	value, err := l.get(ctx, counterKey(scope))
	if err != nil {
		return 0, fmt.Errorf("session: read counter: %w", err)
	}
	return decodeCounter(value)
}

// Committed is called after the commit that StageStep staged for, with the step's
// position, so that OnBegin is.
func (l *Log) Committed(scope kv.Scope, position uint64) {
	if position == firstPosition {
		l.onBegin(scope)
	}
}

// firstPosition is where a session begins.
const firstPosition = 1

// stageEntries gives the entries the next positions of a session and writes
// them.
func (l *Log) stageEntries(ctx context.Context, tx *kv.Tx, scope kv.Scope, session string, entries []Entry) ([]uint64, error) {
	l.settle(ctx, scope)
	values, err := tx.Get(ctx, kv.Log, headKey(scope, session))
	if err != nil {
		return nil, fmt.Errorf("session: read head: %w", err)
	}
	h, err := decodeHead(values[0])
	if err != nil {
		return nil, err
	}
	positions := make([]uint64, len(entries))
	for i, e := range entries {
		h.last++
		positions[i] = h.last
		value := appendEntry(nil, e)
		if len(value) > kv.MaxValueBytes {
			return nil, &kv.LimitError{What: "log entry", Size: len(value), Limit: kv.MaxValueBytes}
		}
		tx.Put(kv.Log, entryKey(scope, session, h.last), value)
		stageMentions(tx, scope, session, value)
	}
	h.ended = false
	tx.Put(kv.Log, headKey(scope, session), encodeHead(h))
	return positions, nil
}

// Step returns the step with a number, or ErrStepNotFound.
func (l *Log) Step(ctx context.Context, scope kv.Scope, number uint64) (Entry, error) {
	if err := scope.Validate(); err != nil {
		return Entry{}, err
	}
	place, err := l.get(ctx, stepKey(scope, number))
	if err != nil {
		return Entry{}, fmt.Errorf("session: read step %d: %w", number, err)
	}
	if len(place) == 0 { // an empty one was erased
		return Entry{}, fmt.Errorf("%w: %s", ErrStepNotFound, step.ID(number))
	}
	session, position, err := decodePlace(place)
	if err != nil {
		return Entry{}, err
	}
	value, err := l.get(ctx, entryKey(scope, session, position))
	if err != nil {
		return Entry{}, fmt.Errorf("session: read step %d: %w", number, err)
	}
	e, err := decodeEntry(value)
	if err == nil && (e.Step == nil || e.Step.Number != number) {
		err = fmt.Errorf("%w: step %d is not where its index says", ErrDamaged, number)
	}
	e.Position = position
	return e, err
}

func (l *Log) get(ctx context.Context, key []byte) ([]byte, error) {
	values, err := l.engine.Get(ctx, kv.Log, key)
	if err != nil {
		return nil, err
	}
	return values[0], nil
}

// readOne reads what a session has under one key.
func readOne[T any](ctx context.Context, l *Log, scope kv.Scope, session, what string, key func(kv.Scope, string) []byte, decode func([]byte) (T, error)) (none T, err error) {
	if session, err = scoped(scope, session); err != nil {
		return none, err
	}
	value, err := l.get(ctx, key(scope, session))
	if err != nil {
		return none, fmt.Errorf("session: read %s: %w", what, err)
	}
	return decode(value)
}

// Steps returns up to limit steps of a session that stand behind a position, in
// order. A limit outside 1 to MaxListed means MaxListed.
func (l *Log) Steps(ctx context.Context, scope kv.Scope, sessionID string, after uint64, limit int) ([]Entry, error) {
	return collectSteps(l.entries(ctx, scope, sessionID, after, false, nil), limit)
}

// LastSteps returns the last n steps of a session, oldest first. An n outside 1
// to MaxListed means MaxListed.
func (l *Log) LastSteps(ctx context.Context, scope kv.Scope, sessionID string, n int) ([]Entry, error) {
	steps, err := collectSteps(l.entries(ctx, scope, sessionID, 0, true, nil), n)
	slices.Reverse(steps)
	return steps, err
}

func collectSteps(entries iter.Seq2[Entry, error], limit int) ([]Entry, error) {
	if limit <= 0 || limit > MaxListed {
		limit = MaxListed
	}
	var steps []Entry
	for e, err := range entries {
		if err != nil {
			return nil, err
		}
		if e.Step == nil {
			continue
		}
		if steps = append(steps, e); len(steps) == limit {
			break
		}
	}
	return steps, nil
}

// Entries yields all entries of a session in order. A damaged one is an ErrDamaged with its
// Position alone, and others follow it; any other error comes last.
func (l *Log) Entries(ctx context.Context, scope kv.Scope, sessionID string) iter.Seq2[Entry, error] {
	return l.entries(ctx, scope, sessionID, 0, false, nil)
}

// Before yields the entries of a session that stand before a position, the newest
// first; 0 is behind them all; from there, entries that earlier calls read come from the
// cache. The entries are for reading only. An error comes last, with a zero Entry.
func (l *Log) Before(ctx context.Context, scope kv.Scope, sessionID string, position uint64) iter.Seq2[Entry, error] {
	if position > 0 {
		return l.entries(ctx, scope, sessionID, position, true, nil)
	}
	return func(yield func(Entry, error) bool) {
		r, err := l.reading(ctx, scope, sessionID)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		defer r.keep(nil)
		for at := r.last; at > r.gone; at-- {
			if e, known := r.known.at(at); known {
				if !yield(e, nil) {
					return
				}
				continue
			}
			// A few that are new are fetched by key.
			first := at
			for ; first > r.gone && !r.knows(first); first-- {
				if at-first >= shortStretch {
					all(l.entries(ctx, scope, sessionID, at+1, true, r.known), yield)
					return
				}
				r.wanted = append(r.wanted, first)
			}
			if !r.fetch(ctx, yield) {
				return
			}
			at = first + 1
		}
	}
}

// entries yields what stands behind a position or, in reverse, before it; 0 is no
// bound. It adds to the cached state of the session; nil is not added to.
func (l *Log) entries(ctx context.Context, scope kv.Scope, id string, from uint64, reverse bool, known *cachedEntries) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		id, err := sessionID(id)
		if err = errors.Join(err, scope.Validate()); err != nil {
			yield(Entry{}, err)
			return
		}
		r := kv.Prefix(entryPrefix(scope, id))
		r.Reverse = reverse
		switch {
		case from > 0 && reverse:
			r.End = entryKey(scope, id, from)
		case from > 0:
			r.Start = afterKey(scope, id, from)
		}
		for pair, err := range l.engine.Scan(ctx, kv.Log, r) {
			e, err := readPair(pair, err)
			if errors.Is(err, errUnknownKind) {
				continue
			}
			if err == nil && known != nil {
				known.add(e, len(pair.Value))
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func readPair(pair kv.Pair, err error) (Entry, error) {
	if err != nil {
		return Entry{}, fmt.Errorf("session: read entries: %w", err)
	}
	e, err := decodeEntry(pair.Value)
	if err != nil {
		e = Entry{}
	}
	e.Position = keyPosition(pair.Key)
	return e, err
}

// Scopes yields the owners of all logs, in order of their keys. It reads one key of each.
// An error comes last.
func (l *Log) Scopes(ctx context.Context) iter.Seq2[kv.Scope, error] {
	return kv.Scopes(ctx, l.engine, kv.Log)
}

// Sessions yields the ids of the scope's sessions that have an entry and come
// behind an id, in order of their bytes. No id is before all. An error comes last,
// with an empty id.
func (l *Log) Sessions(ctx context.Context, scope kv.Scope, after string) iter.Seq2[string, error] {
	return l.sessions(ctx, scope.Key(tagEntry), after)
}

// TaskSessions is Sessions, limited to sessions with a task.
func (l *Log) TaskSessions(ctx context.Context, scope kv.Scope, after string) iter.Seq2[string, error] {
	return l.sessions(ctx, scope.Key(tagTask), after)
}

// ConfiguredSessions is Sessions, limited to sessions with their own settings.
func (l *Log) ConfiguredSessions(ctx context.Context, scope kv.Scope, after string) iter.Seq2[string, error] {
	return l.sessions(ctx, scope.Key(tagConfig), after)
}

// WorkingSessions is Sessions, limited to sessions with a working state.
func (l *Log) WorkingSessions(ctx context.Context, scope kv.Scope, after string) iter.Seq2[string, error] {
	return l.sessions(ctx, scope.Key(tagWorking), after)
}

// sessions reads one key of each session under a prefix.
func (l *Log) sessions(ctx context.Context, prefix []byte, after string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		left := kv.Prefix(prefix)
		left.Limit = 1
		if after != "" {
			left.Start = kv.After(kv.AppendEscaped(append([]byte(nil), prefix...), after))
		}
		for found := true; found; {
			found = false
			for pair, err := range l.engine.Scan(ctx, kv.Log, left) {
				id := ""
				if err == nil {
					id, _, err = kv.CutEscaped(pair.Key[len(prefix):])
				}
				if err != nil {
					yield("", fmt.Errorf("session: read sessions: %w", err))
					return
				}
				if !yield(id, nil) {
					return
				}
				left.Start, found = kv.After(kv.AppendEscaped(append([]byte(nil), prefix...), id)), true
			}
		}
	}
}

// At returns a log that reads from view, such as a snapshot of the engine, so that what
// it reads belongs together, and that writes as l does. What it writes it does not see.
// Once the snapshot is too old, reading is kv.ErrTooOld.
func (l *Log) At(view kv.Reader) *Log {
	at := *l
	at.engine = view
	return &at
}
