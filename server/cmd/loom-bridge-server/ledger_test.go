package main

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// ledger is what is known of one topic: what the server has said to be there,
// and what was read back.
type ledger struct {
	topic string

	mu     sync.Mutex
	told   map[int64]string    // sequence → text, acknowledged or delivered since the last reading
	heard  map[string]struct{} // texts that were delivered without a sequence since then
	acked  int                 // acknowledged in all
	stored []string            // texts by sequence - 1, as read back
	places map[string]int64    // text → sequence, of stored
	last   map[string]int      // publisher → count of its last one in stored
}

func newLedger(topic string) *ledger {
	return &ledger{
		topic: topic, told: map[int64]string{}, heard: map[string]struct{}{},
		places: map[string]int64{}, last: map[string]int{},
	}
}

// acknowledge notes what the publisher was told.
func (l *ledger) acknowledge(tb testing.TB, sequence int64, text string) {
	tb.Helper()
	l.mu.Lock()
	l.acked++
	l.mu.Unlock()
	l.tell(tb, sequence, text)
}

// tell notes what somebody was told of an event: it is stored by then.
func (l *ledger) tell(tb testing.TB, sequence int64, text string) {
	tb.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if sequence == 0 {
		l.heard[text] = struct{}{}
		return
	}
	if before, ok := l.told[sequence]; ok && before != text {
		tb.Errorf("%s: sequence %d is of %q and of %q", l.topic, sequence, before, text)
	}
	l.told[sequence] = text
}

// put takes in one event that was read back.
func (l *ledger) put(sequence int64, text string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sequence <= int64(len(l.stored)) {
		if was := l.stored[sequence-1]; was != text {
			return fmt.Errorf("%s: event %d was %q and is %q", l.topic, sequence, was, text)
		}
		return nil
	}
	if place, ok := l.places[text]; ok {
		return fmt.Errorf("%s: %q is stored as %d and as %d", l.topic, text, place, sequence)
	}
	made, err := parseToken(text)
	if err != nil {
		return err
	}
	if last := l.last[made.publisher]; made.count <= last {
		return fmt.Errorf("%s: %s stands behind its %d", l.topic, text, last)
	}
	l.stored, l.places[text], l.last[made.publisher] = append(l.stored, text), sequence, made.count
	return nil
}

// settle looks for everything that somebody was told of in what is stored.
func (l *ledger) settle(tb testing.TB) {
	tb.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var lost []string
	for sequence, text := range l.told {
		switch {
		case sequence > int64(len(l.stored)):
			lost = append(lost, fmt.Sprintf("event %d, %q", sequence, text))
		case l.stored[sequence-1] != text:
			lost = append(lost, fmt.Sprintf("event %d, %q, is %q", sequence, text, l.stored[sequence-1]))
		}
	}
	for text := range l.heard {
		if l.places[text] == 0 {
			lost = append(lost, fmt.Sprintf("%q, which was delivered", text))
		}
	}
	if len(lost) > 0 {
		tb.Errorf("%s: %d events are lost, such as %s", l.topic, len(lost), lost[0])
	}
	clear(l.told)
	clear(l.heard)
}

// book has a ledger for each topic.
type book map[string]*ledger

func newBook(format string, topics int) book {
	b := book{}
	for i := range topics {
		topic := fmt.Sprintf(format, i)
		b[topic] = newLedger(topic)
	}
	return b
}

func (b book) acknowledged() (total int) {
	for _, l := range b {
		total += l.acked
	}
	return total
}

// MustRead reads back what is stored, from the beginning or from where the last
// reading ended, and settles all ledgers. Nobody may publish meanwhile.
func (b book) MustRead(tb testing.TB, address string, whole bool) {
	tb.Helper()
	conn, err := dialPeer(address)
	must(tb, err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	ends, err := b.ends(ctx, conn)
	must(tb, err)
	if err := b.read(ctx, conn, ends, whole); err != nil {
		tb.Fatalf("events can't be read back: %v", err)
	}
	for _, l := range b {
		l.settle(tb)
	}
}

// readLimit bounds one reading of all that is stored.
const readLimit = 2 * time.Minute

// ends returns the last sequence of each topic.
func (b book) ends(ctx context.Context, conn *grpc.ClientConn) (map[string]int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	request := &loombridgev1.SubscribeRequest{AgentId: "reader"}
	for topic := range b {
		request.Topics = append(request.Topics, &loombridgev1.TopicPosition{Topic: topic})
	}
	stream, err := loombridgev1.NewEventServiceClient(conn).Subscribe(convert.AskText(ctx), request)
	if err != nil {
		return nil, err
	}
	first, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	ends := map[string]int64{}
	for _, position := range first.GetReady().GetPositions() {
		ends[position.GetTopic()] = position.GetAfterSequence()
	}
	return ends, nil
}

func (b book) read(ctx context.Context, conn *grpc.ClientConn, ends map[string]int64, whole bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	request := &loombridgev1.SubscribeRequest{AgentId: "reader"}
	next, left := map[string]int64{}, int64(0)
	for topic, l := range b {
		after := int64(len(l.stored))
		if whole {
			after = 0
		}
		next[topic] = after + 1
		left += ends[topic] - after
		request.Topics = append(request.Topics, &loombridgev1.TopicPosition{Topic: topic, AfterSequence: &after})
	}
	stream, err := loombridgev1.NewEventServiceClient(conn).Subscribe(convert.AskText(ctx), request)
	for err == nil && left > 0 {
		var m *loombridgev1.SubscribeResponse
		if m, err = stream.Recv(); err != nil || m.GetEvent() == nil {
			continue
		}
		e := m.GetEvent()
		if due := next[e.GetTopic()]; e.GetSequence() != due {
			return fmt.Errorf("%s: event %d comes where %d is due", e.GetTopic(), e.GetSequence(), due)
		}
		next[e.GetTopic()]++
		left--
		err = b[e.GetTopic()].put(e.GetSequence(), string(e.GetPayloadBytes()))
	}
	if err != nil {
		return fmt.Errorf("%d events do not come: %w", left, err)
	}
	return nil
}
