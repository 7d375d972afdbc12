package memory

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// freeNames reads all ids and keys at once that the records are to take, and
// returns the stored keys of those that nobody has.
func (s *saving) freeNames(ctx context.Context, e *edit) (map[string]bool, error) {
	var names [][]byte
	for _, d := range s.drafts {
		if d.givenID {
			names = append(names, record.Key(s.scope, d.record.ID))
		}
		if d.record.Key != "" {
			names = append(names, record.NameKey(s.scope, d.record.Key))
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	values, err := e.tx.Get(ctx, kv.Records, names...)
	if err != nil {
		return nil, err
	}
	free := make(map[string]bool, len(names))
	for i, value := range values {
		free[string(names[i])] = value == nil
	}
	return free, nil
}

// takeID refuses an id that another record has, unless that has expired, in
// which case it goes.
func (s *saving) takeID(ctx context.Context, e *edit, free map[string]bool, r *record.Record) error {
	name := string(record.Key(s.scope, r.ID))
	if free[name] {
		free[name] = false
		return nil
	}
	switch holder, _, err := e.read(ctx, r.ID); {
	case err != nil || holder == nil:
		return err
	case !holder.ExpiredAt(s.now):
		return &ExistsError{"id", r.ID, r.ID}
	default:
		return e.remove(ctx, holder)
	}
}

// takeKey refuses a key that another record has, unless that one is being
// superseded or has expired.
func (s *saving) takeKey(ctx context.Context, e *edit, free map[string]bool, r *record.Record) error {
	if r.Key == "" {
		return nil
	}
	name := record.NameKey(s.scope, r.Key)
	if !free[string(name)] {
		id, err := e.get(ctx, name)
		if err != nil {
			return err
		}
		if err := s.checkHolder(ctx, e, r, string(id)); err != nil {
			return err
		}
	}
	free[string(name)] = false
	e.tx.Put(kv.Records, name, []byte(r.ID))
	return nil
}

func (s *saving) checkHolder(ctx context.Context, e *edit, r *record.Record, id string) error {
	if id == "" {
		return nil
	}
	switch holder, _, err := e.read(ctx, id); {
	case err != nil:
		return err
	case holder == nil:
		return fmt.Errorf("%w: key %q names record %q, which is not there", ErrDamaged, r.Key, id)
	case holder.ID == r.Supersedes || holder.ExpiredAt(s.now):
		return nil
	default:
		return &ExistsError{"key", r.Key, holder.ID}
	}
}

// supersede lets the record that r replaces know by whom, and returns its
// ordinal.
func (s *saving) supersede(ctx context.Context, e *edit, r *record.Record) (uint32, error) {
	if r.Supersedes == "" {
		return 0, nil
	}
	old, stored, err := s.source(ctx, e, "supersedes", r.Supersedes)
	if err != nil {
		return 0, err
	}
	if err := e.actor.may(old); err != nil {
		return 0, err
	}
	if old.SupersededBy != "" {
		return 0, invalid.Field(ErrInvalid, "supersedes", "names record %q, which record %q has replaced already", old.ID, old.SupersededBy)
	}
	e.tx.Put(kv.Records, record.Key(s.scope, old.ID), record.AppendSuperseded(stored, r.ID, s.now))
	return old.Document.Ordinal, nil
}

// source returns a record that the field names, decoded and as stored.
func (s *saving) source(ctx context.Context, e *edit, field, id string) (*record.Record, []byte, error) {
	r, stored, err := e.read(ctx, id)
	if err == nil && (r == nil || r.ExpiredAt(s.now)) {
		err = &NotFoundError{field, id}
	}
	return r, stored, err
}
