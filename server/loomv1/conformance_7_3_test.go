package loomv1_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	"github.com/loom-bridge/loom-bridge/server/loomv1"
)

// busStream is a subscription of the event bus.
type busStream struct {
	grpc.ServerStreamingClient[loomv1pb.Event]
	tb testing.TB
	id string
}

// subscribe subscribes on a connection of its own, so that one that is not read
// holds up no other.
func (w *loomWorld) subscribe(req *loomv1pb.SubscribeRequest) *busStream {
	w.tb.Helper()
	conn, _ := w.dial()
	stream, err := loomv1pb.NewEventBusClient(conn).Subscribe(w.tb.Context(), req)
	mustBe(w.tb, err)
	header, err := stream.Header()
	mustBe(w.tb, err)
	ids := header.Get("loom-subscription-id")
	if len(ids) != 1 || ids[0] == "" {
		_, err := stream.Recv()
		w.tb.Fatalf("header %v has no subscription id: %v %s", header, err, w.log)
	}
	return &busStream{stream, w.tb, ids[0]}
}

func (s *busStream) next() *loomv1pb.Event {
	s.tb.Helper()
	e, err := s.Recv()
	mustBe(s.tb, err)
	return e
}

func (s *busStream) wantIDs(want ...string) {
	s.tb.Helper()
	var got []string
	for range want {
		got = append(got, s.next().GetId())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.tb.Error(diff)
	}
}

// flood publishes events of one KiB, so that few fit on the way to a reader, one
// after another.
func (w *loomWorld) flood(topic string, n int) {
	w.tb.Helper()
	for i := range n {
		res, err := w.bus.Publish(w.tb.Context(), &loomv1pb.PublishRequest{
			Topic: topic, Event: &loomv1pb.Event{Id: fmt.Sprint(i), Payload: make([]byte, 1<<10)},
		})
		if err != nil || !res.GetSuccess() {
			w.tb.Fatal(res, err)
		}
	}
}

func TestConformance73PublishAndReceive(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	s := w.subscribe(&loomv1pb.SubscribeRequest{Topic: "work.new", Qos: loomv1pb.QoSLevel_QOS_BATCHED})
	for i := range int64(3) {
		res, err := w.bus.Publish(t.Context(), &loomv1pb.PublishRequest{
			Topic: "work.new", Event: &loomv1pb.Event{Id: fmt.Sprint(i), Payload: []byte("p")},
		})
		if err != nil || !res.GetSuccess() || res.GetErrorMessage() != "" || res.GetSequenceNumber() != i+1 {
			t.Fatalf("%v %v", res, err)
		}
	}
	if e := s.next(); e.GetId() != "0" || string(e.GetPayload()) != "p" || e.GetMetadata()["loom.topic"] != "work.new" {
		t.Errorf("got %v", e)
	}
	s.wantIDs("1", "2")
}

func TestConformance73PublishWithoutEvent(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	res, err := w.bus.Publish(t.Context(), &loomv1pb.PublishRequest{Topic: "work.new"})
	if err != nil || res.GetSuccess() || res.GetErrorMessage() != "event is required" {
		t.Errorf("%v %v", res, err)
	}
}

func TestConformance73UnsubscribeStopsDelivery(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	s := w.subscribe(&loomv1pb.SubscribeRequest{Topic: "work.new"})
	if !strings.HasPrefix(s.id, "sub_work.new_") {
		t.Errorf("subscription id %q", s.id)
	}
	elsewhere := metadata.AppendToOutgoingContext(t.Context(), tenantHeader, "other")
	for _, tt := range []struct {
		name string
		ctx  context.Context
		id   string
		want bool
	}{
		{"unknown", t.Context(), "sub_x_1", false},
		{"another tenant's", elsewhere, s.id, false},
		{"open", t.Context(), s.id, true},
		{"ended", t.Context(), s.id, false},
	} {
		res, err := w.bus.Unsubscribe(tt.ctx, &loomv1pb.UnsubscribeRequest{SubscriptionId: tt.id})
		if err != nil || res.GetSuccess() != tt.want {
			t.Errorf("%s: %v %v", tt.name, res, err)
		}
	}
	w.publish("work.new", "late")
	if e, err := s.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v %v, want the end with OK", e, err)
	}
}

