package main

import (
	"crypto/rand"
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// A client that has filled the disk makes room by deleting, and saves again, while the server
// runs on.
func TestFullDiskIsFreedByItsClientSoak(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=200m"); err != nil {
		t.Skipf("a disk of its own needs root: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	p := MustRunIn(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(disk, "store"), "--workspace", t.TempDir(), "--log-level", "off", "--max-store-bytes", "10GiB")
	save := func() (string, error) {
		// Without words, since those would be indexed, and nothing that packs well.
		text := make([]byte, 250<<10)
		_, _ = rand.Read(text) // never fails
		for i := range text {
			text[i] = '!' + text[i]%15
		}
		saved, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Text: string(text)})
		return saved.GetId(), err
	}
	var ids []string
	var full error
	for full == nil && len(ids) < 2000 {
		var id string
		if id, full = save(); full == nil {
			ids = append(ids, id)
		}
	}
	if reasonOf(full) != "STORAGE_FULL" {
		t.Fatalf("after %d saves: %v", len(ids), full)
	}
	memories := loombridgev1.NewMemoryServiceClient(p.conn)
	for i, id := range ids {
		// A compaction under way may have taken what is kept back; it gives that back as it ends.
		eventually(t, waitTime, func() error {
			_, err := memories.DeleteRecords(t.Context(), &loombridgev1.DeleteRecordsRequest{AgentId: "a", Name: &loombridgev1.DeleteRecordsRequest_Id{Id: id}})
			if err != nil && reasonOf(err) != "STORAGE_FULL" {
				t.Fatalf("delete %d of %d on a full disk: %v", i, len(ids), err)
			}
			return err
		})
	}
	eventually(t, waitTime, func() error {
		if _, err := save(); err != nil {
			return errors.Join(errors.New("there is no room again"), err)
		}
		return nil
	})
}
