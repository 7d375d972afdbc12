//go:build linux && cgo && !norocksdb

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	"github.com/loom-bridge/loom-bridge/memory"
	embedding "github.com/loom-bridge/loom-bridge/memory/embed"
	"github.com/loom-bridge/loom-bridge/memory/embed/builtin"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/paths"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

// pathBook has the figures that were committed last.
const pathBook = "server/cmd/loom-bridge-bench/paths.json"

// pathRun measures what the calls of the hot paths take, in one process with the server.
type pathRun struct {
	steps, records, calls, colds int
	others                       int
	model                        bool
	only                         string
	profile                      string

	dir    string
	pool   []string
	store  *paths.Store
	meter  *paths.Meter
	book   paths.Book
	out    io.Writer
	table  *tabwriter.Writer // on out
	domain *compose.Domain
	reopen func() error // the server on the store
	close  []func() error
	conn   *grpc.ClientConn
}

// newPathRun returns a run as it is compared.
func newPathRun(out io.Writer) *pathRun {
	return &pathRun{
		steps: 1000, records: 250, calls: 100, colds: 5,
		book: paths.Book{}, pool: texts(3, 4096), table: tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight), out: out,
	}
}

func init() { measurePaths = runPaths }

// runPaths prints the figures, and fails for what takes more than the book says. With
// -update the book gets them.
func runPaths(ctx context.Context, args []string) error {
	p := newPathRun(os.Stdout)
	var update bool
	flags := flag.NewFlagSet("loom-bridge-bench paths", flag.ExitOnError)
	flags.IntVar(&p.steps, "steps", p.steps, "steps of the session that prompts are made of")
	flags.IntVar(&p.records, "records", p.records, "records of the user whose memory prompts show")
	flags.BoolVar(&p.model, "model", false, "embed them with the server's own model, which takes most of the run then; nothing is compared")
	flags.IntVar(&p.others, "others", 0, "records of other agents in the store of the prompts; nothing is compared then")
	flags.IntVar(&p.calls, "calls", p.calls, "calls of each path")
	flags.IntVar(&p.colds, "colds", p.colds, "starts of the server")
	flags.StringVar(&p.only, "only", "", "measure only the paths whose name begins with this `text`")
	flags.StringVar(&p.profile, "profile", "", "write the CPU profiles of the paths to files that begin with this `name`; the system counts CPU coarsely then, so the figures of CPU mean nothing")
	flags.BoolVar(&update, "update", false, "write the figures to "+pathBook)
	flags.Parse(args) //nolint:errcheck // it exits
	if err := p.run(ctx); err != nil {
		return err
	}
	if update {
		return p.book.Write(pathBook)
	}
	if p.only != "" || p.others > 0 || p.model {
		return nil
	}
	return p.compare(pathBook)
}

// compare fails for what takes more than a book says.
func (p *pathRun) compare(book string) error {
	before, err := paths.Read(book)
	if err != nil {
		return err
	}
	if over := p.book.Over(before); len(over) > 0 {
		return fmt.Errorf("bench: more than %s says; if it is worth it, commit what `make bench-paths BENCH_ARGS=-update` writes:\n%s", pathBook, strings.Join(over, "\n"))
	}
	return nil
}

// wordRecords are in the memory that is asked by words alone.
const wordRecords = 5000

func (p *pathRun) run(ctx context.Context) error {
	var err error
	if p.dir, err = os.MkdirTemp("", "loom-paths-"); err != nil {
		return err
	}
	defer os.RemoveAll(p.dir)
	workspace, err := makeWorkspace(p.dir)
	if err != nil {
		return err
	}
	p.meter = new(paths.Meter)
	fmt.Fprintf(p.table, "a call\tcalls\tCPU\tCPU µs\tallocations\tKiB\treads\tkeys\tscans\tpairs\tsyncs\tKiB written\t\n")
	if err := p.with(ctx, "words", workspace, nil, wordRecords, p.calling); err != nil {
		return err
	}
	var model embedding.Embedder
	if p.model {
		if model, err = builtin.New(builtin.Find(os.Args[0])); err != nil {
			return err
		}
	}
	if err := p.with(ctx, "prompts", workspace, model, p.records, p.prompts); err != nil {
		return err
	}
	fmt.Fprintf(p.out, "CPU is in units of %v\n", p.meter.Unit().Round(time.Microsecond))
	return p.table.Flush()
}

