package store

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Check reads a topic back: its events from the first kept to the last must be there,
// readable, and with all that belongs to them. found is called for each fault; the error
// is only why the check could not go on.
func Check(ctx context.Context, from kv.Reader, topic kv.Scope, found func(error)) error {
	c := checker{from: from, scope: topic, found: found}
	if err := c.readTopic(ctx); err != nil {
		return err
	}
	if err := c.readEvents(ctx); err != nil {
		return err
	}
	return c.readPayloads(ctx)
}

type checker struct {
	from   kv.Reader
	scope  kv.Scope
	found  func(error)
	record Record
	// separate holds the entries under the tag of payloads, by sequence.
	separate map[uint64]*payload
}

// payload is what stands next to an event.
type payload struct {
	wanted, found int64 // bytes; older versions did not write how many
}

// walk calls see for each key of a tag, with what follows the tag.
func (c *checker) walk(ctx context.Context, tag byte, see func(p kv.Pair) error) error {
	return kv.Walk(ctx, c.from, kv.Events, kv.Prefix(c.scope.Key(tag)), c.found, see)
}

func (c *checker) readTopic(ctx context.Context) error {
	c.record = Record{First: 1}
	return c.walk(ctx, topicTag, func(p kv.Pair) (err error) {
		c.record, err = decodeTopic(p.Value)
		return err
	})
}

func (c *checker) readEvents(ctx context.Context) error {
	c.separate = make(map[uint64]*payload)
	next := c.record.First
	err := c.walk(ctx, eventTag, func(p kv.Pair) error {
		sequence, err := sequenceOf(p.Key)
		if err != nil {
			return err
		}
		wanted := next
		next = sequence + 1
		e, err := decodeEvent(p.Value)
		if err == nil && sequence != wanted {
			err = fmt.Errorf("%w: event %d follows where %d should", ErrDamaged, sequence, wanted)
		}
		if e.elsewhere || e.parts > 0 {
			c.separate[sequence] = &payload{wanted: e.beside}
		}
		return err
	})
	if next != c.record.Last+1 {
		c.found(fmt.Errorf("%w: the last event is %d, there should be %d", ErrDamaged, next-1, c.record.Last))
	}
	return err
}

// readPayloads reads what is too large for its event's key.
func (c *checker) readPayloads(ctx context.Context) error {
	err := c.walk(ctx, payloadTag, func(p kv.Pair) error {
		const tagAndSequence = 1 + 8
		_, rest, err := kv.SplitKey(p.Key)
		if err != nil || len(rest) < tagAndSequence {
			return fmt.Errorf("%w: key %q", ErrDamaged, p.Key)
		}
		sequence, err := sequenceOf(p.Key[:len(p.Key)-len(rest)+tagAndSequence])
		if err != nil {
			return err
		}
		found := c.separate[sequence]
		if found == nil {
			return fmt.Errorf("%w: a payload of event %d, which has none", ErrDamaged, sequence)
		}
		found.found += int64(len(p.Value))
		return nil
	})
	for sequence, p := range c.separate {
		if p.wanted > 0 && p.found != p.wanted || p.wanted == 0 && p.found == 0 {
			c.found(fmt.Errorf("%w: the payload of event %d should have %d bytes and has %d", ErrDamaged, sequence, p.wanted, p.found))
		}
	}
	return err
}
