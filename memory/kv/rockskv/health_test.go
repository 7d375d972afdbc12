//go:build linux && cgo && !norocksdb

package rockskv_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

func condition(db *rockskv.DB) kv.Condition {
	c, _ := db.Health().Condition()
	return c
}

// TestHealthOfAFullDisk wants a full disk noticed although nobody writes, and again
// that it has room.
func TestHealthOfAFullDisk(t *testing.T) {
	mount := mustMount(t, 110)
	db := mustOpen(t, filepath.Join(mount, "store"), nil)
	defer db.Close()
	mustCommit(t, db, putA("1"))
	if c := condition(db); c.Failed != nil || len(c.Damaged) > 0 {
		t.Fatalf("at first: %v", c)
	}
	ballast := filepath.Join(mount, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 200<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	eventually(t, "a full disk is noticed", func() bool { return errors.Is(condition(db).Failed, kv.ErrFull) })
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there is room again", func() bool { return condition(db).Failed == nil })
	mustCommit(t, db, putA("3"))
	wantA(t, db, "3")
}

// TestHealthOfAFailedSync wants the store to stay failed after a sync that failed:
// nobody knows what is on disk.
func TestHealthOfAFailedSync(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir, nil)
	mustCommit(t, db, putA("1"))
	replaceLog(t, dir, "/dev/null", os.O_WRONLY)
	if err := db.Commit(t.Context(), putA("2")); !errors.Is(err, kv.ErrUnknownOutcome) {
		t.Fatalf("commit: error %v, want ErrUnknownOutcome", err)
	}
	if c := condition(db); !errors.Is(c.Failed, kv.ErrFailed) {
		t.Errorf("after a failed sync: %v", c)
	}
}

// TestHealthOfDamage reads a damaged table and wants its keyspace noted, by a read
// and by reading all back, and forgotten when that finds everything whole.
func TestHealthOfDamage(t *testing.T) {
	dir := t.TempDir()
	mustStore(t, dir)
	db := mustOpen(t, dir, nil) // with what the first one had in its log in a table
	table := mustGlob(t, dir, "*.sst")
	harm := func() {
		f, err := os.OpenFile(table, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var first [1]byte
		if _, err := f.ReadAt(first[:], 20); err != nil {
			t.Fatal(err)
		}
		first[0] ^= 1
		if _, err := f.WriteAt(first[:], 20); err != nil {
			t.Fatal(err)
		}
	}
	verify := func() (found []*kv.DamageError) {
		err := db.Verify(t.Context(), kv.Verification{Found: func(d *kv.DamageError) error { found = append(found, d); return nil }})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := verify(); len(found) > 0 {
		t.Errorf("before the damage: %v", found)
	}
	harm()
	if found := verify(); len(found) != 1 || found[0].Keyspace != kv.Records || found[0].File != filepath.Base(table) {
		t.Errorf("damage found: %v", found)
	}
	if _, err := db.Get(t.Context(), kv.Records, keyA); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("get: error %v, want ErrDamaged", err)
	}
	if c := condition(db); c.Failed != nil || !errors.Is(c.Damaged[kv.Records], kv.ErrDamaged) || len(c.Damaged) != 1 {
		t.Errorf("after reading it: %v", c)
	}
}

// TestVerifyBesideWriters reads a store back while it is written to: nothing is
// wrong with it, although tables come and go.
func TestVerifyBesideWriters(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir, nil)
	done := make(chan error, 1)
	go func() {
		for n := range uint64(2000) {
			c := numbered(0, n+1)
			c.Lazy = n%50 > 0
			if err := db.Commit(t.Context(), c); err != nil {
				done <- err
				return
			}
			if n%400 == 399 {
				if err := db.Flush(); err != nil {
					done <- err
					return
				}
			}
		}
		done <- nil
	}()
	passes := 0
	for {
		err := db.Verify(t.Context(), kv.Verification{
			Found: func(d *kv.DamageError) error { return d },
			Read: func(done, total int64) error {
				if done > total {
					t.Errorf("%d bytes of %d were read", done, total)
				}
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		passes++
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d passes", passes)
			return
		default:
		}
	}
}
