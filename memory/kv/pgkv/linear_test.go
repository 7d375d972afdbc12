package pgkv_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/jackc/pgx/v5"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv"
)

// asked is an operation on a register: a read unless it has a value to write where the
// sequence is as expected.
type asked struct {
	register int
	value    string
	expected uint64
}

// answered is what came of it. Unknown says that it may have happened, or will.
type answered struct {
	value             string
	sequence          uint64 // what was found
	conflict, unknown bool
}

// held is the state of a register.
type held struct {
	value    string
	sequence uint64
}

// registers are the model: registers with a sequence each, that are compared and set.
func registers() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			of := make(map[int][]porcupine.Operation)
			for _, o := range history {
				n := o.Input.(asked).register
				of[n] = append(of[n], o)
			}
			var all [][]porcupine.Operation
			for _, part := range of {
				all = append(all, part)
			}
			return all
		},
		Init: func() []any { return []any{held{}} },
		Step: func(state, input, output any) []any {
			now, in, out := state.(held), input.(asked), output.(answered)
			written := held{in.value, in.expected + 1}
			switch {
			case in.value == "":
				if now == (held{out.value, out.sequence}) {
					return []any{now}
				}
			case out.unknown:
				if now.sequence == in.expected {
					return []any{now, written}
				}
				return []any{now}
			case out.conflict:
				if now.sequence == out.sequence && now.sequence != in.expected {
					return []any{now}
				}
			case now.sequence == in.expected:
				return []any{written}
			}
			return nil
		},
		Equal: func(a, b any) bool { return a == b },
	}
	return model.ToModel()
}

const linearRegisters = 4

// readTime is how long a client waits for what it reads.
const readTime = 2 * time.Second

// linear are clients of some stores that note what they asked and what was answered.
type linear struct {
	began   time.Time
	stop    chan struct{}
	clients sync.WaitGroup
	done    []atomic.Int64 // by store; what was acknowledged
	unknown atomic.Int64
	refused atomic.Int64

	mu      sync.Mutex
	history []porcupine.Operation // guarded by mu
}

// startLinear starts four clients on each store.
func startLinear(t *testing.T, stores ...*pgkv.DB) *linear {
	l := &linear{began: time.Now(), stop: make(chan struct{}), done: make([]atomic.Int64, len(stores))}
	for n, db := range stores {
		for c := range 4 {
			l.clients.Go(func() { l.client(t, n, db, 4*n+c) })
		}
	}
	return l
}

func (l *linear) client(t *testing.T, n int, db *pgkv.DB, id int) {
	random := rand.New(rand.NewPCG(uint64(id), 7)) //nolint:gosec // small
	var known [linearRegisters]uint64
	for i := 0; ; i++ {
		select {
		case <-l.stop:
			return
		default:
		}
		in := asked{register: random.IntN(linearRegisters)}
		if random.IntN(2) == 0 {
			in.value, in.expected = fmt.Sprintf("%d.%d", id, i), known[in.register]
		}
		call := time.Since(l.began).Nanoseconds()
		out, err := l.ask(t, db, in)
		end := time.Since(l.began).Nanoseconds()
		switch {
		case errors.Is(err, kv.ErrUnknownOutcome):
			out.unknown, end = true, math.MaxInt64 // it may happen at any time from here on
			l.unknown.Add(1)
		case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, kv.ErrUnreachable) || errors.Is(err, kv.ErrTooOld) || errors.Is(err, kv.ErrFenced):
			l.refused.Add(1)
			continue // nothing happened, and nothing was read
		case err != nil:
			t.Errorf("%+v: %v", in, err)
			return
		default:
			known[in.register] = out.sequence
			l.done[n].Add(1)
		}
		l.mu.Lock()
		l.history = append(l.history, porcupine.Operation{ClientId: id, Input: in, Call: call, Output: out, Return: end})
		l.mu.Unlock()
	}
}

// ask does what is asked.
func (l *linear) ask(t *testing.T, db *pgkv.DB, in asked) (out answered, err error) {
	ref, key := counterOf(in.register)
	if in.value == "" {
		// Reads wait as long as their callers: with no end all clients may read while the
		// server stands still, and none commits.
		ctx, cancel := context.WithTimeout(t.Context(), readTime)
		defer cancel()
		s, err := db.Snapshot(ctx, ref)
		if err != nil {
			return out, err
		}
		defer s.Close()
		values, err := s.Get(ctx, kv.Records, key)
		if err != nil {
			return out, err
		}
		return answered{value: string(values[0]), sequence: s.Sequences()[0]}, nil
	}
	c := kv.Commit{Guards: []kv.Guard{{Ref: ref, Sequence: in.expected}}, Batch: new(kv.Batch)}
	c.Batch.Put(kv.Records, key, []byte(in.value))
	err = db.Commit(t.Context(), c)
	if conflict, ok := errors.AsType[*kv.ConflictError](err); ok {
		return answered{conflict: true, sequence: conflict.Found}, nil
	}
	return answered{sequence: in.expected + 1}, err
}

// further waits until so much more was acknowledged to the clients of each store.
func (l *linear) further(t *testing.T, n int64) {
	t.Helper()
	for i := range l.done {
		for from := l.done[i].Load(); l.done[i].Load() < from+n; time.Sleep(time.Millisecond) {
			if t.Context().Err() != nil || t.Failed() {
				t.Fatal("the clients do not go on")
			}
		}
	}
}

