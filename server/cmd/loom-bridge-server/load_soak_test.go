package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// crowdSize says how many attach, and what they do.
type crowdSize struct {
	agents, connections, topics int // each agent listens to one topic, so a topic has agents/topics listeners
	rate                        int // events a second, of all together
	life                        time.Duration
}

// What the load test runs: briefly in an ordinary test run, and at full size
// when LOOM_SOAK_ROUNDS is set.
var (
	briefCrowd = crowdSize{agents: 60, connections: 12, topics: 6, rate: 400, life: 1500 * time.Millisecond}
	fullCrowd  = crowdSize{agents: 1000, connections: 100, topics: 100, rate: 1000, life: time.Minute}
)

const (
	// crowdEventBytes is the size of each payload.
	crowdEventBytes = 256
	// crowdSenders share the agents between them, so that one agent that has to
	// wait holds up few others.
	crowdSenders = 20
	// crowdTick is how often a sender looks what is due.
	crowdTick = 10 * time.Millisecond
	// crowdPatience bounds opening all streams, the arrival of the last event,
	// and the end of all streams, each.
	crowdPatience = 60 * time.Second
	// maxComplaints are printed at most.
	maxComplaints = 20
)

// What may be left of a crowd when it has gone. The directory knows its agents
// for ten minutes, and the bus, the store and the connections keep buffers, all
// of them bounded: so a second crowd must leave next to nothing more.
const (
	leftGoroutines = 20
	leftHeapBytes  = 16 << 20
	leftHeapAgain  = 4 << 20
)

// TestSoakThousandAgents attaches agents, half of each API, lets them publish to
// each other, and looks that every event arrives once at each listener, in
// order; and that the server is as small as before when they have left.
func TestSoakThousandAgents(t *testing.T) {
	size := briefCrowd
	if os.Getenv("LOOM_SOAK_ROUNDS") != "" {
		size = fullCrowd
	}
	metrics := freeAddress(t)
	_, address := mustStart(t, mustBuild(t), "--addr", "127.0.0.1:0", "--data-dir", t.TempDir(), "--workspace", t.TempDir(),
		"--log-level", "error", "--metrics-addr", metrics)
	gauge := newGauge(t, address, metrics)
	before := gauge.settled(t)
	newCrowd(t, size).visit(address, gauge)
	after := gauge.settled(t)
	size.life /= 5
	newCrowd(t, size).visit(address, gauge)
	again := gauge.settled(t)
	t.Logf("before:       %v\nafter:        %v\nafter others: %v", before, after, again)
	after.mustBeNear(t, before, leftGoroutines, leftHeapBytes)
	again.mustBeNear(t, after, leftGoroutines, leftHeapAgain)
}

// visit attaches the crowd, lets it publish, and lets it leave.
func (c *crowd) visit(address string, g *gauge) {
	c.tb.Helper()
	c.attach(address)
	attached := g.read(c.tb)
	took := c.publish()
	c.arrive()
	loaded := g.read(c.tb)
	c.leave()
	c.judge()
	if n := c.complaints.Load(); n > maxComplaints {
		c.tb.Errorf("%d complaints in all", n)
	}
	c.tb.Logf("%d agents on %d connections, %d topics: %d events in %v (%.0f/s), %d deliveries (%.0f/s)",
		c.size.agents, c.size.connections, c.size.topics, c.published.Load(), took.Round(time.Millisecond),
		float64(c.published.Load())/took.Seconds(), c.delivered.Load(), float64(c.delivered.Load())/took.Seconds())
	c.tb.Logf("publish to deliver: %v", c.latencies())
	c.tb.Logf("attached:     %v\nloaded:       %v", attached, loaded)
}

// crowd is many agents and what they published and heard.
type crowd struct {
	tb   testing.TB
	size crowdSize

	conns   []*grpc.ClientConn
	members []*member
	running sync.WaitGroup // the readers

	published, delivered, answered, complaints atomic.Int64
}

// complain fails the test. What is wrong with every event is told of a few.
func (c *crowd) complain(format string, args ...any) {
	c.tb.Helper()
	if c.complaints.Add(1) <= maxComplaints {
		c.tb.Errorf(format, args...)
	}
}

// member is one agent of the crowd.
type member struct {
	peer
	stream *peerStream
	ended  error // set when the reader has ended

	sent  map[string]int // topic → events published; belongs to its sender
	count map[string]int // publisher → count of the last event heard; belongs to the reader
	took  []time.Duration
}

func newCrowd(tb testing.TB, size crowdSize) *crowd {
	tb.Helper()
	c := &crowd{tb: tb, size: size}
	for i := range size.agents {
		m := &member{sent: map[string]int{}, count: map[string]int{}}
		m.peer = peer{id: fmt.Sprintf("crowd-%d", i), loom: i%2 == 1, topics: []string{c.topic(i)}}
		m.heard = func(h heard) { c.hear(m, h) }
		m.answered = c.answer
		m.refused = func(text string) { c.complain("%s: %s", m.id, text) }
		c.members = append(c.members, m)
	}
	return c
}

func (c *crowd) topic(i int) string { return fmt.Sprintf("crowd.%d", i%c.size.topics) }

