package relations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// MaxNames bounds the names that a listing or a query asks for.
const MaxNames = 16

// CheckNames refuses names that no relation has, and too many of them.
func CheckNames(field string, names []string) error {
	if len(names) > MaxNames {
		return invalid.Field(record.ErrInvalid, field, "are %d, more than %d", len(names), MaxNames)
	}
	for _, name := range names {
		if problem := record.RelationProblem(name); problem != "" {
			return invalid.Field(record.ErrInvalid, field, "holds %.80q, which %s", name, problem)
		}
	}
	return nil
}

// Tags of the records keyspace: each relation has a key under both of its ends.
const (
	tagFrom = 'o'
	tagTo   = 'i'
)

// ErrFull: a record has as many relations as it may have.
var ErrFull = errors.New("memory: record has as many relations as it may have")

// Relation is an edge from one record to another.
type Relation = record.Relation

// keysOf are where a relation stands: under the record that it goes out from, and under the
// one that it comes to.
func keysOf(scope kv.Scope, r Relation) (from, to []byte) {
	from = kv.AppendEscaped(kv.AppendEscaped(scope.Key(tagFrom), r.From), r.Name)
	to = kv.AppendEscaped(kv.AppendEscaped(scope.Key(tagTo), r.To), r.Name)
	return append(from, r.To...), append(to, r.From...)
}

// fieldTime is when a relation was made, in its value, or the moment of tagForgotten.
const fieldTime = 1

// Find returns a relation with its Time; false if it does not stand.
func Find(ctx context.Context, from kv.Getter, scope kv.Scope, r Relation) (Relation, bool, error) {
	key, _ := keysOf(scope, r)
	values, err := from.Get(ctx, kv.Records, key)
	if err != nil || values[0] == nil {
		return r, false, err
	}
	r.Time, err = decodeTime(values[0])
	return r, err == nil, err
}

// Key is the key that a relation is found by.
func Key(scope kv.Scope, r Relation) []byte {
	key, _ := keysOf(scope, r)
	return key
}

// Counts has how many relations go out from and come to the records of one commit, so that
// each is counted once. It is to be cleared where relations are dropped.
type Counts map[counted]int

// counted is one way of a record.
type counted struct {
	way Way
	id  string
}

// None notes that a record has no relations, unless it was counted.
func (c Counts) None(id string) {
	for _, way := range []Way{Out, In} {
		if _, known := c[counted{way, id}]; !known {
			c[counted{way, id}] = 0
		}
	}
}

// Put stages a relation that is not there. ErrFull when one of its ends has too many.
func Put(ctx context.Context, tx *kv.Tx, scope kv.Scope, r Relation, counts Counts) error {
	for _, end := range []counted{{Out, r.From}, {In, r.To}} {
		most := record.MaxRelationsFrom
		if end.way == In {
			most = record.MaxRelationsTo
		}
		n, known := counts[end]
		if !known {
			there, _, err := Of(ctx, tx, scope, end.id, Selection{Way: end.way, Limit: most})
			if err != nil {
				return err
			}
			n = len(there)
		}
		if n >= most {
			return fmt.Errorf("%w: %d go %s record %q", ErrFull, most, end.way, end.id)
		}
		counts[end] = n + 1
	}
	from, to := keysOf(scope, r)
	tx.Put(kv.Records, from, wire.AppendTime(nil, fieldTime, r.Time))
	tx.Put(kv.Records, to, []byte{})
	return nil
}

// Drop stages the end of a relation, and returns how many bytes it writes.
func Drop(tx *kv.Tx, scope kv.Scope, r Relation) int {
	from, to := keysOf(scope, r)
	tx.Delete(kv.Records, from)
	tx.Delete(kv.Records, to)
	return len(from) + len(to)
}

// Way is the direction of relations, as a record sees them.
type Way uint8

// The ways. The zero value is Both.
const (
	// Both: first outgoing, then incoming relations.
	Both Way = iota
	// Out: from the record.
	Out
	// In: to the record.
	In
)

func (w Way) String() string {
	return [...]string{"both ways of", "out from", "in to"}[w]
}

// Selection says which relations of a record are read.
type Selection struct {
	Way Way
	// Names are the relation names to read; empty: all.
	Names []string
	// Limit bounds how many keys are looked at; zero for all there may be.
	Limit int
	// At, unless zero, is the moment as of which they are read.
	At time.Time
	// ValidAt, unless zero, includes relations that had ended by At but not by ValidAt.
	// Their creation time is ignored: a relation holds for as long as both of its records
	// do.
	ValidAt time.Time
}

// EndedBy is the moment by which relations that have ended do not count.
func (s Selection) EndedBy() time.Time {
	if s.At.IsZero() || !s.ValidAt.IsZero() && s.ValidAt.Before(s.At) {
		return s.ValidAt
	}
	return s.At
}

func (s Selection) wants(r Relation) bool {
	return len(s.Names) == 0 || slices.Contains(s.Names, r.Name)
}

