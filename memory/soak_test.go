//go:build !norocksdb && cgo

package memory_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

const (
	// soakRounds is how often the child is killed in an ordinary test run;
	// LOOM_SOAK_ROUNDS asks for more.
	soakRounds = 3
	// soakWriters write at the same time, two of them to each scope.
	soakWriters = 6
	// soakKept bounds the records of one writer, so that a long run does not
	// only check ever more of them.
	soakKept = 60
	// soakDir and soakRound tell the child where it works and what its ids begin
	// with.
	soakDir, soakRound = "MEMORY_TEST_SOAK_DIR", "MEMORY_TEST_SOAK_ROUND"
)

// TestMain makes the test binary its own victim: started with a directory it
// writes until it is killed.
func TestMain(m *testing.M) {
	dir := os.Getenv(soakDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, soakChild(dir))
	os.Exit(1) // it should have been killed
}

// move is one call of a writer. It is printed before it is made, and its number
// again when it was acknowledged.
type move struct {
	Writer  int
	Number  int
	Request string
	Op      string // save, batch, update, delete
	IDs     []string
	Texts   []string
	Version int64 // expected by an update or a deletion
}

func soakScope(writer int) kv.Scope { return kv.AgentScope("default", fmt.Sprint("soak ", writer/2)) }

// do makes the move.
func (m move) do(ctx context.Context, store *memory.Store) error {
	scope := soakScope(m.Writer)
	var err error
	switch m.Op {
	case "save":
		_, err = store.Save(ctx, scope, m.records()[0], m.Request)
	case "batch":
		_, err = store.SaveBatch(ctx, scope, m.records(), m.Request)
	case "update":
		u := text(m.IDs[0], m.Texts[0])
		u.ExpectedVersion = m.Version
		_, err = store.Update(ctx, scope, u, m.Request)
	case "delete":
		_, err = store.Delete(ctx, scope, memory.Deletion{ID: m.IDs[0], ExpectedVersion: m.Version}, m.Request)
	}
	return err
}

func (m move) records() []record.Record {
	records := make([]record.Record, len(m.IDs))
	for i, id := range m.IDs {
		records[i] = record.Record{ID: id, Key: "key of " + id, Text: m.Texts[i], SessionID: fmt.Sprint("session ", m.Writer)}
	}
	return records
}

// soaked is what one writer has in memory, as far as it was told.
type soaked map[string][]string // id → text of every version

func (s soaked) apply(m move) {
	for i, id := range m.IDs {
		switch m.Op {
		case "delete":
			delete(s, id)
		default:
			s[id] = append(s[id], m.Texts[i])
		}
	}
}

// next makes a move up.
func (s soaked) next(rng *rand.Rand, round string, writer, number int) move {
	m := move{Writer: writer, Number: number, Request: fmt.Sprintf("%s %d %d", round, writer, number)}
	fresh := func(i int) (string, string) {
		id := fmt.Sprintf("r%sw%dn%di%d", round, writer, number, i)
		return id, fmt.Sprintf("writer %d remembers marker%s of its work", writer, id)
	}
	known := ""
	for id := range s {
		known = id // any
		break
	}
	switch p := rng.IntN(10); {
	case known != "" && (len(s) > soakKept || p == 0):
		m.Op, m.IDs, m.Texts, m.Version = "delete", []string{known}, []string{""}, int64(len(s[known]))
	case known != "" && p < 5:
		m.Op, m.IDs, m.Version = "update", []string{known}, int64(len(s[known]))
		m.Texts = []string{fmt.Sprintf("writer %d changed marker%s to number %d", writer, known, number)}
	case p < 6:
		m.Op = "batch"
		for i := range 1 + rng.IntN(20) {
			id, text := fresh(i)
			m.IDs, m.Texts = append(m.IDs, id), append(m.Texts, text)
		}
	default:
		id, text := fresh(0)
		m.Op, m.IDs, m.Texts = "save", []string{id}, []string{text}
	}
	return m
}

// soakStore opens the store that dies: small enough that packing and merging
// never stop.
func soakStore(dir string) (*memory.Store, func(), error) {
	db, err := rockskv.Open(filepath.Join(dir, "store"), nil)
	if err != nil {
		return nil, nil, err
	}
	writer := kv.NewWriter(db, nil)
	store := memory.New(db, writer, &memory.Options{PackAfter: 8, SweepEvery: 7 * time.Millisecond})
	return store, func() {
		_ = store.Close()
		_ = writer.Close()
		_ = db.Close()
	}, nil
}

// soakChild goes on from what it is told on its input, until it is killed.
func soakChild(dir string) error {
	var worlds []soaked
	if err := json.NewDecoder(os.Stdin).Decode(&worlds); err != nil {
		return err
	}
	store, _, err := soakStore(dir)
	if err != nil {
		return err
	}
	var mu sync.Mutex // guards the output
	failed := make(chan error)
	for writer, world := range worlds {
		go func() { failed <- soakWriter(store, world, writer, &mu) }()
	}
	return <-failed
}

func soakWriter(store *memory.Store, world soaked, writer int, mu *sync.Mutex) error {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
	say := func(v any) error {
		mu.Lock()
		defer mu.Unlock()
		return json.NewEncoder(os.Stdout).Encode(v)
	}
	for number := 1; ; number++ {
		m := world.next(rng, os.Getenv(soakRound), writer, number)
		if err := say(m); err != nil {
			return err
		}
		if err := m.do(ctx, store); err != nil {
			return fmt.Errorf("%+v: %w", m, err)
		}
		if err := say(move{Writer: writer, Number: number}); err != nil {
			return err
		}
		world.apply(m)
		// What expires is nobody's business but the sweep's.
		if _, err := store.Save(ctx, soakScope(writer), record.Record{Text: "passing thought", TTL: time.Duration(1+rng.IntN(40)) * time.Millisecond}, ""); err != nil {
			return err
		}
	}
}

