package meshtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
)

// Network makes transports that reach each other.
type Network struct {
	// Join returns the transport of one more bridge.
	Join func(tb testing.TB) mesh.Transport
	// Cut breaks the connection of a transport, and joins it again.
	Cut func(tb testing.TB, of mesh.Transport, cut bool)
}

const (
	group  = "store"
	topic  = "news"
	asking = "ask"
	// patience bounds every wait: what takes longer does not come.
	patience = 2 * time.Minute
	beat     = 50 * time.Millisecond
	silence  = 1500 * time.Millisecond
)

var secret = []byte("0123456789abcdef0123456789abcdef")

// Run checks the transports of networks that open makes, one for each test.
func Run(t *testing.T, open func(tb testing.TB) Network) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, n Network)
	}{
		{"PublishReachesAllOthersOnceInOrder", publish},
		{"RequestsAreAnswered", requests},
		{"RequestsEnd", requestsEnd},
		{"AnswersComeBeforeGoodbye", lastAnswers},
		{"LateRequestsDoNotBegin", lateRequests},
		{"SlowConsumerLosesItsOwn", slowConsumer},
		{"HostileFramesAreRefused", hostile},
		{"PeersComeAndGo", comeAndGo},
		{"LostConnection", lostConnection},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// Bridge is one end of a test.
type Bridge struct {
	*mesh.Mesh
	transport mesh.Transport

	mu    sync.Mutex
	heard []string // guarded by mu
}

// start opens the mesh of a bridge.
func start(tb testing.TB, n Network, self mesh.Peer, o mesh.Options, add ...func(b *Bridge)) *Bridge {
	tb.Helper()
	if o.Group == "" {
		o.Group = group
	}
	if o.Secret == nil {
		o.Secret = secret
	}
	o.Beat, o.Silence = beat, max(o.Silence, silence)
	b := &Bridge{transport: n.Join(tb)}
	var err error
	if b.Mesh, err = mesh.New(self, b.transport, &o); err != nil {
		tb.Fatal(err)
	}
	for _, add := range add {
		add(b)
	}
	if err := b.Open(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Close(); err != nil {
			tb.Errorf("close %v: %v", self, err)
		}
	})
	return b
}

func peer(id string) mesh.Peer { return mesh.Peer{ID: id, Epoch: 1} }

// hearing records the published messages.
func hearing(b *Bridge) {
	b.Handle(topic, func(from mesh.Peer, payload []byte) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.heard = append(b.heard, from.ID+" "+string(payload))
	})
}

func (b *Bridge) all() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.heard)
}

// Eventually waits until something holds.
func Eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("does not happen: %s", what)
		}
	}
}

func join(tb testing.TB, bridges ...*Bridge) {
	tb.Helper()
	Eventually(tb, "all bridges see each other", func() bool {
		return !slices.ContainsFunc(bridges, func(b *Bridge) bool { return len(b.Peers()) != len(bridges)-1 })
	})
}

func mustPublish(tb testing.TB, b *Bridge, text string) {
	tb.Helper()
	if err := b.Publish(topic, []byte(text)); err != nil {
		tb.Fatalf("publish: %v", err)
	}
}