// attach opens all streams, those of one connection one after another.
func (c *crowd) attach(address string) {
	c.tb.Helper()
	// Nothing on a stream has a limit of its own: the whole has.
	ctx, cancel := context.WithTimeout(context.Background(), 3*crowdPatience+c.size.life)
	c.tb.Cleanup(cancel)
	var opening sync.WaitGroup
	for i := range c.size.connections {
		conn := mustDial(c.tb, address)
		c.conns = append(c.conns, conn)
		opening.Go(func() {
			for n := i; n < len(c.members); n += c.size.connections {
				c.open(ctx, conn, c.members[n])
			}
		})
	}
	opening.Wait()
	if c.tb.Failed() {
		c.tb.FailNow()
	}
}

func (c *crowd) open(ctx context.Context, conn *grpc.ClientConn, m *member) {
	stream, err := m.peer.open(ctx, conn)
	if err != nil {
		c.complain("%s: %v", m.id, err)
		return
	}
	m.stream = stream
	c.running.Go(func() { m.ended = m.run(stream) })
}

// publish keeps to the rate as far as the server takes it, and returns how long
// publishing took.
func (c *crowd) publish() time.Duration {
	start := time.Now()
	total := int64(c.size.life.Seconds() * float64(c.size.rate))
	var sending sync.WaitGroup
	for i := range crowdSenders {
		sending.Go(func() {
			due := float64(c.size.rate) / crowdSenders
			for n := int64(0); n*crowdSenders < total; {
				for ; float64(n) < time.Since(start).Seconds()*due && n*crowdSenders < total; n++ {
					c.publishOne(i, int(n))
				}
				time.Sleep(crowdTick) // the rate is in real time
			}
		})
	}
	sending.Wait()
	return time.Since(start)
}

// publishOne publishes the n-th event of a sender, by the next one of its
// agents: in turns on the agent's own topic and on one of others.
func (c *crowd) publishOne(sender, n int) {
	mine := (c.size.agents - sender + crowdSenders - 1) / crowdSenders
	index := sender + n%mine*crowdSenders
	m := c.members[index]
	topic := c.topic(index + n/mine%2*(1+index/c.size.topics))
	m.sent[topic]++
	text := token{m.id, m.sent[topic], time.Now().UnixNano()}.String()
	text += strings.Repeat(padding, max(0, crowdEventBytes-len(text)))
	if err := m.stream.publish(topic, text, int64(n)+1); err != nil {
		c.complain("%s: publish: %v", m.id, err)
	}
	c.published.Add(1)
}

// hear runs on the listener's own goroutine.
func (c *crowd) hear(m *member, h heard) {
	made, err := parseToken(h.text)
	if err != nil {
		c.complain("%s: %v", m.id, err)
		return
	}
	if last := m.count[made.publisher]; made.count != last+1 {
		c.complain("%s heard %s's event %d on %s behind its %d", m.id, made.publisher, made.count, h.topic, last)
	}
	m.count[made.publisher] = made.count
	m.took = append(m.took, time.Duration(time.Now().UnixNano()-made.sent))
	c.delivered.Add(1)
}

func (c *crowd) answer(answer *loombridgev1.AttachAnswer) {
	if answer.GetError() != nil {
		c.complain("publish: %v", answer.GetError())
	}
	c.answered.Add(1)
}

// arrive waits until as much has arrived as was published.
func (c *crowd) arrive() {
	c.tb.Helper()
	listeners := int64(c.size.agents / c.size.topics)
	eventually(c.tb, crowdPatience, func() error {
		if want, got := c.published.Load()*listeners, c.delivered.Load(); got < want {
			return fmt.Errorf("%d of %d deliveries came", got, want)
		}
		return nil
	})
}

// leave ends all streams as an agent that stops does.
func (c *crowd) leave() {
	for _, m := range c.members {
		if err := m.stream.leave(); err != nil {
			c.complain("%s: leave: %v", m.id, err)
		}
	}
	c.running.Wait() // the context of the streams bounds it
	for _, conn := range c.conns {
		conn.Close()
	}
}

// judge compares what each agent heard with what was published on its topic.
func (c *crowd) judge() {
	for _, m := range c.members {
		if m.ended != io.EOF { //nolint:errorlint // gRPC returns it as it is
			c.complain("%s: the stream ended with %v", m.id, m.ended)
		}
		for _, publisher := range c.members {
			if got, want := m.count[publisher.id], publisher.sent[m.topics[0]]; got != want {
				c.complain("%s heard %d events of %s on %s, want %d", m.id, got, publisher.id, m.topics[0], want)
			}
		}
	}
}

// latencies tells the percentiles of the time from publishing to hearing, the
// wait on both sides of the test included.
func (c *crowd) latencies() string {
	var all []time.Duration
	for _, m := range c.members {
		all = append(all, m.took...)
	}
	slices.Sort(all)
	at := func(share float64) time.Duration {
		return all[int(math.Ceil(share*float64(len(all))))-1].Round(10 * time.Microsecond)
	}
	return fmt.Sprintf("p50 %v, p99 %v, p99.9 %v, longest %v", at(0.50), at(0.99), at(0.999), at(1))
}
