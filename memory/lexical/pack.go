package lexical

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// Limits of packing.
const (
	// maxPackDocuments and maxPackBytes bound the part of the tail that one
	// commit packs, so that the commit stays far below kv.MaxBatchBytes: a
	// segment takes about as much room as its entries.
	maxPackDocuments = 4096
	maxPackBytes     = 2 << 20
	// maxKeptPostings bounds what is kept of a packing for the next one: about a
	// megabyte.
	maxKeptPostings = 1 << 15
)

// errStale: another process changed what a commit was prepared from.
var errStale = errors.New("lexical: index changed meanwhile")

// Pack writes the tail of a scope, or its older part when it is long, as a segment. It
// reads outside the writer and holds the scope only to write. It returns the statistics and
// whether there is something to merge.
func (x *Index) Pack(ctx context.Context, engine kv.Engine, writer *kv.Writer, scope kv.Scope) (segment.Statistics, bool, error) {
	p, err := x.preparePack(ctx, engine, scope)
	if err != nil || p.documents() == 0 {
		return p.Stats, p.workLeft(), err
	}
	var after scopeHead
	err = writer.Do(ctx, kv.Request{Refs: []kv.Ref{Ref(scope)}, Lazy: true, Stage: func(ctx context.Context, tx *kv.Tx) error {
		var err error
		after, err = p.stage(ctx, tx)
		return err
	}})
	if errors.Is(err, errStale) {
		// Another process packed the same documents: that is as good.
		return p.Stats, false, nil
	}
	if err != nil {
		return p.Stats, false, fmt.Errorf("lexical: pack %s: %w", scope, err)
	}
	return after.Stats, after.workLeft(), nil
}

// packing is a segment made of the tail's older part, ready to be written.
type packing struct {
	scopeHead
	info      segment.Info
	deleted   segment.DeletedSet
	tailBytes uint64 // of the packed entries
	chunks    [][]byte
	firsts    []string
	rows      []segment.Row
	ids       [][]byte
}

func (p *packing) documents() int { return len(p.rows) }

// preparePack reads what the limits of a segment allow, which is soon done.
func (x *Index) preparePack(ctx context.Context, engine kv.Engine, scope kv.Scope) (p *packing, err error) {
	p = &packing{}
	err = kv.View(ctx, engine, nil, func(view kv.Snapshot) error {
		p, err = x.readPack(ctx, view, scope)
		return err
	})
	return p, err
}

func (x *Index) readPack(ctx context.Context, view kv.Snapshot, scope kv.Scope) (p *packing, err error) {
	p = &packing{}
	if p.scopeHead, err = readHead(ctx, view, scope, true); err == nil && p.Outdated {
		err = ErrOutdated
	}
	if err != nil || p.Stats.Tail() == 0 {
		return p, err
	}
	if p.deleted, err = p.readDeleted(ctx, view, segment.DeletedChunks(p.Stats.Packed+1, p.Stats.Last)); err != nil {
		return p, err
	}
	p.info = segment.Info{Stamp: rand.Uint64(), First: p.Stats.Packed + 1}
	inverted, _ := x.inverters.Get().(*segment.Inverter)
	if inverted == nil {
		// A term of an entry takes about ten bytes, and a third are new ones.
		const postingBytes, termBytes = 10, 30
		room := min(p.Stats.TailBytes, maxPackBytes)
		inverted = segment.NewInverter(int(room/termBytes), int(room/postingBytes))
	}
	if err := p.collect(ctx, view, inverted); err != nil {
		return p, err
	}
	if err := p.write(inverted); err != nil {
		return p, err
	}
	if inverted.Room() <= maxKeptPostings {
		inverted.Reset()
		x.inverters.Put(inverted)
	}
	return p, nil
}

// collect reads entries of the tail, up to the limits.
func (p *packing) collect(ctx context.Context, view kv.Reader, inverted *segment.Inverter) error {
	usual := min(p.Stats.Tail(), maxPackDocuments)
	p.ids, p.rows = make([][]byte, 0, usual), make([]segment.Row, 0, usual)
	ordinal := p.Stats.Packed
	for e, err := range p.entries(ctx, view, p.Stats.Packed) {
		if err != nil {
			return err
		}
		ordinal++
		if err := p.invert(inverted, ordinal, e); err != nil {
			return err
		}
		if p.documents() == maxPackDocuments || p.tailBytes >= maxPackBytes {
			break
		}
	}
	p.info.Last = ordinal
	return nil
}

// invert takes an entry over. Of a deleted one nothing is kept.
func (p *packing) invert(into *segment.Inverter, ordinal uint32, e segment.Entry) error {
	p.tailBytes += uint64(e.Size)
	if p.deleted.Has(ordinal) {
		p.ids, p.rows = append(p.ids, nil), append(p.rows, segment.Row{})
		p.info.Purged++
		return nil
	}
	p.ids, p.rows = append(p.ids, e.ID), append(p.rows, e.Row)
	for t, err := range e.Each() {
		if err != nil {
			return err
		}
		into.Add(t.Term, segment.Posting{Ordinal: ordinal, Value: segment.PackFrequency(t.Body, t.Header)})
	}
	return nil
}

