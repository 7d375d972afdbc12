//go:build linux && cgo && !norocksdb

package rockskv_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

const (
	// powerSynced is how many commits of a childPower there are to one that is
	// synced, and powerFlushed to one behind which another log begins.
	powerSynced  = 6
	powerFlushed = 150
)

// childPower commits alone, mostly lazily, and kills itself after a while. After each
// synced commit it prints how long every log is: so much is on disk, and no more
// when it dies.
func childPower(db *rockskv.DB, dir string) error {
	ctx := context.Background()
	end := time.Now().Add(rand.N(400 * time.Millisecond))
	found, err := db.Sequence(ctx, kv.Ref{Keyspace: kv.Records, Scope: writerScope(0)})
	if err != nil {
		return err
	}
	for n := found[0] + 1; ; n++ {
		c := numbered(0, n)
		// Records of all sizes, some over many pages.
		c.Guards = append(c.Guards, kv.Guard{Ref: kv.Ref{Keyspace: kv.Blobs, Scope: writerScope(0)}, Any: true})
		c.Batch.Put(kv.Blobs, writerScope(0).Key('x'), make([]byte, rand.IntN(1+1<<rand.IntN(17))))
		c.Lazy = rand.IntN(powerSynced) > 0
		if err := db.Commit(ctx, c); err != nil {
			return err
		}
		if !c.Lazy {
			fmt.Printf("synced %d%s\n", n, logSizes(dir))
		}
		if time.Now().After(end) {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		if rand.IntN(powerFlushed) == 0 {
			copied := dir + ".copy"
			if err := db.Checkpoint(ctx, copied); err != nil {
				return err
			}
			if err := os.RemoveAll(copied); err != nil {
				return err
			}
		}
	}
}

// logSizes are the names and sizes of the logs in dir, each behind a space.
func logSizes(dir string) string {
	paths, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	text := ""
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			text += fmt.Sprintf(" %s=%d", filepath.Base(path), info.Size())
		}
	}
	return text
}

// TestSoakPowerLoss takes the power away from a child: what it had not synced of its
// logs comes back in part, in any order, or not at all. The store opens, and
// everything that was synced is there.
func TestSoakPowerLoss(t *testing.T) {
	t.Parallel()
	rounds := 5
	if os.Getenv("LOOM_SOAK_ROUNDS") != "" {
		rounds = soakRounds(t)
	}
	seed := chance.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := filepath.Join(t.TempDir(), "store")
	lost := uint64(0)
	for round := range rounds {
		synced, onDisk := runUntilPowerLoss(t, dir)
		next := filepath.Join(t.TempDir(), "store")
		losePower(t, random, dir, next, onDisk)
		dir = next
		db := mustOpen(t, dir, nil)
		found := wantWhole(t, db, 0)
		if found < synced {
			t.Errorf("round %d: %d commits were on disk, %d came back", round, synced, found)
		}
		lost += max(synced, found) - found
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d losses of power, %d commits lost that were synced", rounds, lost)
}

// runUntilPowerLoss lets a child commit to dir until it dies. It returns the last
// commit that was synced and how much of each log is on disk.
func runUntilPowerLoss(t *testing.T, dir string) (synced uint64, onDisk map[string]int64) {
	t.Helper()
	c := mustStart(t, "power", dir, nil)
	c.mustSay(t, "open")
	onDisk = make(map[string]int64)
	for c.lines.Scan() {
		fields := strings.Fields(c.lines.Text())
		if len(fields) < 2 || fields[0] != "synced" {
			t.Fatalf("child says %q", c.lines.Text())
		}
		if _, err := fmt.Sscan(fields[1], &synced); err != nil {
			t.Fatal(err)
		}
		for _, field := range fields[2:] {
			name, size, _ := strings.Cut(field, "=")
			var n int64
			if _, err := fmt.Sscan(size, &n); err != nil {
				t.Fatal(err)
			}
			onDisk[name] = n
		}
	}
	_ = c.reap()
	return synced, onDisk
}

// losePower copies a store as a loss of power leaves it.
func losePower(t *testing.T, random *rand.Rand, from, to string, onDisk map[string]int64) {
	t.Helper()
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	newest := filepath.Base(mustGlob(t, from, "*.log"))
	for path, text := range files(t, from) {
		name, data := filepath.Base(path), []byte(text)
		switch {
		case name == newest: // RocksDB syncs a log before it flushes what is in it
			if onDisk[name] == 0 && random.IntN(2) == 0 {
				continue // nor was its name on disk
			}
			data = tornBehind(random, data, int(onDisk[name]))
		case name == "LOOM-MARK" && random.IntN(2) == 0:
			const slot, notSynced = 4096, 2 * 4096
			clear(data[notSynced : notSynced+random.IntN(slot+1)])
		}
		mustWrite(t, to, name, string(data))
	}
}

// tornBehind returns what of a file comes back of which the beginning is on disk.
func tornBehind(random *rand.Rand, data []byte, onDisk int) []byte {
	const page = 4 << 10
	data = data[:onDisk+random.IntN(len(data)-onDisk+1)]
	for at := onDisk; at < len(data); at = (at/page + 1) * page {
		if random.IntN(3) == 0 {
			clear(data[at:min((at/page+1)*page, len(data))])
		}
	}
	return data
}
