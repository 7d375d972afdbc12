package loomv1_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	"github.com/loom-bridge/loom-bridge/server/loomv1"
)

// brokenWorld is a gapWorld whose agent is gone, and has missed three events.
func brokenWorld(t *testing.T, settle time.Duration) (*loomWorld, *testClock) {
	t.Helper()
	w, clock, a := gapWorld(t, loomOptions{Loom: loomv1.Options{Settle: settle}}, "work.*")
	a.cut()
	w.streams("a", 0)
	for i := range 3 {
		w.publish(fmt.Sprint("work.", i), fmt.Sprint("gap", i))
		clock.add(time.Second)
	}
	return w, clock
}

// untilSettled is time enough to connect twice on the busiest machine.
const untilSettled = 10 * time.Second

var wholeGap = []string{"gap0", "gap1", "gap2"}

// After an outage loom-py may connect twice in a row. The second stream gets the
// whole gap, however soon the first has ended, and also if it has not yet.
func TestConformance74ReconnectTwice(t *testing.T) {
	ends := map[string]func(*rawStream){
		"cancelled": func(s *rawStream) { s.cancel() },
		"cut":       func(s *rawStream) { s.cut() },
		"left open": func(*rawStream) {},
	}
	for name, end := range ends {
		for _, after := range []time.Duration{0, 2 * time.Millisecond, 50 * time.Millisecond} {
			t.Run(fmt.Sprint(name, after), func(t *testing.T) {
				t.Parallel()
				w, _ := brokenWorld(t, untilSettled)
				first := w.open("a")
				time.Sleep(after)
				end(first)
				if name != "left open" {
					w.streams("a", 0)
				}
				if diff := cmp.Diff(wholeGap, w.open("a").ids(3)); diff != "" {
					t.Error(diff)
				}
				first.silent()
			})
		}
	}
}

// The second stream opens, and then the first one ends, or the second one does and
// a third one opens.
func TestConformance74ReconnectOverlapping(t *testing.T) {
	t.Parallel()
	w, clock := brokenWorld(t, untilSettled)
	first, second := w.open("a"), w.open("a")
	first.cancel()
	w.streams("a", 1)
	second.cancel()
	w.streams("a", 0)
	third := w.open("a")
	clock.add(time.Second)
	w.publish("work.new", "live")
	if diff := cmp.Diff(append(wholeGap, "live"), third.ids(4)); diff != "" {
		t.Error(diff)
	}
	first.silent()
	second.silent()
}

// The second stream breaks while the first is still open: the gap is not for that
// one, which gave it away, but for the next.
func TestConformance74ReconnectBesideDeadStream(t *testing.T) {
	t.Parallel()
	w, clock := brokenWorld(t, untilSettled)
	oldest, second := w.open("a"), w.open("a")
	clock.add(time.Second)
	w.publish("work.new", "live")
	second.cancel()
	w.streams("a", 1)
	if diff := cmp.Diff(append(wholeGap, "live"), w.open("a").ids(4)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"live"}, oldest.ids(1)); diff != "" {
		t.Errorf("the oldest: %s", diff)
	}
}

// Nothing new overtakes the gap, nor does what is not stored; calls and pings do not
// wait.
func TestConformance74LiveEventsWaitForTheGap(t *testing.T) {
	w, clock := brokenWorld(t, time.Second)
	res, err := w.bridge.RegisterAgent(t.Context(), &loomv1pb.AgentRegisterRequest{
		AgentId: "a", SubscribedTopics: []string{"work.*", "agent.a.replies"}, Tools: []*loomv1pb.ToolDescriptor{{Name: "work:do"}},
	})
	if err != nil || !res.GetSuccess() {
		t.Fatal(res, err)
	}
	a := w.open("a")
	clock.add(time.Second)
	w.publish("work.new", "live")
	w.publish("agent.a.replies", "answer")
	a.send(pingOf())
	if a.next().GetPong() == nil {
		t.Error("the pong waits")
	}
	go func() {
		_, _ = w.bridge.ForwardToolCall(t.Context(), &loomv1pb.ToolCall{Id: "c1", Name: "work:do"})
	}()
	if a.next().GetToolCall() == nil {
		t.Error("the call waits")
	}
	if diff := cmp.Diff(append(wholeGap, "live", "answer"), a.ids(5)); diff != "" {
		t.Error(diff)
	}
}

