package memory

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/filter"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
	"github.com/loom-bridge/loom-bridge/memory/past"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// Limits and defaults of a listing.
const (
	// DefaultPageSize is the records of a page whose caller named no number.
	DefaultPageSize = 50
	// MaxPageSize bounds the records of one page.
	MaxPageSize = 500
	// maxPageBytes ends a page early: what is read and sent at once.
	maxPageBytes = 1 << 20
	// pageRead is how many records of a page are read at once.
	pageRead = 64
)

// Listing asks for the records of a scope in the order in which they came. A
// record that was changed keeps its place.
type Listing struct {
	// Filter narrows the listing, as in Query.
	Filter string
	// PageSize is how many records at most, up to MaxPageSize. Default
	// DefaultPageSize. A page ends earlier where its records are long.
	PageSize int
	// PageToken is the NextPageToken of the page before, with the same filter,
	// order and tiers. Empty: the first page.
	PageToken string
	// NewestFirst reverses the order.
	NewestFirst bool
	// Tiers are the memory tiers to list, 1 to 4. Default LongTerm alone.
	Tiers []int
	// WithVectors completes the records with their vectors.
	WithVectors bool
	// Peek leaves the life of records with a sliding span as it is, though they are read.
	Peek bool
	// Moment, unless it is now, asks for what counted then. A record that was replaced by
	// then is listed, unless the moment has a ValidAt.
	Moment past.Moment
}

// Page is a part of a listing.
type Page struct {
	// Records are in the order asked for.
	Records []record.Record
	// NextPageToken gets the next page; empty when there is none.
	NextPageToken string
}

// List returns a page of a scope's records, including superseded and archived ones but not
// expired ones. A page is of one moment; records saved during paging come on a later page.
//
// Errors: *invalid.Error, also for a page token that belongs to another listing;
// *filter.Error.
func (s *Store) List(ctx context.Context, scope kv.Scope, l Listing) (Page, error) {
	listing, err := s.checkListing(scope, l)
	if err != nil {
		return Page{}, err
	}
	page, err := s.page(ctx, scope, listing)
	if err != nil {
		return Page{}, wrap("memory: list", err)
	}
	if !l.Peek && l.Moment.IsNow() {
		s.touched(scope, page.Records...)
	}
	return page, nil
}

// page reads a page, and prolongs nothing.
func (s *Store) page(ctx context.Context, scope kv.Scope, l listing) (page Page, err error) {
	for {
		err = s.currentView(ctx, scope, func(view kv.Snapshot) (err error) {
			page, err = s.list(ctx, view, l)
			return err
		})
		var replaced *replacedError
		if !errors.As(err, &replaced) {
			return page, err
		}
		s.restore(ctx, scope)
		l.restored = true
	}
}

func (s *Store) checkListing(scope kv.Scope, l Listing) (listing, error) {
	if err := s.begin(scope); err != nil {
		return listing{}, err
	}
	tiers, err := tierBits(l.Tiers)
	if err != nil {
		return listing{}, err
	}
	if l.PageSize < 0 || l.PageSize > MaxPageSize {
		return listing{}, invalid.Field(ErrInvalid, "page_size", "is not from 1 to %d", MaxPageSize)
	}
	l.PageSize = cmp.Or(l.PageSize, DefaultPageSize)
	if len(l.Filter) > filter.MaxBytes {
		return listing{}, record.TooLong("filter", len(l.Filter), filter.MaxBytes)
	}
	filter, err := filter.Parse(l.Filter)
	if err != nil {
		return listing{}, err
	}
	after, err := l.position(scope)
	if err != nil {
		return listing{}, err
	}
	return listing{Listing: l, scope: scope, filter: filter, tiers: tiers, after: after}, nil
}

// listing is a Listing that was checked.
type listing struct {
	Listing
	scope  kv.Scope
	filter filter.Expression
	tiers  uint8
	after  uint32 // place of the last record of the page before; 0: none
	// restored: what expired records had replaced was restored. restores, unless nil, is set
	// to the moment at which the next does expire.
	restored bool
	restores *int64
}

// tierBits checks tiers and returns them as the index takes them; none stands for its
// default.
func tierBits(tiers []int) (bits uint8, err error) {
	for _, tier := range tiers {
		if tier < 1 || tier > record.LongTerm {
			return 0, invalid.Field(ErrInvalid, "tiers", "holds %d, which is not from 1 to %d", tier, record.LongTerm)
		}
		bits |= selection.TierBit(tier)
	}
	return bits, nil
}

func (s *Store) list(ctx context.Context, view kv.Reader, l listing) (Page, error) {
	reader, err := s.index.Open(ctx, view, l.scope)
	if err != nil {
		return Page{}, err
	}
	conditions, err := l.filter.Bind(ctx, view, l.scope)
	if err != nil {
		return Page{}, err
	}
	options := selection.Options{Now: s.now().UnixMicro(), Tiers: l.tiers, Archived: true, Superseded: true, Quarantined: true}
	var all []placed
	if !l.Moment.IsNow() {
		then, found, err := s.then(ctx, view, l.scope, reader, l.Moment, true)
		if err != nil {
			return Page{}, err
		}
		if then != nil {
			defer then.Close()
			if all, err = l.chooseThen(ctx, then, options); err != nil {
				return Page{}, err
			}
		}
		conditions = selection.And(conditions, l.Moment.Condition(), selection.Not(selection.Only(found.Except...)))
	}
	selection, err := selection.Select(ctx, reader, conditions, options)
	if err != nil {
		return Page{}, err
	}
	if at := selection.Restores(); at <= options.Now && !l.restored && l.Moment.IsNow() {
		return Page{}, &replacedError{l.scope}
	} else if l.restores != nil {
		*l.restores = at
	}
	for ordinal := range selection.All() {
		all = append(all, placed{place: reader.Place(ordinal), ordinal: ordinal})
	}
	places, more := l.choose(all)
	page, read, err := s.readPage(ctx, view, l, reader, places)
	if err != nil {
		return Page{}, err
	}
	if more || read < len(places) {
		page.NextPageToken = l.token(places[read-1].place)
	}
	if l.WithVectors {
		err = s.embeddings.Complete(ctx, view, l.scope, pointers(page.Records)...)
	}
	return page, err
}

