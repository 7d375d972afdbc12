package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory/kv/backup"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// changedRecords are those of the memory whose backups are measured, in CI and with
	// LOOM_SOAK_ROUNDS, and changedBackups how many are made after changes.
	changedRecords, changedSoakRecords = 3_000, 20_000
	changedBackups                     = 12
)

// words makes a text of words that are used as often as those of languages are.
func words(random *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "word%d ", int(random.ExpFloat64()*300))
	}
	return b.String()
}

// Backups after some of the records have changed take a part of the time and of the bytes
// of a whole one. What RocksDB compacts meanwhile is copied with them: with one record in a
// hundred changed that is the larger part, with one in a thousand it is rare.
//
// Y05
func TestSoakBackupOfChanges(t *testing.T) {
	t.Parallel()
	records, rare := changedRecords, .5 // of so small a store the log that is copied is the larger part
	if os.Getenv("LOOM_SOAK_ROUNDS") != "" {
		records, rare = changedSoakRecords, .25
	}
	random := rand.New(rand.NewPCG(1, 1))
	dir, copies := places(t)
	p := MustRun(t, dir, "--backup-dir", copies, "--backup-interval", "0")
	for i := 0; i < records; {
		r := &loombridgev1.BatchSaveRequest{AgentId: "a"}
		for ; i < records && len(r.Records) < 100; i++ {
			r.Records = append(r.Records, &loombridgev1.MemorySaveRequest{Id: fmt.Sprint("r", i), Text: words(random, 40)})
		}
		_, err := p.memory().BatchSave(t.Context(), r)
		must(t, err)
	}
	back := func(full bool) (bytes int64, took time.Duration) {
		start := time.Now()
		b, err := p.backUp(t, full)
		must(t, err)
		return b.GetNewBytes(), time.Since(start)
	}
	bytes, took := back(false)
	t.Logf("%d records: %d bytes whole, in %v", records, bytes, took)
	for _, c := range []struct {
		changed int     // records
		most    float64 // of a whole backup, at the mean
	}{{records / 100, .5}, {records / 1000, rare}} {
		var all []int64
		var sum, spent int64
		for range changedBackups {
			for range c.changed {
				_, err := p.memory().UpdateRecord(t.Context(), &loombridgev1.UpdateRecordRequest{
					AgentId: "a", Name: &loombridgev1.UpdateRecordRequest_Id{Id: fmt.Sprint("r", random.IntN(records))},
					Record: &loombridgev1.MemorySaveRequest{Text: words(random, 40)}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"text"}},
				})
				must(t, err)
			}
			bytes, took := back(false)
			all = append(all, bytes)
			sum, spent = sum+bytes, spent+int64(took)
		}
		whole, took := back(true)
		t.Logf("%d changed before each: %d bytes new", c.changed, all)
		slices.Sort(all)
		part := float64(sum) / changedBackups / float64(whole)
		t.Logf("the mean is %d bytes in %v, the median %d, of a whole one of %d bytes in %v: %.2f at the mean",
			sum/changedBackups, time.Duration(spent/changedBackups), all[changedBackups/2], whole, took, part)
		if part > c.most {
			t.Errorf("backups after %d changes take %.2f of a whole one, want %.2f", c.changed, part, c.most)
		}
	}
}

// backedUp is the memory of one agent while backups are made of its server: the SHA-256 of
// its export behind every change that was acknowledged, in their order.
type backedUp struct {
	mu     sync.Mutex
	states []string
}

// add tells what the memory is, and returns how many states there were before.
func (b *backedUp) add(state string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.states = append(b.states, state)
	return len(b.states) - 1
}

func (b *backedUp) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.states)
}

