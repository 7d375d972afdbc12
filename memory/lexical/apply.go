package lexical

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/bitset"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
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
	// Delete are the ordinals of documents that are no longer, from before this
	// change. Deleting one again changes nothing.
	Delete []uint32
}

// Apply stages a change and returns the ordinal of the first added document
// and the statistics after it. The request must name Ref of the scope.
// Errors: ErrOutdated, ErrFull, ErrDamaged, also for an ordinal that the scope
// never gave out.
func (x *Index) Apply(ctx context.Context, tx *kv.Tx, scope kv.Scope, c Change) (first uint32, s segment.Statistics, err error) {
	a := application{tx: tx, sessions: make(map[uint64]int64)}
	if a.scopeHead, err = readHead(ctx, tx, scope, false); err != nil {
		return 0, segment.Statistics{}, err
	}
	if err := a.ready(x.analysis); err != nil {
		return 0, segment.Statistics{}, err
	}
	a.Analysis = x.analysis // the first change says so
	first = a.Stats.Last + 1
	if err := a.run(ctx, c); err != nil {
		return 0, segment.Statistics{}, err
	}
	return first, a.Stats, nil
}

// Add stages one encoded document, as Apply does, and returns its ordinal.
func (x *Index) Add(ctx context.Context, tx *kv.Tx, scope kv.Scope, encoded []byte, supersedes uint32) (uint32, segment.Statistics, error) {
	return x.Apply(ctx, tx, scope, Change{Add: []Added{{encoded, supersedes}}})
}

// application is one change under way.
type application struct {
	scopeHead
	tx *kv.Tx
	// sessions is by how much the documents of each session change.
	sessions map[uint64]int64
}

