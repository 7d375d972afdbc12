//go:build cgo && !norocksdb

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// payloadBytes is the size of an event's payload.
const payloadBytes = 256

// flow is one way events run: so many publishers, each with its own topic
// that so many streams listen to. With one listener the publisher hears itself.
type flow struct {
	name       string
	publishers int
	listeners  int
	// window is how many events of a publisher may be under way; 1 measures
	// the time of a single one.
	window  int
	durable bool
	aim     string
}

// eventTable measures the flows and prints its own table.
func (b *bench) eventTable(ctx context.Context) error {
	if !strings.Contains("events", b.only) {
		return nil
	}
	fmt.Fprintf(b.table, "\nevents, 256 bytes\tpublishers\techo p50 µs\tours p50 µs\tratio\techo p99 µs\tours p99 µs\techo /s\tours /s\tratio\taim\t\n")
	for _, f := range []flow{
		{"volatile 1→1, one at a time", 1, 1, 1, false, "p50 ≤ 2"},
		{"volatile 1→1, 512 under way", 1, 1, 512, false, "/s ≥ 0.5"},
		{"volatile 1→100, one at a time", 1, 100, 1, false, ""},
		{"volatile 1→100, 64 under way", 1, 100, 64, false, ""},
		{"durable 1→1, one at a time", 1, 1, 1, true, "p50 ≤ 1.5"},
		{"durable 1→1, 512 under way", 1, 1, 512, true, ""},
		{"durable 1→100, 64 under way", 1, 100, 64, true, ""},
		{"durable, one at a time each", b.clients, 1, 1, true, "/s ≥ 0.5"},
	} {
		fmt.Fprintf(os.Stderr, "events %s: %d rounds of %s on each server\n", f.name, b.rounds, b.length)
		err := b.inTurns(ctx, f.name, f.publishers, f.aim, func(ctx context.Context, addr string) (sample, error) { return f.run(ctx, addr, b.length) })
		if err != nil {
			return err
		}
	}
	return b.table.Flush()
}

// flowTopic is the topic of a publisher.
func flowTopic(i int) string { return fmt.Sprintf("bench.flow.%d", i) }

type attached = grpc.BidiStreamingClient[loombridgev1.AttachRequest, loombridgev1.AttachResponse]

// run lets all publishers publish for the given time and returns the times
// from publishing to each delivery. Those of the first tenth warm up and don't
// count.
func (f flow) run(ctx context.Context, addr string, length time.Duration) (sample, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	start := time.Now()
	r := &relayRun{flow: f, start: start, counted: start.Add(length / 10), end: start.Add(length)}
	var publishing sync.WaitGroup
	for i := range f.publishers {
		p, err := r.open(ctx, addr, flowTopic(i))
		if err != nil {
			return sample{}, err
		}
		defer p.close()
		r.all = append(r.all, p)
	}
	// The time runs when all have attached.
	r.start = time.Now()
	r.counted, r.end = r.start.Add(length/10), r.start.Add(length)
	for _, p := range r.all {
		p.listen(r)
		publishing.Go(func() { r.failed(p.publish(r)) })
	}
	publishing.Wait()
	elapsed := time.Since(r.counted)
	cancel()
	var latencies []time.Duration
	for _, p := range r.all {
		p.listening.Wait()
		for _, l := range p.latencies {
			latencies = append(latencies, l...)
		}
	}
	slices.Sort(latencies)
	if err := r.err.Load(); err != nil {
		return sample{}, *err
	}
	return sample{latencies, elapsed}, nil
}

// relayRun is one round of a flow.
type relayRun struct {
	flow
	start, counted, end time.Time
	all                 []*publisher
	err                 atomic.Pointer[error]
}

// failed keeps the first error.
func (r *relayRun) failed(err error) {
	if err != nil {
		r.err.CompareAndSwap(nil, &err)
	}
}

// publisher is one stream that publishes, and its listeners; with one listener it is the
// same stream.
type publisher struct {
	topic     string
	conns     []*client
	stream    attached
	listeners []attached
	// arrived counts the listeners that got the event with an index, modulo the
	// window; the last one gives room for another.
	arrived   []atomic.Int64
	room      chan struct{}
	latencies [][]time.Duration // of each listener
	listening sync.WaitGroup
}

