package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// head is where a session's log stands. An entry that comes after its end writes it without that.
type head struct {
	last, gone uint64
	ended      bool
}

func encodeHead(h head) []byte {
	return wire.Marshal(&storev1.SessionHead{Last: &h.last, Ended: h.ended, Deleted: h.gone})
}

func decodeHead(value []byte) (head, error) {
	var m storev1.SessionHead
	if err := wire.Unmarshal(value, &m); err != nil {
		return head{}, damaged(err)
	}
	return head{last: m.GetLast(), ended: m.Ended, gone: m.Deleted}, nil
}

// End says that a session is over, so that what only it needs may be collected,
// and returns the position of its last entry, 0 when it has none. Ending it
// again changes nothing; a message or a step recorded later opens it again.
// Everything in it stays readable.
func (l *Log) End(ctx context.Context, scope kv.Scope, session string) (last uint64, err error) {
	session, err = sessionID(session)
	if err != nil {
		return 0, err
	}
	key := headKey(scope, session)
	err = l.writer.Do(ctx, kv.Request{Refs: []kv.Ref{l.Ref(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		values, err := tx.Get(ctx, kv.Log, key)
		if err != nil {
			return err
		}
		h, err := decodeHead(values[0])
		if last = h.last; err != nil || h.ended {
			return err
		}
		h.ended = true
		tx.Put(kv.Log, key, encodeHead(h))
		return nil
	}})
	if err != nil {
		return 0, fmt.Errorf("session: end: %w", err)
	}
	l.onEnd(scope, session)
	return last, nil
}

// Ended reports whether the session was ended and nothing was recorded since.
func (l *Log) Ended(ctx context.Context, scope kv.Scope, session string) (bool, error) {
	h, err := l.head(ctx, scope, session)
	return h.ended, err
}

// Last returns the position of the session's last entry, 0 when it has none.
func (l *Log) Last(ctx context.Context, scope kv.Scope, session string) (uint64, error) {
	h, err := l.head(ctx, scope, session)
	return h.last, err
}

func (l *Log) head(ctx context.Context, scope kv.Scope, session string) (head, error) {
	return readOne(ctx, l, scope, session, "head", headKey, decodeHead)
}

// Summary describes a session without reading it.
type Summary struct {
	// ID is the session's id.
	ID string
	// Last is the position of its last entry, 0 when it has only tasks.
	Last uint64
	// Begun and Updated are when the first and the last of its entries and tasks
	// were written.
	Begun, Updated time.Time
	// Ended reports whether it was ended and nothing was recorded since.
	Ended bool
	// Closed reports whether it is ended, or nothing was recorded for Options.CloseAfter.
	// Everything in it stays readable, and recording in it opens it again.
	Closed bool
}

// Summary describes a session; of one without entries and tasks
// whether it was ended.
func (l *Log) Summary(ctx context.Context, scope kv.Scope, session string) (Summary, error) {
	session, err := scoped(scope, session)
	if err != nil {
		return Summary{}, err
	}
	values, err := l.engine.Get(ctx, kv.Log, headKey(scope, session), tallyKey(scope, session))
	if err != nil {
		return Summary{}, fmt.Errorf("session: read head: %w", err)
	}
	h, err := decodeHead(values[0])
	if err != nil {
		return Summary{}, err
	}
	tally, err := decodeTally(values[1])
	if err != nil {
		return Summary{}, err
	}
	sum := Summary{ID: session, Last: h.last, Ended: h.ended}
	values, err = l.engine.Get(ctx, kv.Log, entryKey(scope, session, h.gone+1), entryKey(scope, session, h.last),
		taskKey(scope, session, tally.Gone+1), taskKey(scope, session, tally.Last))
	if err != nil {
		return Summary{}, fmt.Errorf("session: read times: %w", err)
	}
	for _, value := range values {
		if err := sum.see(value); err != nil {
			return Summary{}, err
		}
	}
	sum.Closed = sum.Ended || !sum.Updated.IsZero() && l.idle(sum.Updated, l.closeAfter)
	return sum, nil
}

// see takes the time of an entry or a task into account, of whatever kind.
func (s *Summary) see(value []byte) error {
	for f, err := range wire.Fields(value) {
		if err != nil {
			return damaged(err)
		}
		if f.Number != fieldTime {
			continue
		}
		if t := f.Time(); s.Begun.IsZero() || t.Before(s.Begun) {
			s.Begun = t
		}
		if t := f.Time(); t.After(s.Updated) {
			s.Updated = t
		}
	}
	return nil
}

const (
	// maxDeleted bounds about how many keys one commit of a Delete takes, and
	// maxDeletedBytes what it reads for that.
	maxDeleted      = 1000
	maxDeletedBytes = 4 << 20
)

// tagsOfPrompts are the tags of context/assemble/past: records, texts, generations.
const tagsOfPrompts = "pxr"

// Delete removes a session from the log, and reports whether it did. It does so only if
// nothing was recorded in the session since before and no tool call of it is running. It
// deletes entries, tasks, folds, settings, working state and recorded prompts. Numbers of
// its steps and positions are not assigned again: later entries under its id continue
// behind them. It works in small commits, oldest entries first, so an interruption or a
// concurrent append leaves the rest whole.
func (l *Log) Delete(ctx context.Context, scope kv.Scope, session string, before time.Time) (bool, error) {
	session, err := scoped(scope, session)
	if err != nil {
		return false, err
	}
	for d := (deletion{log: l, scope: scope, session: session, before: before}); ; {
		if busy, err := l.hasIntent(ctx, scope, session); busy || err != nil {
			return false, err
		}
		err := l.writer.Do(ctx, lease.Fence(ctx, kv.Request{Refs: []kv.Ref{l.Ref(scope)}, Stage: d.stage, Lazy: true}))
		if err != nil || d.young {
			return false, wrap("delete", err)
		}
		if !d.more {
			return true, nil
		}
	}
}

// wrap says what failed; nil stays nil.
func wrap(what string, err error) error {
	if err != nil {
		err = fmt.Errorf("session: %s: %w", what, err)
	}
	return err
}

// hasIntent reports whether a tool call of a session is under way.
func (l *Log) hasIntent(ctx context.Context, scope kv.Scope, session string) (bool, error) {
	for _, list := range []kv.Scope{intents.Part(scope), intents.Whole(scope.Tenant)} {
		for pair, err := range l.engine.Scan(ctx, kv.System, kv.Prefix(intentKey(list, scope, ""))) {
			if err != nil {
				return false, fmt.Errorf("session: read intents: %w", err)
			}
			in, err := readIntent(pair)
			if err != nil {
				return false, err
			}
			if of, err := sessionID(in.SessionID); err == nil && of == session {
				return true, nil
			}
		}
	}
	return false, nil
}

// deletion is one commit of a Delete.
type deletion struct {
	log     *Log
	scope   kv.Scope
	session string
	before  time.Time

	young bool // something was recorded since before
	more  bool // there may be more to delete
	left  int  // how many more keys may go
	bytes int
}

func (d *deletion) stage(ctx context.Context, tx *kv.Tx) error {
	d.young, d.more, d.left, d.bytes = false, false, maxDeleted, 0
	j := journal{d.scope, d.session}
	values, err := tx.Get(ctx, kv.Log, stateKeys(d.scope, d.session)...)
	if err != nil {
		return err
	}
	h, err := decodeHead(values[0])
	if err != nil {
		return err
	}
	tally, err := decodeTally(values[1])
	if err != nil {
		return err
	}
	last, known, err := lastRecorded(ctx, tx, d.scope, d.session, values)
	if d.young = !known || !last.Before(d.before); d.young || err != nil {
		return err
	}
	state, err := j.state(ctx, tx)
	if err != nil {
		return err
	}
	steps := []func() error{
		func() error {
			return d.numbered(ctx, tx, journalPrefix(d.scope, d.session), nil, func(number uint64) {
				tx.Put(kv.Log, foldsKey(d.scope, d.session), encodeState(foldState{version: state.version, given: state.given, gone: number}))
			})
		},
		func() error { return d.prompts(ctx, tx) },
		func() error { return d.single(ctx, tx) },
		func() error {
			return d.numbered(ctx, tx, taskPrefix(d.scope, d.session), func(value []byte) error {
				t, _, err := decodeTask(value)
				tx.Delete(kv.Log, taskIDKey(d.scope, t.ID))
				return err
			}, func(number uint64) {
				tx.Put(kv.Log, tallyKey(d.scope, d.session), encodeTally(Tally{Last: tally.Last, Through: tally.Last, Gone: number}))
			})
		},
		func() error {
			return d.numbered(ctx, tx, entryPrefix(d.scope, d.session), func(value []byte) error {
				e, err := decodeEntry(value)
				if err == nil && e.Step != nil { // numbers of steps have no gap
					tx.Put(kv.Log, stepKey(d.scope, e.Step.Number), nil)
				}
				if errors.Is(err, errUnknownKind) {
					err = nil
				}
				return err
			}, func(number uint64) {
				tx.Put(kv.Log, headKey(d.scope, d.session), encodeHead(head{last: h.last, gone: number, ended: true}))
			})
		},
	}
	for _, do := range steps {
		if err := do(); err != nil || d.more {
			return err
		}
	}
	return nil
}

// numbered deletes the next values with numbers, with their mentions, and passes to done which
// was the last.
func (d *deletion) numbered(ctx context.Context, tx *kv.Tx, prefix []byte, see func(value []byte) error, done func(number uint64)) error {
	last := uint64(0)
	for pair, err := range tx.Scan(ctx, kv.Log, kv.Prefix(prefix)) {
		if err != nil {
			return err
		}
		if d.full(len(pair.Value)) {
			break
		}
		if see != nil {
			if err := see(pair.Value); err != nil {
				return err
			}
		}
		names := namesIn(pair.Value)
		mention.Drop(tx, d.log.Ref(d.scope), d.session, names)
		d.left -= len(names)
		tx.Delete(kv.Log, pair.Key)
		last = keyPosition(pair.Key)
	}
	if last > 0 {
		done(last)
	}
	return nil
}

// full counts a key, unless the commit is large enough.
func (d *deletion) full(bytes int) bool {
	if d.left <= 0 || d.bytes > maxDeletedBytes {
		d.more = true
		return true
	}
	d.left--
	d.bytes += bytes
	return false
}

// prompts deletes the records of prompts. The parts of a text go together.
func (d *deletion) prompts(ctx context.Context, tx *kv.Tx) error {
	const part = 2 // bytes of its number
	var text []byte
	for _, tag := range []byte(tagsOfPrompts) {
		for pair, err := range tx.Scan(ctx, kv.Log, kv.Prefix(kv.AppendEscaped(d.scope.Key(tag), d.session))) {
			if err != nil {
				return err
			}
			of := pair.Key[:max(0, len(pair.Key)-part)]
			if (tag != 'x' || !bytes.Equal(of, text)) && d.full(len(pair.Value)) {
				return nil
			}
			text = of
			tx.Delete(kv.Log, pair.Key)
		}
	}
	return nil
}

// single deletes settings and states.
func (d *deletion) single(ctx context.Context, tx *kv.Tx) error {
	for _, tag := range []byte{tagConfig, tagAnchor, tagWorking, tagSprint, tagSnapshot} {
		for pair, err := range tx.Scan(ctx, kv.Log, kv.Prefix(kv.AppendEscaped(d.scope.Key(tag), d.session))) {
			if err != nil {
				return err
			}
			if d.full(len(pair.Value)) {
				return nil
			}
			tx.Delete(kv.Log, pair.Key)
		}
	}
	return nil
}
