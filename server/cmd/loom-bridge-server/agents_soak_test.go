package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
)

const (
	// agentsSoakRounds is how often the server is killed in an ordinary run.
	agentsSoakRounds = 2
	// agentsSoakEach is how many agents there are of each kind.
	agentsSoakEach = 3
	// agentsSoakTopics are shared by all who publish.
	agentsSoakTopics = 4
	// agentsSoakWhole: every so many rounds everything is read back, not only
	// what is new.
	agentsSoakWhole = 20
	// soakCallTimeout is the timeout of calls that are answered, soakNeverTimeout
	// of those that are not: a round is to see some of these end.
	soakCallTimeout  = 2 * time.Second
	soakNeverTimeout = 60 * time.Millisecond
)

// TestSoakAgents kills the server while agents publish in the three ways that
// acknowledge and call each other's tools. Afterwards everything that was
// acknowledged, or delivered to anybody, is there, once and in order; and every
// call has ended with an answer to it or an error of a known kind, in time.
func TestSoakAgents(t *testing.T) {
	t.Parallel()
	rounds := soakRoundsOr(t, agentsSoakRounds)
	seed := chance.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := newAgentsSoak(t)
	for round := range rounds {
		s.round(t, round%agentsSoakWhole == 0, time.Duration(150+rng.IntN(400))*time.Millisecond)
	}
	s.verify(t)
	t.Logf("%d kills: %d events acknowledged, none lost; %v; streams ended: %v", rounds, s.book.acknowledged(), &s.calls, &s.ends)
	t.Logf("acknowledged by Emit %d, by EventBus.Publish %d, by Attach %d", s.byEmit.Load(), s.byBus.Load(), s.byAttach.Load())
	if !s.shown() {
		t.Error("one of the three ways acknowledged nothing, no call was answered, or none timed out: nothing was shown")
	}
}

// shown reports whether each kind of publishing and of calling did what it is to do.
func (s *agentsSoak) shown() bool {
	return min(s.byEmit.Load(), s.byBus.Load(), s.byAttach.Load()) > 0 && min(s.calls.ended(endAnswered), s.calls.ended("TIMEOUT")) > 0
}

// soakRoundsOr is what LOOM_SOAK_ROUNDS asks for, else a number.
func soakRoundsOr(tb testing.TB, rounds int) int {
	tb.Helper()
	if text := os.Getenv("LOOM_SOAK_ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			tb.Fatalf("LOOM_SOAK_ROUNDS: %v", err)
		}
	}
	return rounds
}

// sized is how much a test does: all of it, or with -short enough to show what it is about.
func sized(short, all int) int {
	if testing.Short() {
		return short
	}
	return all
}

// role is what somebody does on a connection of its own, until the server has
// gone.
type role func(tb testing.TB, ctx context.Context, conn *grpc.ClientConn)

type agentsSoak struct {
	binary, data, workspace string

	book  book
	tools []string
	roles []role
	calls callTally
	ends  endTally

	byEmit, byBus, byAttach atomic.Int64
}

func newAgentsSoak(t *testing.T) *agentsSoak {
	t.Helper()
	s := &agentsSoak{
		binary: mustBuild(t), data: filepath.Join(t.TempDir(), "store"), workspace: t.TempDir(),
		book: newBook("soak.shared.%d", agentsSoakTopics),
	}
	for i := range agentsSoakEach {
		s.roles = append(
			s.roles,
			s.emits(fmt.Sprintf("emitter-%d", i)),
			s.attached(i), s.streams(i), s.leaves(i, false), s.leaves(i, true),
			s.callers(fmt.Sprintf("caller-%d", i), false), s.callers(fmt.Sprintf("caller-loom-%d", i), true),
		)
	}
	return s
}

func (s *agentsSoak) publisher(name string) *publisher {
	p := &publisher{name: name, book: s.book}
	for topic := range s.book {
		p.topics = append(p.topics, topic)
	}
	return p
}

// emits publishes by Emit.
func (s *agentsSoak) emits(id string) role {
	p := s.publisher(id)
	return func(tb testing.TB, ctx context.Context, conn *grpc.ClientConn) {
		for p.next(tb, ctx, emitNative(conn, id)) {
			s.byEmit.Add(1)
		}
	}
}

// attached is an agent of the native API: it listens, provides a tool, and
// publishes four events at a time on its stream.
func (s *agentsSoak) attached(i int) role {
	a := &peer{id: fmt.Sprintf("native-%d", i), topics: []string{s.topic(i)}, called: serveTool}
	s.provide(a)
	var publishers [4]*publisher
	for n := range publishers {
		publishers[n] = s.publisher(fmt.Sprintf("%s/%d", a.id, n))
	}
	return func(tb testing.TB, ctx context.Context, conn *grpc.ClientConn) {
		a.heard = func(h heard) { s.book[h.topic].tell(tb, h.sequence, h.text) }
		a.after = nil // the kill may have taken what was not synced yet; the book knows
		answers := newAsks()
		a.answered = answers.answered
		s.serve(tb, ctx, conn, a, func(stream *peerStream) {
			defer answers.end()
			var publishing sync.WaitGroup
			for _, p := range publishers {
				publishing.Go(func() {
					for p.next(tb, ctx, answers.emitter(stream)) {
						s.byAttach.Add(1)
					}
				})
			}
			s.ends.note(tb, a.run(stream))
			answers.end()
			publishing.Wait()
		})
	}
}

