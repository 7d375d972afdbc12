package vector

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// PackAfter is how many vectors wait before they are packed: the tail is
	// compared exactly, which takes as long for one as a scan for thirty.
	PackAfter = 256
	// maxPackVectors bounds the part of the tail that one commit packs.
	maxPackVectors = 4 * maxBlockVectors
	// maxCommitBytes bounds the vectors of one commit in new blocks: less than a
	// batch may have, which holds centres and keys next to them.
	maxCommitBytes = 14 << 20
	// smallBlocks is how many blocks that are not full are left before they
	// become full ones.
	smallBlocks = 8
	// garbageShare: where one entry of so many is garbage, blocks are made anew.
	garbageShare = 4
	// blocksPerCommit bounds the blocks that one commit makes anew, and with them
	// the vectors that are in memory meanwhile.
	blocksPerCommit = 4
	// maxTidy bounds the commits of one Pack of a space; the next goes on.
	maxTidy = 4096
)

// errStale: somebody else changed what a commit was prepared from.
var errStale = errors.New("vector: blocks changed meanwhile")

// Pack packs what waits in the spaces of a scope, where that is enough to be
// worth it, and keeps their blocks in order. It reads outside the writer and
// holds the scope only to write. Two at once do no harm.
func (x *Index) Pack(ctx context.Context, engine kv.Engine, writer *kv.Writer, scope kv.Scope) error {
	d, err := readDirectory(ctx, engine, scope)
	if err != nil {
		return fmt.Errorf("vector: pack %s: %w", scope, err)
	}
	for _, s := range d.spaces {
		err := x.tidy(ctx, engine, writer, scope, s)
		if err != nil && !errors.Is(err, errStale) {
			return fmt.Errorf("vector: pack %s: %w", scope, err)
		}
	}
	return nil
}

