package blob_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/context/blob"
)

// Uploads that are given up count against the quota until what they left is a day
// old, so that they can't fill the disk; those that become blobs count once.
func TestUploadsThatAreGivenUpCount(t *testing.T) {
	const size = 2*blob.ChunkBytes + 1
	f := newFixtureWith(t, blob.Options{MaxOwnerBytes: 3 * size})
	giveUp := func(seed uint64) error {
		u := f.Create(t.Context(), alice)
		defer u.Abort()
		_, err := u.ReadFrom(bytes.NewReader(noise(seed, size)))
		return err
	}
	f.mustStage(t, alice, noise(1, size), blob.Entry{StepID: "step_001", Category: "read"})
	given := 0
	for err := error(nil); err == nil; given++ {
		if err = giveUp(uint64(10 + given)); err != nil && !errors.Is(err, blob.ErrQuota) {
			t.Fatal(err)
		}
		if given > 3 {
			t.Fatal("uploads that are given up take no room")
		}
	}
	f.mustStage(t, bob, noise(1, size), blob.Entry{StepID: "step_001", Category: "read"})
	f.now = f.now.Add(25 * time.Hour)
	f.mustStage(t, alice, noise(2, size), blob.Entry{StepID: "step_002", Category: "read"})
	f.mustStage(t, alice, noise(3, size), blob.Entry{StepID: "step_003", Category: "read"})
	f.checkUsage(t, alice, 3, 3*size)
}