// with opens a store in which so many records of a user are, and measures.
func (p *pathRun) with(ctx context.Context, name, workspace string, model embedding.Embedder, records int, measure func(context.Context) error) error {
	engine, err := rockskv.Open(filepath.Join(p.dir, name), nil)
	if err != nil {
		return err
	}
	defer engine.Close()
	p.store = &paths.Store{Engine: engine}
	p.meter.Of(p.store)
	p.reopen = func() error { return p.open(workspace, model) }
	if err := p.reopen(); err != nil {
		return err
	}
	defer func() { p.shut() }() //nolint:errcheck // the store goes, too
	if err := (&bench{pool: p.pool}).rememberUser(ctx, loombridgev1.NewMemoryServiceClient(p.conn), records); err != nil {
		return err
	}
	if err := p.embedded(ctx); err != nil {
		return err
	}
	return measure(ctx)
}

// open opens a server on the store.
func (p *pathRun) open(workspace string, model embedding.Embedder) error {
	folders, err := hand.OpenFolders(workspace, nil)
	if err != nil {
		return err
	}
	p.close = append(p.close, folders.Close)
	options := &compose.Options{Assemble: assemble.Options{CacheBytes: -1}, OneTenant: true, Memory: memory.Options{CountAccesses: true, Embedder: model}}
	options.Shares = server.NewShares(server.Limits{}, true)
	if p.domain, err = compose.Open(p.store, folders, options); err != nil {
		return err
	}
	p.close = append(p.close, p.domain.Close)
	face := server.New(p.domain.Services(), &server.Options{Shares: options.Shares})
	listener := bufconn.Listen(256 << 10)
	go face.Serve(listener) //nolint:errcheck // until it is closed
	p.close = append(p.close, func() error { return face.Shutdown(context.Background()) })
	p.conn, err = grpc.NewClient("passthrough:///in-memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	p.close = append(p.close, p.conn.Close)
	return err
}

func (p *pathRun) shut() error {
	var errs []error
	for _, closer := range slices.Backward(p.close) {
		errs = append(errs, closer())
	}
	p.close = nil
	return errors.Join(errs...)
}

// profiled runs the measured call without the collector and, if it is asked for, under the
// profile.
func (p *pathRun) profiled(name string, run func() error) error {
	p.meter.Settle()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	if p.profile == "" {
		return run()
	}
	out, err := os.Create(p.profile + "." + strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), ":", "-"))
	if err != nil {
		return err
	}
	defer out.Close()
	if err := pprof.StartCPUProfile(out); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return run()
}

