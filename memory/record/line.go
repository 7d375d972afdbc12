package record

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// MaxLineBytes bounds a line: the longest record there can be, with every byte of its
// text escaped and its vector as digits, and with as many current and ended relations as
// are kept.
const MaxLineBytes = 6*MaxTextBytes + 2*MaxMetadataBytes + 32*MaxEmbedding + 128<<10 + 2*(MaxRelationsFrom+MaxRelationsTo)*(2*MaxIDBytes+MaxRelationName+160)

// ErrLine: a line is not a line of an export; the error says why.
var ErrLine = errors.New("record: line of an export can't be read")

// Line is a line of an export.
type Line struct {
	Record Record
	// Earlier says that it is what the record of that id was before.
	Earlier bool
	// KeyGone says that the key, which another record took over, does not name it.
	KeyGone bool
	// Relations are those with records whose lines stand before: each stands once. Those
	// that have ended have an End.
	Relations []Relation
	// Forgotten is until when relations of the record that have ended are kept no longer.
	Forgotten time.Time
	// Undated says that the line says no create_time, and the record has that of now.
	Undated bool
}

// relationLine is a relation in a line.
type relationLine struct {
	Name string     `json:"name"`
	To   string     `json:"to,omitempty"`
	From string     `json:"from,omitempty"`
	Time *time.Time `json:"time,omitempty"`
	End  *time.Time `json:"end,omitempty"`
}

// line is its form in JSON.
type line struct {
	Earlier        bool            `json:"earlier,omitempty"`
	ID             string          `json:"id"`
	Version        int64           `json:"version"`
	Text           string          `json:"text"`
	Key            string          `json:"key,omitempty"`
	KeyGone        bool            `json:"key_gone,omitempty"`
	Kind           string          `json:"kind"`
	SessionID      string          `json:"session_id,omitempty"`
	AgentID        string          `json:"agent_id,omitempty"`
	Author         string          `json:"author,omitempty"`
	EventTime      *time.Time      `json:"event_time,omitempty"`
	ValidUntil     *time.Time      `json:"valid_until,omitempty"`
	CreateTime     *time.Time      `json:"create_time,omitempty"`
	UpdateTime     *time.Time      `json:"update_time,omitempty"`
	ExpireTime     *time.Time      `json:"expire_time,omitempty"`
	SlidingTTL     string          `json:"sliding_ttl,omitempty"`
	Metadata       json.RawMessage `json:"metadata,omitempty"`
	Tags           []string        `json:"tags,omitempty"`
	Importance     float64         `json:"importance"`
	Supersedes     string          `json:"supersedes,omitempty"`
	SupersededBy   string          `json:"superseded_by,omitempty"`
	SupersededTime *time.Time      `json:"superseded_time,omitempty"`
	DerivedFrom    []string        `json:"derived_from,omitempty"`
	Origin         string          `json:"origin"`
	Review         string          `json:"review,omitempty"`
	Tier           int             `json:"tier"`
	Pinned         bool            `json:"pinned,omitempty"`
	Archived       bool            `json:"archived,omitempty"`
	ArchiveTime    *time.Time      `json:"archive_time,omitempty"`
	Repeats        int64           `json:"repeats,omitempty"`
	LastRepeatTime *time.Time      `json:"last_repeat_time,omitempty"`
	EmbeddingSpace string          `json:"embedding_space,omitempty"`
	Embedding      []float32       `json:"embedding,omitempty"`
	Relations      []relationLine  `json:"relations,omitempty"`
	Forgotten      *time.Time      `json:"relations_forgotten,omitempty"`
}

