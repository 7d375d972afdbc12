package memory

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

const (
	// DefaultSweepEvery is how often expired records are taken off the disk.
	// Readers do not see them from the very moment on.
	DefaultSweepEvery = 15 * time.Second
	// sweepRecords bounds the records that one commit takes off the disk, so
	// that saves to the scope do not wait long.
	sweepRecords = 64
	// sweepBytes bounds about what such a commit writes: records with many
	// versions, and records that superseded long ones, cost more than others, and
	// a commit that is too large would fail each time.
	sweepBytes = 2 << 20
	// sweepEntries bounds the entries of the list of what expires that are read
	// at once.
	sweepEntries = 1024
	// expiryList is the list of what expires.
	expiryList kv.List = "expiry"
	// tagExpiry begins the keys that say when a record expires.
	tagExpiry = 't'
	// tagDue marks the entries of the list.
	tagDue = 'e'
	// dueSpan is the time that one entry of the list stands for: long enough
	// that a scope has few, short enough that few are looked at in vain.
	dueSpan = time.Minute
)

// due is an entry of the list of what expires: some record of the scope does so
// within the span of that number.
type due struct {
	list  kv.Scope // where the entry stands
	scope kv.Scope
	span  uint32
}

// spanOf is the number of the span that a moment lies in.
func spanOf(at time.Time) uint32 { return uint32(max(0, at.Unix()) / int64(dueSpan/time.Second)) }

// over reports whether the span lies in the past.
func (d due) over(now time.Time) bool { return d.span < spanOf(now) }

func (d due) key() []byte {
	at := binary.BigEndian.AppendUint32(nil, d.span)
	return d.list.Key(tagDue, at, []byte{byte(d.scope.Kind)}, []byte(d.scope.Owner))
}

// decodeDue reads the key of an entry.
func decodeDue(key []byte) (due, error) {
	list, rest, err := kv.SplitKey(key)
	if err != nil {
		return due{}, err
	}
	const head = 1 + 4 + 1 // tag, span, kind
	if len(rest) <= head || rest[0] != tagDue {
		return due{}, fmt.Errorf("%w: list of expiring records", ErrDamaged)
	}
	scope := kv.Scope{Tenant: list.Tenant, Kind: kv.OwnerKind(rest[head-1]), Owner: string(rest[head:])}
	return due{list, scope, binary.BigEndian.Uint32(rest[1:])}, scope.Validate()
}

// moveExpiry keeps the keys by which expired records are found in step with a
// record.
func (e *edit) moveExpiry(w write) {
	was := time.Time{}
	if w.before != nil {
		was = w.before.ExpireTime
	}
	if w.record.ExpireTime.Equal(was) {
		return
	}
	if !was.IsZero() {
		e.tx.Delete(kv.Records, expiryKey(e.scope, was, w.record.ID))
	}
	stageExpiry(e.tx, e.scope, *w.record)
}

// expiryKey stands for a record that expires; the keys sort by the moment.
func expiryKey(scope kv.Scope, at time.Time, id string) []byte {
	return append(expiryBound(scope, at), id...)
}

// expiryBound is what the keys of all records begin with that expire at a
// moment.
func expiryBound(scope kv.Scope, at time.Time) []byte {
	return binary.BigEndian.AppendUint64(scope.Key(tagExpiry), uint64(max(0, at.UnixMicro())))
}

// stageExpiry stages the keys by which the record is found when it has expired,
// if it ever does. The request must name the ref of expiryList for the scope as blind.
func stageExpiry(tx *kv.Tx, scope kv.Scope, r record.Record) {
	if r.ExpireTime.IsZero() {
		return
	}
	tx.Put(kv.Records, expiryKey(scope, r.ExpireTime, r.ID), nil)
	tx.Put(kv.System, due{expiryList.Part(scope), scope, spanOf(r.ExpireTime)}.key(), nil)
}

