package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	// drainPeers are attached when the server is stopped, half of each API.
	drainPeers = 100
	// drainTopics are shared: each peer listens to one.
	drainTopics = 10
	// drainLife is how long they work before the server is stopped, and after
	// all are back.
	drainLife = 700 * time.Millisecond
	// drainPause lies between two events or calls of one peer: together they
	// make about a thousand of each a second.
	drainPause = 100 * time.Millisecond
	// drainPatience bounds the return of all, and the arrival of the last event.
	drainPatience = time.Minute
	// drainCallTimeout is the timeout of their calls.
	drainCallTimeout = 5 * time.Second
	// backoffFirst and backoffLast are loom-py's: it waits before it connects
	// again, and doubles that.
	backoffFirst = 500 * time.Millisecond
	backoffLast  = 10 * time.Second
)

// SIGTERM under load: the process ends within its limit and with 0, and every
// stream with UNAVAILABLE; the next process on the same address and directory
// gets every client back. Each of them hears each acknowledged event of its
// topic once, also those of the time in between.
func TestDrainUnderLoadSoak(t *testing.T) {
	t.Parallel()
	d := newDrained(t)
	first := d.start()
	d.attachAll()
	liveFor(drainLife, func() bool { return d.book.acknowledged() > 0 })
	d.stop(first)
	eventually(t, drainPatience, func() error { // the clients note it, each in its time
		if got := d.ends.total(); got != drainPeers {
			return fmt.Errorf("%d streams ended with the server, want %d", got, drainPeers)
		}
		return nil
	})
	second := d.start()
	d.awaitOpened(2)
	time.Sleep(drainLife)
	d.quit()
	d.book.MustRead(t, d.address, true)
	d.stop(second)
	t.Logf("%d events acknowledged, none lost; %v; streams ended: %v", d.book.acknowledged(), &d.calls, &d.ends)
	if out, err := exec.Command(d.binary, "check", "--data-dir", d.data).CombinedOutput(); err != nil {
		t.Errorf("the index does not agree with the records: %v\n%s", err, out)
	}
}

// drained is a server that is stopped under load, and its peers.
type drained struct {
	tb                               testing.TB
	binary, data, workspace, address string

	book  book
	calls callTally
	ends  endTally
	peers []*drainPeer

	leaving  atomic.Bool // the peers mean to leave
	stopping chan struct{}
	working  sync.WaitGroup // who publishes and calls
	staying  sync.WaitGroup // who keeps the streams open
}

// drainPeer is one agent. Its stream is opened again and again.
type drainPeer struct {
	peer
	publisher *publisher
	answers   *asks          // of the stream that is open
	using     sync.WaitGroup // who publishes and calls on its connection

	mu      sync.Mutex
	stream  *peerStream    // nil while there is none
	streams int            // how many there were
	arrived map[string]int // text → how often it was heard
}

func newDrained(tb testing.TB) *drained {
	tb.Helper()
	d := &drained{
		tb: tb, binary: mustBuild(tb), data: filepath.Join(tb.TempDir(), "store"), workspace: tb.TempDir(),
		address: freeAddress(tb), book: newBook("drain.%d", drainTopics), stopping: make(chan struct{}),
	}
	for i := range drainPeers {
		p := &drainPeer{arrived: map[string]int{}}
		p.peer = peer{id: fmt.Sprintf("drain-%d", i), loom: i%2 == 1, topics: []string{fmt.Sprintf("drain.%d", i/2%drainTopics)}, called: serveTool}
		p.tool = p.id + ":answer"
		p.heard = p.hear
		p.publisher = &publisher{name: p.id, topics: []string{fmt.Sprintf("drain.%d", i%drainTopics)}, book: d.book}
		d.peers = append(d.peers, p)
	}
	return d
}

func (p *drainPeer) hear(h heard) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arrived[h.text]++
}

// start starts the server, each time on the same address and directory.
func (d *drained) start() *exec.Cmd {
	d.tb.Helper()
	process, _ := mustStart(d.tb, d.binary, "--addr", d.address, "--data-dir", d.data, "--workspace", d.workspace, "--log-level", "error")
	return process
}

// stop sends SIGTERM and waits for the end of the process.
func (d *drained) stop(process *exec.Cmd) {
	d.tb.Helper()
	began := time.Now()
	must(d.tb, process.Process.Signal(syscall.SIGTERM))
	overdue := time.AfterFunc(drainPatience, func() { _ = process.Process.Kill() })
	defer overdue.Stop()
	if err := process.Wait(); err != nil {
		d.tb.Errorf("exit: %v", err)
	}
	took := time.Since(began)
	d.tb.Logf("the server stopped within %v", took.Round(time.Millisecond))
	if took > stopLimit {
		d.tb.Errorf("the stop took %v, want at most %v", took, stopLimit)
	}
}

