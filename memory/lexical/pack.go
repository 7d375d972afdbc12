package lexical

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Limits of packing.
const (
	// maxPackDocuments and maxPackBytes bound the part of the tail that one
	// commit packs, so that the commit stays far below kv.MaxBatchBytes: a
	// segment takes about as much room as its entries.
	maxPackDocuments = 4096
	maxPackBytes     = 2 << 20
)

// errStale: somebody else changed what a commit was prepared from.
var errStale = errors.New("lexical: index changed meanwhile")

// Pack turns the tail of a scope, or its older part when it is long, into a
// segment. It reads outside the writer and holds the scope only to write. It
// returns the statistics and whether there is something to merge.
func (x *Index) Pack(ctx context.Context, engine kv.Engine, writer *kv.Writer, scope kv.Scope) (Statistics, bool, error) {
	p, err := x.preparePack(ctx, engine, scope)
	if err != nil || p.documents() == 0 {
		return p.stats, p.workLeft(), err
	}
	var after head
	err = writer.Do(ctx, kv.Request{Refs: []kv.Ref{Ref(scope)}, Lazy: true, Stage: func(ctx context.Context, tx *kv.Tx) error {
		var err error
		after, err = p.stage(ctx, tx)
		return err
	}})
	if errors.Is(err, errStale) {
		// Another process packed the same documents: that is as good.
		return p.stats, false, nil
	}
	if err != nil {
		return p.stats, false, fmt.Errorf("lexical: pack %s: %w", scope, err)
	}
	return after.stats, after.workLeft(), nil
}

// packing is a segment made of the tail's older part, ready to be written.
type packing struct {
	head
	info      segmentInfo
	dead      deadSet
	tailBytes uint64 // of the packed entries
	chunks    [][]byte
	firsts    []string
	rows      []row
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
	if p.head, err = readHead(ctx, view, scope, true); err == nil && p.outdated {
		err = ErrOutdated
	}
	if err != nil || p.stats.Tail() == 0 {
		return p, err
	}
	if p.dead, err = p.readDead(ctx, view, chunksOf(p.stats.Packed+1, p.stats.Last)); err != nil {
		return p, err
	}
	p.info = segmentInfo{stamp: rand.Uint64(), first: p.stats.Packed + 1}
	inverted, err := p.collect(ctx, view)
	if err != nil {
		return p, err
	}
	return p, p.write(inverted)
}

// inversion turns documents over: from terms by document to documents by term.
// It keeps the postings in one slice, in the order in which they come.
type inversion struct {
	numbers map[string]int32 // of each term, in the order of first use
	terms   []string
	counts  []int32 // of the postings of each term
	all     []numberedPosting
}

type numberedPosting struct {
	term int32
	posting
}

func (v *inversion) add(term []byte, p posting) {
	n, ok := v.numbers[string(term)]
	if !ok {
		n = int32(len(v.terms))
		v.terms = append(v.terms, string(term))
		v.counts = append(v.counts, 0)
		v.numbers[v.terms[n]] = n
	}
	v.counts[n]++
	v.all = append(v.all, numberedPosting{n, p})
}

// each calls do with every term, in order, and its postings.
func (v *inversion) each(do func(term string, postings []posting) error) error {
	sorted := make([]posting, len(v.all))
	starts := make([]int32, len(v.terms)+1)
	for n, count := range v.counts {
		starts[n+1] = starts[n] + count
	}
	next := slices.Clone(starts)
	for _, p := range v.all {
		sorted[next[p.term]] = p.posting
		next[p.term]++
	}
	order := slices.Sorted(maps.Keys(v.numbers))
	for _, term := range order {
		n := v.numbers[term]
		if err := do(term, sorted[starts[n]:starts[n+1]]); err != nil {
			return err
		}
	}
	return nil
}

// collect reads entries of the tail, up to the limits.
func (p *packing) collect(ctx context.Context, view kv.Reader) (*inversion, error) {
	// A term of an entry takes about ten bytes, and a third are new ones.
	const postingBytes, termBytes = 10, 30
	room := min(p.stats.TailBytes, maxPackBytes)
	inverted := &inversion{
		numbers: make(map[string]int32, room/termBytes),
		all:     make([]numberedPosting, 0, room/postingBytes),
	}
	ordinal := p.stats.Packed
	for e, err := range p.entries(ctx, view, p.stats.Packed) {
		if err != nil {
			return nil, err
		}
		ordinal++
		if err := p.invert(inverted, ordinal, e); err != nil {
			return nil, err
		}
		if p.documents() == maxPackDocuments || p.tailBytes >= maxPackBytes {
			break
		}
	}
	p.info.last = ordinal
	return inverted, nil
}

// invert takes an entry over. Of a dead one nothing is kept.
func (p *packing) invert(into *inversion, ordinal uint32, e entry) error {
	p.tailBytes += uint64(e.size)
	if p.dead.has(ordinal) {
		p.ids, p.rows = append(p.ids, nil), append(p.rows, row{})
		p.info.purged++
		return nil
	}
	p.ids, p.rows = append(p.ids, e.id), append(p.rows, e.row)
	for t, err := range e.each() {
		if err != nil {
			return err
		}
		into.add(t.term, posting{ordinal, pack(t.body, t.header)})
	}
	return nil
}