// Sweep takes the records of all scopes off the disk that have expired, and
// returns how many those were. The store does so by itself every
// Options.SweepEvery. A scope where it fails does not keep it from the others;
// their errors are joined.
func (s *Store) Sweep(ctx context.Context) (int, error) {
	if s.closed.Load() {
		return 0, ErrClosed
	}
	now := record.StoredTime(s.now())
	swept, failed := 0, []error(nil)
	for part, err := range expiryList.Scopes(ctx, s.engine) {
		if err != nil {
			return swept, wrap("memory: sweep", err)
		}
		n, err := s.sweepPart(ctx, part, now)
		swept += n
		if !errors.Is(err, lease.ErrHeld) { // then another process does it
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return swept, errors.Join(failed...)
}

// sweepPart works through a part of a tenant's list of what expires, under the tenant's
// lease if there is something to do.
func (s *Store) sweepPart(ctx context.Context, part kv.Scope, now time.Time) (swept int, err error) {
	prefix := part.Key(tagDue)
	list := kv.Range{Start: prefix, End: kv.After(binary.BigEndian.AppendUint32(slices.Clone(prefix), spanOf(now))), Limit: 1}
	first, _, err := s.readDue(ctx, list)
	if err != nil || len(first) == 0 {
		return 0, wrap("memory: sweep", err)
	}
	list.Limit = sweepEntries
	err = s.leases.Do(ctx, lease.Tenant(part.Tenant, string(expiryList)), func(ctx context.Context) error {
		swept, err = s.sweepList(ctx, part, list, now)
		return err
	})
	return swept, err
}

func (s *Store) sweepList(ctx context.Context, part kv.Scope, list kv.Range, now time.Time) (swept int, err error) {
	var failed []error
	for {
		entries, last, err := s.readDue(ctx, list)
		if err != nil {
			return swept, wrap("memory: sweep", err)
		}
		for scope, spans := range byScope(entries) {
			n, err := s.sweepScope(ctx, part, scope, spans, now)
			swept += n
			if err != nil {
				failed = append(failed, wrap("memory: sweep "+scope.String(), err))
			}
		}
		if len(entries) < sweepEntries || ctx.Err() != nil {
			return swept, errors.Join(failed...)
		}
		list.Start = append(last, 0)
	}
}

func (s *Store) readDue(ctx context.Context, list kv.Range) (entries []due, last []byte, err error) {
	for pair, err := range s.engine.Scan(ctx, kv.System, list) {
		if err != nil {
			return nil, nil, err
		}
		entry, err := decodeDue(pair.Key)
		if err != nil {
			return nil, nil, err
		}
		entries, last = append(entries, entry), pair.Key
	}
	return entries, last, nil
}

func byScope(entries []due) map[kv.Scope][]due {
	scopes := make(map[kv.Scope][]due)
	for _, entry := range entries {
		scopes[entry.scope] = append(scopes[entry.scope], entry)
	}
	return scopes
}

// sweepScope takes what has expired in a scope off the disk and then the
// entries off a part of the list whose span is over.
func (s *Store) sweepScope(ctx context.Context, part, scope kv.Scope, entries []due, now time.Time) (swept int, err error) {
	entries = slices.DeleteFunc(entries, func(d due) bool { return !d.over(now) })
	for ctx.Err() == nil {
		ids, err := readExpired(ctx, s.engine, scope, now, nil)
		if err != nil || len(ids) == 0 && len(entries) == 0 {
			return swept, err
		}
		sweep := &sweeping{scope: scope, entries: entries, now: now}
		staging := &Staging{store: s, scope: scope, expires: true, also: []kv.Ref{{Keyspace: kv.System, Scope: part}}, run: sweep.stage}
		if err := staging.alone(ctx, true); err != nil {
			return swept, err
		}
		if swept += sweep.swept; !sweep.more {
			return swept, nil
		}
	}
	return swept, ctx.Err()
}

// sweeping is one commit of a sweep.
type sweeping struct {
	scope   kv.Scope
	entries []due
	now     time.Time

	swept int
	more  bool
}

// stage removes some of what has expired. Whoever saves a record that expires
// needs the scope to himself as this does, so that an entry which is taken off
// the list is not one that somebody counts on.
func (s *sweeping) stage(ctx context.Context, e *edit) error {
	ids, err := readExpired(ctx, e.tx, s.scope, s.now, nil)
	if err != nil {
		return err
	}
	s.swept, s.more = 0, len(ids) == sweepRecords
	names := make([]string, len(ids))
	for i, expired := range ids {
		names[i] = expired.id
	}
	passed, err := e.each(ctx, names, func(i int, r *record.Record) error {
		if r == nil || !r.ExpiredAt(s.now) {
			e.tx.Delete(kv.Records, ids[i].key)
			return nil
		}
		if err := e.remove(ctx, r); err != nil {
			return err
		}
		s.swept++
		return nil
	})
	if err != nil {
		return err
	}
	s.more = s.more || passed < len(ids)
	if !s.more {
		for _, entry := range s.entries {
			e.tx.Delete(kv.System, entry.key())
		}
	}
	return nil
}

// each calls do with records by their ids, nil for one that is gone, until the commit is large
// enough, and returns how many it has passed.
func (e *edit) each(ctx context.Context, ids []string, do func(i int, r *record.Record) error) (passed int, err error) {
	ids = ids[:min(len(ids), sweepRecords)]
	records := make([]*record.Record, len(ids)) // read at once: each later read writes the index first
	if err := record.Each(ctx, e.tx, record.Keys(e.scope, ids), func(i int, r *record.Record, _ int) error {
		records[i] = r
		return nil
	}); err != nil {
		return 0, err
	}
	for i, id := range ids {
		if i > 0 && e.full() {
			return i, nil
		}
		r := records[i]
		if e.removed > 0 { // the record was perhaps written meanwhile
			if r, _, err = e.read(ctx, id); err != nil {
				return i, err
			}
		}
		if err := do(i, r); err != nil {
			return i, err
		}
	}
	return len(ids), nil
}

// full reports whether a commit has removed as much as one may, or reads slowly: what a record has
// besides is read one by one, all on one snapshot.
func (e *edit) full() bool { return e.removed > sweepBytes || time.Since(e.begun) > kv.ReadTime }

// expired names a record that has expired, and the key that says so.
type expired struct {
	id  string
	key []byte
}

// readExpired returns the first records of a scope behind a key that have expired, at most
// sweepRecords.
func readExpired(ctx context.Context, from kv.Getter, scope kv.Scope, now time.Time, after []byte) ([]expired, error) {
	prefix := scope.Key(tagExpiry)
	start := prefix
	if after != nil {
		start = append(slices.Clone(after), 0)
	}
	until := kv.Range{Start: start, End: kv.After(expiryBound(scope, now)), Limit: sweepRecords}
	const moment = 8
	var found []expired
	for pair, err := range from.Scan(ctx, kv.Records, until) {
		if err != nil {
			return nil, err
		}
		if len(pair.Key) <= len(prefix)+moment {
			return nil, fmt.Errorf("%w: moment of expiry without a record", ErrDamaged)
		}
		found = append(found, expired{string(pair.Key[len(prefix)+moment:]), pair.Key})
	}
	return found, nil
}

// replacedError names a scope in which records have expired that had replaced others, which
// are to be found again.
type replacedError struct{ scope kv.Scope }

func (e *replacedError) Error() string {
	return "memory: replaced records in " + e.scope.String() + " are not restored yet"
}

// restore takes off the disk, before the sweep does, what has expired in a scope and had
// replaced other records: these are there again from that moment on. Readers that come upon it
// call it. If it fails they answer without: a reader needs no room on the disk.
func (s *Store) restore(ctx context.Context, scope kv.Scope) {
	now := record.StoredTime(s.now())
	if err := s.restoreAt(ctx, scope, now); err != nil && ctx.Err() == nil {
		s.logger.WarnContext(ctx, "memory: what an expired record had replaced is not restored", "scope", scope.String(), "error", err)
	}
}

func (s *Store) restoreAt(ctx context.Context, scope kv.Scope, now time.Time) error {
	var after []byte
	for {
		found, err := readExpired(ctx, s.engine, scope, now, after)
		if err != nil || len(found) == 0 {
			return err
		}
		after = found[len(found)-1].key
		ids := make([]string, len(found))
		for i := range found {
			ids[i] = found[i].id
		}
		var replacing []Deleted
		err = record.Each(ctx, s.engine, record.Keys(scope, ids), func(i int, r *record.Record, _ int) error {
			if r != nil && r.Supersedes != "" && r.ExpiredAt(now) {
				replacing = append(replacing, Deleted{ID: ids[i]})
			}
			return nil
		})
		if err != nil {
			return err
		}
		for len(replacing) > 0 {
			passed := 0
			staging := &Staging{store: s, scope: scope, expires: true, run: func(ctx context.Context, e *edit) (err error) {
				passed, err = e.removeExpired(ctx, replacing, now)
				return err
			}}
			if err := staging.alone(ctx, false); err != nil {
				return err
			}
			replacing = replacing[passed:]
		}
	}
}

// removeExpired removes the records that have expired and had replaced others, until the commit is large
// enough, and returns how many it has looked at.
func (e *edit) removeExpired(ctx context.Context, found []Deleted, now time.Time) (passed int, err error) {
	return e.each(ctx, idsOf(found), func(_ int, r *record.Record) error {
		if r == nil || !r.ExpiredAt(now) || r.Supersedes == "" {
			return nil
		}
		replaced, _, err := e.read(ctx, r.Supersedes)
		if err != nil || replaced == nil || replaced.SupersededBy != r.ID {
			return err // the sweep takes one that replaces nothing
		}
		return e.remove(ctx, r)
	})
}

// sweepEvery sweeps from time to time, until ctx ends.
func (s *Store) sweepEvery(ctx context.Context, pause time.Duration) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for renewed := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !renewed {
			s.renew(ctx)
			renewed = true
		}
		if _, err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.logger.ErrorContext(ctx, "memory: expired records not swept", "error", err)
		}
	}
}

