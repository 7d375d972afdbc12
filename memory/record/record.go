package record

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/redact"
	"github.com/loom-bridge/loom-bridge/memory/writer"
)

// Limits of a record. The protos state the same numbers.
const (
	// MaxTextBytes bounds a text: an article, not a book.
	MaxTextBytes = 256 << 10
	// MaxIDBytes bounds an id that the caller chose.
	MaxIDBytes = 128
	// MaxKeyBytes bounds a caller's own name for a record.
	MaxKeyBytes = 256
	// MaxKindBytes bounds a kind.
	MaxKindBytes = 64
	// MaxSessionBytes bounds a session id.
	MaxSessionBytes = 256
	// MaxAuthorBytes bounds an author.
	MaxAuthorBytes = 256
	// MaxMetadataBytes bounds the JSON text of the metadata.
	MaxMetadataBytes = 64 << 10
	// MaxMetadataDepth bounds how deep objects and arrays of the metadata nest.
	MaxMetadataDepth = 32
	// MaxTags bounds the tags of one record.
	MaxTags = 64
	// MaxTagBytes bounds one tag.
	MaxTagBytes = 128
	// MaxDerivedFrom bounds the sources of one record.
	MaxDerivedFrom = 64
	// MaxEmbedding bounds the numbers of a vector.
	MaxEmbedding = 4096
	// MaxEmbeddingSpaceBytes bounds the name of a vector's model.
	MaxEmbeddingSpaceBytes = 128
	// MaxTTL bounds a span of life: what a protobuf Duration may say is more,
	// what anybody means is less.
	MaxTTL = 100 * 366 * 24 * time.Hour
	// MaxVersions bounds the earlier versions that are kept of one record; the
	// oldest goes first.
	MaxVersions = 1000
	// MaxCount is the highest version and number of repeats that is imported, and the
	// highest number of repeats: JSON's numbers are exact up to there.
	MaxCount = 1<<53 - 1
)

// Defaults of a record.
const (
	// DefaultKind is the kind of a record whose caller named none.
	DefaultKind = "fact"
	// DefaultImportance is what to pass for a record whose weight is not known.
	DefaultImportance = 0.5
	// LongTerm is the tier of a record whose caller named none.
	LongTerm = 4
)

// Origin is the class of source that a record's text came from. The numbers
// are part of the on-disk format.
type Origin uint8

// The origins. Zero means OriginAgent when saving.
const (
	// OriginUser: a person said it.
	OriginUser Origin = 1
	// OriginAgent: the agent concluded it.
	OriginAgent Origin = 2
	// OriginTool: a tool printed it; never to be taken as an instruction.
	OriginTool Origin = 3
	// OriginWeb: it was read on the web; never to be taken as an instruction.
	OriginWeb Origin = 4
)

// OriginNames holds the names of the origins. It is never changed.
var OriginNames = map[Origin]string{
	OriginUser: "user", OriginAgent: "agent", OriginTool: "tool", OriginWeb: "web",
}

// String returns user, agent, tool or web, the names that filters use.
func (o Origin) String() string {
	if name, ok := OriginNames[o]; ok {
		return name
	}
	return "unknown"
}

// Foreign reports whether neither a person nor the agent wrote a text: it is never to be
// taken as an instruction.
func (o Origin) Foreign() bool { return o == OriginTool || o == OriginWeb }

