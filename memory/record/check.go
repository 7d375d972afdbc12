package record

import (
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// firstYear and lastYear bound the times of a record: what a protobuf
// Timestamp can say.
const (
	firstYear = 1
	lastYear  = 9999
)

// TooLong is the error for a field of more bytes than it may have.
func TooLong(field string, size, limit int) error {
	return invalid.Field(ErrInvalid, field, "has %d bytes, more than %d", size, limit)
}

// Check refuses what may not be saved, as far as that depends on the record alone.
// The metadata are checked by MetadataTerms, which reads them anyway.
func Check(r Record) error {
	checks := []func(Record) error{checkText, checkNames, checkTags, checkTimes, checkNumbers, checkSources, checkRelations}
	for _, check := range checks {
		if err := check(r); err != nil {
			return err
		}
	}
	return nil
}

func checkText(r Record) error {
	switch {
	case r.Text == "":
		return invalid.Field(ErrInvalid, "text", "is empty")
	case len(r.Text) > MaxTextBytes:
		return TooLong("text", len(r.Text), MaxTextBytes)
	case !utf8.ValidString(r.Text):
		return invalid.Field(ErrInvalid, "text", "is not UTF-8")
	}
	return nil
}

func checkNames(r Record) error {
	names := []struct {
		field, value string
		limit        int
	}{
		{"key", r.Key, MaxKeyBytes},
		{"kind", r.Kind, MaxKindBytes},
		{"session_id", r.SessionID, MaxSessionBytes},
		{"author", r.Author, MaxAuthorBytes},
	}
	for _, n := range names {
		if err := CheckName(n.field, n.value, n.limit); err != nil {
			return err
		}
	}
	if r.ID == "" {
		return nil
	}
	return CheckID("id", r.ID)
}

// CheckName refuses a text of more bytes than the limit, or one that can be no part of
// a key.
func CheckName(field, value string, limit int) error {
	switch {
	case len(value) > limit:
		return TooLong(field, len(value), limit)
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return invalid.Field(ErrInvalid, field, "holds NUL or is not UTF-8")
	}
	return nil
}

// CheckID refuses an id that a caller may not choose.
func CheckID(field, id string) error {
	if id == "" {
		return invalid.Field(ErrInvalid, field, "is empty")
	}
	if err := CheckName(field, id, MaxIDBytes); err != nil {
		return err
	}
	if strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return invalid.Field(ErrInvalid, field, "holds a character that does not print")
	}
	return nil
}

func checkTags(r Record) error {
	if len(r.Tags) > MaxTags {
		return invalid.Field(ErrInvalid, "tags", "has %d items, more than %d", len(r.Tags), MaxTags)
	}
	for _, tag := range r.Tags {
		if tag == "" {
			return invalid.Field(ErrInvalid, "tags", "holds an empty one")
		}
		if err := CheckName("tags", tag, MaxTagBytes); err != nil {
			return err
		}
	}
	return nil
}

func checkTimes(r Record) error {
	for _, span := range []struct {
		field string
		value time.Duration
	}{{"ttl", r.TTL}, {"sliding_ttl", r.SlidingTTL}} {
		switch {
		case span.value < 0:
			return invalid.Field(ErrInvalid, span.field, "is not more than zero")
		case span.value > MaxTTL:
			return invalid.Field(ErrInvalid, span.field, "is more than a hundred years")
		case span.value > 0 && !r.ExpireTime.IsZero():
			return invalid.Field(ErrInvalid, span.field, "and expire_time are both set")
		}
	}
	if r.TTL > 0 && r.SlidingTTL > 0 {
		return invalid.Field(ErrInvalid, "sliding_ttl", "and ttl are both set")
	}
	if err := checkYear("event_time", r.EventTime); err != nil {
		return err
	}
	if err := checkYear("valid_until", r.ValidUntil); err != nil {
		return err
	}
	return checkYear("expire_time", r.ExpireTime)
}

func checkYear(field string, t time.Time) error {
	if year := t.UTC().Year(); year < firstYear || year > lastYear {
		return invalid.Field(ErrInvalid, field, "lies in the year %d", year)
	}
	return nil
}

func checkNumbers(r Record) error {
	switch {
	case !(r.Importance >= 0 && r.Importance <= 1):
		return invalid.Field(ErrInvalid, "importance", "is not from 0 to 1")
	case r.Tier < 0 || r.Tier > LongTerm:
		return invalid.Field(ErrInvalid, "tier", "is not from 1 to 4")
	case r.Origin > OriginWeb:
		return invalid.Field(ErrInvalid, "origin", "is unknown")
	}
	return CheckEmbedding(r.Embedding, r.EmbeddingSpace)
}

// CheckEmbedding refuses a vector, or the name of its space, that can be none. Both
// may be missing.
func CheckEmbedding(v []float32, space string) error {
	switch {
	case len(v) > MaxEmbedding:
		return invalid.Field(ErrInvalid, "embedding", "has %d numbers, more than %d", len(v), MaxEmbedding)
	case len(v) > 0 && space == "":
		return invalid.Field(ErrInvalid, "embedding_space", "is required with an embedding")
	case len(v) == 0 && space != "":
		return invalid.Field(ErrInvalid, "embedding", "is required with an embedding_space")
	case slices.ContainsFunc(v, func(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }):
		return invalid.Field(ErrInvalid, "embedding", "holds a number that is not finite")
	}
	return CheckName("embedding_space", space, MaxEmbeddingSpaceBytes)
}

func checkSources(r Record) error {
	if r.Supersedes != "" {
		if err := CheckID("supersedes", r.Supersedes); err != nil {
			return err
		}
	}
	if len(r.DerivedFrom) > MaxDerivedFrom {
		return invalid.Field(ErrInvalid, "derived_from", "has %d items, more than %d", len(r.DerivedFrom), MaxDerivedFrom)
	}
	for _, id := range r.DerivedFrom {
		if err := CheckID("derived_from", id); err != nil {
			return err
		}
	}
	return nil
}