func TestConformance73EventTypeFilter(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	s := w.subscribe(&loomv1pb.SubscribeRequest{Topic: "work.*", EventTypes: []string{"a", "event"}, Qos: loomv1pb.QoSLevel_QOS_BATCHED})
	plain := w.subscribe(&loomv1pb.SubscribeRequest{Topic: "work.*", EventTypes: []string{"b", "c"}, Qos: loomv1pb.QoSLevel_QOS_BATCHED})
	for i, kind := range []string{"a", "b", "event", "", "c", "a"} {
		_, err := w.bus.Publish(t.Context(), &loomv1pb.PublishRequest{Topic: "work.new", Event: &loomv1pb.Event{Id: fmt.Sprint(i), Type: kind}})
		mustBe(t, err)
	}
	s.wantIDs("0", "2", "5")
	plain.wantIDs("1", "4")
}

func TestConformance73FilterByMetadata(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	s := w.subscribe(&loomv1pb.SubscribeRequest{
		Topic: "work.*", Qos: loomv1pb.QoSLevel_QOS_BATCHED,
		Filters: map[string]string{"color": "red", "loom.sender": "a", "reply_to": "agent.a.replies"},
	})
	for i, m := range []map[string]string{
		{"color": "red", "loom.sender": "a"},
		{"color": "red", "loom.sender": "b"},
		{"color": "blue", "loom.sender": "a"},
		{"loom.sender": "a"},
		{"color": "red", "loom.sender": "a", "more": "x"},
	} {
		_, err := w.bus.Publish(t.Context(), &loomv1pb.PublishRequest{Topic: "work.new", Event: &loomv1pb.Event{Id: fmt.Sprint(i), Metadata: m}})
		mustBe(t, err)
	}
	s.wantIDs("0", "4")
}

func TestConformance73PublishWithoutSubscribers(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	w.publish("nobody.hears", "e1")
	res, err := w.bus.GetStats(t.Context(), &loomv1pb.StatsRequest{Topic: "nobody.hears"})
	if err != nil || res.GetTotalEvents() != 1 || res.GetActiveSubscriptions() != 0 || res.GetBacklogSize() != 0 {
		t.Errorf("%v %v", res, err)
	}
}

func TestConformance73StatisticsExact(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	for range 2 {
		w.subscribe(&loomv1pb.SubscribeRequest{Topic: "work.new", Qos: loomv1pb.QoSLevel_QOS_BATCHED})
	}
	w.flood("work.new", 7)
	w.flood("work.old", 3)
	for topic, want := range map[string]int64{"work.new": 7, "work.old": 3, "work.none": 0} {
		res, err := w.bus.GetStats(t.Context(), &loomv1pb.StatsRequest{Topic: topic})
		if err != nil || res.GetTotalEvents() != want || (want > 0) != (res.GetThroughputPerSec() > 0) {
			t.Errorf("%s: %v %v, want %d", topic, res, err, want)
		}
	}
	res, err := w.bus.GetStats(t.Context(), &loomv1pb.StatsRequest{Topic: "work.new"})
	if err != nil || res.GetActiveSubscriptions() != 2 {
		t.Errorf("%v %v", res, err)
	}
}

func TestConformance73ShutdownClears(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	s := w.subscribe(&loomv1pb.SubscribeRequest{Topic: "work.new"})
	w.drain()
	_, err := s.Recv()
	wantCode(t, "subscription", err, codes.Unavailable)
	settled(t, "no subscription is left", func() bool {
		return w.Events.Stats("default", "work.new").Subscriptions == 0
	})
}

// readBehind reads what is left for a reader that was away, until an event that
// is published now gets through.
func readBehind(w *loomWorld, s *busStream, topic string) (n int) {
	w.tb.Helper()
	ctx, cancel := context.WithCancel(w.tb.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			_, _ = w.bus.Publish(ctx, &loomv1pb.PublishRequest{Topic: topic, Event: &loomv1pb.Event{Id: "last"}})
			time.Sleep(time.Millisecond)
		}
	}()
	for ; s.next().GetId() != "last"; n++ {
	}
	return n
}

func TestConformance73RealtimeDrops(t *testing.T) {
	for _, sent := range []int{1000, 5000} {
		t.Run(fmt.Sprint(sent), func(t *testing.T) {
			w := MustLoom(t, loomOptions{})
			s := w.subscribe(&loomv1pb.SubscribeRequest{Topic: "fast", Qos: loomv1pb.QoSLevel_QOS_REALTIME})
			w.flood("fast", sent)
			if got := readBehind(w, s, "fast"); got >= sent || got < 512 {
				t.Errorf("%d of %d arrived, want less and at least what the queue holds", got, sent)
			}
		})
	}
}

