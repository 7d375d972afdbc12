package pgkv_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv"
)

// A view that waits for the database holds up the end of no other.
func TestSlowViewKeepsNoOtherAlive(t *testing.T) {
	address := pgtest.Address(t)
	schema := pgtest.Schema(t, address)
	db := open(t, pgkv.Options{Schema: schema, SnapshotLife: shortLife})
	defer db.Close()
	slow, err := db.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	other, err := db.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()

	locking := connect(t, address)
	defer func() { _ = locking.Close(t.Context()) }()
	tx, err := locking.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE "+pgx.Identifier{schema, "blobs"}.Sanitize()+" IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	key := kv.AgentScope("t", "a").Key('k')
	read := make(chan error, 1)
	go func() {
		_, err := slow.Get(t.Context(), kv.Blobs, key)
		read <- err
	}()
	for end := time.Now().Add(5 * time.Minute); ; {
		if _, err = other.Get(t.Context(), kv.Records, key); err != nil || time.Now().After(end) {
			break
		}
		time.Sleep(shortLife / 10)
	}
	if !errors.Is(err, kv.ErrTooOld) {
		t.Errorf("a view long past its life: %v, want kv.ErrTooOld", err)
	}
	select {
	case err := <-read:
		t.Errorf("the other read did not wait: %v", err)
	default:
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err != nil && !errors.Is(err, kv.ErrTooOld) {
		t.Error(err)
	}
}