// Streams that have nothing to replay are not delayed.
func TestConformance74NoGapNoDelay(t *testing.T) {
	w, clock, a := gapWorld(t, loomOptions{Loom: loomv1.Options{Settle: time.Hour}}, "work.*")
	w.publish("work.new", "at once")
	a.delivery()
	a.cut()
	w.streams("a", 0)
	clock.add(time.Second)
	again := w.open("a") // it has a gap, with nothing in it
	clock.add(time.Second)
	w.publish("work.new", "live")
	if diff := cmp.Diff([]string{"live"}, again.ids(1)); diff != "" {
		t.Error(diff)
	}
}

// An agent that leaves gets at once what is held.
func TestConformance74HalfCloseWhileSettling(t *testing.T) {
	w, _ := brokenWorld(t, time.Hour)
	a := w.open("a")
	mustBe(t, a.CloseSend())
	for _, want := range wholeGap {
		if got := a.delivery().GetEvent().GetId(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	endsWithOK(t, a.end)
}

// The newest stream ends and an older one serves the agent on. What that one misses
// when the server is killed is replayed, and nothing else.
func TestConformance74OlderStreamServesOn(t *testing.T) {
	for name, end := range map[string]func(*rawStream){
		"cancelled": func(s *rawStream) { s.cancel() },
		"closed":    func(s *rawStream) { mustBe(s.tb, s.CloseSend()) },
	} {
		t.Run(name, func(t *testing.T) {
			engine := memkv.New(nil)
			t.Cleanup(func() { mustBe(t, engine.Close()) })
			w, clock, older := gapWorld(t, loomOptions{Engine: engine}, "work.new")
			newer := w.open("a")
			clock.add(time.Second)
			w.publish("work.new", "both")
			older.ids(1)
			newer.ids(1)
			end(newer)
			w.streams("a", 1)
			clock.add(time.Second)
			w.publish("work.new", "older alone")
			older.ids(1)
			time.Sleep(quiet) // what was sent is written down a moment later
			w.kill()
			clock.add(time.Second)

			second := MustLoom(t, loomOptions{Engine: engine, Now: clock.Now})
			second.publish("work.new", "gap")
			clock.add(time.Second)
			second.register("a", "work.new")
			if diff := cmp.Diff([]string{"gap"}, second.open("a").ids(1)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A replay over several topics comes in the order in which it was published, and
// what is new behind it.
func TestConformance74GapInOrderAcrossTopics(t *testing.T) {
	for name, topics := range map[string][]string{
		"pattern":     {"work.*"},
		"many topics": {"work.0", "work.1", "work.2", "work.3", "work.4"},
	} {
		t.Run(name, func(t *testing.T) {
			w := MustLoom(t, loomOptions{})
			w.register("a", topics...)
			a, publisher := w.open("a"), w.open("p")
			publish := func(from, to int) {
				for i := from; i < to; i++ {
					publisher.publish(fmt.Sprint("work.", (i*i)%5), &loomv1pb.Event{Id: fmt.Sprint(i)})
				}
				publisher.send(pingOf())
				publisher.next()
			}
			a.cut()
			w.streams("a", 0)
			const past, all = 700, 900
			publish(0, past)
			settled(t, "all is stored", func() bool {
				total := int64(0)
				for i := range 5 {
					total += w.Events.Stats("default", fmt.Sprint("work.", i)).Total
				}
				return total == past
			})
			again := w.open("a")
			publish(past, all)
			for i := range all {
				if got := again.delivery().GetEvent().GetId(); got != fmt.Sprint(i) {
					t.Fatalf("event %d is %s", i, got)
				}
			}
		})
	}
}
