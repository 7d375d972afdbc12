//go:build cgo && !norocksdb

package main

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/packing"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/evidence"
)

// memoryBench measures memory, each time on separate servers and stores.
type memoryBench struct {
	settings
	folder string
	table  *tabwriter.Writer
}

// memoryMeasure is one of them and its name for -only.
type memoryMeasure struct {
	name string
	run  func(*memoryBench, context.Context) error
}

func memoryMeasures() []memoryMeasure {
	return []memoryMeasure{
		{"memory locomo", (*memoryBench).locomo},
		{"memory peers", func(b *memoryBench, ctx context.Context) error { return b.evidence().Peers(ctx) }},
		{"memory hints", func(b *memoryBench, ctx context.Context) error { return b.evidence().Hints(ctx) }},
		{"memory facts", func(b *memoryBench, ctx context.Context) error { return b.evidence().Facts(ctx, b.records) }},
		{"memory prompt", (*memoryBench).prompt},
		{"memory vaswani", (*memoryBench).vaswani},
		{"memory vectors", (*memoryBench).vectors},
		{"memory query", (*memoryBench).query},
		{"memory save", (*memoryBench).save},
		{"memory scopes", (*memoryBench).scopes},
		{"tenants", (*memoryBench).tenants},
		{"collect", (*memoryBench).collect},
	}
}

// measuresMemory reports whether -only asks for measures of memory and for
// nothing else.
func measuresMemory(only string) bool {
	return only != "" && slices.ContainsFunc(memoryMeasures(), func(m memoryMeasure) bool { return strings.Contains(m.name, only) })
}

// memoryTables measures the tables that -only selects, and prints them.
func memoryTables(ctx context.Context, s settings, folder string) error {
	b := &memoryBench{settings: s, folder: folder, table: tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)}
	for _, m := range memoryMeasures() {
		if !strings.Contains(m.name, s.only) {
			continue
		}
		b.say("%s", m.name)
		if err := m.run(b, ctx); err != nil {
			return fmt.Errorf("bench: %s: %w", m.name, err)
		}
	}
	return nil
}

// say says what is being done.
func (b *memoryBench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}

// data is the folder of the evaluation data; empty: there is none.
func (b *memoryBench) data() string { return os.Getenv("LOOM_EVAL_DATA") }

// memoryServer is a server of ours with a connection to it.
type memoryServer struct {
	*process
	data   string
	conn   *grpc.ClientConn
	bridge loombridgev1.BridgeServiceClient
	memory loombridgev1.MemoryServiceClient
}

// serve starts a server on the store of that name.
func (b *memoryBench) serve(ctx context.Context, name string, flags ...string) (*memoryServer, error) {
	s := &memoryServer{data: filepath.Join(b.folder, "memory-"+name)}
	workspace, err := makeWorkspace(s.data)
	if err != nil {
		return nil, err
	}
	all := append([]string{
		"--addr", "127.0.0.1:0", "--data-dir", filepath.Join(s.data, "store"), "--workspace", workspace, "--log-level", "error",
	}, flags...)
	if !slices.ContainsFunc(flags, func(flag string) bool { return strings.HasPrefix(flag, "--embedder") }) {
		all = append(all, "--embedder", "off") // vectors are the caller's, where a table has any
	}
	if s.process, err = start(ctx, b.server, all...); err != nil {
		return nil, err
	}
	if s.conn, err = grpc.NewClient(s.addr, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		s.stop()
		return nil, err
	}
	s.bridge, s.memory = loombridgev1.NewBridgeServiceClient(s.conn), loombridgev1.NewMemoryServiceClient(s.conn)
	return s, nil
}

// end stops the server; its store stays.
func (s *memoryServer) end() {
	s.conn.Close() //nolint:errcheck // nothing is left to send
	s.stop()
}

// evidenceServer is such a server as package evidence asks.
type evidenceServer struct {
	loombridgev1.BridgeServiceClient
	loombridgev1.MemoryServiceClient
	server *memoryServer
}

func (s evidenceServer) Remove() { s.server.remove() }

func (s evidenceServer) Load(ctx context.Context, agent string, records []*loombridgev1.MemorySaveRequest) error {
	_, err := s.server.load(ctx, agent, records)
	return err
}