// TestSoakMemoryKillNine kills a process that saves, changes, deletes and
// imports, again and again on the same store. After each time everything that
// was acknowledged is there, a call that was cut off can be repeated, and index
// and records agree.
func TestSoakMemoryKillNine(t *testing.T) {
	rounds := soakRounds
	if asked := os.Getenv("LOOM_SOAK_ROUNDS"); asked != "" {
		var err error
		if rounds, err = strconv.Atoi(asked); err != nil {
			t.Fatalf("LOOM_SOAK_ROUNDS: %v", err)
		}
	}
	dir := t.TempDir()
	worlds := make([]soaked, soakWriters)
	for i := range worlds {
		worlds[i] = make(soaked)
	}
	acknowledged, cut := 0, 0
	for round := range rounds {
		moves, pending := killWriters(t, dir, round, worlds)
		acknowledged, cut = acknowledged+moves, cut+len(pending)
		verifySoak(t, dir, worlds, pending)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	t.Logf("%d kills: %d calls acknowledged, none lost; %d cut off and repeated", rounds, acknowledged, cut)
	if acknowledged == 0 {
		t.Error("nothing was acknowledged, so nothing was shown")
	}
}

// killWriters runs the child for a while and kills it. It takes what was
// acknowledged into the worlds and returns the moves that were cut off.
func killWriters(t *testing.T, dir string, round int, worlds []soaked) (acknowledged int, pending map[int]move) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), soakDir+"="+dir, fmt.Sprintf("%s=%d", soakRound, round))
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = json.NewEncoder(in).Encode(worlds) // it may be dead by then
		_ = in.Close()
	}()
	life := time.Duration(150+rand.IntN(300)) * time.Millisecond
	kill := time.AfterFunc(life, func() { _ = child.Process.Kill() })
	defer kill.Stop()
	began := func() {}
	if round == 0 { // which shows something on a busy machine, too: it lives on from its first answer
		kill.Reset(time.Minute)
		began = sync.OnceFunc(func() { kill.Reset(life) })
	}
	acknowledged, pending = readMoves(t, out, worlds, began)
	_ = child.Wait() // it was killed
	return acknowledged, pending
}

func readMoves(t *testing.T, out io.Reader, worlds []soaked, began func()) (acknowledged int, pending map[int]move) {
	t.Helper()
	pending = make(map[int]move)
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return acknowledged, pending // what it had begun to say does not count
		}
		var m move
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatalf("the child says %q", line)
		}
		if m.Op != "" {
			pending[m.Writer] = m
			continue
		}
		worlds[m.Writer].apply(pending[m.Writer])
		delete(pending, m.Writer)
		acknowledged++
		began()
	}
}

// verifySoak opens the store, checks it as it was left, repeats what was cut off
// and looks for everything.
func verifySoak(t *testing.T, dir string, worlds []soaked, pending map[int]move) {
	t.Helper()
	store, done, err := soakStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	for writer := 0; writer < soakWriters; writer += 2 {
		if err := store.Check(t.Context(), soakScope(writer)); err != nil {
			var m *memory.MismatchError
			if errors.As(err, &m) {
				t.Errorf("%d differences: %q", m.Total, m.Differences)
			}
			t.Fatalf("check: %v", err)
		}
	}
	for _, m := range pending {
		for range 2 {
			if err := m.do(t.Context(), store); err != nil {
				t.Errorf("repeat %+v: %v", m, err)
			}
		}
		worlds[m.Writer].apply(m)
	}
	for writer, world := range worlds {
		world.verify(t, store, soakScope(writer))
	}
	for writer := 0; writer < soakWriters; writer += 2 {
		verifyCount(t, store, soakScope(writer), len(worlds[writer])+len(worlds[writer+1]))
	}
}

func (s soaked) verify(t *testing.T, store *memory.Store, scope kv.Scope) {
	t.Helper()
	found := 0
	for id, texts := range s {
		got, err := store.GetByKey(t.Context(), scope, "key of "+id)
		if err != nil || got.ID != id || got.Text != texts[len(texts)-1] || got.Version != int64(len(texts)) {
			t.Errorf("record %s of %d versions: %+v, %v", id, len(texts), got, err)
			continue
		}
		versions, err := store.Versions(t.Context(), scope, id, 0, 0)
		if err != nil || len(versions) != len(texts)-1 {
			t.Errorf("record %s: %d earlier versions of %d, %v", id, len(versions), len(texts), err)
		}
		for i, v := range versions {
			if v.Text != texts[len(texts)-2-i] {
				t.Errorf("record %s: version %d is %q", id, v.Version, v.Text)
			}
		}
		if found++; found <= 3 {
			result, err := store.Query(t.Context(), scope, question.Question{Text: "marker" + id, Limit: 1})
			if err != nil || len(result.Hits) != 1 || result.Hits[0].Record.ID != id {
				t.Errorf("record %s: query finds %d hits, %v", id, len(result.Hits), err)
			}
		}
	}
}

// verifyCount looks for records that should not be there.
func verifyCount(t *testing.T, store *memory.Store, scope kv.Scope, want int) {
	t.Helper()
	n := 0
	l := memory.Listing{Filter: `key:*`, PageSize: memory.MaxPageSize}
	for {
		page, err := store.List(t.Context(), scope, l)
		if err != nil {
			t.Fatal(err)
		}
		n += len(page.Records)
		if l.PageToken = page.NextPageToken; l.PageToken == "" {
			break
		}
	}
	if n != want {
		t.Errorf("%s has %d records, want %d", scope, n, want)
	}
}
