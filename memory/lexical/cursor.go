package lexical

import (
	"bytes"
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// readAhead is how many chunks of a segment are read at once in order.
const readAhead = 32

// cursor walks through the blocks of a segment.
type cursor struct {
	view    getter
	space   space
	segment *segment
	next    int      // the number of the next chunk to read
	ahead   int      // how many chunks the next read takes; 0 means readAhead
	ready   [][]byte // chunks read ahead
	scanner *blockScanner
	seen    func(chunk []byte) // told of every chunk, if not nil
}

// step moves to the next block. At the end the scanner is nil.
func (c *cursor) step(ctx context.Context) error {
	for {
		if c.scanner != nil {
			if ok, err := c.scanner.next(); ok || err != nil {
				return err
			}
		}
		chunk, err := c.chunk(ctx)
		if err != nil {
			return err
		}
		if chunk == nil {
			c.scanner = nil
			return nil
		}
		if c.scanner, err = scanChunk(chunk, c.segment.first); err != nil {
			return err
		}
	}
}

// seek moves to the first block whose term is not below from.
func (c *cursor) seek(ctx context.Context, from string) error {
	c.next, _ = locate(c.segment.firsts, from)
	c.ahead = 2 // most ranges are short
	for {
		if err := c.step(ctx); err != nil {
			return err
		}
		if c.scanner == nil || string(c.scanner.term) >= from {
			return nil
		}
	}
}

// chunk returns the next chunk, or nil behind the last.
func (c *cursor) chunk(ctx context.Context) ([]byte, error) {
	if len(c.ready) == 0 && c.next < len(c.segment.firsts) {
		ahead := readAhead
		if c.ahead > 0 {
			ahead, c.ahead = c.ahead, min(2*c.ahead, readAhead)
		}
		var keys [][]byte
		for ; c.next < len(c.segment.firsts) && len(keys) < ahead; c.next++ {
			keys = append(keys, c.space.chunk(c.segment.id, uint32(c.next)))
		}
		var err error
		if c.ready, err = c.view.Get(ctx, kv.Index, keys...); err != nil {
			return nil, err
		}
	}
	if len(c.ready) == 0 {
		return nil, nil
	}
	chunk := c.ready[0]
	c.ready = c.ready[1:]
	if chunk == nil {
		return nil, fmt.Errorf("%w: segment %d lacks a chunk", ErrDamaged, c.segment.id)
	}
	if c.seen != nil {
		c.seen(chunk)
	}
	return chunk, nil
}

// lowest returns the lowest term that a cursor stands on.
func lowest(cursors []*cursor) (string, bool) {
	var least []byte
	for _, c := range cursors {
		if c.scanner != nil && (least == nil || bytes.Compare(c.scanner.term, least) < 0) {
			least = c.scanner.term
		}
	}
	return string(least), least != nil
}