// write lays out the chunks.
func (p *packing) write(inverted *inversion) error {
	w := segmentWriter{base: p.info.first, limit: chunkLimit(p.tailBytes), emit: func(_ uint32, chunk []byte) error {
		p.chunks = append(p.chunks, chunk)
		return nil
	}}
	if err := inverted.each(w.add); err != nil {
		return err
	}
	if err := w.close(); err != nil {
		return err
	}
	p.info.bytes, p.firsts = w.bytes, w.firsts
	return nil
}

// stage writes the segment, takes its documents out of the tail and returns
// what the head is then.
func (p *packing) stage(ctx context.Context, tx *kv.Tx) (head, error) {
	h, err := readHead(ctx, tx, p.scope, true)
	if err != nil {
		return head{}, err
	}
	if h.generation != p.generation || h.incarnation != p.incarnation || h.stats.Packed != p.stats.Packed {
		return head{}, errStale
	}
	info := p.info
	info.id = h.segments.take()
	h.segments.segments = append(h.segments.segments, info)
	h.stats.Packed = info.last
	h.stats.Purged += info.purged
	h.stats.TailBytes -= min(h.stats.TailBytes, p.tailBytes)
	for i, chunk := range p.chunks {
		tx.Put(kv.Index, h.chunk(info.id, uint32(i)), chunk)
	}
	tx.Put(kv.Index, h.directory(info.id), encodeDirectory(p.firsts))
	if err := p.stageDocuments(ctx, tx); err != nil {
		return head{}, err
	}
	for ordinal := info.first; ordinal <= info.last && ordinal != 0; ordinal++ {
		tx.Delete(kv.Index, h.entry(ordinal))
	}
	tx.Put(kv.Index, headKey(h.scope), h.encode())
	tx.Put(kv.Index, h.list(), h.segments.encode())
	return h, nil
}

// stageDocuments writes ids and columns behind those of the documents before,
// the last blocks of which may not be full. Blocks without a living document are
// left out.
func (p *packing) stageDocuments(ctx context.Context, tx *kv.Tx) error {
	first := p.info.first
	values, err := tx.Get(ctx, kv.Index, p.head.ids(first/idsPerBlock), p.head.columns(first/rowsPerBlock))
	if err != nil {
		return err
	}
	ids, rows, err := p.before(ctx, tx, values[0], values[1])
	if err != nil {
		return err
	}
	next, before := first-uint32(len(ids)), values[0]
	for block := range slices.Chunk(append(ids, p.ids...), idsPerBlock) {
		var packed []byte
		if p.dead.lives(next+uint32(len(block)), len(block)) {
			packed = encodeIDs(block)
		}
		if packed != nil || before != nil {
			putBlock(tx, p.head.ids(next/idsPerBlock), packed)
		}
		next, before = next+uint32(len(block)), nil
	}
	next, before = first-uint32(len(rows)), values[1]
	for block := range slices.Chunk(append(rows, p.rows...), rowsPerBlock) {
		var packed []byte
		if p.dead.lives(next+uint32(len(block)), len(block)) {
			packed = encodeRows(block, next)
		}
		if packed != nil || before != nil {
			putBlock(tx, p.head.columns(next/rowsPerBlock), packed)
		}
		next, before = next+uint32(len(block)), nil
	}
	return nil
}

// before returns the ids and rows that stand in the same blocks before the first
// document. A block is not there where all of them are dead.
func (p *packing) before(ctx context.Context, tx *kv.Tx, packedIDs, packedRows []byte) (ids [][]byte, rows []row, err error) {
	first := p.info.first
	// There is no ordinal zero.
	ids, rows = make([][]byte, first%idsPerBlock), make([]row, first%rowsPerBlock)
	if packedIDs != nil {
		if ids, err = decodeIDs(packedIDs); err != nil {
			return nil, nil, err
		}
	}
	if packedRows != nil {
		if rows, err = decodeRows(packedRows, first-uint32(len(rows))); err != nil {
			return nil, nil, err
		}
	}
	// Some may have died since the packing was prepared.
	dead, err := p.readDead(ctx, tx, chunksOf(first, first))
	if err != nil {
		return nil, nil, err
	}
	if len(ids) != int(first%idsPerBlock) || len(rows) != int(first%rowsPerBlock) ||
		packedIDs == nil && dead.lives(first, len(ids)) || packedRows == nil && dead.lives(first, len(rows)) {
		return nil, nil, fmt.Errorf("%w: %d ids and %d rows before document %d", ErrDamaged, len(ids), len(rows), first)
	}
	return ids, rows, nil
}

// lives tells whether one of so many documents before an ordinal lives.
func (d deadSet) lives(before uint32, documents int) bool {
	first := max(1, before-uint32(documents))
	return d.count(first, before-1) < uint64(before-first)
}