func (a *application) run(ctx context.Context, c Change) error {
	if len(c.Add) == 0 && len(c.Delete) == 0 {
		return nil
	}
	if a.Incarnation == 0 {
		a.Incarnation = max(1, rand.Uint64())
	}
	known := a.Stats.Last
	if err := a.delete(ctx, c.Delete); err != nil {
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
	e, err := segment.DecodeEntry(added.Encoded)
	if err != nil {
		return err
	}
	if a.Stats.Last == maxOrdinal {
		return ErrFull
	}
	encoded := added.Encoded
	if added.Supersedes > 0 {
		encoded = segment.WithSupersedes(encoded, added.Supersedes)
		e.Supersedes = added.Supersedes
	}
	if e.Supersedes > known || e.Place > known {
		return fmt.Errorf("%w: documents %d and %d of %d", segment.ErrDamaged, e.Supersedes, e.Place, known)
	}
	a.Stats.Last++
	a.count(e.Row, 1)
	a.Stats.TailBytes += uint64(len(encoded))
	a.tx.Put(kv.Index, a.EntryKey(a.Stats.Last), encoded)
	return nil
}

// count takes a document into the statistics, or out of them with -1.
func (a *application) count(r segment.Row, by int64) {
	a.Stats.Documents += uint64(by)
	a.Stats.BodyWords += uint64(by * int64(r.Body))
	a.Stats.HeaderWords += uint64(by * int64(r.Header))
	if r.Session != 0 {
		a.Stats.InSessions += uint64(by)
		a.sessions[r.Session] += by
	}
}

// delete stages the death of documents.
func (a *application) delete(ctx context.Context, ordinals []uint32) error {
	dying, err := a.markDeleted(ctx, ordinals)
	if err != nil || len(dying) == 0 {
		return err
	}
	rows, err := a.rows(ctx, dying)
	if err != nil {
		return err
	}
	for i, e := range rows {
		a.count(e.Row, -1)
		if o := dying[i]; o > a.Stats.Packed {
			// What it said need not wait for packing to be gone.
			bare := segment.Entry{}.Encode()
			a.Stats.TailBytes -= min(a.Stats.TailBytes, uint64(e.Size-min(e.Size, len(bare))))
			a.tx.Put(kv.Index, a.EntryKey(o), bare)
		}
	}
	a.Stats.Deleted += uint64(len(dying))
	return nil
}

// markDeleted puts ordinals into the deleted set and returns the ones that are new there.
func (a *application) markDeleted(ctx context.Context, ordinals []uint32) ([]uint32, error) {
	chunks := make(map[uint32][]uint32)
	for _, o := range ordinals {
		if o == 0 || o > a.Stats.Last {
			return nil, fmt.Errorf("%w: no document %d of %d to delete", segment.ErrDamaged, o, a.Stats.Last)
		}
		chunks[o/segment.DeletedPerChunk] = append(chunks[o/segment.DeletedPerChunk], o)
	}
	numbers := slices.Sorted(maps.Keys(chunks))
	keys := make([][]byte, len(numbers))
	for i, n := range numbers {
		keys[i] = a.DeletedKey(n)
	}
	values, err := a.tx.Get(ctx, kv.Index, keys...)
	if err != nil {
		return nil, err
	}
	var dying []uint32
	for i, n := range numbers {
		var set bitset.Set
		set.Reset(segment.DeletedPerChunk)
		if err := segment.DecodeDeleted(values[i], set); err != nil {
			return nil, err
		}
		for _, o := range chunks[n] {
			if !set.Has(o % segment.DeletedPerChunk) {
				set.Add(o % segment.DeletedPerChunk)
				dying = append(dying, o)
			}
		}
		a.tx.Put(kv.Index, keys[i], segment.EncodeDeleted(set))
	}
	return dying, nil
}

// rows reads the rows of documents, from the tail or from the columns, as
// entries without terms.
func (a *application) rows(ctx context.Context, ordinals []uint32) ([]segment.Entry, error) {
	keys := make([][]byte, len(ordinals))
	for i, o := range ordinals {
		if o > a.Stats.Packed {
			keys[i] = a.EntryKey(o)
		} else {
			keys[i] = a.ColumnsKey(o / segment.RowsPerBlock)
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
	found := make([]segment.Entry, len(ordinals))
	blocks := make(map[uint32][]segment.Row)
	for i, o := range ordinals {
		value := stored[string(keys[i])]
		if o > a.Stats.Packed {
			found[i], err = segment.DecodeEntry(value)
		} else {
			found[i].Row, err = rowIn(blocks, value, o)
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// rowIn returns the row of a packed document from its block, which it takes
// apart once.
func rowIn(blocks map[uint32][]segment.Row, block []byte, ordinal uint32) (segment.Row, error) {
	n := ordinal / segment.RowsPerBlock
	if blocks[n] == nil {
		var err error
		if blocks[n], err = segment.DecodeRows(block, n*segment.RowsPerBlock); err != nil {
			return segment.Row{}, err
		}
	}
	if int(ordinal%segment.RowsPerBlock) >= len(blocks[n]) {
		return segment.Row{}, fmt.Errorf("%w: no columns for document %d", segment.ErrDamaged, ordinal)
	}
	return blocks[n][ordinal%segment.RowsPerBlock], nil
}

// finish writes the counts of sessions and the head.
func (a *application) finish(ctx context.Context) error {
	digests := slices.Sorted(maps.Keys(a.sessions))
	keys := make([][]byte, len(digests))
	for i, digest := range digests {
		keys[i] = a.SessionKey(digest)
	}
	var values [][]byte
	if len(keys) > 0 {
		var err error
		if values, err = a.tx.Get(ctx, kv.Index, keys...); err != nil {
			return err
		}
	}
	for i, digest := range digests {
		before, err := segment.DecodeCount(values[i])
		if err != nil {
			return err
		}
		after := int64(before) + a.sessions[digest]
		switch {
		case after < 0:
			return fmt.Errorf("%w: %d documents in a session", segment.ErrDamaged, after)
		case after == 0:
			a.tx.Delete(kv.Index, keys[i])
		default:
			a.tx.Put(kv.Index, keys[i], segment.EncodeCount(uint64(after)))
		}
		if before == 0 && after > 0 {
			a.Stats.Sessions++
		}
		if before > 0 && after == 0 {
			a.Stats.Sessions--
		}
	}
	a.tx.Put(kv.Index, segment.HeadKey(a.Scope), a.Encode())
	return nil
}
