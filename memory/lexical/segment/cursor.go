package segment

import (
	"bytes"
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// readAhead is how many chunks of a segment are read at once in order.
const readAhead = 32

// Cursor walks through the blocks of a segment.
type Cursor struct {
	view    kv.Getter
	space   Space
	segment *Segment
	next    int      // the number of the next chunk to read
	ahead   int      // how many chunks the next read takes; 0 means readAhead
	ready   [][]byte // chunks read ahead
	scanner *Scanner
	Seen    func(chunk []byte) // called for every chunk, if not nil
}

// NewCursor returns a cursor before the first block of a segment.
func NewCursor(view kv.Getter, space Space, seg *Segment) *Cursor {
	return &Cursor{view: view, space: space, segment: seg}
}

// Done reports whether the cursor is behind the last block.
func (c *Cursor) Done() bool { return c.scanner == nil }

// At returns the term and the block that the cursor stands on. The term is only
// good until the next step.
func (c *Cursor) At() (term []byte, b Block) { return c.scanner.term, c.scanner.block }

// Step moves to the next block. At the end the scanner is nil.
func (c *Cursor) Step(ctx context.Context) error {
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
		if c.scanner, err = scanChunk(chunk, c.segment.First); err != nil {
			return err
		}
	}
}

// Seek moves to the first block whose term is not below from.
func (c *Cursor) Seek(ctx context.Context, from string) error {
	c.next, _ = LocateChunks(c.segment.Firsts, from)
	c.ahead = 2 // most ranges are short
	for {
		if err := c.Step(ctx); err != nil {
			return err
		}
		if c.scanner == nil || string(c.scanner.term) >= from {
			return nil
		}
	}
}

// chunk returns the next chunk, or nil behind the last.
func (c *Cursor) chunk(ctx context.Context) ([]byte, error) {
	if len(c.ready) == 0 && c.next < len(c.segment.Firsts) {
		ahead := readAhead
		if c.ahead > 0 {
			ahead, c.ahead = c.ahead, min(2*c.ahead, readAhead)
		}
		var keys [][]byte
		for ; c.next < len(c.segment.Firsts) && len(keys) < ahead; c.next++ {
			keys = append(keys, c.space.ChunkKey(c.segment.ID, uint32(c.next)))
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
		return nil, fmt.Errorf("%w: segment %d lacks a chunk", ErrDamaged, c.segment.ID)
	}
	if c.Seen != nil {
		c.Seen(chunk)
	}
	return chunk, nil
}

// Lowest returns the lowest term that a cursor stands on.
func Lowest(cursors []*Cursor) (string, bool) {
	var least []byte
	for _, c := range cursors {
		if c.scanner != nil && (least == nil || bytes.Compare(c.scanner.term, least) < 0) {
			least = c.scanner.term
		}
	}
	return string(least), least != nil
}

// Collect appends the postings of term, if the cursor stands on it, and moves
// behind them.
func (c *Cursor) Collect(ctx context.Context, term string, postings []Posting) ([]Posting, error) {
	for c.scanner != nil && string(c.scanner.term) == term {
		b := c.scanner.block
		if b.Last > c.segment.Last {
			return nil, fmt.Errorf("%w: segment %d holds document %d", ErrDamaged, c.segment.ID, b.Last)
		}
		var err error
		if postings, err = b.Decode(postings); err != nil {
			return nil, err
		}
		if err := c.Step(ctx); err != nil {
			return nil, err
		}
	}
	return postings, nil
}
