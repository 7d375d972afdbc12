package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

const (
	// soakRounds is how often the server is killed in an ordinary test run;
	// LOOM_SOAK_ROUNDS asks for more.
	soakRounds = 3
	// soakWriters write at the same time, each as an agent of its own.
	soakWriters = 8
	// soakDeadline bounds each call; the machine may be busy.
	soakDeadline = 60 * time.Second
)

// TestKillNine kills the server while eight agents save, emit and call
// tools, starts it again and looks for everything that was acknowledged. After
// each round the index must agree with the records.
func TestKillNine(t *testing.T) {
	t.Parallel()
	rounds := soakRoundsOr(t, soakRounds)
	seed := chance.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := &soak{binary: mustBuild(t), data: filepath.Join(t.TempDir(), "store"), workspace: t.TempDir()}
	for i := range soakWriters {
		s.writers = append(s.writers, &writer{agent: fmt.Sprintf("soak-%d", i)})
	}
	for round := range rounds {
		s.round(t, round, time.Duration(100+rng.IntN(400))*time.Millisecond)
	}
	s.verify(t)
	saves, emits, steps := s.totals()
	t.Logf("%d kills: %d saves, %d events and %d steps acknowledged, none lost", rounds, saves, emits, steps)
	if saves == 0 || emits == 0 || steps == 0 {
		t.Error("nothing was acknowledged, so nothing was shown")
	}
}

// soak is one server that dies again and again, and those who write to it.
type soak struct {
	binary, data, workspace string
	writers                 []*writer
}

// writer is one agent and what the server acknowledged to it.
type writer struct {
	agent    string
	saved    map[string]string // record id → text
	events   map[int64]string  // sequence → payload
	steps    map[string]string // step id → path written
	verified int64             // sequence up to which events were verified
	count    int
	acted    atomic.Bool // one of each kind was acknowledged
}

// round checks what earlier rounds left, writes, and kills the server.
func (s *soak) round(t *testing.T, round int, life time.Duration) {
	t.Helper()
	process, addr := mustStart(t, s.binary, "--addr", "127.0.0.1:0", "--data-dir", s.data, "--workspace", s.workspace, "--log-level", "error", "--embedder=auto")
	var wg sync.WaitGroup
	for _, w := range s.writers {
		wg.Go(func() {
			conn := mustDial(t, addr)
			defer conn.Close()
			w.verify(t, conn)
			w.write(conn)
		})
	}
	liveFor(life, func() bool { return slices.ContainsFunc(s.writers, (*writer).hasActed) })
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	process.Wait() //nolint:errcheck // it was killed
	wg.Wait()
	if out, err := exec.Command(s.binary, "check", "--data-dir", s.data).CombinedOutput(); err != nil {
		t.Fatalf("round %d: the index does not agree with the records: %v\n%s", round, err, out)
	}
}

// liveFor lets a server live for so long, and for longer until that was seen which a
// test is to show: a busy machine may take a minute for what is mostly a matter of
// milliseconds.
func liveFor(life time.Duration, shown func() bool) {
	time.Sleep(life) // how long the server lives, not a wait for something to happen
	for deadline := time.Now().Add(soakDeadline); !shown() && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
}

// hasActed reports whether one call of each kind was acknowledged.
func (w *writer) hasActed() bool { return w.acted.Load() }

// verify starts the server once more and checks everything from the start.
func (s *soak) verify(t *testing.T) {
	t.Helper()
	process, addr := mustStart(t, s.binary, "--addr", "127.0.0.1:0", "--data-dir", s.data, "--workspace", s.workspace, "--log-level", "error", "--embedder=auto")
	defer func() {
		process.Process.Kill() //nolint:errcheck // it may have ended already
		process.Wait()         //nolint:errcheck // it was killed
	}()
	for _, w := range s.writers {
		conn := mustDial(t, addr)
		w.verified = 0
		if !w.verify(t, conn) {
			t.Errorf("%s: could not be verified", w.agent)
		}
		conn.Close()
	}
}

func (s *soak) totals() (saves, emits, steps int) {
	for _, w := range s.writers {
		saves, emits, steps = saves+len(w.saved), emits+len(w.events), steps+len(w.steps)
	}
	return saves, emits, steps
}

// write saves, emits and runs a tool in turns until a call fails, and notes
// only what was acknowledged.
func (w *writer) write(conn *grpc.ClientConn) {
	if w.saved == nil {
		w.saved, w.events, w.steps = map[string]string{}, map[int64]string{}, map[string]string{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), soakDeadline)
	defer cancel()
	bridge := loombridgev1.NewBridgeServiceClient(conn)
	for {
		w.count++
		text := fmt.Sprintf("%s remembers marker%dx%s of its work", w.agent, w.count, strings.ReplaceAll(w.agent, "-", ""))
		saved, err := bridge.MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: w.agent, Text: text})
		if err != nil {
			return
		}
		w.saved[saved.GetId()] = text
		emitted, err := bridge.Emit(ctx, &loombridgev1.EmitRequest{
			AgentId: w.agent, Topic: "soak." + w.agent,
			PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: fmt.Sprint(w.count)},
		})
		if err != nil {
			return
		}
		w.events[emitted.GetSequence()] = fmt.Sprint(w.count)
		path := fmt.Sprintf("%s/%d.txt", w.agent, w.count%5)
		result, err := bridge.Tool(ctx, &loombridgev1.ToolRequest{
			AgentId: w.agent, Name: "fs:write_file",
			ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: fmt.Sprintf(`{"path":%q,"content":%q}`, path, text)},
		})
		if err != nil {
			return
		}
		if result.GetRecorded() && result.GetSuccess() {
			w.steps[result.GetStep().GetId()] = path
			w.acted.Store(true)
		}
	}
}