// check ends the clients and looks whether what they saw has an order.
func (l *linear) check(t *testing.T) {
	t.Helper()
	close(l.stop)
	l.clients.Wait()
	result, info := porcupine.CheckOperationsVerbose(registers(), l.history, 2*time.Minute)
	t.Logf("%d operations of %d clients, %d of unknown outcome: %s", len(l.history), 4*len(l.done), l.unknown.Load(), result)
	if result != porcupine.Ok {
		path := filepath.Join(os.TempDir(), "loom-bridge-linear.html")
		t.Errorf("the history is not linearizable (%s); it is drawn in %s: %v", result, path, porcupine.VisualizePath(registers(), info, path))
	}
}

// pairOf are two stores on one schema, each by an address of its own.
func pairOf(t *testing.T, addresses ...string) []*pgkv.DB {
	t.Helper()
	var all []*pgkv.DB
	for _, address := range addresses {
		db, err := pgkv.Open(t.Context(), address, &pgkv.Options{CommitTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		all = append(all, db)
	}
	return all
}

func startServer(t *testing.T) *pgtest.Server {
	t.Helper()
	server, err := pgtest.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server
}

// Whatever befalls the server and the way to it, two stores on it are one: there is an order
// of all that was read and written that explains every answer.
func TestLinearizable(t *testing.T) {
	between := int64(150) // operations on each store
	if testing.Short() {
		between = 60
	}
	for name, fault := range map[string]func(t *testing.T, server *pgtest.Server, way *cutter, l *linear){
		"the postmaster is killed": func(t *testing.T, server *pgtest.Server, _ *cutter, _ *linear) {
			if err := errors.Join(server.Kill(), server.Restart()); err != nil {
				t.Fatal(err)
			}
		},
		"answers are lost": func(_ *testing.T, _ *pgtest.Server, way *cutter, _ *linear) { way.drop() },
		// It stands still for longer than a commit waits, then goes on with what it had.
		"the server stands still": func(t *testing.T, server *pgtest.Server, _ *cutter, l *linear) {
			all := family(t, server)
			signal(t, all, syscall.SIGSTOP)
			// Where all clients were reading no commit may be under way, and none is sent on
			// connections that do not answer.
			unknown, refused := l.unknown.Load(), l.refused.Load()
			for l.unknown.Load() == unknown && l.refused.Load() < refused+32 {
				time.Sleep(time.Millisecond)
				if t.Failed() {
					break
				}
			}
			signal(t, all, syscall.SIGCONT)
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := startServer(t)
			way, address := startCutter(t, server.Address)
			stores := pairOf(t, server.Address, address)
			l := startLinear(t, stores...)
			for range rounds() {
				l.further(t, between)
				fault(t, server, way, l)
			}
			l.further(t, between)
			l.check(t)
		})
	}
}

// shortTerm is for how long a lease is taken where a test waits for its end.
const shortTerm = 2 * time.Second

// The clock by which one of two servers knows the time of the store jumps, by more than a
// lease forth and back: then its lease is over for the other one, which ends it, or lasts too
// long. What both read and write stays that of one store.
func TestLinearizableClock(t *testing.T) {
	server := startServer(t)
	admin, err := pgx.Connect(t.Context(), server.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(t.Context())
	jump := func(to time.Duration) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), `UPDATE public.ahead SET seconds = $1`, to.Seconds()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := admin.Exec(t.Context(), `CREATE TABLE public.ahead AS SELECT 0::float8 AS seconds`); err != nil {
		t.Fatal(err)
	}
	wrong, err := pgtest.StartRewriting(server.Address, map[string]string{
		pgkv.ReadClock: `SELECT clock_timestamp() + make_interval(secs => (SELECT seconds FROM public.ahead))`,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer wrong.Close()
	stores := pairOf(t, server.Address, wrong.Address)
	var registered []*registry.Registry
	for i, db := range stores {
		r, err := registry.Join(t.Context(), db, &registry.Options{Name: fmt.Sprint(i), Term: shortTerm})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		registered = append(registered, r)
	}
	l := startLinear(t, stores...)
	first := registered[1].Self()
	for range rounds() {
		jump(2 * shortTerm)
		l.further(t, 150)
		jump(-2 * shortTerm)
		// The other one ends it when its lease is renewed next.
		for registered[1].Self().Epoch == first.Epoch && !t.Failed() {
			time.Sleep(time.Millisecond)
		}
		first = registered[1].Self()
		jump(0)
		l.further(t, 150)
	}
	l.check(t)
}

// family are the processes of a server.
func family(t *testing.T, server *pgtest.Server) []int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(server.Folder(), "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	postmaster, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	all := []int{postmaster}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil { // it has ended
			continue
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest) // state, parent, …
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && len(fields) > 1 && fields[1] == line {
			all = append(all, pid)
		}
	}
	return all
}

func signal(t *testing.T, pids []int, s syscall.Signal) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
}

// The model refuses what no register does, and lets through what may have happened late.
func TestRegisters(t *testing.T) {
	write := porcupine.Operation{ClientId: 1, Input: asked{value: "a"}, Output: answered{unknown: true}, Call: 1, Return: math.MaxInt64}
	for name, c := range map[string]struct {
		read answered
		want bool
	}{
		"what was written":        {answered{value: "a", sequence: 1}, true},
		"before it was written":   {answered{}, true},
		"what nobody wrote":       {answered{value: "b", sequence: 1}, false},
		"a sequence that is not":  {answered{value: "a", sequence: 2}, false},
		"a value without a raise": {answered{value: "a"}, false},
	} {
		read := porcupine.Operation{ClientId: 2, Input: asked{}, Output: c.read, Call: 2, Return: 3}
		if got := porcupine.CheckOperations(registers(), []porcupine.Operation{write, read}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