// write lays out the chunks.
func (p *packing) write(inverted *segment.Inverter) error {
	w := segment.NewWriter(p.info.First, p.tailBytes, func(_ uint32, chunk []byte) error {
		p.chunks = append(p.chunks, chunk)
		return nil
	})
	if err := inverted.Each(w.Add); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	p.info.Bytes, p.firsts = w.Bytes, w.Firsts
	return nil
}

// stage writes the segment, takes its documents out of the tail and returns
// what the head is then.
func (p *packing) stage(ctx context.Context, tx *kv.Tx) (scopeHead, error) {
	h, err := readHead(ctx, tx, p.Scope, true)
	if err != nil {
		return scopeHead{}, err
	}
	if h.Generation != p.Generation || h.Incarnation != p.Incarnation || h.Stats.Packed != p.Stats.Packed {
		return scopeHead{}, errStale
	}
	info := p.info
	info.ID = h.segments.TakeID()
	h.segments.Segments = append(h.segments.Segments, info)
	h.Stats.Packed = info.Last
	h.Stats.Purged += info.Purged
	h.Stats.TailBytes -= min(h.Stats.TailBytes, p.tailBytes)
	tx.Grow(p.documents() + len(p.chunks))
	for i, chunk := range p.chunks {
		tx.Put(kv.Index, h.ChunkKey(info.ID, uint32(i)), chunk)
	}
	tx.Put(kv.Index, h.DirectoryKey(info.ID), segment.EncodeDirectory(p.firsts))
	if err := p.stageDocuments(ctx, tx); err != nil {
		return scopeHead{}, err
	}
	for ordinal := info.First; ordinal <= info.Last && ordinal != 0; ordinal++ {
		tx.Delete(kv.Index, h.EntryKey(ordinal))
	}
	tx.Put(kv.Index, segment.HeadKey(h.Scope), h.Encode())
	tx.Put(kv.Index, h.ListKey(), h.segments.Encode())
	return h, nil
}

// stageDocuments appends ids and columns to those already stored, whose last blocks may not
// be full. Blocks without a live document are left out.
func (p *packing) stageDocuments(ctx context.Context, tx *kv.Tx) error {
	first := p.info.First
	values, err := tx.Get(ctx, kv.Index, p.scopeHead.IDsKey(first/segment.IDsPerBlock), p.scopeHead.ColumnsKey(first/segment.RowsPerBlock))
	if err != nil {
		return err
	}
	ids, rows, err := p.blocksBefore(ctx, tx, values[0], values[1])
	if err != nil {
		return err
	}
	next, before := first-uint32(len(ids)), values[0]
	for block := range slices.Chunk(append(ids, p.ids...), segment.IDsPerBlock) {
		var packed []byte
		if p.deleted.AnyLive(next+uint32(len(block)), len(block)) {
			packed = segment.EncodeIDs(block)
		}
		if packed != nil || before != nil {
			putBlock(tx, p.scopeHead.IDsKey(next/segment.IDsPerBlock), packed)
		}
		next, before = next+uint32(len(block)), nil
	}
	next, before = first-uint32(len(rows)), values[1]
	for block := range slices.Chunk(append(rows, p.rows...), segment.RowsPerBlock) {
		var packed []byte
		if p.deleted.AnyLive(next+uint32(len(block)), len(block)) {
			packed = segment.EncodeRows(block, next)
		}
		if packed != nil || before != nil {
			putBlock(tx, p.scopeHead.ColumnsKey(next/segment.RowsPerBlock), packed)
		}
		next, before = next+uint32(len(block)), nil
	}
	return nil
}

// blocksBefore returns the ids and rows that stand in the same blocks before the
// first document. A block is not there where all of them are deleted.
func (p *packing) blocksBefore(ctx context.Context, tx *kv.Tx, packedIDs, packedRows []byte) (ids [][]byte, rows []segment.Row, err error) {
	first := p.info.First
	// There is no ordinal zero.
	ids, rows = make([][]byte, first%segment.IDsPerBlock), make([]segment.Row, first%segment.RowsPerBlock)
	if packedIDs != nil {
		if ids, err = segment.DecodeIDs(packedIDs); err != nil {
			return nil, nil, err
		}
	}
	if packedRows != nil {
		if rows, err = segment.DecodeRows(packedRows, first-uint32(len(rows))); err != nil {
			return nil, nil, err
		}
	}
	// Some may have been deleted since the packing was prepared.
	deleted, err := p.readDeleted(ctx, tx, segment.DeletedChunks(first, first))
	if err != nil {
		return nil, nil, err
	}
	if len(ids) != int(first%segment.IDsPerBlock) || len(rows) != int(first%segment.RowsPerBlock) ||
		packedIDs == nil && deleted.AnyLive(first, len(ids)) || packedRows == nil && deleted.AnyLive(first, len(rows)) {
		return nil, nil, fmt.Errorf("%w: %d ids and %d rows before document %d", segment.ErrDamaged, len(ids), len(rows), first)
	}
	return ids, rows, nil
}
