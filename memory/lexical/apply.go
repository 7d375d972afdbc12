package lexical

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// maxOrdinal is the last ordinal that is given, so that the one behind it is a
// number, too.
const maxOrdinal = 1<<32 - 2

// Added is a document to add.
type Added struct {
	// Encoded is the document's stored form, from Document.Encode.
	Encoded []byte
	// Supersedes is the ordinal of the document that this one replaces, which
	// must have one already; zero for none or for what Encoded says.
	Supersedes uint32
}

// Change is what one commit does to the index of a scope.
type Change struct {
	// Add are documents. They get ordinals in their order.
	Add []Added
	// Kill are the ordinals of documents that are no longer, from before this
	// change. Killing one again changes nothing.
	Kill []uint32
}

// Apply stages a change and returns the ordinal of the first added document
// and the statistics after it. The request must name Ref of the scope.
// Errors: ErrOutdated, ErrFull, ErrDamaged, also for an ordinal that the scope
// never gave out.
func (x *Index) Apply(ctx context.Context, tx *kv.Tx, scope kv.Scope, c Change) (first uint32, s Statistics, err error) {
	a := application{tx: tx, sessions: make(map[uint64]int64)}
	if a.head, err = readHead(ctx, tx, scope, false); err != nil {
		return 0, Statistics{}, err
	}
	if err := a.ready(x.analysis); err != nil {
		return 0, Statistics{}, err
	}
	a.analysis = x.analysis // the first change says so
	first = a.stats.Last + 1
	if err := a.run(ctx, c); err != nil {
		return 0, Statistics{}, err
	}
	return first, a.stats, nil
}

// Add stages one encoded document, as Apply does, and returns its ordinal.
func (x *Index) Add(ctx context.Context, tx *kv.Tx, scope kv.Scope, encoded []byte, supersedes uint32) (uint32, Statistics, error) {
	return x.Apply(ctx, tx, scope, Change{Add: []Added{{encoded, supersedes}}})
}

// application is one change under way.
type application struct {
	head
	tx *kv.Tx
	// sessions is by how much the documents of each session change.
	sessions map[uint64]int64
}

func (a *application) run(ctx context.Context, c Change) error {
	if len(c.Add) == 0 && len(c.Kill) == 0 {
		return nil
	}
	if a.incarnation == 0 {
		a.incarnation = max(1, rand.Uint64())
	}
	known := a.stats.Last
	if err := a.kill(ctx, c.Kill); err != nil {
		return err
	}
	for _, added := range c.Add {
		if err := a.add(added, known); err != nil {
			return err
		}
	}
	return a.finish(ctx)
}

// add stages a document, which may name those up to known.
func (a *application) add(added Added, known uint32) error {
	e, err := decodeEntry(added.Encoded)
	if err != nil {
		return err
	}
	if a.stats.Last == maxOrdinal {
		return ErrFull
	}
	encoded := added.Encoded
	if added.Supersedes > 0 {
		// Of a field that comes twice the last one counts.
		encoded = wire.AppendUint(slices.Clip(encoded), entrySupersedes, uint64(added.Supersedes))
		e.supersedes = added.Supersedes
	}
	if e.supersedes > known || e.place > known {
		return fmt.Errorf("%w: documents %d and %d of %d", ErrDamaged, e.supersedes, e.place, known)
	}
	a.stats.Last++
	a.count(e.row, 1)
	a.stats.TailBytes += uint64(len(encoded))
	a.tx.Put(kv.Index, a.entry(a.stats.Last), encoded)
	return nil
}

// count takes a document into the statistics, or out of them with -1.
func (a *application) count(r row, by int64) {
	a.stats.Documents += uint64(by)
	a.stats.BodyWords += uint64(by * int64(r.body))
	a.stats.HeaderWords += uint64(by * int64(r.header))
	if r.session != 0 {
		a.stats.InSessions += uint64(by)
		a.sessions[r.session] += by
	}
}

// kill stages the death of documents.
func (a *application) kill(ctx context.Context, ordinals []uint32) error {
	dying, err := a.markDead(ctx, ordinals)
	if err != nil || len(dying) == 0 {
		return err
	}
	rows, err := a.rows(ctx, dying)
	if err != nil {
		return err
	}
	for i, e := range rows {
		a.count(e.row, -1)
		if o := dying[i]; o > a.stats.Packed {
			// What it said need not wait for packing to be gone.
			bare := entry{}.encode()
			a.stats.TailBytes -= min(a.stats.TailBytes, uint64(e.size-min(e.size, len(bare))))
			a.tx.Put(kv.Index, a.entry(o), bare)
		}
	}
	a.stats.Dead += uint64(len(dying))
	return nil
}

