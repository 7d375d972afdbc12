package events_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// both runs a test with durable and with volatile events.
func both(t *testing.T, test func(t *testing.T, opts events.EmitOptions)) {
	t.Helper()
	for _, volatile := range []bool{false, true} {
		t.Run(fmt.Sprintf("volatile=%v", volatile), func(t *testing.T) {
			test(t, events.EmitOptions{Volatile: volatile})
		})
	}
}

// mustEmit emits an event whose id is its text.
func mustEmit(tb testing.TB, bus *events.Bus, opts events.EmitOptions, topic, text string) {
	tb.Helper()
	e := newEvent(topic, text)
	e.ID = text
	if _, err := bus.Emit(tb.Context(), tenant, e, opts); err != nil {
		tb.Fatal(err)
	}
}

// takeAll returns everything at hand, as "pattern:id".
func takeAll(tb testing.TB, s *events.Subscription) []string {
	tb.Helper()
	var all []string
	for {
		d, ok, err := s.Take(tb.Context())
		if err != nil {
			tb.Fatal(err)
		}
		if !ok {
			return all
		}
		all = append(all, d.Pattern.String()+":"+d.Event.ID)
	}
}

// Without PerSelection an event that several selections match comes once.
func TestOverlappingPatternsDeliverOnce(t *testing.T) {
	both(t, func(t *testing.T, opts events.EmitOptions) {
		bus := MustBus(t, nil, nil)
		sub := MustSelect(t, bus, nil, native(t, "a.*"), native(t, "a.b"), native(t, "a.**"), native(t, "*.b"))
		for i, topic := range []string{"a.b", "a.c", "x.b", "a.b.c", "x.y"} {
			mustEmit(t, bus, opts, topic, fmt.Sprint(i))
		}
		want := []string{"0", "1", "2", "3"}
		var got []string
		for _, d := range takeAll(t, sub) {
			_, id, _ := strings.Cut(d, ":")
			got = append(got, id)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// TestConformance73ExactAndWildcardBothFire: and a topic that is literally
// `a.*` comes once to each selection.
func TestConformance73ExactAndWildcardBothFire(t *testing.T) {
	both(t, func(t *testing.T, opts events.EmitOptions) {
		opts.Legacy = true
		bus := MustBus(t, nil, nil)
		sub := MustSelect(t, bus, perSelection, legacy("a.*"), legacy("a.b"))
		for _, topic := range []string{"a.b", "a.*", "a.b.c", "a", "ab.c"} {
			mustEmit(t, bus, opts, topic, topic)
		}
		got := takeAll(t, sub)
		slices.Sort(got)
		want := []string{"a.*:a.*", "a.*:a.b", "a.*:a.b.c", "a.b:a.b"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// TestConformance73SameSubscriptionTwice: two channels; and two subscribers
// both receive.
func TestConformance73SameSubscriptionTwice(t *testing.T) {
	both(t, func(t *testing.T, opts events.EmitOptions) {
		bus := MustBus(t, nil, nil)
		first := MustSelect(t, bus, perSelection, legacy("t"))
		second := MustSelect(t, bus, perSelection, legacy("t"))
		mustEmit(t, bus, opts, "t", "1")
		for _, sub := range []*events.Subscription{first, second} {
			if got := takeAll(t, sub); len(got) != 1 || got[0] != "t:1" {
				t.Errorf("got %v", got)
			}
		}
		if n := bus.Stats(tenant, "t").Subscriptions; n != 2 {
			t.Errorf("%d subscriptions", n)
		}
	})
}

// TestConformance73EventTypeFilter: and one on headers.
func TestConformance73EventTypeFilter(t *testing.T) {
	both(t, func(t *testing.T, opts events.EmitOptions) {
		bus := MustBus(t, nil, nil)
		types := native(t, "t")
		types.EventTypes = []string{"x", "y"}
		headers := native(t, "t")
		headers.Headers = map[string]string{"k": "1", "empty": ""}
		byType, byHeader := MustSelect(t, bus, nil, types), MustSelect(t, bus, nil, headers)
		for id, e := range []events.Event{
			{Type: "x"},
			{Type: "z", Headers: map[string]string{"k": "1", "empty": ""}},
			{Type: "y", Headers: map[string]string{"k": "2", "empty": ""}},
			{Headers: map[string]string{"k": "1"}},
		} {
			e.Topic, e.ID = "t", fmt.Sprint(id)
			if _, err := bus.Emit(t.Context(), tenant, e, opts); err != nil {
				t.Fatal(err)
			}
		}
		if got := takeAll(t, byType); fmt.Sprint(got) != "[t:0 t:2]" {
			t.Errorf("by type: %v", got)
		}
		if got := takeAll(t, byHeader); fmt.Sprint(got) != "[t:1]" {
			t.Errorf("by header: %v", got)
		}
	})
}

// One publisher's events keep their order across the topics of a pattern, as
// long as the reader is not thousands behind.
func TestOrderAcrossTopics(t *testing.T) {
	both(t, func(t *testing.T, opts events.EmitOptions) {
		bus := MustBus(t, nil, nil)
		sub := MustSelect(t, bus, perSelection, legacy("a.*"))
		var want []string
		for i := range 200 {
			mustEmit(t, bus, opts, fmt.Sprintf("a.%d", i*i%7), fmt.Sprint(i))
			want = append(want, fmt.Sprintf("a.*:%d", i))
		}
		if diff := cmp.Diff(want, takeAll(t, sub)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// One emitter's events keep their order, durable and volatile and on several
// topics, also while the reader is at work.
func TestOrderOfOneEmitter(t *testing.T) {
	const rounds, perRound = 400, 20
	bus := MustBus(t, nil, nil)
	sub := MustSelect(t, bus, perSelection, legacy("a.*"))
	taken := make(chan struct{}, rounds)
	go func() {
		defer close(taken)
		for n := range rounds * perRound {
			if d, err := sub.Next(t.Context()); err != nil || d.Event.ID != fmt.Sprint(n) {
				t.Errorf("got %s, %v, want %d", d.Event.ID, err, n)
			}
			if n%perRound == 0 {
				taken <- struct{}{}
			}
		}
	}()
	n := 0
	for round := range rounds {
		batch, opts := make([]events.Event, perRound), make([]events.EmitOptions, perRound)
		for i := range batch {
			batch[i] = events.Event{Topic: fmt.Sprint("a.", n%3), ID: fmt.Sprint(n)}
			opts[i].Volatile = n%7 < 3
			n++
		}
		if round%2 == 0 {
			for i := range batch {
				bus.EmitAll(t.Context(), tenant, batch[i:i+1], opts[i:i+1])
			}
		} else {
			bus.EmitAll(t.Context(), tenant, batch, opts)
		}
		if round >= 50 {
			<-taken
		}
	}
	for range taken {
		continue // until the reader is through
	}
}

// A durable event reaches every pattern that matches it, however many topics
// there are, whatever the readers do meanwhile.
func TestPatternsLoseNothingDurable(t *testing.T) {
	const emitters, perEmitter, topics = 6, 300, 200
	seed := chance.Seed(t)
	bus := MustBus(t, nil, nil)
	selections := [][]events.Subscribed{
		{native(t, "thread.**")}, {native(t, "thread.*.x"), native(t, "thread.1.x")}, {native(t, "**")}, {native(t, "*.*.*")},
	}
	var group sync.WaitGroup
	for _, given := range selections {
		sub := MustSelect(t, bus, nil, given...)
		group.Go(func() {
			seen := make(map[string]uint64)
			for range emitters * perEmitter {
				e := MustNext(t, sub).Event
				if e.Sequence != seen[e.Topic]+1 {
					t.Errorf("%s: got %d after %d", e.Topic, e.Sequence, seen[e.Topic])
					return
				}
				seen[e.Topic] = e.Sequence
			}
		})
	}
	for n := range 3 { // others come and go
		group.Go(func() {
			for range 50 {
				s, err := bus.Subscribe(t.Context(), tenant, []events.Subscribed{native(t, fmt.Sprintf("thread.%d.*", n)), native(t, "*.**")}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				_, _, _ = s.Take(t.Context())
				s.Remove("*.**")
				s.Close()
			}
		})
	}
	for n := range emitters {
		group.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			for range perEmitter {
				MustEmit(t, bus, fmt.Sprintf("thread.%d.x", r.IntN(topics)), "x")
			}
		})
	}
	group.Wait()
}

func TestAddAndRemove(t *testing.T) {
	both(t, func(t *testing.T, opts events.EmitOptions) {
		bus := MustBus(t, nil, nil)
		MustEmit(t, bus, "b", "before")
		sub := MustSelect(t, bus, perSelection)
		mustEmit(t, bus, opts, "a.1", "early")
		positions, err := sub.Add(t.Context(), []events.Subscribed{legacy("a.*"), legacy("b")})
		if err != nil || len(positions) != 1 || positions[0].Topic != "b" || *positions[0].After != 1 {
			t.Fatalf("got %v, %v", positions, err)
		}
		for _, topic := range []string{"a.1", "b", "a.2"} {
			mustEmit(t, bus, opts, topic, topic)
		}
		sub.Remove("a.*", "unknown")
		mustEmit(t, bus, opts, "a.3", "late")
		mustEmit(t, bus, opts, "b", "b2")
		if got := takeAll(t, sub); fmt.Sprint(got) != "[b:b b:b2]" {
			t.Errorf("got %v", got)
		}
		if _, err := sub.Add(t.Context(), []events.Subscribed{legacy("b")}); !errors.Is(err, events.ErrInvalid) {
			t.Errorf("the same again: %v", err)
		}
		if _, err := sub.Add(t.Context(), []events.Subscribed{legacy("c"), position("b2", 9)}); !errors.Is(err, events.ErrPositionUnknown) {
			t.Errorf("behind the end: %v", err)
		}
		mustEmit(t, bus, opts, "c", "c") // the refused call changed nothing
		if got := takeAll(t, sub); got != nil {
			t.Errorf("got %v", got)
		}
		if _, err := sub.Add(t.Context(), []events.Subscribed{legacy("a.*")}); err != nil {
			t.Fatal(err)
		}
		mustEmit(t, bus, opts, "a.3", "again")
		if d := MustNext(t, sub); d.Event.ID != "again" || d.Selection != 4 || d.Pattern.String() != "a.*" {
			t.Errorf("got %+v", d)
		}
		sub.Close()
		if _, err := sub.Add(t.Context(), nil); err == nil {
			t.Log("adding nothing to a closed subscription is refused")
		} else if !errors.Is(err, events.ErrSubscriptionClosed) {
			t.Errorf("closed: %v", err)
		}
		sub.Remove("b")
	})
}

// A position in a topic that a pattern reads already brings back what lies
// between, in order, and what follows once.
func TestAddAPositionToWhatIsRead(t *testing.T) {
	bus := MustBus(t, nil, nil)
	sub := MustSelect(t, bus, nil, native(t, "a.*"))
	for i := range 4 {
		mustEmit(t, bus, events.EmitOptions{}, "a.b", fmt.Sprint(i+1))
	}
	takeAll(t, sub)
	if _, err := sub.Add(t.Context(), []events.Subscribed{position("a.b", 2)}); err != nil {
		t.Fatal(err)
	}
	mustEmit(t, bus, events.EmitOptions{}, "a.b", "5")
	if got := takeAll(t, sub); fmt.Sprint(got) != "[a.b:3 a.b:4 a.*:5]" {
		t.Errorf("got %v", got)
	}
	sub.Remove("a.*")
	mustEmit(t, bus, events.EmitOptions{}, "a.b", "6")
	if got := takeAll(t, sub); fmt.Sprint(got) != "[a.b:6]" {
		t.Errorf("got %v", got)
	}
}

func TestSelectionsAreChecked(t *testing.T) {
	bus := MustBus(t, nil, nil)
	after, pattern := position("a", 0), native(t, "a.*")
	after.Since = time.Unix(1, 0)
	pattern.After = new(uint64(0))
	types, headers, qos := native(t, "a"), native(t, "a"), native(t, "a")
	types.EventTypes = make([]string, 65)
	headers.Headers = make(map[string]string)
	for i := range store.MaxHeaders + 1 {
		headers.Headers[fmt.Sprint(i)] = ""
	}
	qos.QoS = 3
	for name, tt := range map[string]struct {
		opts  *events.SubscribeOptions
		given []events.Subscribed
	}{
		"after and since":      {nil, []events.Subscribed{after}},
		"position in patterns": {nil, []events.Subscribed{pattern}},
		"many event types":     {nil, []events.Subscribed{types}},
		"many headers":         {nil, []events.Subscribed{headers}},
		"unknown quality":      {nil, []events.Subscribed{qos}},
		"the same pattern":     {perSelection, []events.Subscribed{legacy("a.*"), legacy("a.*")}},
		"topic is no UTF-8":    {perSelection, []events.Subscribed{legacy("\xff")}},
		"long pattern":         {perSelection, []events.Subscribed{legacy(strings.Repeat("x.", 4096) + "*")}},
		"position unstored":    {perSelection, []events.Subscribed{position("", 0)}},
		"many selections":      {perSelection, make([]events.Subscribed, events.MaxSelections+1)},
	} {
		if _, err := bus.Subscribe(t.Context(), tenant, tt.given, tt.opts); !errors.Is(err, events.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Since brings back the past of every topic that matches, then goes on.
func TestSince(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	bus := MustBus(t, nil, &events.Options{Now: func() time.Time { return now }})
	begin := now
	for i := range 30 { // a second each, three topics; c falls silent
		topic := []string{"x.a", "x.b", "x.c", "y.a"}[i%4]
		if topic != "x.c" || i < 10 {
			mustEmit(t, bus, events.EmitOptions{}, topic, fmt.Sprint(i))
		}
		now = now.Add(time.Second)
	}
	for _, opts := range []*events.SubscribeOptions{nil, perSelection} {
		pattern, exact := native(t, "x.**"), native(t, "y.a")
		if opts != nil {
			pattern = legacy("x.*")
		}
		pattern.Since, exact.Since = begin.Add(20*time.Second), begin.Add(19*time.Second)
		sub := MustSelect(t, bus, opts, pattern, exact)
		if at := sub.Positions(); len(at) != 1 || at[0].Topic != "y.a" {
			t.Errorf("positions %v", at)
		}
		id := fmt.Sprint("new", opts != nil)
		mustEmit(t, bus, events.EmitOptions{}, "x.a", id)
		var got []string
		for _, d := range takeAll(t, sub) {
			_, id, _ := strings.Cut(d, ":")
			got = append(got, id)
		}
		slices.Sort(got)
		want := []string{"21", "23", "24", "25", "27", "28", "29", "19", id}
		want = slices.DeleteFunc(want, func(s string) bool { return s == "19" }) // taken at the very time
		if opts != nil {
			want = append(want, "newfalse") // of the round before
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v: -want +got:\n%s", opts, diff)
		}
	}
}

// Nothing is lost between the past and what comes while it is looked up.
func TestSinceWhileOthersEmit(t *testing.T) {
	const emitters, perEmitter = 4, 200
	bus := MustBus(t, nil, nil)
	begin := time.Now().Add(-time.Minute)
	var group sync.WaitGroup
	for n := range emitters {
		group.Go(func() {
			for i := range perEmitter {
				MustEmit(t, bus, fmt.Sprintf("s.%d.%d", n, i%17), "x")
			}
		})
	}
	for range 8 {
		group.Go(func() {
			sub := MustSelect(t, bus, nil, native(t, "other"))
			selection := native(t, "s.**")
			selection.Since = begin
			if _, err := sub.Add(t.Context(), []events.Subscribed{selection}); err != nil {
				t.Error(err)
				return
			}
			seen := make(map[string]uint64)
			for range emitters * perEmitter {
				e := MustNext(t, sub).Event
				if seen[e.Topic]++; seen[e.Topic] != e.Sequence {
					t.Errorf("%s: got %d, want %d", e.Topic, e.Sequence, seen[e.Topic])
					return
				}
			}
		})
	}
	group.Wait()
}

func TestReadyAndTake(t *testing.T) {
	both(t, func(t *testing.T, opts events.EmitOptions) {
		synctest.Test(t, func(t *testing.T) {
			bus := MustBus(t, nil, nil)
			sub := MustSelect(t, bus, nil, native(t, "a.*"))
			select {
			case <-sub.Ready():
				t.Error("ready without an event")
			default:
			}
			for i := range 3 {
				mustEmit(t, bus, opts, "a.b", fmt.Sprint(i))
			}
			<-sub.Ready()
			if got := takeAll(t, sub); len(got) != 3 {
				t.Errorf("got %v", got)
			}
			go func() {
				synctest.Wait()
				_ = bus.Close()
			}()
			<-sub.Ready()
			if _, ok, err := sub.Take(t.Context()); ok || !errors.Is(err, events.ErrClosed) {
				t.Errorf("got %v, %v", ok, err)
			}
		})
	})
}

// A subscription whose filter passes nothing is not even woken.
func TestFilteredEventsWakeNobody(t *testing.T) {
	both(t, func(t *testing.T, opts events.EmitOptions) {
		bus := MustBus(t, nil, nil)
		filtered := native(t, "a")
		filtered.EventTypes = []string{"other"}
		sub := MustSelect(t, bus, nil, filtered)
		for range 3 {
			mustEmit(t, bus, opts, "a", "x")
		}
		select {
		case <-sub.Ready():
			t.Error("it was woken")
		default:
		}
		if n := bus.Stats(tenant, "a").Backlog; n != 0 {
			t.Errorf("backlog %d", n)
		}
	})
}

// TestConformance73ShutdownClears: what was subscribed is gone.
func TestConformance73ShutdownClears(t *testing.T) {
	bus := MustBus(t, nil, nil)
	sub := MustSelect(t, bus, perSelection, legacy("a.*"), legacy("b"))
	mustEmit(t, bus, events.EmitOptions{Volatile: true}, "b", "1")
	mustEmit(t, bus, events.EmitOptions{}, "a.b", "2")
	if err := bus.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sub.Next(context.Background()); !errors.Is(err, events.ErrClosed) {
		t.Errorf("got %v", err)
	}
	for _, text := range []string{"a.*", "b", "a.b"} {
		if st := bus.Stats(tenant, text); st.Subscriptions != 0 || st.Backlog != 0 {
			t.Errorf("%s: %+v", text, st)
		}
	}
}

// A thousand agents with several topics each: everybody gets what is theirs.
func TestThousandAgents(t *testing.T) {
	const agents = 1000
	bus := MustBus(t, nil, nil)
	subs := make([]*events.Subscription, agents)
	for i := range subs {
		subs[i] = MustSelect(t, bus, &events.SubscribeOptions{PerSelection: true, Wait: true},
			legacy(fmt.Sprintf("agent.%d.replies", i)), legacy(fmt.Sprintf("agent.%d.*", i)), legacy("all"), legacy(fmt.Sprintf("topic.%d", i%100)))
	}
	both(t, func(t *testing.T, opts events.EmitOptions) {
		for i := range agents {
			mustEmit(t, bus, opts, fmt.Sprintf("agent.%d.replies", i), "own")
		}
		for i := range 100 {
			mustEmit(t, bus, opts, fmt.Sprintf("topic.%d", i), "shared")
		}
		mustEmit(t, bus, opts, "all", "all")
		for i, sub := range subs {
			got := takeAll(t, sub)
			slices.Sort(got)
			want := []string{fmt.Sprintf("agent.%d.*:own", i), fmt.Sprintf("agent.%d.replies:own", i), "all:all", fmt.Sprintf("topic.%d:shared", i%100)}
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("agent %d: -want +got:\n%s", i, diff)
			}
		}
	})
}

// Another process on the same store wakes those who have a pattern here.
func TestPatternSeesAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New(nil)
		defer func() { _ = store.Close() }()
		shared := &sharedEngine{Engine: store, moves: make(chan kv.Move)}
		here, there := MustBus(t, shared, nil), MustBus(t, store, nil)
		MustEmit(t, there, "a.b", "before")
		fresh := native(t, "a.b")
		fresh.QoS = events.Realtime
		subs := []*events.Subscription{MustSelect(t, here, nil, native(t, "a.**")), MustSelect(t, here, nil, fresh)}
		for want := uint64(2); want <= 4; want++ {
			MustEmit(t, there, "a.b", "x")
			shared.moves <- kv.Move{Ref: kv.Ref{Keyspace: kv.Events, Scope: kv.Scope{Tenant: tenant, Kind: kv.OwnerTopic, Owner: "a.b"}}}
			for i, sub := range subs {
				if got := MustNext(t, sub).Event.Sequence; got != want {
					t.Errorf("subscription %d: got %d, want %d", i, got, want)
				}
			}
		}
	})
}

// When the store can't say where a topic ends, an emit on it is refused rather
// than lost to a pattern.
func TestEmitFailsWhereReadersCannotJoin(t *testing.T) {
	engine := kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
	bus := MustBus(t, engine, nil)
	sub := MustSelect(t, bus, nil, native(t, "a.*"))
	engine.Replan(kvtest.FailurePlan{Read: 1, Repeat: true})
	if _, err := bus.Emit(t.Context(), tenant, newEvent("a.b", "x"), events.EmitOptions{}); !errors.Is(err, kvtest.ErrFault) {
		t.Errorf("emit: %v", err)
	}
	if _, err := sub.Add(t.Context(), []events.Subscribed{native(t, "b")}); !errors.Is(err, kvtest.ErrFault) {
		t.Errorf("add: %v", err)
	}
	engine.Replan(kvtest.FailurePlan{})
	if e := MustEmit(t, bus, "a.b", "x"); e.Sequence != 1 || MustNext(t, sub).Event.Sequence != 1 {
		t.Errorf("afterwards: %d", e.Sequence)
	}
}