// Encode returns the line without a newline: a JSON object with all that was stored, the
// vector included. Equal records give equal bytes.
func (of Line) Encode() ([]byte, error) {
	r := of.Record
	l := line{
		Earlier: of.Earlier, ID: r.ID, Version: r.Version, Text: r.Text, Key: r.Key, KeyGone: of.KeyGone, Kind: r.Kind, SessionID: r.SessionID,
		AgentID: r.SavedBy, Author: r.Author, EventTime: written(r.EventTime), ValidUntil: written(r.ValidUntil), CreateTime: written(r.CreateTime), UpdateTime: written(r.UpdateTime),
		ExpireTime: written(r.ExpireTime), Metadata: r.Metadata, Tags: r.Tags, Importance: r.Importance, Supersedes: r.Supersedes,
		SupersededBy: r.SupersededBy, SupersededTime: written(r.SupersededTime), DerivedFrom: r.DerivedFrom, Origin: r.Origin.String(),
		Review: r.Review.String(), Tier: r.Tier, Pinned: r.Pinned, Archived: r.Archived, EmbeddingSpace: r.EmbeddingSpace, Embedding: r.Embedding,
		ArchiveTime: written(r.ArchiveTime), Repeats: r.Repeats, LastRepeatTime: written(r.LastRepeatTime),
		Forgotten: written(of.Forgotten),
	}
	if r.SlidingTTL > 0 {
		l.SlidingTTL = r.SlidingTTL.String()
	}
	for _, one := range of.Relations {
		written := relationLine{Name: one.Name, To: one.To, Time: written(one.Time), End: written(one.End)}
		if one.To == r.ID {
			written.To, written.From = "", one.From
		}
		l.Relations = append(l.Relations, written)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(l); err != nil {
		return nil, fmt.Errorf("%w: record %q: %w", ErrDamaged, r.ID, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func written(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// ParseLine reads what Encode wrote. It checks the record too, so the result can be stored.
// Errors: ErrLine and the errors of Check.
func ParseLine(text []byte) (Line, error) {
	if len(text) > MaxLineBytes {
		return Line{}, fmt.Errorf("%w: it has %d bytes, more than %d", ErrLine, len(text), MaxLineBytes)
	}
	var l line
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return Line{}, fmt.Errorf("%w: %s", ErrLine, err.Error())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Line{}, fmt.Errorf("%w: more stands behind the object", ErrLine)
	}
	undated := l.CreateTime == nil
	l.complete()
	r, err := l.record()
	if err != nil {
		return Line{}, fmt.Errorf("%w: %w", ErrLine, err)
	}
	checked := r
	checked.SlidingTTL = 0 // which a draft may not have together with a time
	if err := Check(checked); err != nil {
		return Line{}, err
	}
	related, err := l.relations()
	if err != nil {
		return Line{}, err
	}
	_, err = MetadataTerms(r.Metadata)
	return Line{r, l.Earlier, l.KeyGone, related, read(l.Forgotten), undated}, err
}

// complete fills in what a line of somebody's own hand leaves out, one without a version: it
// says what a record holds, not how it was stored. Without an id it has that of its content, so
// that the same line is the same record however often it comes.
func (l *line) complete() {
	if l.Version != 0 || l.Earlier {
		return
	}
	l.Kind, l.Origin = cmp.Or(l.Kind, DefaultKind), cmp.Or(l.Origin, OriginAgent.String())
	l.Tier, l.Version = cmp.Or(l.Tier, LongTerm), 1
	l.Importance = cmp.Or(l.Importance, DefaultImportance)
	if l.ID == "" {
		sum := sha256.Sum256([]byte(strings.Join([]string{l.Text, l.Key, l.Kind, l.SessionID, string(l.Metadata), strings.Join(l.Tags, "\x00")}, "\x01")))
		l.ID = "line-" + hex.EncodeToString(sum[:16])
	}
	if l.CreateTime == nil {
		l.CreateTime = new(time.Now().UTC())
	}
	slices.Sort(l.Tags)
	l.Tags = slices.Compact(l.Tags)
}

// relations are those with other records.
func (l line) relations() (all []Relation, err error) {
	if len(l.Relations) > 2*(MaxRelationsFrom+MaxRelationsTo) || l.Earlier && (len(l.Relations) > 0 || l.Forgotten != nil) {
		return nil, fmt.Errorf("%w: it has %d relations", ErrLine, len(l.Relations))
	}
	for _, one := range l.Relations {
		if (one.To == "") == (one.From == "") || one.Time == nil {
			return nil, fmt.Errorf("%w: a relation needs one of to and from, and a time", ErrLine)
		}
		r := Relation{From: cmp.Or(one.From, l.ID), Name: one.Name, To: cmp.Or(one.To, l.ID), Time: read(one.Time), End: read(one.End)}
		for _, t := range []time.Time{r.Time, r.End} {
			if err := checkYear("time", t); err != nil {
				return nil, err
			}
		}
		if one.End != nil && !r.End.After(r.Time) {
			return nil, fmt.Errorf("%w: a relation ends before it was made", ErrLine)
		}
		if err := r.Check(); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, checkYear("relations_forgotten", read(l.Forgotten))
}

func (l line) record() (Record, error) {
	r := Record{
		ID: l.ID, Version: l.Version, Text: l.Text, Key: l.Key, Kind: l.Kind, SessionID: l.SessionID, SavedBy: l.AgentID, Author: l.Author,
		EventTime: read(l.EventTime), ValidUntil: read(l.ValidUntil), CreateTime: read(l.CreateTime), UpdateTime: read(l.UpdateTime), ExpireTime: read(l.ExpireTime),
		Metadata: l.Metadata, Tags: l.Tags, Importance: l.Importance, Supersedes: l.Supersedes, SupersededBy: l.SupersededBy,
		SupersededTime: read(l.SupersededTime), DerivedFrom: l.DerivedFrom, Tier: l.Tier, Pinned: l.Pinned, Archived: l.Archived,
		EmbeddingSpace: l.EmbeddingSpace, Embedding: l.Embedding, ArchiveTime: read(l.ArchiveTime), Repeats: l.Repeats, LastRepeatTime: read(l.LastRepeatTime),
	}
	var ok bool
	if r.Origin, ok = named(OriginNames, l.Origin); !ok {
		return r, fmt.Errorf("origin is %q", l.Origin)
	}
	if r.Review, ok = named(ReviewNames, l.Review); !ok && l.Review != "" {
		return r, fmt.Errorf("review is %q", l.Review)
	}
	if l.SlidingTTL != "" {
		span, err := time.ParseDuration(l.SlidingTTL)
		if err != nil || span <= 0 || span > MaxTTL || r.ExpireTime.IsZero() {
			return r, fmt.Errorf("sliding_ttl is %q, or it has no expire_time", l.SlidingTTL)
		}
		r.SlidingTTL = StoredSpan(span)
	}
	return r, l.check(r)
}

// check refuses what only the store sets and would not have set so.
func (l line) check(r Record) error {
	for _, t := range []time.Time{r.CreateTime, r.UpdateTime, r.SupersededTime, r.ArchiveTime, r.LastRepeatTime} {
		if err := checkYear("time", t); err != nil {
			return err
		}
	}
	switch {
	case r.ID == "":
		return errors.New("id is missing")
	case r.Version < 1 || r.Version > MaxCount:
		return fmt.Errorf("version is not from 1 to %d", int64(MaxCount))
	case r.CreateTime.IsZero():
		return errors.New("create_time is missing")
	case r.Kind == "":
		return errors.New("kind is missing")
	case r.Tier == 0:
		return errors.New("tier is missing")
	case r.Repeats < 0 || r.Repeats > MaxCount:
		return fmt.Errorf("repeats is not from 0 to %d", int64(MaxCount))
	case !r.Archived && !r.ArchiveTime.IsZero():
		return errors.New("archive_time needs archived")
	case l.KeyGone && r.SupersededBy == "":
		return errors.New("key_gone needs superseded_by")
	case r.SupersededBy == "" && !r.SupersededTime.IsZero():
		return errors.New("superseded_time needs superseded_by")
	case !slices.IsSorted(r.Tags) || len(slices.Compact(slices.Clone(r.Tags))) != len(r.Tags):
		return errors.New("tags are not in order, or one stands there twice")
	case r.SupersededBy != "":
		return CheckID("superseded_by", r.SupersededBy)
	}
	return CheckName("agent_id", r.SavedBy, kv.MaxOwnerBytes)
}

func read(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return StoredTime(*t)
}

// named finds what has a name.
func named[T comparable](names map[T]string, name string) (T, bool) {
	for value, n := range names {
		if n == name {
			return value, true
		}
	}
	var none T
	return none, false
}
