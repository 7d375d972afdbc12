package past

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// Limits of looking back in one scope.
const (
	// MaxReread bounds the records that are read again, because they have changed or were
	// replaced since.
	MaxReread = 20_000
	// maxBytes bounds what these hold together, with the versions that are looked through.
	maxBytes = 64 << 20
	// readAtOnce is how many are read at a time.
	readAtOnce = 512
)

// Moment is an earlier moment. The zero Moment is now.
type Moment struct {
	// AsOf is when the memory held it, by the server's clock. Zero: now.
	AsOf time.Time
	// ValidAt is when it was true: from the time of the event, or without one from when it
	// was saved, until it is no longer valid or what replaced it is. Zero: whatever was not
	// replaced.
	ValidAt time.Time
}

// IsNow reports whether nothing earlier is asked for.
func (m Moment) IsNow() bool { return m.AsOf.IsZero() && m.ValidAt.IsZero() }

// Condition lets through what had been saved and was valid, as far as the index knows.
func (m Moment) Condition() selection.Filter {
	var all []selection.Filter
	if !m.AsOf.IsZero() {
		all = append(all, selection.Between(selection.CreateTime, math.MinInt64, m.AsOf.UnixMicro()))
	}
	if !m.ValidAt.IsZero() {
		at := m.ValidAt.UnixMicro()
		all = append(all,
			selection.Or(
				selection.Between(selection.EventTime, math.MinInt64, at),
				selection.And(
					selection.Not(selection.Between(selection.EventTime, math.MinInt64, math.MaxInt64)),
					selection.Between(selection.CreateTime, math.MinInt64, at),
				),
			),
			selection.Not(selection.Matching(segment.ValidUntil, "", func(until string) selection.Match {
				if len(until) == 8 && until > UntilValue(m.ValidAt) {
					return selection.No
				}
				return selection.Yes
			}, nil)),
		)
	}
	return selection.And(all...)
}

// UntilValue is the value by which the index knows until when a record is valid: values
// sort by time.
func UntilValue(at time.Time) string {
	const sign = 1 << 63
	return string(binary.BigEndian.AppendUint64(nil, uint64(at.UnixMicro())^sign))
}

// Version is what a record was.
type Version struct {
	record.Record
	// Place is that of the record in the order of arrival.
	Place uint32
}

// Found is what counted at a moment in a scope, where that is not what counts now.
type Found struct {
	// Except are the ordinals of documents that did not count, or not as they are.
	Except []uint32
	// Versions are what counted in their place.
	Versions []Version
	// Reread is how many records were read again.
	Reread int
	// Lost is how many of them had a version that is kept no longer.
	Lost int
}

// Present is where a Moment looks.
type Present struct {
	View   kv.Reader
	Scope  kv.Scope
	Reader *lexical.Reader
	// Version reads the version of a record that counted at a time, and about how many
	// bytes it has looked through; false if that is kept no longer.
	Version func(ctx context.Context, now record.Record, at time.Time) (then record.Record, size int, ok bool, err error)
	// Replaced keeps records that had been replaced, as a listing does, unless the moment
	// has a ValidAt.
	Replaced bool
}

// Find reads what has changed since the moment. More than MaxReread records, or too much of
// them, is an *invalid.Error.
func (m Moment) Find(ctx context.Context, from Present) (found Found, err error) {
	if m.IsNow() {
		return found, nil
	}
	ordinals := m.suspects(from)
	if len(ordinals) > MaxReread {
		return found, m.tooMuch("%d records have changed or were replaced, more than %d", len(ordinals), MaxReread)
	}
	left := maxBytes
	for len(ordinals) > 0 {
		chunk := ordinals[:min(len(ordinals), readAtOnce)]
		ordinals = ordinals[len(chunk):]
		ids, err := from.Reader.IDs(ctx, chunk)
		if err != nil {
			return found, err
		}
		err = record.Named(ctx, from.View, from.Scope, ids, func(i int, r *record.Record, size int) error {
			more, err := m.look(ctx, from, &found, chunk[i], *r)
			if left -= size + more; err == nil && left < 0 {
				err = m.tooMuch("more than %d MiB of records have changed or were replaced", maxBytes>>20)
			}
			return err
		})
		if err != nil {
			return found, err
		}
		found.Reread += len(chunk)
	}
	return found, nil
}

func (m Moment) tooMuch(format string, args ...any) error {
	field := "as_of"
	if m.AsOf.IsZero() {
		field = "valid_at"
	}
	return invalid.Field(record.ErrInvalid, field, "can't be determined: since then  "+format, args...)
}

// suspects are the documents that may not match the state at the moment: documents of
// records rewritten or replaced since.
func (m Moment) suspects(from Present) (ordinals []uint32) {
	f := from.Reader.Frame()
	for i := range f.Slots() {
		slot := i + 1
		ordinal := f.Ordinal(slot)
		switch {
		case f.Deleted.Contains(slot), !m.AsOf.IsZero() && f.Create[slot] > m.AsOf.UnixMicro():
		case !m.AsOf.IsZero() && f.Place[slot] != ordinal,
			f.IsSuperseded(slot) && (!from.Replaced || !m.ValidAt.IsZero()):
			ordinals = append(ordinals, ordinal)
		}
	}
	return ordinals
}

// look decides on one record, and returns how many bytes it has read for that.
func (m Moment) look(ctx context.Context, from Present, found *Found, ordinal uint32, now record.Record) (read int, err error) {
	then := now
	if !m.AsOf.IsZero() && changed(now).After(m.AsOf) {
		var ok bool
		then, read, ok, err = from.Version(ctx, now, m.AsOf)
		if err != nil {
			return read, err
		}
		if !ok {
			found.Except = append(found.Except, ordinal)
			found.Lost++
			return read, nil
		}
		then.SupersededBy, then.SupersededTime = now.SupersededBy, now.SupersededTime
	}
	m.Show(&then)
	counts := from.Replaced || then.SupersededBy == ""
	if !m.ValidAt.IsZero() && then.SupersededBy != "" {
		by, more, err := m.start(ctx, from, then)
		read += more
		if err != nil {
			return read, err
		}
		counts = by.After(m.ValidAt)
	}
	switch {
	case !counts:
		found.Except = append(found.Except, ordinal)
	case then.Version != now.Version:
		found.Except = append(found.Except, ordinal)
		found.Versions = append(found.Versions, Version{then, from.Reader.Place(ordinal)})
	}
	return read, nil
}

// Show takes out of a record what was not known yet: by what it was replaced later.
func (m Moment) Show(r *record.Record) {
	if !m.AsOf.IsZero() && r.SupersededTime.After(m.AsOf) {
		r.SupersededBy, r.SupersededTime = "", time.Time{}
	}
}

// start is when what replaced a record became valid.
func (m Moment) start(ctx context.Context, from Present, r record.Record) (at time.Time, read int, err error) {
	by, ok, err := record.Read(ctx, from.View, from.Scope, r.SupersededBy)
	if err != nil || !ok {
		return r.SupersededTime, 0, err
	}
	if !m.AsOf.IsZero() && changed(by).After(m.AsOf) {
		then, size, ok, err := from.Version(ctx, by, m.AsOf)
		if err != nil {
			return at, size, err
		}
		if read = size; ok {
			by = then
		}
	}
	if by.EventTime.IsZero() {
		return by.CreateTime, read + by.Bytes(), nil
	}
	return by.EventTime, read + by.Bytes(), nil
}

// changed is when a record came to be what it is.
func changed(r record.Record) time.Time {
	if r.UpdateTime.IsZero() {
		return r.CreateTime
	}
	return r.UpdateTime
}