// path measures calls of one path. before is not measured.
func (p *pathRun) path(name string, calls int, before, call func(i int) error) error {
	if !strings.HasPrefix(name, p.only) {
		return nil
	}
	const warm = 3
	var of paths.Path
	err := p.profiled(name, func() error {
		for i := range calls + warm {
			if before != nil {
				if err := before(i); err != nil {
					return err
				}
			}
			if err := p.meter.Call(func() (*paths.Path, error) {
				if err := call(i); err != nil || i < warm {
					return nil, err
				}
				return &of, nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("bench: %s: %w", name, err)
	}
	p.report(name, &of)
	return nil
}

func (p *pathRun) report(name string, of *paths.Path) {
	f := p.meter.Figures(of)
	p.book[name] = f
	fmt.Fprintf(p.table, "%s\t%d\t%.2f\t%.0f\t%.0f\t%.0f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t\n", name, of.Calls(), f.CPU, f.CPU*float64(p.meter.Unit())/1000,
		f.Allocations, f.Bytes/1024, f.Reads, f.Keys, f.Scans, f.Pairs, f.Syncs, f.Written/1024)
}

// repeatsUser said everything several times.
const repeatsUser = "path-repeats"

// calling measures all but prompts.
func (p *pathRun) calling(ctx context.Context) error {
	if err := p.repeat(ctx); err != nil {
		return err
	}
	bridge, client := loombridgev1.NewBridgeServiceClient(p.conn), contexts.New(p.conn)
	const agent = "path-calls"
	var made *loombridgev1.RecordStepRequest
	prepare := func(bytes int) func(i int) error {
		return func(i int) error {
			made = recordRequest(agent, i, bytes)
			return nil
		}
	}
	record := func(int) error {
		_, err := client.RecordStep(ctx, made)
		return err
	}
	for _, c := range []struct {
		name   string
		calls  int
		before func(i int) error
		call   func(i int) error
	}{
		{"MemorySave 1 KiB", p.calls, nil, func(i int) error {
			_, err := bridge.MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: p.pool[2000+i]})
			return err
		}},
		{"MemoryQuery words", p.calls, nil, p.queried(ctx, promptUser, loombridgev1.QueryMode_QUERY_MODE_LEXICAL)},
		{"MemoryQuery same texts", p.calls, nil, p.queried(ctx, repeatsUser, loombridgev1.QueryMode_QUERY_MODE_LEXICAL)},
		{"Tool fs:read_file", p.calls, nil, func(int) error {
			_, err := bridge.Tool(ctx, &loombridgev1.ToolRequest{
				AgentId: agent, Name: "fs:read_file", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: string(toolArguments())},
			})
			return err
		}},
		{"RecordStep 4 kB", p.calls, prepare(smallOutput), record},
		{"RecordStep 1 MB", max(p.calls/5, 1), prepare(largeOutput), record},
		{"AppendMessages", p.calls, nil, func(i int) error { return say(ctx, client, agent, p.pool[i]) }},
		{"Emit", p.calls, nil, func(i int) error {
			_, err := bridge.Emit(ctx, &loombridgev1.EmitRequest{
				AgentId: agent, Topic: "path.news", PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: []byte(p.pool[i])},
			})
			return err
		}},
	} {
		if err := p.path(c.name, c.calls, c.before, c.call); err != nil {
			return err
		}
	}
	return nil
}

// repeat saves the same texts of a user several times.
func (p *pathRun) repeat(ctx context.Context) error {
	const texts, times = 200, 3
	r := &loombridgev1.BatchSaveRequest{AgentId: "path-calls", UserId: repeatsUser}
	for i := range texts * times {
		r.Records = append(r.Records, &loombridgev1.MemorySaveRequest{Text: p.pool[i%texts]})
	}
	_, err := loombridgev1.NewMemoryServiceClient(p.conn).BatchSave(ctx, r)
	return err
}

// queried asks the memory of a user.
func (p *pathRun) queried(ctx context.Context, user string, mode loombridgev1.QueryMode) func(i int) error {
	bridge := loombridgev1.NewBridgeServiceClient(p.conn)
	return func(i int) error {
		_, err := bridge.MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: "path-calls", UserId: user, Query: query(p.pool[i]), Limit: queryLimit, Mode: mode})
		return err
	}
}

