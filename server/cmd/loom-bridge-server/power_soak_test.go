//go:build linux && cgo

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// powerRounds are the losses of power in an ordinary test run.
	powerRounds = 2
	// powerUpload is the longest result. Several of them fill a memtable, so that
	// another log begins.
	powerUpload = 16 << 20
	// powerLong is every which round is so long that logs change in it.
	powerLong = 3
)

// TestSoakPowerLoss takes the power away from a server under load: a library notes what
// RocksDB syncs, the server is killed, and what was not synced of its files comes back
// in part, in any order, or not at all. The server starts again, and all that was
// acknowledged is there.
func TestSoakPowerLoss(t *testing.T) {
	seed := chance.Seed(t)
	p := &powerSoak{
		soak:   soak{binary: mustBuild(t), data: filepath.Join(t.TempDir(), "store"), workspace: t.TempDir()},
		random: rand.New(rand.NewPCG(seed, 0)), results: map[string]uint64{},
	}
	for i := range soakWriters {
		p.writers = append(p.writers, &writer{agent: fmt.Sprintf("power-%d", i)})
	}
	mustWatchSyncs(t)
	rounds := soakRoundsOr(t, powerRounds)
	for round := range rounds {
		life := time.Duration(200+p.random.IntN(800)) * time.Millisecond
		if round%powerLong == powerLong-1 {
			life += 5 * time.Second
		}
		p.round(t, life, round%2 == 1)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	p.verify(t)
	saves, emits, steps := p.totals()
	t.Logf("%d losses of power with up to %d logs, which took %d KiB: %d saves, %d events, %d steps and %d uploads acknowledged, none lost",
		rounds, p.logs, p.taken>>10, saves, emits, steps, len(p.results))
	if saves == 0 || emits == 0 || steps == 0 || rounds > powerRounds && (p.taken == 0 || p.logs < 2) {
		t.Error("nothing was acknowledged, or nothing was taken, so nothing was shown")
	}
}

// powerSoak is a soak whose server loses its power.
type powerSoak struct {
	soak
	random  *rand.Rand
	results map[string]uint64 // step id → seed of the upload
	recent  []string          // the steps of the last round
	taken   int               // bytes that did not come back
	logs    int               // the most that there were
}

// mustWatchSyncs lets every program that the test starts note its syncs.
func mustWatchSyncs(t *testing.T) {
	t.Helper()
	library := filepath.Join(t.TempDir(), "synced.so")
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-O1", "-o", library, "testdata/synced.c", "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	t.Setenv("LD_PRELOAD", library)
	t.Setenv("SYNCED_FILES", filepath.Join(t.TempDir(), "synced"))
}

// round verifies what earlier rounds left, writes, and takes the power away. Uploads
// alone leave logs with long ends that nobody synced.
func (p *powerSoak) round(t *testing.T, life time.Duration, uploadsAlone bool) {
	t.Helper()
	before := p.sizes(t)
	must(t, os.WriteFile(os.Getenv("SYNCED_FILES"), nil, 0o600))
	process, addr := mustStart(t, p.binary, "--addr", "127.0.0.1:0", "--data-dir", p.data, "--workspace", p.workspace, "--log-level", "error")
	var clients sync.WaitGroup
	for _, w := range p.writers {
		clients.Go(func() {
			conn := mustDial(t, addr)
			defer conn.Close()
			w.verify(t, conn)
			if !uploadsAlone {
				w.write(conn)
			}
		})
	}
	clients.Go(func() {
		conn := mustDial(t, addr)
		defer conn.Close()
		p.verifyUploads(t, conn, p.recent)
		p.upload(conn)
	})
	liveFor(life, func() bool { return uploadsAlone || slices.ContainsFunc(p.writers, (*writer).hasActed) })
	must(t, process.Process.Kill())
	process.Wait() //nolint:errcheck // it was killed
	clients.Wait()
	p.losePower(t, before)
	if out, err := exec.Command(p.binary, "check", "--data-dir", p.data).CombinedOutput(); err != nil {
		t.Errorf("check: %v\n%s", err, out)
	}
}

// upload records long results until the server has gone.
func (p *powerSoak) upload(conn *grpc.ClientConn) {
	ctx, cancel := context.WithTimeout(context.Background(), soakDeadline)
	defer cancel()
	p.recent = nil
	for {
		seed := rand.Uint64()
		id, err := uploadNoise(ctx, conn, seed, uploadSize(seed))
		if err != nil {
			return
		}
		p.results[id], p.recent = seed, append(p.recent, id)
	}
}

func uploadSize(seed uint64) int { return 1 + int(seed%powerUpload) }

func (p *powerSoak) verifyUploads(t *testing.T, conn *grpc.ClientConn, ids []string) {
	for _, id := range ids {
		want := noise(p.results[id], uploadSize(p.results[id]))
		_, got, err := readAll(t.Context(), contexts.New(conn), &loombridgev1.ReadBlobRequest{AgentId: damageAgent, Name: id}, len(want))
		if died(err) {
			return
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("upload %s is lost: %d bytes, %v", id, len(got), err)
		}
	}
}

// verify checks everything from the start.
func (p *powerSoak) verify(t *testing.T) {
	t.Helper()
	p.soak.verify(t)
	process, addr := mustStart(t, p.binary, "--addr", "127.0.0.1:0", "--data-dir", p.data, "--workspace", p.workspace, "--log-level", "error")
	conn := mustDial(t, addr)
	defer conn.Close()
	for id := range p.results {
		p.verifyUploads(t, conn, []string{id})
	}
	must(t, process.Process.Kill())
	process.Wait() //nolint:errcheck // it was killed
}

// sizes are those of the store's files, all of which is on disk when the power is back.
func (p *powerSoak) sizes(t *testing.T) map[string]int {
	t.Helper()
	sizes := make(map[string]int)
	entries, err := os.ReadDir(p.data)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		must(t, err)
		sizes[e.Name()] = int(info.Size())
	}
	return sizes
}

