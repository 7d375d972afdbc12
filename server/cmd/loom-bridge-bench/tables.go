//go:build cgo && !norocksdb

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/postgres"
)

// settings is what the command line says.
type settings struct {
	server    string
	dir       string
	workspace string
	rounds    int
	length    time.Duration
	clients   int
	records   int
	only      string
	floor     bool
	sizes     []int
	imported  int
	many      int
	python    string
	asked     string // names of collections
	self      string // this program
	flood     string // what this program does as a busy tenant
	addr      string
	kinds     string
}

// parse reads the command line of the tables. The process ends there with an error
// or when help is asked for.
func parse(args []string) settings {
	var s settings
	flag := flag.NewFlagSet("loom-bridge-bench", flag.ExitOnError)
	flag.StringVar(&s.server, "server", "bin/loom-bridge-server", "the `program` to measure; make build makes it")
	flag.StringVar(&s.dir, "dir", "", "`folder` for the stores; must lie on the disk to measure (default: a new one in .loom)")
	flag.IntVar(&s.rounds, "rounds", 5, "rounds of each figure; the table shows the median")
	flag.DurationVar(&s.length, "length", 2*time.Second, "how long a round loads each server")
	flag.IntVar(&s.clients, "clients", 64, "how many clients the crowd has")
	flag.IntVar(&s.records, "records", 10_000, "records in the scope that is queried, and facts that change")
	flag.StringVar(&s.only, "only", "", "measure only the calls whose name holds this `text`; memory peers is the recall on LoCoMo, RealMem, Vaswani and made-up talks compared with SQLite, tantivy, bm25s, LanceDB and PostgreSQL; memory hints the same with and without authors and sessions; memory facts how often -records facts that changed are found as they were; record and assemble are RecordStep and Assemble, shell is the start of confined programs, audit what the record of a tool call costs, hosts is a query through the Model Context Protocol beside gRPC, postgres starts a PostgreSQL and compares with bare inserts and RocksDB, routed are calls of a workspace that one server takes to another, injected is Assemble with 10,000 memories; collect is saves during a collection, of -records records; memory is all of locomo, peers, hints, facts, prompt, vaswani, vectors, query, save and scopes")
	flag.Func("sizes", "`records` of the scopes of -only query, with commas between (default 5000,10000,100000)", func(text string) error {
		var err error
		s.sizes, err = numbers(text)
		return err
	})
	flag.IntVar(&s.imported, "import", 100_000, "records that -only save imports")
	flag.IntVar(&s.many, "scopes", 10_000, "scopes that -only scopes fills")
	flag.StringVar(&s.asked, "sets", "", "collections that -only \"memory peers\", \"memory hints\" and \"memory prompt\" ask: those whose name holds this `text`, such as RealMem or made-up")
	flag.StringVar(&s.python, "python", "python3", "`program` whose search engines are measured for comparison: its SQLite, and the installed ones of tantivy, bm25s, LanceDB and PostgreSQL; the table names the command that installs the others")
	flag.BoolVar(&s.floor, "floor", false, "serve the floor in -dir and nothing else; the benchmark starts itself so")
	flag.StringVar(&s.workspace, "workspace", "", "the folder the floor reads from")
	flag.StringVar(&s.flood, "flood", "", "be a busy tenant of the server at -addr and nothing else; the benchmark starts itself so")
	flag.StringVar(&s.addr, "addr", "", "the server to flood")
	flag.StringVar(&s.kinds, "floods", "", "what the busy tenant of -only tenants does: `kinds` with commas between, and semicolons between runs (default each alone, then all)")
	flag.Parse(args) //nolint:errcheck // it exits
	if s.sizes == nil {
		s.sizes = []int{5_000, 10_000, 100_000}
	}
	return s
}

// numbers reads numbers with commas between.
func numbers(text string) (all []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

func init() { measureTables = runTables }

// runTables measures what the arguments ask for and prints the tables.
func runTables(ctx context.Context, args []string) error {
	s := parse(args)
	if s.floor {
		return serveFloor(ctx, s.dir, s.workspace, s.clients)
	}
	if s.flood != "" {
		return runFlood(ctx, s.flood, s.addr, busyToken)
	}
	if err := os.MkdirAll(".loom", 0o700); err != nil {
		return err
	}
	dir := s.dir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp(".loom", "bench-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	var err error
	if s.self, err = os.Executable(); err != nil {
		return err
	}
	onPostgres := postgres.Settings{Server: s.server, Dir: dir, Clients: s.clients, Rounds: s.rounds, Length: s.length, Out: os.Stdout}
	switch s.only {
	case "shell":
		return shellTable(ctx, dir)
	case "audit":
		return auditTable(ctx, dir)
	case "routed":
		return postgres.Routed(ctx, onPostgres)
	case "postgres":
		return postgres.Tables(ctx, onPostgres)
	case "hosts":
		return hostTable(ctx, s, dir)
	}
	if !measuresMemory(s.only) {
		if err := callTables(ctx, s, dir); err != nil {
			return err
		}
	}
	return memoryTables(ctx, s, dir)
}

// callTables measures single calls, events, steps and prompts, against the floor.
func callTables(ctx context.Context, s settings, dir string) error {
	workspace, err := makeWorkspace(dir)
	if err != nil {
		return err
	}
	floor, err := start(ctx, s.self, "-floor", "-dir", filepath.Join(dir, "floor"), "-workspace", workspace, "-clients", fmt.Sprint(s.clients))
	if err != nil {
		return err
	}
	defer floor.stop()
	data := filepath.Join(dir, "store")
	ours, err := start(ctx, s.server, "--addr", "127.0.0.1:0", "--data-dir", data, "--workspace", workspace, "--log-level", "error", "--embedder", "off")
	if err != nil {
		return err
	}
	defer ours.stop()
	return report(ctx, &bench{
		settings: s, ours: ours.addr, floor: floor.addr, folder: dir, data: data, stopOurs: ours.stop,
		table: tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight), pool: texts(3, 4096),
	})
}