// Of returns relations of a record, first outgoing ones, each group by name and other end,
// and the number of keys read: equal to Limit if some may be left out. Incoming relations
// have no time unless At or ValidAt is given.
func Of(ctx context.Context, from kv.Getter, scope kv.Scope, id string, s Selection) (found []Relation, looked int, err error) {
	if !(s.At.IsZero() && s.ValidAt.IsZero()) {
		return then(ctx, from, scope, id, s)
	}
	for _, way := range []Way{Out, In} {
		if s.Way != Both && s.Way != way {
			continue
		}
		tag := byte(tagFrom)
		if way == In {
			tag = tagTo
		}
		prefix := kv.AppendEscaped(scope.Key(tag), id)
		all := kv.Prefix(prefix)
		if s.Limit > 0 {
			if all.Limit = s.Limit - looked; all.Limit == 0 {
				return found, looked, nil
			}
		}
		for pair, err := range from.Scan(ctx, kv.Records, all) {
			if err != nil {
				return nil, 0, err
			}
			looked++
			r, err := decode(id, way, pair.Key[len(prefix):], pair.Value)
			if err != nil {
				return nil, 0, err
			}
			if s.wants(r) {
				found = append(found, r)
			}
		}
	}
	return found, looked, nil
}

// decode reads what stands under a record.
func decode(id string, way Way, rest, value []byte) (Relation, error) {
	name, other, err := kv.CutEscaped(rest)
	if err != nil || name == "" || len(other) == 0 {
		return Relation{}, fmt.Errorf("%w: a relation under record %q", record.ErrDamaged, id)
	}
	if way == In {
		return Relation{From: string(other), Name: name, To: id}, nil
	}
	r := Relation{From: id, Name: name, To: string(other)}
	if r.Time, err = decodeTime(value); err != nil {
		return Relation{}, fmt.Errorf("relation %q of record %q: %w", name, id, err)
	}
	return r, nil
}

// Complete reads when relations were made that come to a record.
func Complete(ctx context.Context, from kv.Getter, scope kv.Scope, all []Relation) error {
	var keys [][]byte
	var places []int
	for i, r := range all {
		if r.Time.IsZero() {
			key, _ := keysOf(scope, r)
			keys, places = append(keys, key), append(places, i)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	values, err := from.Get(ctx, kv.Records, keys...)
	if err != nil {
		return err
	}
	for n, value := range values {
		r := &all[places[n]]
		if value == nil {
			return fmt.Errorf("%w: relation %q of record %q stands under the other end alone", record.ErrDamaged, r.Name, r.From)
		}
		prefix := kv.AppendEscaped(scope.Key(tagFrom), r.From)
		if *r, err = decode(r.From, Out, keys[n][len(prefix):], value); err != nil {
			return err
		}
	}
	return nil
}

// Each reads all relations of a scope back: from each end, in the order of its keys.
func Each(ctx context.Context, from kv.Getter, scope kv.Scope, way Way, see func(Relation) error) error {
	tag := byte(tagFrom)
	if way == In {
		tag = tagTo
	}
	return each(ctx, from, scope, tag, func(id string, rest, value []byte) error {
		r, err := decode(id, way, rest, value)
		if err != nil {
			return err
		}
		return see(r)
	})
}

// each reads what stands under a tag back: the record, and the rest of the key.
func each(ctx context.Context, from kv.Getter, scope kv.Scope, tag byte, see func(id string, rest, value []byte) error) error {
	prefix := scope.Key(tag)
	for pair, err := range from.Scan(ctx, kv.Records, kv.Prefix(prefix)) {
		if err != nil {
			return err
		}
		id, rest, err := kv.CutEscaped(pair.Key[len(prefix):])
		if err != nil {
			return fmt.Errorf("%w: key of a relation %x", record.ErrDamaged, pair.Key)
		}
		if err := see(id, rest, pair.Value); err != nil {
			return err
		}
	}
	return nil
}

// Check compares the two keys of every relation of a scope, including ended ones, with each
// other and with the existing records; report is called for each fault.
func Check(ctx context.Context, from kv.Getter, scope kv.Scope, has func(id string) bool, report func(format string, args ...any)) error {
	type edge struct{ from, name, to string }
	out := make(map[edge]bool)
	err := Each(ctx, from, scope, Out, func(r Relation) error {
		out[edge{r.From, r.Name, r.To}] = true
		for _, id := range []string{r.From, r.To} {
			if !has(id) {
				report("relation %q from record %q to %q: there is no record %q that has relations", r.Name, r.From, r.To, id)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = Each(ctx, from, scope, In, func(r Relation) error {
		e := edge{r.From, r.Name, r.To}
		if !out[e] {
			report("relation %q from record %q to %q stands under the second alone", r.Name, r.From, r.To)
		}
		delete(out, e)
		return nil
	})
	for e := range out {
		report("relation %q from record %q to %q stands under the first alone", e.name, e.from, e.to)
	}
	if err != nil {
		return err
	}
	return checkEnded(ctx, from, scope, has, report)
}
