package relations

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// Tags of relations that have ended, under both of their ends, and of the moment until which
// some are kept no longer.
const (
	tagFromEnded = 'O'
	tagToEnded   = 'I'
	tagForgotten = 'f'
)

// sign is flipped in the moments of keys, so that they sort.
const sign = 1 << 63

// end is one of the two records of a relation that has ended.
type end struct {
	way Way
	id  string
	tag byte
	max int // relations that are kept
}

// endsOf are the ends of a relation: each record keeps as many that have ended as it may have
// that stand.
func endsOf(r Relation) [2]end {
	return [...]end{
		{Out, r.From, tagFromEnded, record.MaxRelationsFrom},
		{In, r.To, tagToEnded, record.MaxRelationsTo},
	}
}

// endedKeys are where a relation stands that has ended. They sort by when it did.
func endedKeys(scope kv.Scope, r Relation) (keys [2][]byte) {
	for i, e := range endsOf(r) {
		key := endedFrom(scope, e.tag, e.id, r.End)
		other := r.To
		if e.way == In {
			other = r.From
		}
		keys[i] = append(kv.AppendEscaped(key, r.Name), other...)
	}
	return keys
}

// endedFrom is where those relations of a record begin that ended at a moment or later.
func endedFrom(scope kv.Scope, tag byte, id string, at time.Time) []byte {
	return binary.BigEndian.AppendUint64(kv.AppendEscaped(scope.Key(tag), id), uint64(at.UnixMicro())^sign)
}

func forgottenKey(scope kv.Scope, id string) []byte { return append(scope.Key(tagForgotten), id...) }

// Keep stages that a relation was there from its Time until its End. Where a record has too
// many of those, the one that ended first is forgotten, under both ends.
func Keep(ctx context.Context, tx *kv.Tx, scope kv.Scope, r Relation) error {
	if !r.End.After(r.Time) {
		return nil
	}
	keys := endedKeys(scope, r)
	values, err := tx.Get(ctx, kv.Records, keys[0])
	if err != nil || values[0] != nil {
		return err
	}
	for _, e := range endsOf(r) {
		kept, err := Ended(ctx, tx, scope, e.id, Selection{Way: e.way})
		if err != nil {
			return err
		}
		for _, oldest := range kept[:max(0, len(kept)-e.max+1)] {
			if err := forget(ctx, tx, scope, oldest); err != nil {
				return err
			}
		}
	}
	for _, key := range keys {
		tx.Put(kv.Records, key, wire.AppendTime(nil, fieldTime, r.Time))
	}
	return nil
}

// forget stages that a relation is kept no longer that has ended.
func forget(ctx context.Context, tx *kv.Tx, scope kv.Scope, r Relation) error {
	DropEnded(tx, scope, r)
	for _, id := range []string{r.From, r.To} {
		if err := Forget(ctx, tx, scope, id, r.End); err != nil {
			return err
		}
	}
	return nil
}

// Forget stages that of a record those relations may be missing that ended until a moment.
func Forget(ctx context.Context, tx *kv.Tx, scope kv.Scope, id string, until time.Time) error {
	before, err := Forgotten(ctx, tx, scope, id)
	if err == nil && until.After(before) {
		tx.Put(kv.Records, forgottenKey(scope, id), wire.AppendTime(nil, fieldTime, until))
	}
	return err
}

// Forgotten returns the moment until which relations may be missing that ended; zero if none
// are.
func Forgotten(ctx context.Context, from kv.Getter, scope kv.Scope, id string) (until time.Time, err error) {
	values, err := from.Get(ctx, kv.Records, forgottenKey(scope, id))
	if err != nil {
		return until, err
	}
	return decodeTime(values[0])
}

func decodeTime(value []byte) (at time.Time, err error) {
	for f, err := range wire.Fields(value) {
		if err != nil {
			return at, fmt.Errorf("%w: the time of a relation: %w", record.ErrDamaged, err)
		}
		if f.Number == fieldTime {
			at = f.Time()
		}
	}
	return at, nil
}

// DropEnded stages that nothing is kept of a relation that has ended, and returns how many
// bytes it writes.
func DropEnded(tx *kv.Tx, scope kv.Scope, r Relation) (bytes int) {
	for _, key := range endedKeys(scope, r) {
		tx.Delete(kv.Records, key)
		bytes += len(key)
	}
	return bytes
}