// slideSteps: reading a record extends its expiry only if that gains at least this fraction of
// its lifetime, so that a record read all the time is not written all the time.
const slideSteps = 10

// slide is a record that was read and has its expiry moved.
type slide struct {
	scope kv.Scope
	id    string
}

// touched notes that records were read. It does not wait.
func (s *Store) touched(scope kv.Scope, rs ...record.Record) {
	for i := range rs {
		if r := &rs[i]; r.SlidingTTL > 0 && slidesAt(r, s.now()) {
			s.slides.Add(slide{scope, r.ID})
		}
	}
}

// slidesAt reports whether reading the record then moves its expiry.
func slidesAt(r *record.Record, now time.Time) bool {
	gain := now.Add(r.SlidingTTL).Sub(r.ExpireTime)
	return r.SlidingTTL > 0 && !r.ExpiredAt(now) && gain > 0 && gain >= r.SlidingTTL/slideSteps
}

// slideRead moves the expiry of records that were read, until ctx ends.
func (s *Store) slideRead(ctx context.Context) {
	s.slides.Run(ctx, func(ctx context.Context, w slide) {
		if err := s.slide(ctx, w); err != nil && ctx.Err() == nil && !errors.Is(err, ErrNotFound) {
			s.logger.ErrorContext(ctx, "memory: expiry not moved", "scope", w.scope.String(), "id", w.id, "error", err)
		}
	})
}

// slide moves the expiry of one record.
func (s *Store) slide(ctx context.Context, w slide) error {
	now := record.StoredTime(s.now())
	staging := &Staging{store: s, scope: w.scope, expires: true, run: func(ctx context.Context, e *edit) error {
		old, stored, err := e.named(ctx, w.id, "", 0, now)
		if err != nil || !slidesAt(old, now) {
			return err
		}
		next, err := s.redraft(stored, *old, func(r *record.Record) error {
			r.ExpireTime = record.StoredTime(now.Add(r.SlidingTTL))
			return nil
		})
		if err != nil {
			return err
		}
		return e.replace(ctx, old, next, true)
	}}
	return staging.alone(ctx, true)
}