// embedded waits until all records have their vectors.
func (p *pathRun) embedded(ctx context.Context) error {
	for {
		stats, err := loombridgev1.NewMemoryServiceClient(p.conn).ListRecords(ctx, &loombridgev1.ListRecordsRequest{AgentId: "path", UserId: promptUser, StatsOnly: true})
		if err != nil || stats.GetStats().GetPending() == 0 {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// say appends what the user says.
func say(ctx context.Context, client contexts.Client, agent, what string) error {
	_, err := client.AppendMessages(ctx, &loombridgev1.AppendMessagesRequest{
		AgentId: agent, SessionId: "bench", Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: what}},
	})
	return err
}

// prompts measures prompts: where nothing is new, one step more, a new question, steps
// that fold, and the first one of a server.
func (p *pathRun) prompts(ctx context.Context) error {
	if p.model {
		if err := p.path("MemoryQuery model", p.calls, nil, p.queried(ctx, promptUser, loombridgev1.QueryMode_QUERY_MODE_HYBRID)); err != nil {
			return err
		}
	}
	if !strings.HasPrefix("Assemble", p.only) && !strings.HasPrefix(p.only, "Assemble") {
		return nil
	}
	if err := p.crowd(ctx); err != nil {
		return err
	}
	session := &injected{length: p.steps, agent: "path-prompts"}
	assembled := func() (*loombridgev1.AssembleResponse, error) { return session.assemble(ctx, contexts.New(p.conn)) }
	at := 0
	step := func(int) error {
		_, err := contexts.New(p.conn).RecordStep(ctx, recordRequest(session.agent, at, promptOutput))
		at++
		return err
	}
	for range p.steps {
		if err := step(0); err != nil {
			return err
		}
		if at%assembleEvery == 0 {
			if _, err := assembled(); err != nil {
				return err
			}
		}
	}
	prompt := func(int) error {
		_, err := assembled()
		return err
	}
	if err := p.path("Assemble nothing new", p.calls, nil, prompt); err != nil {
		return err
	}
	if err := p.stepping(step, assembled); err != nil {
		return err
	}
	asked := func(i int) error { return say(ctx, contexts.New(p.conn), session.agent, query(p.pool[1000+i])+"?") }
	if err := p.path("Assemble new question", p.calls/4, asked, prompt); err != nil {
		return err
	}
	const cold = "Assemble cold"
	if !strings.HasPrefix(cold, p.only) {
		return nil
	}
	var of paths.Path
	if err := p.profiled(cold, func() error {
		for range p.colds {
			if err := errors.Join(p.shut(), p.reopen()); err != nil {
				return err
			}
			p.meter.Settle()
			if _, err := loombridgev1.NewAdminServiceClient(p.conn).GetStatus(ctx, &loombridgev1.GetStatusRequest{}); err != nil { // it connects
				return err
			}
			if err := p.meter.Call(func() (*paths.Path, error) { return &of, prompt(0) }); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	p.report(cold, &of)
	return nil
}

// crowd saves what other agents remember.
func (p *pathRun) crowd(ctx context.Context) error {
	const batch = 500
	client := loombridgev1.NewMemoryServiceClient(p.conn)
	for done := 0; done < p.others; done += batch {
		r := &loombridgev1.BatchSaveRequest{AgentId: fmt.Sprintf("other-%d", done/batch%100)}
		for i := range batch {
			r.Records = append(r.Records, &loombridgev1.MemorySaveRequest{Text: p.pool[(done+i)%len(p.pool)]})
		}
		if _, err := client.BatchSave(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// stepping measures prompts after one step more each, and those that fold separately.
func (p *pathRun) stepping(step func(int) error, assembled func() (*loombridgev1.AssembleResponse, error)) error {
	const one, fold = "Assemble one step more", "Assemble fold"
	if !strings.HasPrefix(one, p.only) && !strings.HasPrefix(fold, p.only) {
		return nil
	}
	var steps, folds paths.Path
	if err := p.profiled(one, func() error {
		for i := range p.calls {
			if err := step(i); err != nil {
				return err
			}
			if err := p.meter.Call(func() (*paths.Path, error) {
				r, err := assembled()
				if r.GetReceipt().GetBatch() != nil {
					return &folds, err
				}
				return &steps, err
			}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return fmt.Errorf("bench: %s: %w", one, err)
	}
	p.report(one, &steps)
	if folds.Calls() > 0 {
		p.report(fold, &folds)
	}
	return nil
}