// losePower takes away, at random, what was not synced of logs, tables and blob files,
// and the slot of the mark that never is. Names are all on disk, but for that of a log
// that was never synced.
func (p *powerSoak) losePower(t *testing.T, onDisk map[string]int) {
	t.Helper()
	said, err := os.ReadFile(os.Getenv("SYNCED_FILES"))
	must(t, err)
	for line := range strings.Lines(string(said)) {
		var size int
		var path string
		if _, err := fmt.Sscan(line, &size, &path); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if name := filepath.Base(path); size > onDisk[name] {
			onDisk[name] = size
		}
	}
	logs := 0
	must(t, filepath.WalkDir(p.data, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		kept := data
		switch name := entry.Name(); {
		case strings.HasSuffix(name, ".log"):
			logs++
			if onDisk[name] == 0 && p.random.IntN(2) == 0 {
				p.taken += len(data)
				return os.Remove(path)
			}
			fallthrough
		case strings.HasSuffix(name, ".sst"), strings.HasSuffix(name, ".blob"):
			kept = p.torn(data, onDisk[name])
		case name == "LOOM-MARK" && p.random.IntN(2) == 0:
			const slot, notSynced = 4096, 2 * 4096
			kept = bytes.Clone(data)
			clear(kept[notSynced : notSynced+p.random.IntN(slot+1)])
		}
		if bytes.Equal(kept, data) {
			return nil
		}
		return os.WriteFile(path, kept, 0o600)
	}))
	p.logs = max(p.logs, logs)
}

// torn returns what comes back of a file of which the beginning is on disk.
func (p *powerSoak) torn(data []byte, onDisk int) []byte {
	const page = 4 << 10
	onDisk = min(onDisk, len(data))
	end := onDisk
	if p.random.IntN(3) > 0 {
		end += p.random.IntN(len(data) - onDisk + 1)
	}
	kept := bytes.Clone(data[:end])
	for at := onDisk; at < len(kept); at = (at/page + 1) * page {
		if p.random.IntN(3) == 0 {
			clear(kept[at:min((at/page+1)*page, len(kept))])
		}
	}
	p.taken += len(data) - len(kept)
	return kept
}