// DropAll stages that nothing is kept of the relations of a record that have ended, and
// returns how many bytes it writes.
func DropAll(ctx context.Context, tx *kv.Tx, scope kv.Scope, id string) (bytes int, err error) {
	ended, err := Ended(ctx, tx, scope, id, Selection{})
	if err != nil {
		return 0, err
	}
	for _, r := range ended {
		bytes += DropEnded(tx, scope, r)
	}
	tx.Delete(kv.Records, forgottenKey(scope, id))
	return bytes, nil
}

// Ended returns relations of a record that have ended, first those from it, then those to
// it, each in the order in which they ended. With At or ValidAt, only relations that ended
// after s.EndedBy.
func Ended(ctx context.Context, from kv.Getter, scope kv.Scope, id string, s Selection) (found []Relation, err error) {
	for _, e := range endsOf(Relation{From: id, To: id}) {
		if s.Way != Both && s.Way != e.way {
			continue
		}
		prefix := kv.AppendEscaped(scope.Key(e.tag), id)
		all := kv.Prefix(prefix)
		if by := s.EndedBy(); !by.IsZero() {
			all.Start = endedFrom(scope, e.tag, id, by.Add(time.Microsecond))
		}
		if s.Limit > 0 {
			if all.Limit = s.Limit - len(found); all.Limit == 0 {
				return found, nil
			}
		}
		for pair, err := range from.Scan(ctx, kv.Records, all) {
			if err != nil {
				return nil, err
			}
			r, err := decodeEnded(id, e.way, pair.Key[len(prefix):], pair.Value)
			if err != nil {
				return nil, err
			}
			found = append(found, r)
		}
	}
	return found, nil
}

func decodeEnded(id string, way Way, rest, value []byte) (r Relation, err error) {
	if len(rest) < 8 {
		return r, fmt.Errorf("%w: a relation under record %q that has ended", record.ErrDamaged, id)
	}
	if r, err = decode(id, way, rest[8:], value); err != nil {
		return r, err
	}
	r.End = time.UnixMicro(int64(binary.BigEndian.Uint64(rest) ^ sign)).UTC()
	r.Time, err = decodeTime(value)
	return r, err
}

// then returns the relations of a record as they stood at s.At, or held at s.ValidAt, in the
// order of Of.
func then(ctx context.Context, from kv.Getter, scope kv.Scope, id string, s Selection) (found []Relation, looked int, err error) {
	standing := s
	standing.At, standing.ValidAt = time.Time{}, time.Time{}
	if found, looked, err = Of(ctx, from, scope, id, standing); err != nil {
		return nil, 0, err
	}
	if err := Complete(ctx, from, scope, found); err != nil {
		return nil, 0, err
	}
	if s.Limit == 0 || looked < s.Limit {
		ended := s
		ended.Limit = max(0, s.Limit-looked)
		more, err := Ended(ctx, from, scope, id, ended)
		if err != nil {
			return nil, 0, err
		}
		looked += len(more)
		for _, r := range more {
			if s.wants(r) {
				found = append(found, r)
			}
		}
	}
	found = slices.DeleteFunc(found, func(r Relation) bool { return !s.At.IsZero() && r.Time.After(s.At) })
	slices.SortFunc(found, func(a, b Relation) int {
		if n := cmp.Compare(wayOf(a, id), wayOf(b, id)); n != 0 {
			return n
		}
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	// A clock that was set back can have it both ended and standing.
	return slices.CompactFunc(found, func(a, b Relation) bool {
		return a.From == b.From && a.Name == b.Name && a.To == b.To
	}), looked, nil
}

// wayOf is the way of a relation as one of its records sees it.
func wayOf(r Relation, id string) Way {
	if r.From == id {
		return Out
	}
	return In
}

// checkEnded compares the two keys of every relation that has ended with each other, and with
// the records that there are.
func checkEnded(ctx context.Context, from kv.Getter, scope kv.Scope, has func(id string) bool, report func(format string, args ...any)) error {
	seen := make(map[Relation]Way)
	for _, e := range endsOf(Relation{}) {
		err := each(ctx, from, scope, e.tag, func(id string, rest, value []byte) error {
			r, err := decodeEnded(id, e.way, rest, value)
			if err != nil {
				return err
			}
			if !has(id) {
				report("relation %q from record %q to %q, which has ended: there is no record %q that had relations", r.Name, r.From, r.To, id)
			}
			seen[r] += e.way
			return nil
		})
		if err != nil {
			return err
		}
	}
	for r, ways := range seen {
		if ways != Out+In {
			report("relation %q from record %q to %q, which has ended, stands under one of them alone", r.Name, r.From, r.To)
		}
	}
	return nil
}