// exported is the SHA-256 of the export of agent a's memory.
func (p *process) exported(ctx context.Context) (digest string, records int, err error) {
	stream, err := p.transfer().Export(ctx, &loombridgev1.ExportRequest{AgentId: "a"})
	sum := sha256.New()
	for err == nil {
		var part *loombridgev1.ExportResponse
		if part, err = stream.Recv(); err == nil {
			for _, line := range part.GetLines() {
				_, _ = io.WriteString(sum, line+"\n")
				records++
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return hex.EncodeToString(sum.Sum(nil)), records, err
}

// live changes the memory until the server is gone, and says what it is behind each change.
func (b *backedUp) live(ctx context.Context, p *process, random *rand.Rand) {
	for {
		digest, _, err := p.exported(ctx) // first what the last kill has left
		if err != nil {
			return
		}
		b.add(digest)
		if made, err := scribble(ctx, p, random, 1); err != nil || made == 0 {
			return
		}
	}
}

// saveFor saves for an agent until the server is gone.
func saveFor(ctx context.Context, p *process, agent string) (saves int) {
	for ; ; saves++ {
		if _, err := p.bridge().MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: fmt.Sprintf("record %d %s", saves, strings.Repeat("x", 2000))}); err != nil {
			return saves
		}
	}
}

// A server is killed while it makes backups and agents change what they remember: every
// backup that is there is verified, restores to a store that is whole, is served, and
// exports as the memory did behind a change that was made while the backup was.
//
// Y05
func TestSoakBackup(t *testing.T) {
	t.Parallel()
	binary, rounds := mustBuild(t), soakRoundsOr(t, 2)
	seed := chance.Seed(t)
	dir, copies := places(t)
	type span struct{ first, last int } // of the states
	memory, during, loaded, served, records := &backedUp{}, map[string]span{}, 0, 0, 0
	serve := func(store string, more ...string) (*exec.Cmd, *process) {
		child, addr := mustStart(t, binary, append([]string{"--addr", "127.0.0.1:0", "--data-dir", store, "--workspace", dir, "--log-level", "error"}, more...)...)
		return child, &process{conn: MustDial(t, addr), Address: addr}
	}
	// check looks at all backups that were not looked at.
	seen := map[string]bool{}
	check := func() {
		folder, err := backup.Existing(copies)
		must(t, err)
		all, err := folder.List()
		must(t, err)
		for _, b := range all {
			states, known := during[b.Name]
			if seen[b.Name] || !known { // of one that ended with its server nobody knows
				continue
			}
			seen[b.Name] = true
			to := filepath.Join(t.TempDir(), "restored")
			for _, command := range [][]string{
				{"backup", "verify", b.Name, "--backup-dir", copies},
				{"backup", "restore", b.Name, "--backup-dir", copies, "--data-dir", to},
				{"check", "--data-dir", to},
			} {
				if said, err := exec.Command(binary, command...).CombinedOutput(); err != nil {
					t.Fatalf("%s: %v: %s", command[0], err, said)
				}
			}
			child, p := serve(to)
			digest, _, err := p.exported(t.Context())
			must(t, err)
			if at := slices.Index(memory.states[states.first:min(states.last+1, len(memory.states))], digest); at < 0 {
				t.Errorf("%s exports %.12s, which the memory was at none of states %d to %d of %d", b.Name, digest, states.first, states.last, len(memory.states))
			}
			save(t, p, "after the restore")
			if hits(t, p, "after the restore") == 0 {
				t.Errorf("%s: what was saved behind the restore is not found", b.Name)
			}
			served++
			must(t, child.Process.Signal(syscall.SIGTERM))
			must(t, child.Wait())
		}
	}
	for round := range rounds {
		child, p := serve(filepath.Join(dir, "store"), "--backup-dir", copies, "--backup-interval", "0", "--backup-keep", "3")
		random := rand.New(rand.NewPCG(seed, uint64(round)))
		var working, killing sync.WaitGroup
		working.Go(func() { memory.live(t.Context(), p, random) })
		saves := make([]int, 2)
		for i := range saves {
			working.Go(func() { saves[i] = saveFor(t.Context(), p, fmt.Sprint("other", i)) })
		}
		life := time.Duration(50+rand.New(rand.NewPCG(seed+1, uint64(round))).IntN(500)) * time.Millisecond
		var made atomic.Bool
		killing.Go(func() {
			liveFor(life, made.Load)
			_ = child.Process.Kill()
		})
		for {
			first := max(memory.count()-1, 0)
			b, err := p.backUp(t, false)
			if err != nil {
				break
			}
			// A change that was made while the backup was may be told behind it.
			during[b.GetName()] = span{first, memory.count()}
			made.Store(memory.count() > 0)
		}
		working.Wait()
		killing.Wait()
		_ = child.Wait() // it was killed
		loaded += saves[0] + saves[1]
		child, p = serve(filepath.Join(dir, "store"))
		digest, lines, err := p.exported(t.Context())
		must(t, err)
		memory.add(digest) // what the kill has left
		records = lines
		must(t, child.Process.Signal(syscall.SIGTERM))
		must(t, child.Wait())
		check()
	}
	t.Logf("%d kills, %d states of the memory, which is %d lines, %d saves of others, %d backups, %d restored, served and the same", rounds, memory.count(), records, loaded, len(during), served)
	if served == 0 {
		t.Error("no backup was made, so nothing was shown")
	}
}