// verify looks for everything acknowledged; false when the server died first.
func (w *writer) verify(t *testing.T, conn *grpc.ClientConn) bool {
	ctx, cancel := context.WithTimeout(context.Background(), soakDeadline)
	defer cancel()
	return w.verifyRecords(ctx, t, conn) && w.verifyEvents(ctx, t, conn) && w.verifySteps(ctx, t, conn)
}

func (w *writer) verifyRecords(ctx context.Context, t *testing.T, conn *grpc.ClientConn) bool {
	memory := loombridgev1.NewMemoryServiceClient(conn)
	bridge := loombridgev1.NewBridgeServiceClient(conn)
	checked := 0
	for id, text := range w.saved {
		got, err := memory.GetRecord(ctx, &loombridgev1.GetRecordRequest{AgentId: w.agent, Name: &loombridgev1.GetRecordRequest_Id{Id: id}})
		if died(err) {
			return false
		}
		if err != nil || got.GetText() != text {
			t.Errorf("%s: record %s is lost: %v", w.agent, id, err)
		}
		if checked++; checked%10 != 1 {
			continue // one query in ten is enough to know that the index follows
		}
		found, err := bridge.MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: w.agent, Query: strings.Fields(text)[2]})
		if died(err) {
			return false
		}
		if err != nil || len(found.GetHits()) == 0 || found.GetHits()[0].GetRecord().GetId() != id {
			t.Errorf("%s: record %s is not found by its own word: %v %v", w.agent, id, found, err)
		}
	}
	return true
}

func (w *writer) verifyEvents(ctx context.Context, t *testing.T, conn *grpc.ClientConn) bool {
	last := w.verified
	for sequence := range w.events {
		last = max(last, sequence)
	}
	if last == w.verified {
		return true
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := loombridgev1.NewEventServiceClient(conn).Subscribe(convert.AskText(ctx), &loombridgev1.SubscribeRequest{
		AgentId: w.agent,
		Topics:  []*loombridgev1.TopicPosition{{Topic: "soak." + w.agent, AfterSequence: &w.verified}},
	})
	for next := w.verified + 1; err == nil && next <= last; {
		var message *loombridgev1.SubscribeResponse
		if message, err = stream.Recv(); err != nil || message.GetEvent() == nil {
			continue
		}
		e := message.GetEvent()
		if e.GetSequence() != next {
			t.Errorf("%s: event %d came where %d was due", w.agent, e.GetSequence(), next)
		}
		if want, ok := w.events[next]; ok && e.GetPayloadJson() != want {
			t.Errorf("%s: event %d holds %s, want %s", w.agent, next, e.GetPayloadJson(), want)
		}
		next++
	}
	if err != nil {
		if !died(err) {
			t.Errorf("%s: events after %d are lost: %v", w.agent, w.verified, err)
		}
		return false
	}
	w.verified = last
	return true
}

func (w *writer) verifySteps(ctx context.Context, t *testing.T, conn *grpc.ClientConn) bool {
	for id, path := range w.steps {
		got, err := contexts.New(conn).GetStep(ctx, &loombridgev1.GetStepRequest{AgentId: w.agent, StepId: id})
		if died(err) {
			return false
		}
		if err != nil || !strings.Contains(got.GetObservation(), path) {
			t.Errorf("%s: %s is lost: %v", w.agent, id, err)
		}
	}
	return true
}

// died reports whether a call ended because the server was killed.
func died(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "code = Unavailable") || errors.Is(err, context.DeadlineExceeded))
}

// build is the program, built once for all tests, unless LOOM_BRIDGE_SERVER names one that
// was built already, as `make go-test` does.
type build struct {
	once  sync.Once
	given string
	dir   string
	err   error
}

// binary is removed by TestMain.
var binary build

func (b *build) make() {
	if b.given = os.Getenv("LOOM_BRIDGE_SERVER"); b.given != "" {
		_, b.err = os.Stat(b.given) // so that `go test` notices another one
		return
	}
	if b.dir, b.err = os.MkdirTemp("", "loom-bridge-server"); b.err != nil {
		return
	}
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", b.path(), ".").CombinedOutput(); err != nil {
		b.err = fmt.Errorf("%w\n%s", err, out)
	}
}

func (b *build) path() string {
	if b.given != "" {
		return b.given
	}
	return filepath.Join(b.dir, "loom-bridge-server")
}

func (b *build) remove() {
	if b.dir != "" {
		_ = os.RemoveAll(b.dir)
	}
}

func mustBuild(tb testing.TB) string {
	tb.Helper()
	binary.once.Do(binary.make)
	if binary.err != nil {
		tb.Fatalf("build: %v", binary.err)
	}
	return binary.path()
}

// mustStart starts the program, which collects garbage as a user's does, and returns its address.
func mustStart(t testing.TB, binary string, args ...string) (*exec.Cmd, string) {
	t.Helper()
	process := exec.Command(binary, byWords(args)...)
	process.Env, process.Stderr = append(os.Environ(), "GOGC="), os.Stderr
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill() })
	late := time.AfterFunc(soakDeadline, func() { _ = process.Process.Kill() })
	defer late.Stop()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, addr, ok := strings.Cut(lines.Text(), "listening on "); ok {
			return process, addr
		}
	}
	t.Fatal("the server ended before it listened")
	return nil, ""
}

func mustDial(t testing.TB, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}
