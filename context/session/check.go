package session

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Check reads an agent's log back: entries, steps, tasks, folds, settings. Every
// value must be readable, numbers must have no gaps, and counters and indexes must
// agree with what they count. found is called for each fault; the error is only why the
// check could not go on. It needs memory for a few numbers of each session.
func Check(ctx context.Context, from kv.Reader, scope kv.Scope, found func(error)) error {
	c := check{from: from, scope: scope, found: found}
	for _, step := range []func(context.Context) error{c.entries, c.steps, c.tasks, c.folds, c.rest} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

type check struct {
	from  kv.Reader
	scope kv.Scope
	found func(error)
}

// walk calls see for each key of a tag, with what follows the tag.
func (c *check) walk(ctx context.Context, tag byte, see func(rest, value []byte) error) error {
	prefix := c.scope.Key(tag)
	return kv.Walk(ctx, c.from, kv.Log, kv.Prefix(prefix), c.found, func(p kv.Pair) error {
		if err := see(p.Key[len(prefix):], p.Value); err != nil {
			return fmt.Errorf("%c %q: %w", tag, p.Key[len(prefix):], err)
		}
		return nil
	})
}

// numbered takes a key of a session and a number apart, and wants the number to
// follow the one before it.
func numbered(rest []byte, last map[string]uint64) (session string, number uint64, err error) {
	session, tail, err := kv.CutEscaped(rest)
	if err != nil || len(tail) != 8 {
		return "", 0, fmt.Errorf("%w: the key has no number", ErrDamaged)
	}
	number = binary.BigEndian.Uint64(tail)
	if before := last[session]; number != before+1 {
		err = fmt.Errorf("%w: number %d follows %d", ErrDamaged, number, before)
	}
	last[session] = number
	return session, number, err
}

// gone are the numbers that the sessions of a tag begin behind: those up to them were
// deleted.
func (c *check) gone(ctx context.Context, tag byte, read func(value []byte) (uint64, error)) (map[string]uint64, error) {
	last := make(map[string]uint64)
	err := c.walk(ctx, tag, func(rest, value []byte) error {
		session, _, err := kv.CutEscaped(rest)
		if err != nil {
			return nil // agree reports it
		}
		if gone, err := read(value); err == nil && gone > 0 {
			last[session] = gone
		}
		return nil
	})
	return last, err
}

// agree wants the counter that read finds in each value of a tag to be that of its
// session.
func (c *check) agree(ctx context.Context, tag byte, last map[string]uint64, read func(value []byte) (uint64, error)) error {
	left := maps.Clone(last)
	err := c.walk(ctx, tag, func(rest, value []byte) error {
		session, _, err := kv.CutEscaped(rest)
		if err != nil {
			return err
		}
		counted, err := read(value)
		if err == nil && counted != last[session] {
			err = fmt.Errorf("%w: it says that the last number is %d, and that is %d", ErrDamaged, counted, last[session])
		}
		delete(left, session)
		return err
	})
	for session := range left {
		c.found(fmt.Errorf("%c: %w: session %q has %d entries and nothing that says so", tag, ErrDamaged, session, last[session]))
	}
	return err
}

// get reads one value, nil if there is none.
func (c *check) get(ctx context.Context, key []byte) ([]byte, error) {
	values, err := c.from.Get(ctx, kv.Log, key)
	if err != nil {
		return nil, err
	}
	return values[0], nil
}

func (c *check) entries(ctx context.Context) error {
	last, err := c.gone(ctx, tagHead, func(value []byte) (uint64, error) {
		h, err := decodeHead(value)
		return h.gone, err
	})
	if err != nil {
		return err
	}
	err = c.walk(ctx, tagEntry, func(rest, value []byte) error {
		session, position, err := numbered(rest, last)
		if err != nil {
			return err
		}
		e, err := decodeEntry(value)
		if errors.Is(err, errUnknownKind) {
			return nil
		}
		if err != nil || e.Step == nil {
			return err
		}
		place, err := c.get(ctx, stepKey(c.scope, e.Step.Number))
		if err != nil {
			return err
		}
		at, where, err := decodePlace(place)
		if err == nil && (at != session || where != position) {
			err = fmt.Errorf("%w: step %d stands here, and its index says position %d of %q", ErrDamaged, e.Step.Number, where, at)
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.agree(ctx, tagHead, last, func(value []byte) (uint64, error) {
		h, err := decodeHead(value)
		return h.last, err
	})
}

// steps looks whether the agent's steps are numbered without a gap, and where their
// index says.
func (c *check) steps(ctx context.Context) error {
	last := uint64(0)
	err := c.walk(ctx, tagStep, func(rest, value []byte) error {
		if len(rest) != 8 {
			return fmt.Errorf("%w: the key has no number", ErrDamaged)
		}
		before := last
		if last = binary.BigEndian.Uint64(rest); last != before+1 {
			return fmt.Errorf("%w: step %d follows %d", ErrDamaged, last, before)
		}
		if len(value) == 0 { // it was erased
			return nil
		}
		session, position, err := decodePlace(value)
		if err != nil {
			return err
		}
		entry, err := c.get(ctx, entryKey(c.scope, session, position))
		if err == nil && entry == nil {
			err = fmt.Errorf("%w: nothing stands where the step should", ErrDamaged)
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.walk(ctx, tagCounter, func(_, value []byte) error {
		counted, err := decodeCounter(value)
		if err == nil && counted != last {
			err = fmt.Errorf("%w: %d steps are counted, the last one is %d", ErrDamaged, counted, last)
		}
		return err
	})
}

func (c *check) tasks(ctx context.Context) error {
	last, err := c.gone(ctx, tagTally, func(value []byte) (uint64, error) {
		t, err := decodeTally(value)
		return t.Gone, err
	})
	if err != nil {
		return err
	}
	err = c.walk(ctx, tagTask, func(rest, value []byte) error {
		session, number, err := numbered(rest, last)
		if err != nil {
			return err
		}
		t, _, err := decodeTask(value)
		if err != nil {
			return err
		}
		place, err := c.get(ctx, taskIDKey(c.scope, t.ID))
		if err != nil {
			return err
		}
		at, where, err := decodePlace(place)
		if err == nil && (at != session || where != number) {
			err = fmt.Errorf("%w: task %q stands here, and its index says number %d of %q", ErrDamaged, t.ID, where, at)
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.agree(ctx, tagTally, last, func(value []byte) (uint64, error) {
		t, err := decodeTally(value)
		return t.Last, err
	})
}

// folds reads the journals, and the states that say which of their entries count.
func (c *check) folds(ctx context.Context) error {
	last, err := c.gone(ctx, tagFolds, func(value []byte) (uint64, error) {
		s, err := decodeState(value)
		return s.gone, err
	})
	if err != nil {
		return err
	}
	err = c.walk(ctx, tagJournal, func(rest, value []byte) error {
		_, number, err := numbered(rest, last)
		if err != nil {
			return err
		}
		e, err := decodeJournalEntry(value)
		if err == nil && e.kind == kindFold {
			e.number = number
			_, err = e.fold()
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.agree(ctx, tagFolds, last, func(value []byte) (uint64, error) {
		s, err := decodeState(value)
		if err == nil && len(s.live) > 0 && s.live[len(s.live)-1] > s.version {
			err = fmt.Errorf("%w: fold %d counts, and there are %d entries", ErrDamaged, s.live[len(s.live)-1], s.version)
		}
		return s.version, err
	})
}

// rest reads what stands for itself.
func (c *check) rest(ctx context.Context) error {
	for _, kind := range []struct {
		tag  byte
		read func([]byte) error
	}{
		{tagConfig, func(value []byte) error { _, err := decodeConfig(value); return err }},
		{tagWorking, func(value []byte) error { _, err := decodeWorking(value); return err }},
		{tagSprint, func(value []byte) error { _, err := decodeCounter(value); return err }},
		{tagSnapshot, func(value []byte) error { _, err := decodeSnapshot(value); return err }},
		{tagAnchor, func(value []byte) error { _, err := decodeAnchor(value); return err }},
		{tagTaskID, func(value []byte) error { _, _, err := decodePlace(value); return err }},
		{tagWritten, func(value []byte) error {
			if len(value) != sha256.Size {
				return fmt.Errorf("%w: a hash of %d bytes", ErrDamaged, len(value))
			}
			return nil
		}},
	} {
		if err := c.walk(ctx, kind.tag, func(_, value []byte) error { return kind.read(value) }); err != nil {
			return err
		}
	}
	return nil
}

// CheckIntents reads the intents of one scope of their list back, as Check does a log.
// Other scopes have none.
func CheckIntents(ctx context.Context, from kv.Reader, scope kv.Scope, found func(error)) error {
	if !intents.Has(scope) {
		return nil
	}
	return kv.Walk(ctx, from, kv.System, kv.Prefix(scope.Key(tagIntent)), found, func(p kv.Pair) error {
		_, err := readIntent(p)
		return err
	})
}