func publish(t *testing.T, n Network) {
	a, b, c := start(t, n, peer("a"), mesh.Options{}, hearing), start(t, n, peer("b"), mesh.Options{}, hearing), start(t, n, peer("c"), mesh.Options{}, hearing)
	other := start(t, n, peer("d"), mesh.Options{Group: "another store"}, hearing)
	join(t, a, b, c)
	const count = 500
	var want []string
	for i := range count {
		text := fmt.Sprint(i)
		want = append(want, "a "+text)
		mustPublish(t, a, text)
	}
	large := string(bytes.Repeat([]byte("x"), 3<<20))
	mustPublish(t, a, large)
	want = append(want, "a "+large)
	Eventually(t, "b and c hear everything", func() bool { return len(b.all()) == count+1 && len(c.all()) == count+1 })
	if !slices.Equal(b.all(), want) || !slices.Equal(c.all(), want) {
		t.Error("not once and in order")
	}
	if len(a.all()) > 0 || len(other.all()) > 0 {
		t.Errorf("an echo of %d, another group's %d", len(a.all()), len(other.all()))
	}
	if err := a.Publish(topic, make([]byte, mesh.DefaultMaxMessageBytes+1)); !errors.Is(err, mesh.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

// ask requests something that may be done twice. On a busy machine frames come so late that
// they are refused, and a peer falls silent: then it is asked again.
func (b *Bridge) ask(tb testing.TB, to mesh.Peer, topic string, payload []byte) (answer []byte, err error) {
	tb.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		answer, err = b.Request(tb.Context(), to, topic, payload)
		again := errors.Is(err, mesh.ErrLost) || errors.Is(err, mesh.ErrNotSent)
		if !again || time.Now().After(end) {
			return answer, err
		}
	}
}

func requests(t *testing.T, n Network) {
	a := start(t, n, peer("a"), mesh.Options{})
	b := start(t, n, peer("b"), mesh.Options{MaxMessageBytes: 16 << 20}, func(b *Bridge) {
		b.Serve(asking, func(_ context.Context, from mesh.Peer, payload []byte) ([]byte, error) {
			switch string(payload) {
			case "fail":
				return nil, errors.New("it failed")
			case "huge":
				return make([]byte, 17<<20), nil
			}
			return append([]byte(from.ID+" "), payload...), nil
		})
	})
	join(t, a, b)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			sent := bytes.Repeat([]byte{byte(i)}, i*40_000)
			got, err := a.ask(t, b.Self(), asking, sent)
			if err != nil || !bytes.Equal(got, append([]byte("a "), sent...)) {
				t.Errorf("request %d: %d bytes, %v", i, len(got), err)
			}
		})
	}
	all.Wait()
	_, err := a.ask(t, b.Self(), asking, []byte("fail"))
	if failed, ok := errors.AsType[*mesh.FailedError](err); !ok || failed.Text != "it failed" {
		t.Errorf("a failed request: %v", err)
	}
	if _, err = a.ask(t, b.Self(), asking, []byte("huge")); err == nil {
		t.Error("an answer over the limit came")
	}
	if _, err = a.ask(t, b.Self(), "nothing", nil); !errors.Is(err, mesh.ErrBusy) {
		t.Errorf("nobody serves it: %v", err)
	}
	if _, err = a.Request(t.Context(), mesh.Peer{ID: "b", Epoch: 7}, asking, nil); !errors.Is(err, mesh.ErrNotSent) {
		t.Errorf("another life of the bridge: %v", err)
	}
}

// hanging serves requests that end with their context alone. It says which begin, and that
// they have ended.
func hanging(begun chan string, ended chan struct{}) func(b *Bridge) {
	return func(b *Bridge) {
		b.Serve(asking, func(ctx context.Context, _ mesh.Peer, payload []byte) ([]byte, error) {
			begun <- string(payload)
			<-ctx.Done()
			ended <- struct{}{}
			return nil, ctx.Err()
		})
	}
}

