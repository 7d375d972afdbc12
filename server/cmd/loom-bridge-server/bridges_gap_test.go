package main

import (
	"context"
	"net/url"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
)

// listener is an agent of loom.v1 that keeps what it hears, on whichever stream.
type listener struct {
	peer
	mu   sync.Mutex
	told []string // guarded by mu
}

func newListener(id, topic string) *listener {
	l := &listener{peer: peer{id: id, loom: true, topics: []string{topic}}}
	l.heard = func(h heard) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.told = append(l.told, h.text)
	}
	return l
}

// MustListen opens a stream at a server, and returns what breaks it.
func (l *listener) MustListen(tb testing.TB, at *process) (breaks func()) {
	tb.Helper()
	s, err := l.open(tb.Context(), at.conn)
	must(tb, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = l.run(s) // until it is broken
	}()
	return func() { s.cancel(); <-ended }
}

// hears waits until all that it has heard is that.
func (l *listener) hears(tb testing.TB, want ...string) {
	tb.Helper()
	var told []string
	defer func() {
		if tb.Failed() {
			tb.Logf("heard %q, want %q", told, want)
		}
	}()
	waitUntil(tb, "all is heard", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		told = slices.Clone(l.told)
		return len(told) >= len(want)
	})
	if !slices.Equal(told, want) {
		tb.Error("something is lost, or told twice")
	}
}

// A server that stands still while an agent goes on at another one does not write over what
// that one has stored of the agent's stream, neither when it goes on nor when it ends: what the
// agent missed it is told next, and nothing twice.
//
// Z44
func TestGapOfAgentThatHasMoved(t *testing.T) {
	t.Parallel()
	address := pgtest.Address(t)
	store := postgresPlace(t, address)
	place, err := url.Parse(store)
	must(t, err)
	admin, err := pgx.Connect(t.Context(), address)
	must(t, err)
	defer admin.Close(context.Background())
	// stored waits until there is something in the gap.
	stored := func(what string) {
		t.Helper()
		waitUntil(t, "the gap is stored", func() bool {
			var found bool
			must(t, admin.QueryRow(t.Context(), `SELECT count(*) > 0 FROM `+place.Query().Get("schema")+
				`.system WHERE position('gaps'::bytea IN key) > 0 AND position($1 IN value) > 0`, []byte(what)).Scan(&found))
			return found
		})
	}
	a, b := MustBridgeApart(t, store, "a"), MustBridge(t, store, "b")
	emit := func(text string) (id string) {
		got, err := b.bridge().Emit(t.Context(), emitOf("speaker", "news", text))
		must(t, err)
		return got.GetEventId()
	}
	l := newListener("walker", "news")
	leaveA := l.MustListen(t, &a.process)
	emit("one")
	l.hears(t, "one")
	stored("news\x10\x01") // it was sent the first event of the topic

	a.StandStill(t)
	emit("two")
	leaveB := l.MustListen(t, b)
	l.hears(t, "one", "two")
	id := emit("three")
	l.hears(t, "one", "two", "three")
	leaveA()
	leaveB()
	stored(id) // ids are stored when a stream has ended
	emit("four")

	must(t, a.command.Process.Signal(syscall.SIGCONT))
	save(t, &a.process, "it goes on") // a answers again
	must(t, a.command.Process.Signal(os.Interrupt))
	must(t, a.command.Wait()) // all is stored that it would
	defer l.MustListen(t, b)()
	emit("five")
	l.hears(t, "one", "two", "three", "four", "five")
}
