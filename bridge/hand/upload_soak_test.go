//go:build cgo && !norocksdb

package hand_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// TestSoakStepsBesideUploads does so with uploads on a store on disk, a second for
// each round.
func TestSoakStepsBesideUploads(t *testing.T) {
	const uploads, uploadBytes = 16, 60 << 20
	d, err := openDurable(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.db.Close()
	stop := time.Now().Add(soakTime(t))
	var seed, written atomic.Int64
	var users sync.WaitGroup
	for range uploads {
		users.Go(func() {
			for time.Now().Before(stop) {
				upload := d.blobs.Create(t.Context(), agent)
				random := rand.New(rand.NewPCG(uint64(seed.Add(1)), 0))
				for n := 0; n < uploadBytes && time.Now().Before(stop); n += blob.ChunkBytes {
					// Every piece differs from all others, and none is short.
					piece := bytes.Repeat(fmt.Append(nil, random.Uint64()), blob.ChunkBytes/20)
					if _, err := upload.Write(piece); err != nil {
						t.Error(err)
					}
					written.Add(int64(len(piece)))
				}
				upload.Abort()
			}
		})
	}
	steps := 0
	for ; time.Now().Before(stop); steps++ {
		a, err := d.Record(t.Context(), largeReport(steps))
		if err != nil || !a.Recorded {
			t.Errorf("step %d: conflict %v: %+v, %v", steps, errors.Is(err, kv.ErrConflict), a, err)
		}
	}
	users.Wait()
	if conflicts := d.db.Stats().Conflicts; conflicts != 0 {
		t.Errorf("%d conflicts, want none: nobody else writes to the store", conflicts)
	}
	t.Logf("%d steps beside %d MiB of uploads", steps, written.Load()>>20)
}

// soakTime is two seconds, or a second for each of LOOM_SOAK_ROUNDS.
func soakTime(tb testing.TB) time.Duration {
	tb.Helper()
	rounds := 2
	if text := os.Getenv("LOOM_SOAK_ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			tb.Fatalf("LOOM_SOAK_ROUNDS: %v", err)
		}
	}
	return time.Duration(rounds) * time.Second
}