// evidence is the bench of what is found.
func (b *memoryBench) evidence() *evidence.Bench {
	return &evidence.Bench{
		Serve: func(ctx context.Context) (evidence.Server, error) {
			s, err := b.serve(ctx, "evidence")
			if err != nil {
				return nil, err
			}
			return evidenceServer{s.bridge, s.memory, s}, nil
		},
		Data: b.data(), Source: ".", Only: b.asked, Python: b.python, Folder: b.folder, Say: b.say, Table: b.table,
	}
}

// remove ends the server and removes its store.
func (s *memoryServer) remove() {
	s.end()
	os.RemoveAll(s.data) //nolint:errcheck // the folder goes at the end anyway
}

// statusLine returns what a line of the status of the process says, in MB.
func (s *memoryServer) statusLine(line string) (mb float64, err error) {
	f, err := os.Open(filepath.Join("/proc", strconv.Itoa(s.command.Process.Pid), "status"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), line+":"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024, err
		}
	}
	return 0, fmt.Errorf("no %s", line)
}

// resident is how much memory the server holds, in MB.
func (s *memoryServer) resident() (mb float64, err error) { return s.statusLine("VmRSS") }

// diskBytes is how much its store takes.
func (s *memoryServer) diskBytes() (sum int64, err error) {
	err = filepath.WalkDir(filepath.Join(s.data, "store"), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return sum, err
}

// loaded is how long an import took: until all was acknowledged, and until
// it was packed, too.
type loaded struct {
	acknowledged, packed time.Duration
}

// load imports records into a scope, in batches of the largest size, one after
// another, and waits until they are packed.
func (s *memoryServer) load(ctx context.Context, agent string, records []*loombridgev1.MemorySaveRequest) (loaded, error) {
	begin := time.Now()
	for batch := range slices.Chunk(records, memory.MaxBatchRecords) {
		if _, err := s.memory.BatchSave(ctx, &loombridgev1.BatchSaveRequest{AgentId: agent, Records: batch}); err != nil {
			return loaded{}, err
		}
	}
	l := loaded{acknowledged: time.Since(begin)}
	err := s.until(ctx, agent, func(stats *loombridgev1.MemoryStats) bool {
		return stats.GetUnpacked() < packing.DefaultAfter
	})
	l.packed = time.Since(begin)
	return l, err
}

const (
	// statsEvery is how often it is asked whether the background is done.
	statsEvery = 5 * time.Millisecond
	// backgroundTime is how long the background may take.
	backgroundTime = 5 * time.Minute
)

// until waits until the statistics of a scope satisfy done.
func (s *memoryServer) until(ctx context.Context, agent string, done func(*loombridgev1.MemoryStats) bool) error {
	ctx, stop := context.WithTimeout(ctx, backgroundTime)
	defer stop()
	tick := time.NewTicker(statsEvery)
	defer tick.Stop()
	for {
		stats, err := s.memory.ListRecords(ctx, &loombridgev1.ListRecordsRequest{AgentId: agent, StatsOnly: true})
		if err != nil {
			return err
		}
		if done(stats.GetStats()) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the background is not done with %s after %s: %v", agent, backgroundTime, stats)
		}
	}
}

// each calls do for 0 to n-1, by so many at once, until one fails.
func each(n, workers int, do func(i int) error) error {
	var (
		wg    sync.WaitGroup
		once  sync.Once
		first error
	)
	next := make(chan int)
	failed := make(chan struct{})
	for range workers {
		wg.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					once.Do(func() { first = err; close(failed) })
					return
				}
			}
		})
	}
feeding:
	for i := range n {
		select {
		case next <- i:
		case <-failed:
			break feeding
		}
	}
	close(next)
	wg.Wait()
	return first
}

func p95us(s sample) float64 { return float64(s.percentile(0.95)) / float64(time.Microsecond) }
func ms(us float64) float64  { return us / 1000 }
func mib(n int64) float64    { return float64(n) / (1 << 20) }

// textBytes is how much text records have.
func textBytes(records []*loombridgev1.MemorySaveRequest) (n int64) {
	for _, r := range records {
		n += int64(len(r.GetText()))
	}
	return n
}
