package record

import (
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/redact"
)

// Redact puts marks in the place of secrets in text, metadata, tags, author and kind, and counts
// them in Redacted. A secret in the id or the key is an *invalid.Error: a name with a mark in
// it would be another record's as well.
func Redact(r Record, by *redact.Redactor) (Record, error) {
	if by == nil {
		return r, nil
	}
	r.Redacted = nil
	for _, name := range []struct{ field, text string }{{"id", r.ID}, {"key", r.Key}} {
		var found redact.Counts
		if by.Text(name.text, &found); len(found) > 0 {
			for pattern := range found {
				return Record{}, invalid.Field(ErrInvalid, name.field, "holds a secret (%s), and names are not redacted", pattern)
			}
		}
	}
	r.Text = by.Text(r.Text, &r.Redacted)
	r.Metadata = by.Bytes(r.Metadata, &r.Redacted)
	r.Author = by.Text(r.Author, &r.Redacted)
	r.Kind = by.Text(r.Kind, &r.Redacted)
	for i, tag := range r.Tags {
		if safe := by.Text(tag, &r.Redacted); safe != tag {
			r.Tags = slices.Clone(r.Tags)
			r.Tags[i] = safe
		}
	}
	return r, nil
}
