package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
	"github.com/loom-bridge/loom-bridge/memory/past"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// rebuildReads is how many records a rebuilding reads at once.
const rebuildReads = 256

// current runs do. If that finds an index which an older version wrote, or which has
// the terms of another analysis, the index is rebuilt from the records, which takes
// seconds for a large scope, and do is run again: it must be repeatable. Other callers
// wait meanwhile.
func (s *Store) current(ctx context.Context, scope kv.Scope, do func() error) error {
	for {
		err := do()
		if !errors.Is(err, lexical.ErrOutdated) {
			return err
		}
		if err := s.rebuild(ctx, scope); err != nil {
			return err
		}
	}
}

// rebuild rebuilds the index of a scope, or waits for the caller that does.
func (s *Store) rebuild(ctx context.Context, scope kv.Scope) error {
	done, release := s.packer.Claim(scope)
	if release == nil {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer release()
	b := &rebuilding{store: s, scope: scope}
	source := lexical.Feed{
		Documents: b.documents,
		Refs:      append(s.embeddings.Blind(scope), recordsRef(scope), expiryList.Ref(scope)),
		Stage:     b.stage,
	}
	if err := s.index.Rebuild(ctx, s.engine, s.writer, scope, source); err != nil {
		return fmt.Errorf("rebuild the index of %s: %w", scope, err)
	}
	s.packer.Merge(scope)
	return nil
}

// rebuilding gives the records of a scope to the index.
type rebuilding struct {
	store *Store
	scope kv.Scope
	ids   map[uint32]string // of every record, by ordinal
}

// documents yields what the index is to know of the records behind an
// ordinal, in order.
func (b *rebuilding) documents(ctx context.Context, view kv.Reader, after uint32) iter.Seq2[lexical.Numbered, error] {
	return func(yield func(lexical.Numbered, error) bool) {
		order, err := b.order(ctx, view)
		if err != nil {
			yield(lexical.Numbered{}, err)
			return
		}
		from, _ := slices.BinarySearch(order, after+1)
		for batch := range slices.Chunk(order[from:], rebuildReads) {
			all, err := b.read(ctx, view, batch)
			if err != nil {
				yield(lexical.Numbered{}, err)
				return
			}
			for _, r := range all {
				d, err := b.store.document(ctx, view, b.scope, r)
				if !yield(d, err) || err != nil {
					return
				}
			}
		}
	}
}

// order returns the ordinals of all records and learns their ids.
func (b *rebuilding) order(ctx context.Context, view kv.Reader) ([]uint32, error) {
	b.ids = make(map[uint32]string)
	var order []uint32
	for r, err := range record.All(ctx, view, b.scope) {
		if err != nil {
			return nil, err
		}
		if id, ok := b.ids[r.Document.Ordinal]; ok {
			return nil, fmt.Errorf("%w: records %q and %q have the same ordinal", ErrDamaged, id, r.ID)
		}
		b.ids[r.Document.Ordinal] = r.ID
		order = append(order, r.Document.Ordinal)
	}
	slices.Sort(order)
	return order, nil
}

// read returns records by their ordinals, in that order.
func (b *rebuilding) read(ctx context.Context, from kv.Getter, ordinals []uint32) ([]record.Record, error) {
	ids := make([]string, len(ordinals))
	for i, o := range ordinals {
		ids[i] = b.ids[o]
	}
	all := make([]record.Record, len(ordinals))
	err := record.Named(ctx, from, b.scope, ids, func(i int, r *record.Record, _ int) error {
		all[i] = *r
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(x, y record.Record) int { return cmp.Compare(x.Document.Ordinal, y.Document.Ordinal) })
	return all, nil
}

// stage writes what older versions did not, with the documents of the records.
func (b *rebuilding) stage(ctx context.Context, tx *kv.Tx, ordinals []uint32) error {
	for batch := range slices.Chunk(ordinals, rebuildReads) {
		all, err := b.read(ctx, tx, batch)
		if err != nil {
			return err
		}
		for _, r := range all {
			stageExpiry(tx, b.scope, r)
			if key := sameKey(b.scope, r); key != nil {
				tx.Put(kv.Records, key, nil)
			}
			if len(r.Embedding) == 0 {
				continue
			}
			if err := b.store.embeddings.Stage(ctx, tx, b.scope, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// document returns what the index should know of a stored record.
func (s *Store) document(ctx context.Context, view kv.Getter, scope kv.Scope, r record.Record) (lexical.Numbered, error) {
	values, err := record.MetadataTerms(r.Metadata)
	if err != nil {
		return lexical.Numbered{}, fmt.Errorf("%w: record %q: %w", ErrDamaged, r.ID, err)
	}
	d := segment.NewDocument(r.ID)
	s.describe(d, &r, values)
	if r.Supersedes != "" {
		old, ok, err := record.Read(ctx, view, scope, r.Supersedes)
		if err != nil {
			return lexical.Numbered{}, err
		}
		if ok {
			d.Supersede(names(&r, old))
		}
	}
	return lexical.Numbered{Ordinal: r.Document.Ordinal, Document: d}, nil
}

// renew makes the indexes anew that an older version wrote, and with them what
// the sweep finds records by, so that records of unused scopes expire as well.
func (s *Store) renew(ctx context.Context) {
	for scope, err := range kv.Scopes(ctx, s.engine, kv.Records) {
		if err == nil {
			err = s.current(ctx, scope, func() error {
				_, _, err := s.index.Statistics(ctx, s.engine, scope)
				return err
			})
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.logger.ErrorContext(ctx, "memory: index not renewed", "scope", scope.String(), "error", err)
		}
	}
}

// Reembed makes vectors in the embedder's space for all records of a scope that
// have none there, while memory goes on serving: until a record has its new
// vector, it is found by words and, with a previous embedder, by its old one. At
// the end the vectors in other spaces of records that have a new one are
// deleted. It calls progress, which may be nil, on its own goroutine, after each
// part and once at the end; an error of progress stops it. What is done stays done
// when it is stopped: another call goes on from there. While another process makes
// vectors of the scope, it waits.
//
// Errors: ErrNoEmbedder, ErrEmbedder.
func (s *Store) Reembed(ctx context.Context, scope kv.Scope, progress func(space string, done, total int64) error) error {
	if err := s.begin(scope); err != nil {
		return err
	}
	return wrap("memory: reembed", s.embeddings.Reembed(ctx, scope, progress))
}

// maxKeptDocument is the size in bytes of the longest document whose memory is
// kept for the next one; few records are longer.
const maxKeptDocument = 16 << 10

// encodeDocument returns what the index is to know of a record, as it stores
// it.
func (s *Store) encodeDocument(r *record.Record, metadata []string) []byte {
	d, _ := s.spare.Get().(*segment.Document)
	if d == nil {
		d = segment.NewDocument(r.ID)
	}
	d.Reset(r.ID)
	s.describe(d, r, metadata)
	encoded := d.Encode()
	if len(encoded) <= maxKeptDocument {
		s.spare.Put(d)
	}
	return encoded
}

// describe adds to a document what the index is to know of a record.
func (s *Store) describe(d *segment.Document, r *record.Record, metadata []string) {
	d.AddBody(s.analyzer.Indexed(r.Text, d.BodyAside))
	if header := headerOf(r); header != "" {
		d.AddHeader(s.analyzer.Indexed(header, d.HeaderAside))
	}
	for _, tag := range r.Tags {
		d.AddValue(segment.Tag, tag)
	}
	d.AddValue(segment.Key, r.Key)
	d.AddValue(segment.Kind, r.Kind)
	d.AddValue(segment.Session, r.SessionID)
	d.AddValue(segment.Author, r.Author)
	d.AddValue(segment.Saver, r.SavedBy)
	d.AddValue(segment.Origin, r.Origin.String())
	if r.Review != 0 {
		d.AddValue(segment.Review, r.Review.String())
	}
	if !r.ValidUntil.IsZero() {
		d.AddValue(segment.ValidUntil, past.UntilValue(r.ValidUntil))
	}
	d.AddValue(segment.Import, r.ImportID)
	for _, value := range metadata {
		d.AddValue(segment.Metadata, value)
	}
	if !r.ExpireTime.IsZero() {
		d.Expire(r.ExpireTime.UnixMicro())
	}
	d.SetFacts(factsOf(r))
}

// headerOf returns the searched fields other than the text: the author and the date of the
// event.
func headerOf(r *record.Record) string {
	if r.EventTime.IsZero() {
		return r.Author
	}
	return r.Author + " " + r.EventTime.Format("2 January 2006")
}

// factsOf returns the facts about a record that the index keeps in addition to its terms.
func factsOf(r *record.Record) segment.Facts {
	f := segment.Facts{
		Session: r.SessionID, Author: r.Author, Create: r.CreateTime.UnixMicro(),
		Importance: r.Importance, Tier: uint8(r.Tier), Flags: flagsOf(r), Place: r.Document.Place,
	}
	if !r.EventTime.IsZero() {
		f.Event = r.EventTime.UnixMicro()
	}
	if f.Event == 0 && !r.EventTime.IsZero() {
		f.Event = 1 // zero is unset there
	}
	if r.Document.Marked {
		f.Superseded = supersededAt(r)
	}
	return f
}

// supersededAt is when the record was replaced. Of one that an older version of
// the store replaced nothing later is known than that it was there.
func supersededAt(r *record.Record) int64 {
	if r.SupersededTime.IsZero() {
		return max(1, r.CreateTime.UnixMicro())
	}
	return max(1, r.SupersededTime.UnixMicro())
}

func flagsOf(r *record.Record) segment.Flags {
	f := question.Tells(r.Text)
	if r.Pinned {
		f |= segment.FlagPinned
	}
	if r.Archived {
		f |= segment.FlagArchived
	}
	if r.Review.Hides() {
		f |= segment.FlagQuarantined
	}
	return f
}

// without returns the names that are not among others, which are in order.
func without(names, others []mention.Name) []mention.Name {
	return slices.DeleteFunc(slices.Clone(names), func(n mention.Name) bool {
		_, found := slices.BinarySearch(others, n)
		return found
	})
}

// Mentions are the sources of the mentions in records.
func Mentions() []mention.Sort {
	id := func(rest []byte) (string, error) { return string(rest), nil }
	return []mention.Sort{mention.Texts(kv.Records, record.Tag, mention.In, id)}
}
