package natsmesh_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/natsmesh"
	"github.com/loom-bridge/loom-bridge/internal/testkit/meshtest"
	"github.com/loom-bridge/loom-bridge/internal/testkit/natstest"
)

const loopback = "127.0.0.1:0"

var secret = []byte("0123456789abcdef0123456789abcdef")

// proxy is a way to an address that can be cut.
type proxy struct {
	listener net.Listener
	mu       sync.Mutex // guards the fields below
	to       string
	cut      bool
	open     []net.Conn
}

func mustProxy(tb testing.TB, to string) *proxy {
	tb.Helper()
	listener, err := net.Listen("tcp", loopback)
	if err != nil {
		tb.Fatal(err)
	}
	p := &proxy{listener: listener, to: to}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.pass(in) })
		}
	})
	tb.Cleanup(func() {
		listener.Close()
		p.Cut(true)
		serving.Wait()
	})
	return p
}

func (p *proxy) pass(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer out.Close()
	p.mu.Lock()
	cut := p.cut
	p.open = append(p.open, in, out)
	p.mu.Unlock()
	if cut {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(out, in); out.Close() })
	both.Go(func() { _, _ = io.Copy(in, out); in.Close() })
	both.Wait()
}

func (p *proxy) Cut(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut = cut; cut {
		for _, conn := range p.open {
			conn.Close()
		}
		p.open = nil
	}
}

func (p *proxy) Addr() string { return p.listener.Addr().String() }

// Servers in the bridges, of which each reaches the first one by a way that can be cut.
//
// Z13
func TestEmbedded(t *testing.T) {
	meshtest.Run(t, func(testing.TB) meshtest.Network {
		var mu sync.Mutex
		var first *natsmesh.Embedded
		ways := map[mesh.Transport]*proxy{}
		return meshtest.Network{
			Join: func(tb testing.TB) mesh.Transport {
				mu.Lock()
				defer mu.Unlock()
				var routes []string
				var way *proxy
				if first != nil {
					way = mustProxy(tb, first.Addr())
					routes = []string{way.Addr()}
				}
				e, err := natsmesh.Embed(loopback, routes, natsmesh.Options{Group: "store", Secret: secret})
				if err != nil {
					tb.Fatal(err)
				}
				if first == nil {
					first = e
				}
				ways[e] = way
				return e
			},
			Cut: func(_ testing.TB, of mesh.Transport, cut bool) {
				mu.Lock()
				defer mu.Unlock()
				ways[of].Cut(cut)
			},
		}
	})
}

// A server elsewhere, which each bridge reaches by a way that can be cut.
func TestConnect(t *testing.T) {
	meshtest.Run(t, func(tb testing.TB) meshtest.Network {
		url, stop, err := natstest.Start()
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(stop)
		address := strings.TrimPrefix(url, "nats://")
		var mu sync.Mutex
		ways := map[mesh.Transport]*proxy{}
		return meshtest.Network{
			Join: func(tb testing.TB) mesh.Transport {
				way := mustProxy(tb, address)
				transport, err := natsmesh.Connect("nats://"+way.Addr(), natsmesh.Options{Group: "store", Secret: secret})
				if err != nil {
					tb.Fatal(err)
				}
				mu.Lock()
				defer mu.Unlock()
				ways[transport] = way
				return transport
			},
			Cut: func(_ testing.TB, of mesh.Transport, cut bool) {
				mu.Lock()
				defer mu.Unlock()
				ways[of].Cut(cut)
			},
		}
	})
}

func TestRefusesWhatStrangersCouldReach(t *testing.T) {
	for name, open := range map[string]func() error{
		"listen on all":  func() error { _, err := natsmesh.Embed("0.0.0.0:0", nil, natsmesh.Options{}); return err },
		"listen nowhere": func() error { _, err := natsmesh.Embed(":0", nil, natsmesh.Options{}); return err },
		"route elsewhere": func() error {
			_, err := natsmesh.Embed(loopback, []string{"10.0.0.1:1"}, natsmesh.Options{})
			return err
		},
		"NATS elsewhere": func() error { _, err := natsmesh.Connect("nats://10.0.0.1:4222", natsmesh.Options{}); return err },
	} {
		if err := open(); !errors.Is(err, natsmesh.ErrOpen) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := natsmesh.Embed(loopback, nil, natsmesh.Options{Secret: secret[:8]}); err == nil {
		t.Error("a short secret was taken")
	}
	for _, bad := range []string{"", "nonsense", "http://localhost", "nats://", "nats://localhost/path"} {
		if _, err := natsmesh.Connect(bad, natsmesh.Options{}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// A server with another secret does not get in.
func TestStrangersAreNotRouted(t *testing.T) {
	embed := func(routes []string, o natsmesh.Options) *natsmesh.Embedded {
		e, err := natsmesh.Embed(loopback, routes, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
		return e
	}
	a := embed(nil, natsmesh.Options{Group: "store", Secret: secret})
	stranger := embed([]string{a.Addr()}, natsmesh.Options{Group: "store", Secret: []byte(strings.Repeat("s", 32))})
	b := embed(nil, natsmesh.Options{Group: "store", Secret: secret})
	if err := b.SetRoutes([]string{a.Addr()}); err != nil {
		t.Fatal(err)
	}
	meshtest.Eventually(t, "a and b are joined", func() bool { return a.Links() > 0 && b.Links() > 0 })
	if n := stranger.Links(); n > 0 {
		t.Errorf("a stranger has %d routes", n)
	}
}

// A change of routes loses nothing between bridges that are joined.
func TestRoutesChangeUnderTraffic(t *testing.T) {
	embed := func(routes ...string) *natsmesh.Embedded {
		e, err := natsmesh.Embed(loopback, routes, natsmesh.Options{Secret: secret})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	var heard atomic.Int64
	join := func(id string, e *natsmesh.Embedded) *mesh.Mesh {
		m, err := mesh.New(mesh.Peer{ID: id, Epoch: 1}, e, &mesh.Options{Secret: secret, Beat: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if id == "a" || id == "b" {
			m.Handle("news", func(mesh.Peer, []byte) { heard.Add(1) })
		}
		if err := m.Open(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
		return m
	}
	first := embed()
	second := embed(first.Addr())
	a, b := join("a", first), join("b", second)
	meshtest.Eventually(t, "a and b see each other", func() bool { return len(a.Peers()) == 1 && len(b.Peers()) == 1 })
	sent := int64(0)
	publish := func(from *mesh.Mesh) {
		if err := from.Publish("news", []byte("x")); err != nil {
			t.Fatal(err)
		}
		sent++
	}
	for i := range 5 {
		next := embed(first.Addr())
		join(fmt.Sprint("c", i), next)
		for at, e := range map[*mesh.Mesh]*natsmesh.Embedded{a: first, b: second} {
			for range 100 {
				publish(at)
			}
			if err := e.SetRoutes([]string{first.Addr(), next.Addr()}); err != nil {
				t.Fatal(err)
			}
			for range 100 {
				publish(at)
			}
		}
	}
	meshtest.Eventually(t, "a and b hear everything", func() bool { return heard.Load() == sent })
	if n := a.Stats().Unsent + b.Stats().Unsent; n > 0 {
		t.Errorf("%d frames were not sent", n)
	}
}