// markDead puts ordinals into the dead set and returns those that were not in
// it.
func (a *application) markDead(ctx context.Context, ordinals []uint32) ([]uint32, error) {
	chunks := make(map[uint32][]uint32)
	for _, o := range ordinals {
		if o == 0 || o > a.stats.Last {
			return nil, fmt.Errorf("%w: no document %d of %d to kill", ErrDamaged, o, a.stats.Last)
		}
		chunks[o/deadPerChunk] = append(chunks[o/deadPerChunk], o)
	}
	numbers := slices.Sorted(maps.Keys(chunks))
	keys := make([][]byte, len(numbers))
	for i, n := range numbers {
		keys[i] = a.deadSet(n)
	}
	values, err := a.tx.Get(ctx, kv.Index, keys...)
	if err != nil {
		return nil, err
	}
	var dying []uint32
	for i, n := range numbers {
		var set bitset
		set.reset(deadPerChunk)
		if err := decodeDead(values[i], set); err != nil {
			return nil, err
		}
		for _, o := range chunks[n] {
			if !set.has(o % deadPerChunk) {
				set.set(o % deadPerChunk)
				dying = append(dying, o)
			}
		}
		a.tx.Put(kv.Index, keys[i], encodeDead(set))
	}
	return dying, nil
}

// rows reads the rows of documents, from the tail or from the columns, as
// entries without terms.
func (a *application) rows(ctx context.Context, ordinals []uint32) ([]entry, error) {
	keys := make([][]byte, len(ordinals))
	for i, o := range ordinals {
		if o > a.stats.Packed {
			keys[i] = a.entry(o)
		} else {
			keys[i] = a.columns(o / rowsPerBlock)
		}
	}
	// Neighbours share a block, so it is read and taken apart once.
	unique := slices.Clone(keys)
	slices.SortFunc(unique, slices.Compare)
	unique = slices.CompactFunc(unique, slices.Equal)
	values, err := a.tx.Get(ctx, kv.Index, unique...)
	if err != nil {
		return nil, err
	}
	stored := make(map[string][]byte, len(unique))
	for i, key := range unique {
		stored[string(key)] = values[i]
	}
	found := make([]entry, len(ordinals))
	blocks := make(map[uint32][]row)
	for i, o := range ordinals {
		value := stored[string(keys[i])]
		if o > a.stats.Packed {
			found[i], err = decodeEntry(value)
		} else {
			found[i].row, err = rowIn(blocks, value, o)
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// rowIn returns the row of a packed document from its block, which it takes
// apart once.
func rowIn(blocks map[uint32][]row, block []byte, ordinal uint32) (row, error) {
	n := ordinal / rowsPerBlock
	if blocks[n] == nil {
		var err error
		if blocks[n], err = decodeRows(block, n*rowsPerBlock); err != nil {
			return row{}, err
		}
	}
	if int(ordinal%rowsPerBlock) >= len(blocks[n]) {
		return row{}, fmt.Errorf("%w: no columns for document %d", ErrDamaged, ordinal)
	}
	return blocks[n][ordinal%rowsPerBlock], nil
}

// finish writes the counts of sessions and the head.
func (a *application) finish(ctx context.Context) error {
	digests := slices.Sorted(maps.Keys(a.sessions))
	keys := make([][]byte, len(digests))
	for i, digest := range digests {
		keys[i] = a.session(digest)
	}
	var values [][]byte
	if len(keys) > 0 {
		var err error
		if values, err = a.tx.Get(ctx, kv.Index, keys...); err != nil {
			return err
		}
	}
	for i, digest := range digests {
		before, err := decodeSession(values[i])
		if err != nil {
			return err
		}
		after := int64(before) + a.sessions[digest]
		switch {
		case after < 0:
			return fmt.Errorf("%w: %d documents in a session", ErrDamaged, after)
		case after == 0:
			a.tx.Delete(kv.Index, keys[i])
		default:
			a.tx.Put(kv.Index, keys[i], encodeSession(uint64(after)))
		}
		if before == 0 && after > 0 {
			a.stats.Sessions++
		}
		if before > 0 && after == 0 {
			a.stats.Sessions--
		}
	}
	a.tx.Put(kv.Index, headKey(a.scope), a.encode())
	return nil
}

// encodeSession packs how many living documents a session has.
func encodeSession(documents uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, layout), documents)
}

func decodeSession(b []byte) (uint64, error) {
	if b == nil {
		return 0, nil
	}
	p := parser{bytes: b}
	if err := p.format(); err != nil {
		return 0, fmt.Errorf("%w: count of a session", err)
	}
	documents := p.uint()
	if p.bad || !p.done() || documents == 0 || documents > 1<<32 {
		return 0, fmt.Errorf("%w: count of a session", ErrDamaged)
	}
	return documents, nil
}
