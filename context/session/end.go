package session

import (
	"context"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// fieldEnded marks the head of a session that is over. An entry that comes
// later writes the head without it.
const fieldEnded = 2

// head is where a session's log stands.
type head struct {
	last  uint64
	ended bool
}

func encodeHead(h head) []byte {
	return wire.AppendUint(encodeCounter(h.last), fieldEnded, flag(h.ended))
}

func decodeHead(value []byte) (h head, err error) {
	for f, err := range wire.Fields(value) {
		if err != nil {
			return head{}, damaged(err)
		}
		switch f.Number {
		case fieldLast:
			h.last = f.Value
		case fieldEnded:
			h.ended = f.Value != 0
		}
	}
	return h, nil
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
		tx.Put(kv.Log, key, encodeHead(head{last: last, ended: true}))
		return nil
	}})
	if err != nil {
		return 0, fmt.Errorf("session: end: %w", err)
	}
	l.onEnd(scope, session)
	return last, nil
}

// Ended tells whether the session was ended and nothing was recorded since.
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
	session, err := scoped(scope, session)
	if err != nil {
		return head{}, err
	}
	value, err := l.get(ctx, headKey(scope, session))
	if err != nil {
		return head{}, fmt.Errorf("session: read head: %w", err)
	}
	return decodeHead(value)
}

// Summary is what is known of a session without reading it.
type Summary struct {
	// ID is the session's id.
	ID string
	// Last is the position of its last entry, 0 when it has only tasks.
	Last uint64
	// Begun and Updated are when the first and the last of its entries and tasks
	// were written.
	Begun, Updated time.Time
	// Ended tells whether it was ended and nothing was recorded since.
	Ended bool
	// Closed tells whether it is ended, or nothing was recorded for Options.CloseAfter.
	// Everything in it stays readable, and what is recorded opens it again.
	Closed bool
}

// Summary returns what is known of a session; of one without entries and tasks
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
	values, err = l.engine.Get(ctx, kv.Log, entryKey(scope, session, firstPosition), entryKey(scope, session, h.last),
		taskKey(scope, session, firstPosition), taskKey(scope, session, tally.Last))
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