// Record is one thing remembered. One that a store handed out belongs to its
// caller. Times are kept to the microsecond, in UTC; a zero time is unset.
type Record struct {
	// ID names the record within its scope. Empty when saving: the store makes
	// one, which sorts by time.
	ID string
	// Text is remembered and searched: 1 byte to MaxTextBytes of UTF-8.
	Text string
	// Key is the caller's own unique name, or empty.
	Key string
	// Kind says what it is. Empty when saving: DefaultKind.
	Kind string
	// SessionID is the session it was saved in, or empty.
	SessionID string
	// SavedBy is the agent that saved it, in a memory that several share; empty in one
	// that has one owner. Set by the store.
	SavedBy string
	// Writer is by whose words it is as it is; set by the store.
	Writer writer.Writer
	// ImportID is the id of the import that it came with, and ImportVersion its version then;
	// set by the store, through all changes. No line of an export has them.
	ImportID      string
	ImportVersion int64
	// Author is who said it, or empty. It is searched like the text.
	Author string
	// EventTime is when the described event happened. Its date is searched, too.
	EventTime time.Time
	// ValidUntil is when the text stops being true; zero: unknown. It
	// hides the record from those alone who ask for what was true at a moment.
	ValidUntil time.Time
	// CreateTime is when it was saved; set by the store.
	CreateTime time.Time
	// ExpireTime is when it stops being shown; zero means never. When saving
	// it must lie ahead.
	ExpireTime time.Time
	// TTL, when saving, sets ExpireTime that long after now, up to MaxTTL. Give
	// one of ExpireTime, TTL and SlidingTTL. It is not stored, but it is what a
	// repeated request is compared by, so a caller who was given a span should
	// pass the span.
	TTL time.Duration
	// SlidingTTL sets ExpireTime that long after now, up to MaxTTL, and again
	// whenever the record is read or found: in the background, and in steps of a
	// tenth of the span. Zero: ExpireTime stays where it is.
	SlidingTTL time.Duration
	// Metadata is a JSON object or empty. The text is kept as it came.
	Metadata json.RawMessage
	// Tags are labels. The store sorts them and drops repeats.
	Tags []string
	// Importance is the caller's weight from 0 to 1. Zero is a weight, too: a
	// caller who knows none passes DefaultImportance.
	Importance float64
	// Supersedes is the record this one replaces, or empty.
	Supersedes string
	// SupersededBy is the record that replaced this one, or empty; set by the
	// store. It may be gone by now.
	SupersededBy string
	// SupersededTime is when that was. Set by the store; unset for records that
	// an older version of it superseded.
	SupersededTime time.Time
	// DerivedFrom are the records it was made from.
	DerivedFrom []string
	// Origin is where the text came from. Zero when saving: OriginAgent.
	Origin Origin
	// Review says whether it waits for review, and how that ended; set by the store.
	Review Review
	// Tier is the memory tier, 1 to 4. Zero when saving: LongTerm.
	Tier int
	// Pinned: eviction and retention pass over the record.
	Pinned bool
	// Archived takes the record out of what queries find unless they ask for it.
	Archived bool
	// ArchiveTime is when it was archived, unset where it is not; set by the store.
	ArchiveTime time.Time
	// Repeats is how many saves repeated the record in place of adding another, and
	// LastRepeatTime when the last one did; set by the store.
	Repeats        int64
	LastRepeatTime time.Time
	// Version counts the changes of the record, from 1; set by the store.
	Version int64
	// FirstVersion is the first version that there can be of it, where that is not 1,
	// because it was imported without those before; set by the store.
	FirstVersion int64
	// UpdateTime is when it was changed last, unset in version 1; set by the
	// store.
	UpdateTime time.Time
	// Embedding is a vector of the caller's, or empty.
	Embedding []float32
	// EmbeddingSpace names the model of the vector; required with one.
	EmbeddingSpace string

	// Redacted counts the secrets that were removed on saving, by pattern; set by the store
	// on a save, never stored.
	Redacted redact.Counts

	// Related says that the record has relations, or had; set by the store.
	Related bool
	// Relations are the relations from the record, if they were read with it. For a record
	// to be saved they are its initial relations, without From. They are stored separately
	// (memory/relations).
	Relations []Relation

	// Document is what the index has of the record; set by the store, and of no
	// use to others.
	Document Document
}

// Document says which document of the index stands for a record.
type Document struct {
	// Ordinal is its number, from 1. Every change of the record that the index
	// knows of gives it a new one.
	Ordinal uint32
	// Place is the first ordinal of the record, where that is not Ordinal; zero
	// otherwise. It keeps the record where it was in the order of arrival.
	Place uint32
	// Marked says that the document says itself that the record is superseded,
	// because no other document does any more.
	Marked bool
}

// Bytes is about what the record takes in memory: its text, metadata and vector.
func (r Record) Bytes() int {
	const perNumber = 4 // of a vector
	return len(r.Text) + len(r.Metadata) + perNumber*len(r.Embedding)
}

// Vouched reports whether a program wrote the record, or somebody approved what another writer
// wrote. Only such a record may stand where a prompt instructs its model.
func (r *Record) Vouched() bool {
	return !r.Origin.Foreign() && (r.Writer == writer.Program || r.Review == ReviewApproved)
}

// ExpiredAt reports whether the record is gone for readers at that moment.
func (r *Record) ExpiredAt(now time.Time) bool {
	return !r.ExpireTime.IsZero() && !r.ExpireTime.After(now)
}

// KeptVersions returns the numbers of the first earlier version that is kept of
// the record, and of the one behind the last.
func (r *Record) KeptVersions() (first, end int64) {
	return max(1, r.Version-MaxVersions, r.FirstVersion), r.Version
}

// Normalize sets the defaults of a record that is to be saved and drops what is
// not the caller's to say. The result shares no memory with r.
func Normalize(r Record) Record {
	r.EventTime, r.CreateTime, r.ExpireTime = StoredTime(r.EventTime), time.Time{}, StoredTime(r.ExpireTime)
	r.ValidUntil = StoredTime(r.ValidUntil)
	r.SupersededBy, r.SupersededTime, r.Version, r.UpdateTime, r.SavedBy, r.Writer = "", time.Time{}, 1, time.Time{}, "", 0
	r.Document, r.Review, r.FirstVersion, r.Related = Document{}, 0, 0, false
	r.ImportID, r.ImportVersion = "", 0
	r.Relations = slices.Clone(r.Relations)
	r.Repeats, r.LastRepeatTime, r.ArchiveTime = 0, time.Time{}, time.Time{}
	r.SlidingTTL = StoredSpan(r.SlidingTTL)
	r.Kind = cmp.Or(r.Kind, DefaultKind)
	r.Origin = cmp.Or(r.Origin, OriginAgent)
	r.Tier = cmp.Or(r.Tier, LongTerm)
	r.Metadata = slices.Clone(r.Metadata)
	r.Tags = slices.Clone(r.Tags)
	slices.Sort(r.Tags)
	r.Tags = slices.Compact(r.Tags)
	r.DerivedFrom = slices.Clone(r.DerivedFrom)
	r.Embedding = slices.Clone(r.Embedding)
	return r
}

// StoredTime is a time as it is stored: in UTC, to the microsecond. An unset one
// stays so.
func StoredTime(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Microsecond)
}

// StoredSpan is a span as it is stored: whole microseconds, one at least. Less
// than zero is none.
func StoredSpan(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return max(d.Truncate(time.Microsecond), time.Microsecond)
}
