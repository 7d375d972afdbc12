package memory

import (
	"context"
	"crypto/sha256"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// SaveOrReplace is Save for a record with a key that may be taken: the record that has it
// then becomes this one, with its id, its create time and the next version. Every field is
// as r says, those that r leaves empty included, and what the record was is kept as an
// earlier version. Whether it is saved or replaced is decided in the commit, so that of many
// callers at once none fails.
//
// r has a key and no id, and supersedes nothing. A request id makes the call safe to
// repeat, as with Save; a repeated call is a *NotFoundError when the record has been deleted
// since.
//
// Errors: *invalid.Error; *NotFoundError for a record that it derives from; *OwnedError for
// one that another agent saved. After any of them nothing has changed.
func (s *Store) SaveOrReplace(ctx context.Context, scope kv.Scope, r record.Record, requestID string) (record.Record, error) {
	staging, err := s.stageReplace(ctx, scope, r, requestID)
	if err != nil {
		return record.Record{}, err
	}
	staging.actor = actorOf(ctx)
	if err := staging.commit(ctx, "memory: save or replace"); err != nil {
		return record.Record{}, err
	}
	return staging.records[0], nil
}

func (s *Store) stageReplace(ctx context.Context, scope kv.Scope, r record.Record, requestID string) (*Staging, error) {
	if err := s.begin(scope); err != nil {
		return nil, err
	}
	if err := checkRequestID(requestID); err != nil {
		return nil, err
	}
	switch {
	case r.Key == "":
		return nil, invalid.Field(ErrInvalid, "key", "is required with replace")
	case r.ID != "":
		return nil, invalid.Field(ErrInvalid, "id", "can't be given with replace: the key names the record")
	case r.Supersedes != "":
		return nil, invalid.Field(ErrInvalid, "supersedes", "can't be given with replace")
	}
	save := &saving{scope: scope, now: record.StoredTime(s.now()), drafts: make([]draft, 1)}
	if err := save.drafts[0].check(r, save.now); err != nil {
		return nil, err
	}
	replace := &replacing{save: save, requestID: requestID}
	replace.update = &updating{scope: scope, update: Update{Key: r.Key, Fields: allFields, Values: record.Normalize(r)}, now: save.now}
	if requestID != "" {
		replace.digest = sha256.Sum256(save.drafts[0].content([]byte("replace")))
	}
	if err := s.complete(save); err != nil {
		return nil, err
	}
	replace.update.guess = s.guess(ctx, replace.update)
	return &Staging{store: s, scope: scope, expires: true, run: replace.stage}, nil
}

// replacing is a save that becomes an update where the key is taken.
type replacing struct {
	save      *saving
	update    *updating
	requestID string
	digest    [sha256.Size]byte
}

// stage is its part of a commit.
func (r *replacing) stage(ctx context.Context, e *edit) error {
	ref := recordsRef(r.save.scope)
	answer, replayed, err := kv.LookupOnceOf(ctx, e.tx, ref, e.actor.Agent, r.requestID, r.digest)
	if err != nil {
		return err
	}
	if replayed {
		return r.update.replay(ctx, e, answer)
	}
	taken, err := r.taken(ctx, e)
	if err != nil {
		return err
	}
	change := r.save.stage
	if taken {
		change = r.update.stage
	}
	if err := change(ctx, e); err != nil {
		return err
	}
	kv.StageOnceOf(e.tx, ref, e.actor.Agent, r.requestID, r.digest, record.EncodeChangeAnswer(e.result[0]), r.save.now)
	return nil
}

// taken tells whether a record has the key. That of one that has expired is free.
func (r *replacing) taken(ctx context.Context, e *edit) (bool, error) {
	id, err := e.get(ctx, record.NameKey(e.scope, r.update.update.Key))
	if err != nil || id == nil {
		return false, err
	}
	holder, _, err := e.read(ctx, string(id))
	return holder != nil && !holder.ExpiredAt(r.save.now), err
}