// lastAnswers: who waits for a bridge that closes gets its answer.
func lastAnswers(t *testing.T, n Network) {
	begun := make(chan struct{}, 1)
	a := start(t, n, peer("a"), mesh.Options{})
	for epoch := range uint64(10) {
		b := start(t, n, mesh.Peer{ID: "b", Epoch: epoch + 1}, mesh.Options{}, func(b *Bridge) {
			b.Serve(asking, func(ctx context.Context, _ mesh.Peer, _ []byte) ([]byte, error) {
				begun <- struct{}{}
				<-ctx.Done()
				return []byte("the last"), nil
			})
		})
		Eventually(t, "a sees b", func() bool { return a.Here(b.Self()) })
		closed := make(chan error, 1)
		go func() { <-begun; closed <- b.Close() }()
		got, err := a.Request(t.Context(), b.Self(), asking, nil)
		if err != nil || string(got) != "the last" {
			t.Errorf("answer %q, %v", got, err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	}
}

func requestsEnd(t *testing.T, n Network) {
	begun, ended := make(chan string, 1024), make(chan struct{}, 1024)
	a, b := start(t, n, peer("a"), mesh.Options{MaxAsking: 2}), start(t, n, peer("b"), mesh.Options{MaxServing: 1}, hanging(begun, ended))
	join(t, a, b)

	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { _, err := a.Request(ctx, b.Self(), asking, []byte("first")); failed <- err }()
	<-begun
	if _, err := a.Request(t.Context(), b.Self(), asking, nil); !errors.Is(err, mesh.ErrBusy) {
		t.Errorf("more than b serves: %v", err)
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	<-ended // it was notified

	// Whether b's word or the caller's own clock comes first, b has ended it.
	Eventually(t, "a request that b has begun ends at its deadline", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := a.Request(ctx, b.Self(), asking, []byte("short")); err == nil {
			t.Fatal("answered")
		}
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})

	// The peer goes away under a request.
	Eventually(t, "b has room again", func() bool {
		go func() { _, err := a.Request(t.Context(), b.Self(), asking, []byte("last")); failed <- err }()
		for {
			select {
			case which := <-begun:
				if which == "last" {
					return true
				}
			case err := <-failed:
				if !errors.Is(err, mesh.ErrBusy) {
					t.Fatalf("a request of b: %v", err)
				}
				return false
			}
		}
	})
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil || errors.Is(err, mesh.ErrNotSent) {
		t.Errorf("b went away: %v", err)
	}
	Eventually(t, "a is alone", a.Alone)
	if _, err := a.Request(t.Context(), b.Self(), asking, nil); !errors.Is(err, mesh.ErrNotSent) {
		t.Errorf("b is gone: %v", err)
	}
}

// lateRequests: a request that arrives after its caller has stopped waiting is not served.
// The clock of a suspended bridge has gone on meanwhile.
func lateRequests(t *testing.T, n Network) {
	const late = 10 * time.Second
	a := start(t, n, peer("a"), mesh.Options{})
	b := start(t, n, peer("b"), mesh.Options{Now: func() time.Time { return time.Now().Add(late) }}, func(b *Bridge) {
		b.Serve(asking, func(context.Context, mesh.Peer, []byte) ([]byte, error) { return []byte("served"), nil })
	})
	join(t, a, b)
	ask := func(wait time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		_, err := a.Request(ctx, b.Self(), asking, nil)
		return err
	}
	if err := ask(late + patience); err != nil {
		t.Errorf("in time: %v", err)
	}
	dropped := b.Stats().Dropped
	if err := ask(200 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("too late: %v", err)
	}
	Eventually(t, "what came too late is dropped", func() bool { return b.Stats().Dropped == dropped+1 })
	if known := a.Named("b"); known != b.Self() || !a.Named("c").IsZero() {
		t.Errorf("b is known as %v", known)
	}
}

func slowConsumer(t *testing.T, n Network) {
	release, began := make(chan struct{}), make(chan struct{}, 1)
	var mu sync.Mutex
	handled := 0
	a := start(t, n, peer("a"), mesh.Options{})
	b := start(t, n, peer("b"), mesh.Options{QueueMessages: 10}, func(b *Bridge) {
		b.Handle(topic, func(mesh.Peer, []byte) {
			select {
			case began <- struct{}{}:
			default:
			}
			<-release
			mu.Lock()
			defer mu.Unlock()
			handled++
		})
		b.Serve(asking, func(context.Context, mesh.Peer, []byte) ([]byte, error) { return nil, nil })
	})
	c := start(t, n, peer("c"), mesh.Options{}, hearing)
	join(t, a, b, c)
	mustPublish(t, a, "first")
	<-began
	for range 100 {
		mustPublish(t, a, "more")
	}
	Eventually(t, "c hears everything, and b counts what it drops", func() bool { return len(c.all()) == 101 && b.Stats().Dropped == 90 })
	if _, err := a.ask(t, b.Self(), asking, nil); err != nil {
		t.Errorf("b answers nothing: %v", err)
	}
	close(release)
	Eventually(t, "b handles what had room", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return handled == 11
	})
}

// tap is a transport that keeps what it receives.
type tap struct {
	mesh.Transport
	mu     sync.Mutex
	frames [][]byte
}

func (t *tap) receive(frame []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.frames = append(t.frames, frame)
}

func (t *tap) all() [][]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.frames)
}

