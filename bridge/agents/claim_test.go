package agents_test

import (
	"errors"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// server is one of two on a store.
type server struct {
	*agents.Directory
	holder string // "" while others take it for dead
}

// twoServers are two on one store that do not reach each other.
func twoServers(tb testing.TB) (a, b *server, store kv.Engine) {
	tb.Helper()
	engines := kvtest.Peers(2)
	all := []*server{{holder: "a@1"}, {holder: "b@2"}}
	for i, s := range all {
		tb.Cleanup(func() { _ = engines[i].Close() })
		s.Directory = MustDirectory(tb, engines[i], &agents.Options{Holder: func() string { return s.holder }})
	}
	return all[0], all[1], engines[0]
}

// flush returns when all is stored that was marked before.
func (s *server) flush(tb testing.TB) {
	tb.Helper()
	link, _ := s.attach(tb, "other")
	end(tb, s.Directory, link, true)
}

// attach opens a stream of an agent as its handler does: it goes on where the last one was.
func (s *server) attach(tb testing.TB, id string) (*agents.Link, agents.Gap) {
	tb.Helper()
	link := MustOpen(tb, s.Directory, id)
	g, _, err := s.TakeGap(tb.Context(), tenant, id)
	if err != nil {
		tb.Fatal(err)
	}
	s.MarkGap(link, agents.Gap{Delivered: g.Delivered, RecentIDs: g.RecentIDs})
	return link, g
}

func isTaken(l *agents.Link) bool { return isClosed(l.GapTaken()) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// gaps counts those that are stored.
func gaps(tb testing.TB, store kv.Engine) (n int) {
	tb.Helper()
	scope := kv.Scope{Tenant: tenant, Kind: kv.OwnerSystem, Owner: "gaps"}
	for _, err := range store.Scan(tb.Context(), kv.System, kv.Prefix(scope.Key('g'))) {
		if err != nil {
			tb.Fatal(err)
		}
		n++
	}
	return n
}

// A server that stood still while another one took an agent over neither writes over the gap
// that is stored since nor deletes it, whatever its stream does when it goes on.
func TestGapOfAnotherServerStands(t *testing.T) {
	for name, goesOn := range map[string]func(tb testing.TB, a *server, old *agents.Link){
		"the stream is sent more":       func(_ testing.TB, a *server, old *agents.Link) { a.MarkSent(old, "a", 9, "z") },
		"the stream breaks":             func(tb testing.TB, a *server, old *agents.Link) { end(tb, a.Directory, old, true) },
		"the agent leaves":              func(tb testing.TB, a *server, old *agents.Link) { end(tb, a.Directory, old, false) },
		"it was taken for dead as well": func(_ testing.TB, a *server, old *agents.Link) { a.holder = "a@3"; a.MarkSent(old, "a", 9, "z") },
		"another server asks for it": func(tb testing.TB, a *server, old *agents.Link) {
			a.MarkSent(old, "a", 9, "z")
			if g, found, err := a.HandOverGap(tb.Context(), tenant, "one"); found || err != nil {
				tb.Errorf("it handed %+v over: %v", g, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, store := twoServers(t)
			old, _ := a.attach(t, "one")
			a.MarkSent(old, "a", 1, "x")
			a.flush(t)
			link, g := b.attach(t, "one")
			if got := delivered(g); got != "map[a:1] []" {
				t.Errorf("taken %s", got)
			}
			b.MarkSent(link, "a", 2, "y")
			end(t, b.Directory, link, true)

			goesOn(t, a, old)
			a.flush(t)
			if open := !isClosed(old.Done()); open != isTaken(old) { // one that has ended hears nothing
				t.Errorf("open %v, told %v", open, isTaken(old))
			}
			a.MarkSent(old, "a", 10, "z") // counts no more
			end(t, a.Directory, old, true)
			link, g = a.attach(t, "one") // back at the first one
			if got := delivered(g); got != "map[a:2] [y]" {
				t.Errorf("taken %s", got)
			}
			a.MarkSent(link, "a", 3, "y")
			end(t, a.Directory, link, true)
			link, g = b.attach(t, "one")
			if got := delivered(g); got != "map[a:3] [y y]" {
				t.Errorf("taken again %s", got)
			}
			end(t, b.Directory, link, false)
			if n := gaps(t, store); n != 1 { // that of flush
				t.Errorf("%d gaps are left", n)
			}
		})
	}
}

// A server that was taken for dead and is back keeps the gaps of the streams that nobody has
// taken over.
func TestClaimOutlivesLife(t *testing.T) {
	a, b, _ := twoServers(t)
	link, _ := a.attach(t, "one")
	a.MarkSent(link, "a", 1, "x")
	a.flush(t)
	a.holder = "a@3"
	a.MarkSent(link, "a", 2, "x")
	end(t, a.Directory, link, true)
	if _, g := b.attach(t, "one"); g.Delivered["a"] != 2 {
		t.Errorf("taken %+v", g)
	}
	if isTaken(link) {
		t.Error("it was told of another stream")
	}
}

// A stream that was opened while the server was taken for dead claims its gap later, but not
// that of an agent which is at another server by then.
func TestLateClaim(t *testing.T) {
	a, b, _ := twoServers(t)
	at, _ := b.attach(t, "taken")
	b.MarkSent(at, "a", 5, "x")
	b.flush(t)
	a.holder = ""
	open := func(id string) *agents.Link {
		link := MustOpen(t, a.Directory, id)
		if _, _, err := a.TakeGap(t.Context(), tenant, id); !errors.Is(err, kv.ErrFenced) {
			t.Errorf("take: %v", err)
		}
		return link
	}
	free, taken := open("free"), open("taken")
	a.holder = "a@3"
	for _, link := range []*agents.Link{free, taken} {
		a.MarkSent(link, "a", 1, "x")
		end(t, a.Directory, link, true)
	}
	if _, g := b.attach(t, "free"); g.Delivered["a"] != 1 {
		t.Errorf("taken %+v", g)
	}
	end(t, b.Directory, at, true)
	if _, g := a.attach(t, "taken"); g.Delivered["a"] != 5 {
		t.Errorf("taken %+v", g)
	}
}

// A gap that no server holds, as one process alone stores it, is taken up. A stream that is
// never marked leaves nothing, and an agent that is deleted anywhere has no gap.
func TestGapsWithoutHolder(t *testing.T) {
	a, b, store := twoServers(t)
	alone := MustDirectory(t, store, nil)
	link := MustOpen(t, alone, "one")
	mark(alone, link, "a", 1, "x")
	end(t, alone, link, true)
	_, g := a.attach(t, "one")
	if got := delivered(g); got != "map[a:1] [x]" {
		t.Errorf("taken %s", got)
	}
	if _, err := b.Delete(t.Context(), tenant, "one"); err != nil {
		t.Fatal(err)
	}
	link = MustOpen(t, b.Directory, "two")
	noGap(t, b.Directory, "two")
	if n := gaps(t, store); n != 1 { // its claim
		t.Errorf("%d gaps of a stream that is open", n)
	}
	end(t, b.Directory, link, true)
	if n := gaps(t, store); n != 0 {
		t.Errorf("%d gaps are left", n)
	}
}

// What is handed over is stored at once, and is another server's from then on.
func TestHandOver(t *testing.T) {
	a, b, _ := twoServers(t)
	old, _ := a.attach(t, "one")
	a.MarkSent(old, "a", 1, "x")
	handed, found, err := a.HandOverGap(t.Context(), tenant, "one")
	if err != nil || !found || delivered(handed) != "map[a:1] [x]" || !isTaken(old) {
		t.Errorf("handed over %+v, %v, %v", handed, found, err)
	}
	a.MarkSent(old, "a", 2, "x")
	link, g := b.attach(t, "one")
	if delivered(g) != delivered(handed) {
		t.Errorf("taken %+v, handed over was %+v", g, handed)
	}
	b.MarkSent(link, "a", 3, "y")
	end(t, a.Directory, old, false)
	end(t, b.Directory, link, true)
	if _, g = b.attach(t, "one"); delivered(g) != "map[a:3] [x y]" {
		t.Errorf("taken %+v", g)
	}
}
