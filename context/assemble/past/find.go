package past

import (
	"context"
	"fmt"
	"iter"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// records yields the records of a session, the newest first, without their tools, when
// the waiting ones are written. One that is damaged is an error with its Number alone, and
// others follow it; any other error comes last.
func (s *Store) records(ctx context.Context, scope kv.Scope, sessionID string) iter.Seq2[*Kept, error] {
	return func(yield func(*Kept, error) bool) {
		s.Settle(ctx, scope)
		r := kv.Prefix(recordPrefix(scope, sessionID))
		r.Reverse = true
		for pair, err := range s.engine.Scan(ctx, kv.Log, r) {
			if err != nil {
				yield(nil, fmt.Errorf("past: read records: %w", err))
				return
			}
			p, err := decodeRecord(pair.Value)
			if err != nil {
				p = &Kept{}
			}
			p.Number = recordNumber(pair.Key)
			if !yield(p, err) {
				return
			}
		}
	}
}

// find returns the newest record that fits. what says which prompt is asked for.
func (s *Store) find(ctx context.Context, scope kv.Scope, sessionID, what string, fits func(*Kept) bool) (*Kept, error) {
	oldest := uint64(0)
	for p, err := range s.records(ctx, scope, sessionID) {
		if err != nil {
			return nil, err
		}
		if fits(p) {
			return s.whole(ctx, scope, sessionID, p)
		}
		oldest = p.Number
	}
	switch oldest {
	case 0:
		return nil, Gone("the session has no record of a prompt, so none of %s", what)
	case 1:
		return nil, Gone("the session has no record of %s", what)
	}
	return nil, Gone("the session has no record of %s; the records of its first %d prompts were removed", what, oldest-1)
}

// whole adds the tools of a record.
func (s *Store) whole(ctx context.Context, scope kv.Scope, sessionID string, p *Kept) (*Kept, error) {
	if len(p.Tools) == 0 {
		return p, nil
	}
	if len(p.Tools) != len(hash{}) {
		return nil, fmt.Errorf("%w: prompt %d", errDamaged, p.Number)
	}
	tools, err := s.read(ctx, scope, sessionID, p, hash(p.Tools))
	p.Tools = tools
	return p, err
}

// Find returns the record of the prompt that had an id, the last one where equal prompts
// have the same. What is no longer there, or never was, is a *GoneError.
func (s *Store) Find(ctx context.Context, scope kv.Scope, sessionID, id string) (*Kept, error) {
	return s.find(ctx, scope, sessionID, fmt.Sprintf("prompt %q", id), func(p *Kept) bool { return p.ID == id })
}

// Before returns the record of the last prompt that was sent before the entry at a
// position was recorded. what names the entry.
func (s *Store) Before(ctx context.Context, scope kv.Scope, sessionID string, position uint64, what string) (*Kept, error) {
	return s.find(ctx, scope, sessionID, "a prompt before "+what, func(p *Kept) bool { return p.Position < position })
}

// Last returns the record of the session's last prompt.
func (s *Store) Last(ctx context.Context, scope kv.Scope, sessionID string) (*Kept, error) {
	return s.find(ctx, scope, sessionID, "its last prompt", func(*Kept) bool { return true })
}

// Previous returns the record of the prompt before another one.
func (s *Store) Previous(ctx context.Context, scope kv.Scope, sessionID string, p *Kept) (*Kept, error) {
	what := fmt.Sprintf("the prompt before prompt %d", p.Number)
	return s.find(ctx, scope, sessionID, what, func(other *Kept) bool { return other.Number < p.Number })
}

// LastExtra returns the Extra of the session's last prompt, nil where there is none.
func (s *Store) LastExtra(ctx context.Context, scope kv.Scope, sessionID string) ([]byte, error) {
	for p, err := range s.records(ctx, scope, sessionID) {
		if err != nil {
			return nil, err
		}
		return p.Extra, nil
	}
	return nil, nil
}