func hostile(t *testing.T, n Network) {
	a, b := start(t, n, peer("a"), mesh.Options{}, hearing), start(t, n, peer("b"), mesh.Options{}, hearing)
	foe := start(t, n, peer("foe"), mesh.Options{Secret: bytes.Repeat([]byte("w"), 32)})
	listener := &tap{Transport: n.Join(t)}
	if err := listener.Open(peer("listener"), listener.receive); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	})
	join(t, a, b)
	Eventually(t, "the listener hears something", func() bool { return len(listener.all()) > 0 })
	seen := len(listener.all())
	mustPublish(t, a, "only once")
	Eventually(t, "b hears it, and so does who listens", func() bool { return len(b.all()) == 1 && len(listener.all()) > seen })

	before := b.Stats().Refused
	frames := listener.all()
	sent := 0
	for _, frame := range frames { // again, to all and to b
		for _, to := range []mesh.Peer{{}, b.Self()} {
			if err := listener.Send(to, frame); err != nil {
				t.Fatal(err)
			}
			sent++
		}
	}
	whole := frames[len(frames)-1]
	for _, frame := range [][]byte{nil, {1}, whole[:len(whole)-1], append(slices.Clone(whole), 0), bytes.Repeat([]byte{1}, mesh.MaxFrameBytes), make([]byte, 100)} {
		if err := listener.Send(mesh.Peer{}, frame); err != nil {
			t.Fatal(err)
		}
		sent++
	}
	for at := range whole { // no bit can be changed
		changed := slices.Clone(whole)
		changed[at] ^= 1
		if err := listener.Send(b.Self(), changed); err != nil {
			t.Fatal(err)
		}
		sent++
	}
	Eventually(t, "all are refused", func() bool { return b.Stats().Refused >= before+uint64(sent) })
	if len(b.all()) != 1 || len(a.all()) != 0 {
		t.Errorf("b heard %q", b.all())
	}
	if len(foe.Peers()) != 0 || len(b.Peers()) != 1 {
		t.Errorf("peers: the foe's %v, b's %v", foe.Peers(), b.Peers())
	}
	for _, frame := range frames {
		if bytes.Contains(frame, []byte("only once")) {
			t.Error("who listens can read a message")
		}
	}
	mustPublish(t, a, "and on")
	Eventually(t, "the mesh goes on", func() bool { return len(b.all()) == 2 })
}

func comeAndGo(t *testing.T, n Network) {
	var mu sync.Mutex
	var told []string
	a := start(t, n, peer("a"), mesh.Options{}, func(b *Bridge) {
		b.OnPeer(func(p mesh.Peer, here bool) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprintf("%v %v", p, here))
		})
	})
	b := start(t, n, peer("b"), mesh.Options{})
	join(t, a, b)
	if a.Alone() || !a.Here(b.Self()) {
		t.Error("a is alone")
	}
	next := start(t, n, mesh.Peer{ID: "b", Epoch: 2}, mesh.Options{}, hearing)
	Eventually(t, "the next life of b has taken the place of the one before", func() bool { return slices.Equal(a.Peers(), []mesh.Peer{next.Self()}) })
	if err := b.Publish(topic, nil); err != nil { // from the life before
		t.Error(err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	Eventually(t, "one that has said goodbye is gone", a.Alone)
	refused := a.Stats().Refused
	Eventually(t, "the life before it is not heard any more", func() bool { return a.Stats().Refused > refused })
	third := start(t, n, mesh.Peer{ID: "b", Epoch: 3}, mesh.Options{})
	Eventually(t, "its next life is there", func() bool { return a.Here(third.Self()) })
	want := []string{"b@1 true", "b@1 false", "b@2 true", "b@2 false", "b@3 true"}
	Eventually(t, "a is told in order", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Equal(told, want)
	})
	if err := third.Close(); err != nil {
		t.Error(err)
	}
	Eventually(t, "its goodbye is heard", a.Alone)
}

func lostConnection(t *testing.T, n Network) {
	begun, ended := make(chan string, 8), make(chan struct{}, 8)
	a, b := start(t, n, peer("a"), mesh.Options{}, hearing), start(t, n, peer("b"), mesh.Options{}, hearing, hanging(begun, ended))
	join(t, a, b)
	failed := make(chan error, 1)
	go func() { _, err := a.Request(t.Context(), b.Self(), asking, nil); failed <- err }()
	<-begun
	n.Cut(t, b.transport, true)
	if err := <-failed; !errors.Is(err, mesh.ErrLost) {
		t.Errorf("a request under way: %v", err)
	}
	<-ended
	Eventually(t, "both are alone", func() bool { return a.Alone() && b.Alone() })
	if err := a.Publish(topic, []byte("to nobody")); err != nil {
		t.Errorf("publish alone: %v", err)
	}
	n.Cut(t, b.transport, false)
	join(t, a, b)
	mustPublish(t, a, "again")
	mustPublish(t, b, "again")
	Eventually(t, "both hear what is new", func() bool {
		return slices.Equal(b.all(), []string{"a again"}) && slices.Equal(a.all(), []string{"b again"})
	})
}
