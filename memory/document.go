package memory

import (
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
	"github.com/loom-bridge/loom-bridge/memory/past"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// maxKeptDocument is the size in bytes of the longest document whose memory is
// kept for the next one; few records are longer.
const maxKeptDocument = 16 << 10

// encodeDocument returns what the index is to know of a record, as it stores
// it.
func (s *Store) encodeDocument(r record.Record, metadata []string) []byte {
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
func (s *Store) describe(d *segment.Document, r record.Record, metadata []string) {
	d.AddBody(s.analyzer.Terms(r.Text))
	if header := headerOf(r); header != "" {
		d.AddHeader(s.analyzer.Terms(header))
	}
	for _, tag := range r.Tags {
		d.AddValue(segment.Tag, tag)
	}
	d.AddValue(segment.Key, r.Key)
	d.AddValue(segment.Kind, r.Kind)
	d.AddValue(segment.Session, r.SessionID)
	d.AddValue(segment.Author, r.Author)
	d.AddValue(segment.Origin, r.Origin.String())
	if r.Review != 0 {
		d.AddValue(segment.Review, r.Review.String())
	}
	if !r.ValidUntil.IsZero() {
		d.AddValue(segment.ValidUntil, past.UntilValue(r.ValidUntil))
	}
	for _, value := range metadata {
		d.AddValue(segment.Metadata, value)
	}
	if !r.ExpireTime.IsZero() {
		d.Expire(r.ExpireTime.UnixMicro())
	}
	d.SetFacts(factsOf(r))
}

// headerOf is what is searched beside the text: the author and the date of the
// event.
func headerOf(r record.Record) string {
	if r.EventTime.IsZero() {
		return r.Author
	}
	return r.Author + " " + r.EventTime.Format("2 January 2006")
}

// factsOf are what the index knows of a record beside its terms.
func factsOf(r record.Record) segment.Facts {
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
func supersededAt(r record.Record) int64 {
	if r.SupersededTime.IsZero() {
		return max(1, r.CreateTime.UnixMicro())
	}
	return max(1, r.SupersededTime.UnixMicro())
}

func flagsOf(r record.Record) segment.Flags {
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

// moveMentions keeps the names of blobs in a record, which is stored as value, in step
// with it.
func (e *edit) moveMentions(w write, value []byte) {
	names := mention.In(value)
	if w.before != nil {
		before := mention.In(record.Encode(*w.before))
		mention.Drop(e.tx, recordsRef(e.scope), w.record.ID, without(before, names))
		names = without(names, before)
	}
	mention.Stage(e.tx, recordsRef(e.scope), w.record.ID, names)
}

// without returns the names that are not among others, which are in order.
func without(names, others []mention.Name) []mention.Name {
	return slices.DeleteFunc(slices.Clone(names), func(n mention.Name) bool {
		_, found := slices.BinarySearch(others, n)
		return found
	})
}

// Mentions are the sources of the mentions in records.
func Mentions() []mention.Source {
	id := func(rest []byte) (string, error) { return string(rest), nil }
	return []mention.Source{mention.Texts(kv.Records, record.Tag, mention.In, id)}
}