// attachAll opens all streams, and lets all publish and call once all listen.
func (d *drained) attachAll() {
	d.tb.Helper()
	d.tb.Cleanup(func() { d.leaving.Store(true) })
	for _, p := range d.peers {
		d.staying.Go(func() { d.stay(p) })
	}
	d.awaitOpened(1)
	for i, p := range d.peers {
		d.working.Go(func() { d.work(p, d.publishOne) })
		d.working.Go(func() {
			d.work(p, func(ctx context.Context, p *drainPeer, s *peerStream) {
				d.callOne(ctx, p, s, d.peers[(i*7+13)%drainPeers])
			})
		})
	}
}

// awaitOpened waits until every peer has opened so many streams.
func (d *drained) awaitOpened(streams int) {
	d.tb.Helper()
	began := time.Now()
	eventually(d.tb, drainPatience, func() error {
		for _, p := range d.peers {
			if p.opened() < streams {
				return fmt.Errorf("%s has not opened its stream number %d", p.id, streams)
			}
		}
		return nil
	})
	d.tb.Logf("all %d have a stream after %v", len(d.peers), time.Since(began).Round(time.Millisecond))
}

func (p *drainPeer) opened() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.streams
}

// begin makes a stream the one to use.
func (p *drainPeer) begin(s *peerStream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stream = s
	p.streams++
}

// end returns when nobody uses the stream any more: nobody's connection is closed
// under a call.
func (p *drainPeer) end() {
	p.mu.Lock()
	p.stream = nil
	p.mu.Unlock()
	p.using.Wait()
}

// use calls do with the stream, if there is one.
func (p *drainPeer) use(do func(*peerStream)) {
	p.mu.Lock()
	s := p.stream
	if s != nil {
		p.using.Add(1)
		defer p.using.Done()
	}
	p.mu.Unlock()
	if s != nil {
		do(s)
	}
}

// stay keeps the peer attached as its SDK would: when the stream breaks it
// connects again, with a pause that doubles while that fails.
func (d *drained) stay(p *drainPeer) {
	pause := backoffFirst
	for !d.leaving.Load() {
		if d.once(p) {
			pause = backoffFirst
		}
		select {
		case <-time.After(pause):
		case <-d.stopping:
		}
		pause = min(2*pause, backoffLast)
	}
}

// once opens one stream on a connection of its own and reads it until it ends;
// false if it can't be opened.
func (d *drained) once(p *drainPeer) bool {
	conn := mustDial(d.tb, d.address)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*drainPatience)
	defer cancel()
	stream, err := p.open(ctx, conn)
	if err != nil {
		return false
	}
	p.answers = newAsks()
	p.answered = p.answers.answered
	p.begin(stream)
	err = p.run(stream)
	p.answers.end()
	p.end()
	if !d.leaving.Load() {
		d.ends.note(d.tb, err)
	}
	return true
}

// work does one thing after another, while there is a stream, until the test
// ends.
func (d *drained) work(p *drainPeer, do func(context.Context, *drainPeer, *peerStream)) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*drainPatience)
	defer cancel()
	ticker := time.NewTicker(drainPause)
	defer ticker.Stop()
	for {
		select {
		case <-d.stopping:
			return
		case <-ticker.C:
		}
		p.use(func(s *peerStream) { do(ctx, p, s) })
	}
}

// publishOne publishes in the peer's own way, and acknowledged.
func (d *drained) publishOne(ctx context.Context, p *drainPeer, s *peerStream) {
	emit := emitBus(s.conn)
	if !p.loom {
		emit = p.answers.emitter(s)
	}
	p.publisher.next(d.tb, ctx, emit)
}

func (d *drained) callOne(ctx context.Context, p *drainPeer, s *peerStream, provider *drainPeer) {
	d.calls.run(d.tb, ctx, s.conn, toolCall{
		loom: p.loom, caller: p.id, tool: provider.tool, do: doLate, marker: "to " + p.id + ".", timeout: drainCallTimeout,
	})
}

// quit ends all work, waits until every peer has heard what it listens to, and
// lets all leave.
func (d *drained) quit() {
	d.tb.Helper()
	close(d.stopping)
	d.working.Wait()
	eventually(d.tb, drainPatience, func() error {
		for _, p := range d.peers {
			if err := d.missing(p); err != nil {
				return err
			}
		}
		return nil
	})
	d.leaving.Store(true)
	for _, p := range d.peers {
		p.use(func(s *peerStream) { s.cancel() })
	}
	d.staying.Wait()
	for _, p := range d.peers {
		for text, times := range p.arrived {
			if times != 1 {
				d.tb.Errorf("%s heard %q %d times", p.id, text, times)
			}
		}
	}
}

// missing is an acknowledged event that a peer listens to and has not heard.
func (d *drained) missing(p *drainPeer) error {
	l := d.book[p.topics[0]]
	l.mu.Lock()
	defer l.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	for sequence, text := range l.told {
		if p.arrived[text] == 0 {
			return fmt.Errorf("%s did not hear event %d of %s, %q", p.id, sequence, l.topic, text)
		}
	}
	return nil
}
