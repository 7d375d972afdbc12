package loomv1_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	"github.com/loom-bridge/loom-bridge/server/loomv1"
)

// testClock is a time that only the test moves.
type testClock struct {
	mu  sync.Mutex
	now time.Time // guarded by mu
}

func newTestClock() *testClock {
	return &testClock{now: time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)}
}

// Now returns the time.
func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// gapWorld is a world with an agent that was sent one event, "seen".
func gapWorld(t *testing.T, opts loomOptions, topics ...string) (*loomWorld, *testClock, *rawStream) {
	t.Helper()
	clock := newTestClock()
	opts.Now = clock.Now
	w := MustLoom(t, opts)
	w.publish("work.new", "before")
	w.publish("work.early", "before, too")
	clock.add(time.Second)
	w.register("a", topics...)
	a := w.open("a")
	clock.add(time.Second)
	w.publish("work.new", "seen")
	for range topics {
		if got := a.delivery().GetEvent().GetId(); got != "seen" {
			t.Fatalf("got %q", got)
		}
	}
	clock.add(time.Second)
	return w, clock, a
}

// What an agent missed while its connection was broken it gets when it is back,
// once and in order; not its mailbox, and nothing from before.
func TestConformance74GapIsReplayed(t *testing.T) {
	w, clock, a := gapWorld(t, loomOptions{}, "work.new")
	a.cut()
	w.streams("a", 0)
	for i := range 3 {
		w.publish("work.new", fmt.Sprintf("gap%d", i))
		clock.add(time.Second)
	}
	w.publish("agent.a.replies", "reply")
	w.publish("work.other", "other")
	again := w.open("a")
	clock.add(time.Second)
	w.publish("work.new", "live")
	if diff := cmp.Diff([]string{"gap0", "gap1", "gap2", "live"}, again.ids(4)); diff != "" {
		t.Error(diff)
	}
	again.cut()
	w.streams("a", 0)
	if got := w.open("a").ids(0); got != nil {
		t.Errorf("replayed again: %v", got)
	}
}

// As above, through a pattern, with topics that are new in the gap.
func TestConformance74GapOfPattern(t *testing.T) {
	w, clock, a := gapWorld(t, loomOptions{}, "work.*")
	a.cut()
	w.streams("a", 0)
	for _, topic := range []string{"work.new", "work.young", "work.replies", "other"} {
		// The native API stores what is on a mailbox, too.
		_, err := w.Events.Emit(t.Context(), "default", events.Event{ID: "to " + topic, Topic: topic}, events.EmitOptions{})
		mustBe(t, err)
		clock.add(time.Second)
	}
	got := w.open("a").ids(2)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"to work.new", "to work.young"}, got); diff != "" {
		t.Error(diff)
	}
}