// streams is an agent of loom.v1: it listens to all topics, provides a tool,
// publishes by EventBus.Publish, and on its stream, where nobody acknowledges.
func (s *agentsSoak) streams(i int) role {
	a := &peer{id: fmt.Sprintf("loom-%d", i), loom: true, topics: []string{"soak.shared.*"}, called: serveTool}
	s.provide(a)
	acknowledged, silent := s.publisher(a.id+"/bus"), s.publisher(a.id+"/stream")
	return func(tb testing.TB, ctx context.Context, conn *grpc.ClientConn) {
		a.heard = func(h heard) { s.book[h.topic].tell(tb, 0, h.text) }
		a.refused = func(text string) { tb.Errorf("%s: %s", a.id, text) }
		s.serve(tb, ctx, conn, a, func(stream *peerStream) {
			var publishing sync.WaitGroup
			publishing.Go(func() {
				for acknowledged.next(tb, ctx, emitBus(conn)) {
					s.byBus.Add(1)
					topic, text := silent.make()
					_ = stream.publish(topic, text, 0) // that the stream has ended, its reader hears
				}
			})
			s.ends.note(tb, a.run(stream))
			publishing.Wait()
		})
	}
}

// leaver begins the ids of agents that may be asked to leave.
const leaver = "leaver"

// leaves is an agent that cuts its stream off whenever its tool is asked to, and
// opens the next one.
func (s *agentsSoak) leaves(i int, loom bool) role {
	a := &peer{id: fmt.Sprintf("%s-%d-%t", leaver, i, loom), loom: loom, called: serveTool}
	s.provide(a)
	return func(tb testing.TB, ctx context.Context, conn *grpc.ClientConn) {
		for gone := false; !gone; {
			gone = true
			s.serve(tb, ctx, conn, a, func(stream *peerStream) {
				err := a.run(stream)
				gone = status.Code(err) != codes.Canceled
				if gone {
					s.ends.note(tb, err)
				}
			})
		}
	}
}

func (s *agentsSoak) topic(i int) string { return fmt.Sprintf("soak.shared.%d", i%agentsSoakTopics) }

func (s *agentsSoak) provide(a *peer) {
	a.tool = a.id + ":answer"
	s.tools = append(s.tools, a.tool)
}

// serve opens a stream and lives on it.
func (s *agentsSoak) serve(tb testing.TB, ctx context.Context, conn *grpc.ClientConn, a *peer, live func(*peerStream)) {
	stream, err := a.open(ctx, conn)
	if err != nil {
		s.ends.note(tb, err)
		return
	}
	defer stream.cancel()
	live(stream)
}

// callers calls the tools of all, in turns, in one of the two APIs.
func (s *agentsSoak) callers(id string, loom bool) role {
	count := 0
	return func(tb testing.TB, ctx context.Context, conn *grpc.ClientConn) {
		for there := true; there; {
			count++
			there = s.calls.run(tb, ctx, conn, s.call(id, loom, count))
		}
	}
}

// call is some call of some tool.
func (s *agentsSoak) call(caller string, loom bool, count int) toolCall {
	c := toolCall{
		loom: loom, caller: caller, tool: s.tools[count%len(s.tools)], marker: fmt.Sprintf("%s-%d.", caller, count),
		do: []string{doEcho, doLate, doTwice, doLeave, doNever}[rand.IntN(5)], timeout: soakCallTimeout,
	}
	switch {
	case c.do == doLeave && !strings.HasPrefix(c.tool, leaver):
		c.do = doEcho
	case c.do == doNever:
		c.timeout = soakNeverTimeout
	}
	return c
}

func (s *agentsSoak) start(t *testing.T) (*exec.Cmd, string) {
	t.Helper()
	return mustStart(t, s.binary, "--addr", "127.0.0.1:0", "--data-dir", s.data, "--workspace", s.workspace, "--log-level", "error")
}

// round checks what is stored, lets all play their roles, and kills the server.
func (s *agentsSoak) round(t *testing.T, whole bool, life time.Duration) {
	t.Helper()
	process, address := s.start(t)
	s.book.MustRead(t, address, whole)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var playing sync.WaitGroup
	for _, play := range s.roles {
		playing.Go(func() {
			conn := mustDial(t, address)
			defer conn.Close()
			play(t, ctx, conn)
		})
	}
	liveFor(life, s.shown)
	late := time.AfterFunc(soakDeadline, cancel)
	defer late.Stop()
	must(t, process.Process.Kill())
	process.Wait() //nolint:errcheck // it was killed
	playing.Wait()
	if ctx.Err() != nil {
		t.Errorf("not all noticed within %v that the server was killed", soakDeadline)
	}
}

// verify reads everything back once more, stops the server and checks its store.
func (s *agentsSoak) verify(t *testing.T) {
	t.Helper()
	process, address := s.start(t)
	s.book.MustRead(t, address, true)
	must(t, process.Process.Signal(os.Interrupt))
	must(t, process.Wait())
	if out, err := exec.Command(s.binary, "check", "--data-dir", s.data).CombinedOutput(); err != nil {
		t.Errorf("the index does not agree with the records: %v\n%s", err, out)
	}
}

// endTally counts how streams ended. Its zero value is ready.
type endTally struct {
	mu    sync.Mutex
	codes map[codes.Code]int
}

// note takes only UNAVAILABLE for a good end of a stream that the server ended.
func (e *endTally) note(tb testing.TB, err error) {
	tb.Helper()
	code := status.Code(err)
	if code != codes.Unavailable {
		tb.Errorf("a stream ended with %v", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.codes == nil {
		e.codes = map[codes.Code]int{}
	}
	e.codes[code]++
}

func (e *endTally) total() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ended := range e.codes {
		n += ended
	}
	return n
}

func (e *endTally) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return fmt.Sprint(e.codes)
}