// chooseThen returns what the filter lets through of earlier versions.
func (l listing) chooseThen(ctx context.Context, then *past.Index, options selection.Options) ([]placed, error) {
	reader, err := then.Open(ctx)
	if err != nil {
		return nil, err
	}
	conditions, err := l.filter.Bind(ctx, then.View(), l.scope)
	if err != nil {
		return nil, err
	}
	selected, err := selection.Select(ctx, reader, selection.And(conditions, l.Moment.Condition()), options)
	if err != nil {
		return nil, err
	}
	var all []placed
	for ordinal := range selected.All() {
		version := then.Version(ordinal)
		all = append(all, placed{place: version.Place, version: &version.Record})
	}
	return all, nil
}

func pointers(records []record.Record) []*record.Record {
	all := make([]*record.Record, len(records))
	for i := range records {
		all[i] = &records[i]
	}
	return all
}

// placed is a record of a listing: a document, or what it was.
type placed struct {
	place, ordinal uint32
	version        *record.Record
}

// choose returns the records of the page, in order, and whether others follow.
func (l listing) choose(all []placed) (page []placed, more bool) {
	page = slices.DeleteFunc(all, func(p placed) bool { return !l.follows(p.place) })
	slices.SortFunc(page, func(a, b placed) int {
		if l.NewestFirst {
			a, b = b, a
		}
		return int(int64(a.place) - int64(b.place))
	})
	if len(page) > l.PageSize {
		return page[:l.PageSize], true
	}
	return page, false
}

// follows reports whether a place lies behind the page before.
func (l listing) follows(place uint32) bool {
	switch {
	case l.after == 0:
		return true
	case l.NewestFirst:
		return place < l.after
	}
	return place > l.after
}

// readPage reads the records of a page until it is large enough, and returns
// how many those are.
func (s *Store) readPage(ctx context.Context, view kv.Reader, l listing, reader *lexical.Reader, places []placed) (page Page, read int, err error) {
	size := 0
	for chunk := range slices.Chunk(places, pageRead) {
		records, err := readPlaced(ctx, view, l.scope, reader, chunk)
		if err != nil {
			return Page{}, 0, err
		}
		for _, r := range records {
			l.Moment.Show(&r)
			if size += len(r.Text) + len(r.Metadata); size > maxPageBytes && read > 0 {
				return page, read, nil
			}
			page.Records = append(page.Records, r)
			read++
		}
	}
	return page, read, nil
}

// readPlaced reads the records of documents.
func readPlaced(ctx context.Context, view kv.Reader, scope kv.Scope, reader *lexical.Reader, chunk []placed) ([]record.Record, error) {
	records := make([]record.Record, len(chunk))
	var ordinals []uint32
	var to []*record.Record
	for i, p := range chunk {
		if p.version != nil {
			records[i] = *p.version
			continue
		}
		ordinals, to = append(ordinals, p.ordinal), append(to, &records[i])
	}
	ids, err := reader.IDs(ctx, ordinals)
	if err != nil {
		return nil, err
	}
	err = record.Named(ctx, view, scope, ids, func(i int, r *record.Record, _ int) error {
		*to[i] = *r
		return nil
	})
	return records, err
}

// token returns the page token behind a place: what it belongs to, then the place.
func (l listing) token(place uint32) string {
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(l.digest(l.scope), place))
}

// position returns the place that a page token names.
func (l Listing) position(scope kv.Scope) (place uint32, err error) {
	if l.PageToken == "" {
		return 0, nil
	}
	foreign := invalid.Field(ErrInvalid, "page_token", "is not of this listing")
	b, err := base64.RawURLEncoding.DecodeString(l.PageToken)
	at, own := bytes.CutPrefix(b, l.digest(scope))
	if err != nil || !own || len(at) != 4 {
		return 0, foreign
	}
	return binary.BigEndian.Uint32(at), nil
}

// digest stands for what has to stay the same from page to page.
func (l Listing) digest(scope kv.Scope) []byte {
	bits, _ := tierBits(l.Tiers) // checked before
	b := wire.AppendText(nil, 1, scope.AppendPrefix(nil))
	b = wire.AppendText(b, 2, l.Filter)
	if l.NewestFirst {
		b = wire.AppendUint(b, 3, 1)
	}
	b = wire.AppendUint(b, 4, uint64(bits))
	for i, at := range []time.Time{l.Moment.AsOf, l.Moment.ValidAt} {
		if !at.IsZero() {
			b = wire.AppendInt(b, 5+i, at.UnixMicro())
		}
	}
	sum := sha256.Sum256(b)
	const enough = 12 // bytes: it guards against mistakes, not against malice
	return sum[:enough]
}