// An event that came through two topics comes through both again.
func TestConformance74GapOfOverlappingTopics(t *testing.T) {
	w, _, a := gapWorld(t, loomOptions{}, "work.*", "work.new")
	a.cut()
	w.streams("a", 0)
	w.publish("work.new", "gap")
	again := w.open("a")
	got := []string{again.delivery().GetTopic(), again.delivery().GetTopic()}
	again.silent()
	slices.Sort(got)
	if diff := cmp.Diff([]string{"work.*", "work.new"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestConformance74GapIsDeduplicatedByID(t *testing.T) {
	w, clock, a := gapWorld(t, loomOptions{}, "work.new")
	a.cut()
	w.streams("a", 0)
	for _, id := range []string{"seen", "twice", "twice", "once"} {
		w.publish("work.new", id)
		clock.add(time.Millisecond)
	}
	again := w.open("a")
	if diff := cmp.Diff([]string{"twice", "once"}, again.ids(2)); diff != "" {
		t.Error(diff)
	}
	// What happens now is no repetition, whatever its id.
	clock.add(time.Second)
	w.publish("work.new", "seen")
	if got := again.ids(1); got[0] != "seen" {
		t.Errorf("got %v", got)
	}
}

func TestConformance74OldEventsOfGapAreNotReplayed(t *testing.T) {
	w, clock, a := gapWorld(t, loomOptions{}, "work.new")
	a.cut()
	w.streams("a", 0)
	w.publish("work.new", "old")
	clock.add(time.Minute)
	w.publish("work.new", "young")
	clock.add(59 * time.Second)
	if diff := cmp.Diff([]string{"young"}, w.open("a").ids(1)); diff != "" {
		t.Error(diff)
	}
}

func TestConformance74ReplayCanBeSwitchedOff(t *testing.T) {
	w, _, a := gapWorld(t, loomOptions{Loom: loomv1.Options{Replay: -1}}, "work.new")
	a.cut()
	w.streams("a", 0)
	w.publish("work.new", "gap")
	w.open("a").ids(0)
}

// An agent that has closed its side meant to leave, and misses what happens while
// it is away.
func TestConformance74NoReplayAfterHalfClose(t *testing.T) {
	for name, leave := range map[string]func(*rawStream){
		"closed": func(s *rawStream) { mustBe(t, s.CloseSend()) },
		"closed, and the connection broken afterwards": func(s *rawStream) {
			mustBe(t, s.CloseSend())
			endsWithOK(t, s.end)
			s.cut()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, clock, a := gapWorld(t, loomOptions{}, "work.new")
			leave(a)
			w.streams("a", 0)
			w.publish("work.new", "gap")
			clock.add(time.Second)
			again := w.open("a")
			w.publish("work.new", "live")
			if diff := cmp.Diff([]string{"live"}, again.ids(1)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A stream that is cancelled is broken off: loom-py does that when a handler fails,
// and comes back.
func TestConformance74ReplayAfterCancel(t *testing.T) {
	for name, end := range map[string]func(*rawStream){
		"cancelled": func(s *rawStream) { s.cancel() },
		"cancelled, and the connection closed at once": func(s *rawStream) {
			s.cancel()
			mustBe(t, s.conn.Close())
		},
		"the connection closed": func(s *rawStream) { mustBe(t, s.conn.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			w, clock, a := gapWorld(t, loomOptions{}, "work.new")
			end(a)
			w.streams("a", 0)
			w.publish("work.new", "gap")
			clock.add(time.Second)
			again := w.open("a")
			w.publish("work.new", "live")
			if diff := cmp.Diff([]string{"gap", "live"}, again.ids(2)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An event whose handler fails is not replayed for ever: it was sent once.
func TestConformance74FailingHandler(t *testing.T) {
	w, clock, a := gapWorld(t, loomOptions{}, "work.new")
	a.cut()
	w.streams("a", 0)
	w.publish("work.new", "poison")
	w.publish("work.new", "next")
	clock.add(time.Second)
	again := w.openUnread("a")
	if got, err := again.Recv(); err != nil || got.GetDelivery().GetEvent().GetId() != "poison" {
		t.Fatalf("got %v %v", got, err)
	}
	again.cancel()
	w.streams("a", 0)
	for _, id := range w.open("a").ids(0) {
		t.Errorf("%s comes again", id)
	}
}

// What a stream had been too slow to be sent is part of the gap.
func TestConformance74UnsentEventsAreReplayed(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	w.register("a", "work.new")
	a := w.openUnread("a")
	const sent = 1000
	w.flood("work.new", sent)
	a.cut()
	w.streams("a", 0)
	again := w.open("a")
	first := again.delivery().GetEvent().GetId()
	var next int
	if _, err := fmt.Sscan(first, &next); err != nil || next == 0 {
		t.Fatalf("replay begins with %q", first)
	}
	for next++; next < sent; next++ {
		if got := again.delivery().GetEvent().GetId(); got != fmt.Sprint(next) {
			t.Fatalf("got %s, want %d", got, next)
		}
	}
	again.silent()
}

// A gap that the agent breaks off in the middle goes on in its next stream.
func TestConformance74GapInterrupted(t *testing.T) {
	w, _, a := gapWorld(t, loomOptions{}, "work.new")
	a.cut()
	w.streams("a", 0)
	const sent = 1000
	w.flood("work.new", sent)
	slow := w.openUnread("a")
	for i := range 5 {
		got, err := slow.Recv()
		if err != nil || got.GetDelivery().GetEvent().GetId() != fmt.Sprint(i) {
			t.Fatalf("got %v %v", got, err)
		}
	}
	slow.cut()
	w.streams("a", 0)
	again := w.open("a")
	for last := again.delivery(); last.GetEvent().GetId() != fmt.Sprint(sent-1); last = again.delivery() {
	}
	again.silent()
}

// The gap outlives a kill of the server: nothing of it is lost, and what was sent
// is not sent again.
func TestConformance74GapOutlivesKill(t *testing.T) {
	engine := memkv.New(nil)
	t.Cleanup(func() { mustBe(t, engine.Close()) })
	w, clock, a := gapWorld(t, loomOptions{Engine: engine}, "work.*")
	time.Sleep(quiet) // what was sent is written down a moment later
	// What is on its way when the server dies: stored, and not sent.
	_, err := w.Events.Emit(t.Context(), "elsewhere", events.Event{Topic: "work.new"}, events.EmitOptions{})
	mustBe(t, err)
	w.kill()
	a.unavailable()
	clock.add(time.Second)

	second := MustLoom(t, loomOptions{Engine: engine, Now: clock.Now})
	second.publish("work.new", "gap")
	clock.add(time.Second)
	second.register("a", "work.*")
	again := second.open("a")
	if diff := cmp.Diff([]string{"gap"}, again.ids(1)); diff != "" {
		t.Error(diff)
	}
	again.cut()
	second.streams("a", 0)
	if got := second.open("a").ids(0); got != nil {
		t.Errorf("replayed again: %v", got)
	}
}

// A drain is an end that the agent did not want.
func TestConformance74GapAfterDrain(t *testing.T) {
	engine := memkv.New(nil)
	t.Cleanup(func() { mustBe(t, engine.Close()) })
	w, clock, a := gapWorld(t, loomOptions{Engine: engine}, "work.new")
	w.drain()
	a.unavailable("stopping")
	w.streams("a", 0)
	w.publish("work.new", "gap")
	w.stopOnce()

	second := MustLoom(t, loomOptions{Engine: engine, Now: clock.Now})
	second.register("a", "work.new")
	if diff := cmp.Diff([]string{"gap"}, second.open("a").ids(1)); diff != "" {
		t.Error(diff)
	}
}

// More events than ids are remembered: none of what was sent comes twice.
func TestConformance74GapAfterManyEvents(t *testing.T) {
	w, _, a := gapWorld(t, loomOptions{}, "work.new")
	const sent = 600
	w.flood("work.new", sent)
	for range sent {
		a.delivery()
	}
	a.cut()
	w.streams("a", 0)
	w.publish("work.new", "gap")
	if diff := cmp.Diff([]string{"gap"}, w.open("a").ids(1)); diff != "" {
		t.Error(diff)
	}
}

// More topics than a stream remembers: none of what was sent comes twice, and
// what was published in the gap comes.
func TestConformance74GapOfManyTopics(t *testing.T) {
	clock := newTestClock()
	w := MustLoom(t, loomOptions{Now: clock.Now})
	w.register("a", "many.*")
	a := w.open("a")
	const topics = 600
	for i := range topics {
		clock.add(time.Millisecond)
		w.publish(fmt.Sprintf("many.%d", i), fmt.Sprint(i))
		a.delivery()
	}
	a.cut()
	w.streams("a", 0)
	clock.add(time.Second)
	var want []string
	for i := range 20 {
		id := fmt.Sprintf("gap%02d", i)
		w.publish(fmt.Sprintf("many.%d", i*30), id)
		want = append(want, id)
	}
	got := w.open("a").ids(len(want))
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Publishes that were read before the connection broke are taken.
func TestConformance74PublishesOfBrokenStream(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	w.register("a", "work.new")
	a, b := w.open("a"), w.open("b")
	for i := range 50 {
		b.publish("work.new", &loomv1pb.Event{Id: fmt.Sprint(i)})
	}
	b.send(pingOf())
	b.next()
	b.cut()
	for i := range 50 {
		if got := a.delivery().GetEvent().GetId(); got != fmt.Sprint(i) {
			t.Fatalf("event %d is %s", i, got)
		}
	}
}

// How a stream ends is told apart in the thick of sending, too.
func TestConformance74BusyStreamsEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(*rawStream)
		want []string
	}{
		"broken":    {func(s *rawStream) { s.cut() }, []string{"missed", "live"}},
		"cancelled": {func(s *rawStream) { s.cancel() }, []string{"missed", "live"}},
		"closed":    {func(s *rawStream) { mustBe(s.tb, s.CloseSend()) }, []string{"live"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := MustLoom(t, loomOptions{})
			w.register("a", "work.*")
			publisher := w.open("p")
			rounds := 10
			if testing.Short() {
				rounds = 4
			}
			for round := range rounds {
				s := w.open("a")
				for i := range 500 {
					publisher.publish("work.flood", &loomv1pb.Event{Id: fmt.Sprint(round, " ", i)})
				}
				s.delivery()
				tt.end(s)
				w.streams("a", 0)
				publisher.send(pingOf())
				publisher.next()
				w.publish("work.new", fmt.Sprint("missed", round))
				s = w.open("a")
				w.publish("work.new", fmt.Sprint("live", round))
				var got []string
				for live := fmt.Sprint("live", round); ; {
					d := s.delivery()
					if d.GetEvent().GetMetadata()["loom.topic"] == "work.new" {
						got = append(got, d.GetEvent().GetId()[:len(d.GetEvent().GetId())-1])
					}
					if d.GetEvent().GetId() == live {
						break
					}
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Fatalf("round %d: %s", round, diff)
				}
				mustBe(t, s.CloseSend())
				w.streams("a", 0)
			}
		})
	}
}
