package memory

import (
	"bytes"
	"context"

	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/writer"
)

// there reports whether the record is there already.
func (t *transferring) there(ctx context.Context, e *edit, i int) (bool, error) {
	one := t.all[i]
	stored, err := t.get(ctx, e, record.Key(t.scope, one.record.ID))
	if err != nil || stored == nil {
		return false, err
	}
	old, err := record.Decode(stored)
	if err != nil {
		return false, err
	}
	if old.ExpiredAt(t.now) {
		t.changed = true
		return false, e.remove(ctx, &old)
	}
	if one.undated { // a line of somebody's own hand came at another time then
		one.record.CreateTime = old.CreateTime
	}
	same, err := sameLine(old, one.record)
	if err == nil && !same && old.Writer == writer.Import {
		same, err = t.sameButHealed(ctx, e, old, one.record)
	}
	switch {
	case err != nil:
		return false, err
	case same:
		t.counts.Unchanged++
	case t.Skip:
		t.counts.Skipped++
		t.skipped[i] = true
	default:
		return false, &ExistsError{"id", old.ID, old.ID}
	}
	return true, nil
}

// sameButHealed is sameLine for a record that lost those next to it in its chain: what it
// superseded, or was superseded by, is there no longer.
func (t *transferring) sameButHealed(ctx context.Context, e *edit, old, r record.Record) (bool, error) {
	for _, link := range []struct{ was, is *string }{{&r.Supersedes, &old.Supersedes}, {&r.SupersededBy, &old.SupersededBy}} {
		if *link.was == *link.is || *link.was == "" {
			continue
		}
		other, _, err := e.read(ctx, *link.was)
		if err != nil || other != nil {
			return false, err
		}
		*link.was = *link.is
	}
	if old.SupersededBy == r.SupersededBy {
		r.SupersededTime = old.SupersededTime
	}
	return sameLine(old, r)
}

// sameLine reports whether two records are the same but for their vectors, of which the one
// that is there may have more than it came with, and for what the store did to it: held it
// for review, archived it, asked somebody here whether it may instruct.
func sameLine(a, b record.Record) (bool, error) {
	b.SavedBy = a.SavedBy
	// It may have been held, or reviewed since: here, or by somebody whose word does not count.
	approval := func(r record.Review) bool { return r == 0 || r == record.ReviewApproved }
	if a.Review != 0 && b.Review == 0 || a.Writer == writer.Import && approval(a.Review) && approval(b.Review) {
		b.Review = a.Review
	}
	if a.Archived && !b.Archived { // the limit of the memory may have done so
		b.Archived, b.ArchiveTime = a.Archived, a.ArchiveTime
	}
	var texts [2][]byte
	for i, r := range []record.Record{a, b} {
		r.Embedding, r.EmbeddingSpace = nil, ""
		text, err := record.Line{Record: r}.Encode()
		if err != nil {
			return false, err
		}
		texts[i] = text
	}
	return bytes.Equal(texts[0], texts[1]), nil
}