func (r *relayRun) open(ctx context.Context, addr, topic string) (*publisher, error) {
	p := &publisher{
		topic: topic, arrived: make([]atomic.Int64, r.window), room: make(chan struct{}, r.window),
		latencies: make([][]time.Duration, r.listeners),
	}
	streams := r.listeners
	if r.listeners > 1 {
		streams++
	}
	conns, err := dial(addr, min(streams, 4))
	if err != nil {
		return nil, err
	}
	p.conns = conns
	for i := range streams {
		listens := r.listeners == 1 || i > 0
		stream, err := attach(ctx, conns[i%len(conns)], fmt.Sprintf("%s.%d", topic, i), topic, listens)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			p.stream = stream
		}
		if listens {
			p.listeners = append(p.listeners, stream)
		}
	}
	return p, nil
}

// attach opens a stream and waits until it stands.
func attach(ctx context.Context, c *client, agent, topic string, listens bool) (attached, error) {
	stream, err := loombridgev1.NewBridgeServiceClient(c.conn).Attach(ctx)
	if err != nil {
		return nil, err
	}
	hello := &loombridgev1.AttachHello{AgentId: agent}
	if listens {
		hello.Topics = []*loombridgev1.TopicPosition{{Topic: topic}}
	}
	if err := stream.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Hello{Hello: hello}}); err != nil {
		return nil, err
	}
	ready, err := stream.Recv()
	if err == nil && ready.GetReady() == nil {
		err = errors.New("bench: the first answer is not `ready`")
	}
	return stream, err
}

func (p *publisher) close() { hangUp(p.conns) }

// publish sends events while there is room, until the time is over and all have
// arrived.
func (p *publisher) publish(r *relayRun) error {
	delivery := loombridgev1.Delivery_DELIVERY_VOLATILE
	if r.durable {
		delivery = loombridgev1.Delivery_DELIVERY_DURABLE
	}
	for range r.window {
		p.room <- struct{}{}
	}
	for index := uint64(0); time.Now().Before(r.end); index++ {
		if err := p.wait(r); err != nil {
			return err
		}
		payload := make([]byte, payloadBytes)
		binary.BigEndian.PutUint64(payload, index)
		binary.BigEndian.PutUint64(payload[8:], uint64(time.Since(r.start)))
		err := p.stream.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Publish{
			Publish: &loombridgev1.EmitRequest{
				Topic: p.topic, Delivery: delivery,
				PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: payload},
			},
		}})
		if err != nil {
			return err
		}
	}
	for range r.window {
		if err := p.wait(r); err != nil {
			return err
		}
	}
	return nil
}

// lossTime is how long an event may take before it counts as lost.
const lossTime = 10 * time.Second

func (p *publisher) wait(r *relayRun) error {
	select {
	case <-p.room:
		return nil
	default:
	}
	lost := time.NewTimer(lossTime)
	defer lost.Stop()
	select {
	case <-p.room:
		return nil
	case <-lost.C:
		if err := r.err.Load(); err != nil {
			return *err
		}
		return errors.New("bench: an event was lost")
	}
}

// listen takes events on all listeners until their streams end.
func (p *publisher) listen(r *relayRun) {
	for i, stream := range p.listeners {
		p.listening.Go(func() {
			for {
				in, err := stream.Recv()
				if err != nil {
					return
				}
				if in.GetAnswer() != nil {
					r.failed(fmt.Errorf("bench: refused: %v", in.GetAnswer().GetError()))
					return
				}
				p.take(r, i, in.GetEvent().GetPayloadBytes())
			}
		})
	}
}

func (p *publisher) take(r *relayRun, listener int, payload []byte) {
	if len(payload) != payloadBytes {
		return
	}
	index, sent := binary.BigEndian.Uint64(payload), time.Duration(binary.BigEndian.Uint64(payload[8:]))
	if at := time.Since(r.start); r.start.Add(sent).After(r.counted) {
		p.latencies[listener] = append(p.latencies[listener], at-sent)
	}
	slot := &p.arrived[index%uint64(r.window)]
	if slot.Add(1) == int64(len(p.listeners)) {
		slot.Store(0)
		p.room <- struct{}{}
	}
}