// tidy does for a space whatever is due, one commit after another.
func (x *Index) tidy(ctx context.Context, engine kv.Engine, writer *kv.Writer, scope kv.Scope, s entry) error {
	if s.dropped {
		return x.sweep(ctx, engine, writer, scope, s)
	}
	for range maxTidy {
		more, err := x.tidyOnce(ctx, engine, writer, place{scope, s.number}, s.dimension)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

func (x *Index) tidyOnce(ctx context.Context, engine kv.Engine, writer *kv.Writer, at place, dimension int) (more bool, err error) {
	var work *packing
	err = kv.View(ctx, engine, nil, func(view kv.Snapshot) error {
		h, err := readHead(ctx, view, at, true)
		if err != nil {
			return err
		}
		if work = x.due(h, dimension); work == nil {
			return nil
		}
		return work.prepare(ctx, x, view)
	})
	if err != nil || work == nil {
		return false, err
	}
	err = writer.Do(ctx, kv.Request{Refs: Refs(at.scope)[1:], Lazy: true, Stage: work.stage})
	return err == nil, err
}

// due returns what to do next for a space; nil for nothing.
func (x *Index) due(h head, dimension int) *packing {
	work := &packing{head: h, dimension: dimension, capacity: min(maxBlockVectors, maxBlockBytes/fineBytes(dimension))}
	arrived := slices.DeleteFunc(slices.Clone(h.blocks), func(b blockInfo) bool { return b.clustered })
	switch {
	case h.tailLength() >= PackAfter:
		work.slots = work.whole(min(h.tailLength(), maxPackVectors, work.most()))
	case work.takeSmall(arrived):
	case work.takeOld(h.blocks):
	case work.takeGarbage(h.blocks):
	case int(h.vectors) > x.scanLimit && len(arrived) > clusterBlocks:
		work.from, work.cluster = work.atMost(arrived[:clusterBlocks]), true
	default:
		return nil
	}
	return work
}

// packing is the making of new blocks from old ones or from the tail.
type packing struct {
	head
	dimension int
	capacity  int
	slots     int         // of the tail, the oldest
	from      []blockInfo // blocks to make anew
	cluster   bool        // put neighbours together

	blocks  []*packedVectors
	entries int // that were taken in
}

// most is how many vectors one commit may pack.
func (p *packing) most() int { return maxCommitBytes / packedBytes(p.dimension) }

// whole leaves away what would become a block that is not full behind others
// that are.
func (p *packing) whole(slots int) int {
	if slots <= p.capacity {
		return slots
	}
	return slots - slots%p.capacity
}

// atMost returns as many of the first blocks as one commit may make anew.
func (p *packing) atMost(blocks []blockInfo) []blockInfo {
	sum := 0
	for i, b := range blocks {
		if sum += b.count; i > 0 && sum > p.most() {
			return blocks[:i]
		}
	}
	return blocks
}

// takeSmall takes the blocks at the end that are not full, once there are
// enough.
func (p *packing) takeSmall(arrived []blockInfo) bool {
	first, sum := len(arrived), 0
	for first > 0 && arrived[first-1].count < p.capacity && len(arrived)-first < maxPackVectors/PackAfter {
		first--
		sum += arrived[first].count
	}
	p.from = p.atMost(arrived[first:])
	return len(p.from) > 1 && (len(p.from) >= smallBlocks || sum >= p.capacity)
}

// takeGarbage takes neighbouring blocks when too much of the space is garbage.
// The blocks that hold it are unknown, so it takes the oldest; rewritten they are the
// newest, so repeated calls rewrite all blocks.
func (p *packing) takeGarbage(blocks []blockInfo) bool {
	p.from = nil
	if int(p.garbage) < PackAfter || int(p.garbage)*garbageShare < p.head.entries() || len(blocks) == 0 {
		return false
	}
	p.takeAlike(blocks[:min(len(blocks), blocksPerCommit)])
	return true
}

// takeAlike takes the first block, and the other blocks of its kind.
func (p *packing) takeAlike(blocks []blockInfo) {
	p.cluster = blocks[0].clustered
	for _, b := range blocks {
		if b.clustered == p.cluster {
			p.from = append(p.from, b)
		}
	}
	p.from = p.atMost(p.from)
}

// takeOld takes blocks without fine codes, which older versions wrote.
func (p *packing) takeOld(blocks []blockInfo) bool {
	old := slices.DeleteFunc(slices.Clone(blocks), func(b blockInfo) bool { return b.fine })
	p.from = nil
	if len(old) == 0 {
		return false
	}
	p.takeAlike(old[:min(len(old), blocksPerCommit)])
	return true
}

// prepare reads the vectors and makes the blocks.
func (p *packing) prepare(ctx context.Context, x *Index, view kv.Reader) error {
	ordinals, err := p.members(ctx, x, view)
	if err != nil {
		return err
	}
	p.entries = len(ordinals)
	slices.Sort(ordinals)
	ordinals = slices.Compact(ordinals)
	kept := ordinals[:0]
	var rotated [][]float32
	for chunk := range slices.Chunk(ordinals, maxRead) {
		values, err := readValues(ctx, view, p.place, chunk)
		if err != nil {
			return err
		}
		for i, value := range values {
			if value == nil {
				continue
			}
			v, err := decodeVector(value, p.dimension)
			if err != nil {
				return err
			}
			kept, rotated = append(kept, chunk[i]), append(rotated, rotate(unit(v)))
		}
	}
	p.build(kept, rotated)
	return ctx.Err()
}

// members returns the documents of the entries that are taken in.
func (p *packing) members(ctx context.Context, x *Index, view kv.Reader) ([]uint32, error) {
	if p.slots > 0 {
		return readSlots(ctx, view, p.head, p.packed+1, p.packed+uint32(p.slots))
	}
	blocks, err := x.readBlocks(ctx, view, p.head, p.from, p.dimension)
	var ordinals []uint32
	for _, b := range blocks {
		ordinals = append(ordinals, b.ordinals...)
	}
	return ordinals, err
}

func (p *packing) build(ordinals []uint32, rotated [][]float32) {
	if p.cluster {
		p.blocks = clustered(ordinals, rotated, p.capacity)
		return
	}
	for len(ordinals) > 0 {
		n := min(len(ordinals), p.capacity)
		p.blocks = append(p.blocks, newBlock(slices.Clone(ordinals[:n]), rotated[:n]))
		ordinals, rotated = ordinals[n:], rotated[n:]
	}
}

// stage puts the new blocks in the place of what they were made from.
func (p *packing) stage(ctx context.Context, tx *kv.Tx) error {
	h, err := readHead(ctx, tx, p.place, true)
	if err != nil {
		return err
	}
	if h.stamp != p.stamp || h.packed != p.packed || !h.has(p.from) {
		return errStale
	}
	h.blocks = slices.DeleteFunc(h.blocks, func(b blockInfo) bool { return slices.Contains(p.from, b) })
	for _, old := range p.from {
		tx.Delete(kv.Index, h.block(old.id))
		tx.Delete(kv.Index, h.centre(old.id))
		if old.fine {
			tx.Delete(kv.Index, h.fine(old.id))
		}
	}
	for slot := h.packed + 1; slot <= p.packed+uint32(p.slots); slot++ {
		tx.Delete(kv.Index, h.tail(slot))
	}
	h.packed += uint32(p.slots)
	kept := 0
	for _, b := range p.blocks {
		h.lastBlock++
		centre, codes := b.encode()
		tx.Put(kv.Index, h.centre(h.lastBlock), centre)
		tx.Put(kv.Index, h.block(h.lastBlock), codes)
		tx.Put(kv.Index, h.fine(h.lastBlock), b.fine.encode())
		h.blocks = append(h.blocks, blockInfo{h.lastBlock, len(b.ordinals), p.cluster, true})
		kept += len(b.ordinals)
	}
	h.garbage -= min(h.garbage, uint32(p.entries-kept))
	tx.Put(kv.Index, h.head(), h.encode())
	tx.Put(kv.Index, h.list(), encodeList(h.blocks))
	return nil
}