func TestConformance73BatchedAndBackgroundKeep(t *testing.T) {
	for _, tt := range []struct {
		qos  loomv1pb.QoSLevel
		sent int
	}{
		{loomv1pb.QoSLevel_QOS_BATCHED, 100},
		{loomv1pb.QoSLevel_QOS_BATCHED, 500},
		{loomv1pb.QoSLevel_QOS_BACKGROUND, 2000},
	} {
		t.Run(fmt.Sprint(tt.qos, tt.sent), func(t *testing.T) {
			w := MustLoom(t, loomOptions{})
			s := w.subscribe(&loomv1pb.SubscribeRequest{Topic: "kept", Qos: tt.qos})
			w.flood("kept", tt.sent)
			for i := range tt.sent {
				if got := s.next().GetId(); got != fmt.Sprint(i) {
					t.Fatalf("event %d is %s", i, got)
				}
			}
		})
	}
}

// Two subscribers both receive, and so does one that subscribes twice.
func TestConformance73TwoSubscribers(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	streams := []*busStream{
		w.subscribe(&loomv1pb.SubscribeRequest{Topic: "work.new"}),
		w.subscribe(&loomv1pb.SubscribeRequest{Topic: "work.new"}),
	}
	if streams[0].id == streams[1].id {
		t.Errorf("both have the id %q", streams[0].id)
	}
	w.publish("work.new", "e1")
	for _, s := range streams {
		s.wantIDs("e1")
	}
}

func TestConformance73WildcardAtAnyDepth(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	s := w.subscribe(&loomv1pb.SubscribeRequest{Topic: "a.*", Qos: loomv1pb.QoSLevel_QOS_BATCHED})
	for _, topic := range []string{"a", "ab.c", "a.b", "A.b", "b.a.c", "a.b.c", "a.", "a.*"} {
		w.publish(topic, topic)
	}
	got := map[string]bool{}
	for range 4 {
		e := s.next()
		got[e.GetId()] = true
		if e.GetMetadata()["loom.topic"] != e.GetId() {
			t.Errorf("loom.topic of %s is %q", e.GetId(), e.GetMetadata()["loom.topic"])
		}
	}
	if diff := cmp.Diff(map[string]bool{"a.b": true, "a.b.c": true, "a.": true, "a.*": true}, got); diff != "" {
		t.Error(diff)
	}
}

// Stars elsewhere are letters.
func TestConformance73OtherStarsAreLiteral(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	patterns := []string{"*", "#", ">", "**", "a.*.c", ""}
	w.register("a", patterns...)
	a := w.open("a")
	w.publish("a.b.c", "none")
	w.publish("x", "none")
	want := map[string]bool{}
	for _, pattern := range patterns {
		w.publish(pattern, "to "+pattern)
		want["to "+pattern] = true
	}
	got := map[string]bool{}
	for range patterns {
		got[a.delivery().GetEvent().GetId()] = true
	}
	a.silent()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestConformance73ExactAndWildcardBothFire(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	w.register("a", "a.*", "a.b")
	a := w.open("a")
	w.publish("a.b", "e1")
	w.publish("a.c", "e2")
	got := map[string]int{}
	for range 3 {
		d := a.delivery()
		got[d.GetTopic()+" "+d.GetEvent().GetId()]++
	}
	a.silent()
	if diff := cmp.Diff(map[string]int{"a.* e1": 1, "a.b e1": 1, "a.* e2": 1}, got); diff != "" {
		t.Error(diff)
	}
}

// The topic that looks like its own pattern is delivered once per subscription.
func TestConformance73LiteralStarTopic(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	w.register("a", "a.*")
	a := w.open("a")
	w.publish("a.*", "e1")
	if got := a.ids(1); got[0] != "e1" {
		t.Errorf("got %v", got)
	}
}

func TestConformance73OrderOfOnePublisher(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	w.register("a", "work.*")
	a, b := w.open("a"), w.open("b")
	const sent = 1000
	for i := range sent {
		b.publish("work.new", &loomv1pb.Event{Id: fmt.Sprint(i)})
	}
	for i := range sent {
		if got := a.delivery().GetEvent().GetId(); got != fmt.Sprint(i) {
			t.Fatalf("event %d is %s", i, got)
		}
	}
}

// A subscriber that takes nothing is ended, and one of an unknown QoS loses
// nothing.
func TestConformance73StalledSubscriberIsEnded(t *testing.T) {
	w := MustLoom(t, loomOptions{Loom: loomv1.Options{StallTimeout: 200 * time.Millisecond}})
	s := w.subscribe(&loomv1pb.SubscribeRequest{Topic: "kept", Qos: 9})
	w.flood("kept", 1000)
	settled(t, "the subscription is gone", func() bool {
		return w.Events.Stats("default", "kept").Subscriptions == 0
	})
	for {
		if _, err := s.Recv(); err != nil {
			wantCode(t, "subscription", err, codes.Unavailable, "took nothing")
			return
		}
	}
}
