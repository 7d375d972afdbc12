package memory

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// Deletion names a record that is to go.
type Deletion struct {
	// ID names the record, or Key does. Give one of the two.
	ID, Key string
	// ExpectedVersion is the version that the record must have. Zero: any.
	ExpectedVersion int64
}

// Deleted is a record that went.
type Deleted struct {
	// ID was its id.
	ID string
	// Version was its last one.
	Version int64
}

// Delete takes a record out of memory: its text, words, vector, key and earlier
// versions. A record that it had superseded stays superseded, and one that was
// derived from it goes on naming it.
//
// A request id makes the call safe to repeat, as with Save.
//
// Errors: *invalid.Error, *NotFoundError, *VersionError, *OwnedError. After any of
// them nothing has changed.
func (s *Store) Delete(ctx context.Context, scope kv.Scope, d Deletion, requestID string) (Deleted, error) {
	deletion, err := s.StageDelete(scope, d, requestID)
	if err != nil {
		return Deleted{}, err
	}
	deletion.actor = actorOf(ctx)
	if err := deletion.commit(ctx, "memory: delete"); err != nil {
		return Deleted{}, err
	}
	return Deleted{ID: deletion.records[0].ID, Version: deletion.records[0].Version}, nil
}

// StageDelete prepares a commit of the caller's to do what Delete does.
func (s *Store) StageDelete(scope kv.Scope, d Deletion, requestID string) (*Staging, error) {
	if err := s.begin(scope); err != nil {
		return nil, err
	}
	if err := checkRequestID(requestID); err != nil {
		return nil, err
	}
	if err := checkNamed(d.ID, d.Key, d.ExpectedVersion); err != nil {
		return nil, err
	}
	del := &deleting{scope: scope, deletion: d, requestID: requestID, now: record.StoredTime(s.now())}
	return &Staging{store: s, scope: scope, run: del.stage}, nil
}

// deleting is a deletion under way.
type deleting struct {
	scope     kv.Scope
	deletion  Deletion
	requestID string
	now       time.Time
}

// stage is the deletion's part of a commit.
func (d *deleting) stage(ctx context.Context, e *edit) error {
	ref, digest := recordsRef(d.scope), d.content()
	answer, replayed, err := kv.LookupOnceOf(ctx, e.tx, ref, e.actor.Agent, d.requestID, digest)
	if err != nil {
		return err
	}
	if replayed {
		gone, err := record.Record{}.WithAnswer(answer)
		e.result = []record.Record{gone}
		return err
	}
	r, _, err := e.named(ctx, d.deletion.ID, d.deletion.Key, d.deletion.ExpectedVersion, d.now)
	if err != nil {
		return err
	}
	if err := e.remove(ctx, r); err != nil {
		return err
	}
	gone := record.Record{ID: r.ID, Version: r.Version}
	e.result = []record.Record{gone}
	kv.StageOnceOf(e.tx, ref, e.actor.Agent, d.requestID, digest, record.EncodeChangeAnswer(gone), d.now)
	return nil
}

// content stands for what a repeated request is compared by.
func (d *deleting) content() [sha256.Size]byte {
	b := wire.AppendText([]byte("delete"), 1, d.deletion.ID)
	b = wire.AppendText(b, 2, d.deletion.Key)
	return sha256.Sum256(wire.AppendInt(b, 3, d.deletion.ExpectedVersion))
}

func checkRequestID(id string) error { return record.CheckName("request_id", id, MaxRequestIDBytes) }

// checkNamed refuses to look for a record that is not named by one of id and
// key.
func checkNamed(id, key string, expected int64) error {
	switch {
	case id != "" && key != "":
		return invalid.Field(ErrInvalid, "key", "and id are both set")
	case expected < 0:
		return invalid.Field(ErrInvalid, "expected_version", "is less than one")
	case key != "":
		return record.CheckName("key", key, record.MaxKeyBytes)
	}
	return record.CheckID("id", id)
}
