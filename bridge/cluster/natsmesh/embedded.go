package natsmesh

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
)

// startTime bounds the start of the embedded server.
const startTime = 10 * time.Second

// routeUser is who the bridges are to each other; the password is made of the secret.
const routeUser = "bridge"

// Embedded is a server of NATS inside of a bridge, and a transport over it.
type Embedded struct {
	mesh.Transport
	server  *server.Server
	options Options

	mu     sync.Mutex // guards the fields below
	routes []string
	// running are the server's own options, with what it has added.
	running *server.Options
}

// Embed starts a server that listens for the servers of other bridges, and joins the ones
// at routes, each host:port. Through them it finds the others, and it never stops looking
// for them. Without a secret all must be on this machine.
func Embed(listen string, routes []string, o Options) (*Embedded, error) {
	o = o.withDefaults()
	host, portText, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, fmt.Errorf("natsmesh: listen on %q: %w", listen, err)
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return nil, fmt.Errorf("natsmesh: listen on %q: the port is no number", listen)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	// A server that listens for no clients never begins with its routes, so it listens on
	// this machine, for holders of a secret token. (A user in its place would
	// be taken for another one with each change of routes, and cut off.)
	token := rand.Text()
	e := &Embedded{options: o, running: &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, Authorization: token,
		NoSigs: true, NoLog: true, MaxPayload: 2 * mesh.MaxFrameBytes, MaxPending: pendingBytes,
		Cluster: server.ClusterOpts{
			Name: "loom-" + o.derived("cluster"), Host: host, Port: port,
			Username: routeUser, Password: o.derived("route"), PoolSize: 1, NoAdvertise: true,
		},
	}}
	if err := o.checkSecret(host); err != nil {
		return nil, err
	}
	if e.running.Routes, err = e.urls(routes); err != nil {
		return nil, err
	}
	e.routes = routes
	// The server would say so in its log alone.
	free, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("natsmesh: %w", err)
	}
	if err := free.Close(); err != nil {
		return nil, fmt.Errorf("natsmesh: %w", err)
	}
	if e.server, err = server.NewServer(e.running); err != nil {
		return nil, fmt.Errorf("natsmesh: %w", err)
	}
	e.server.Start()
	if !e.server.ReadyForConnections(startTime) || e.server.ClusterAddr() == nil {
		e.stop()
		return nil, fmt.Errorf("natsmesh: can't listen on %s", listen)
	}
	if e.Transport, err = connect(o, "", e.stop, nats.InProcessServer(e.server), nats.Token(token)); err != nil {
		e.stop()
		return nil, err
	}
	return e, nil
}

func (e *Embedded) stop() {
	e.server.Shutdown()
	e.server.WaitForShutdown()
}

// Addr is where other bridges reach this one.
func (e *Embedded) Addr() string { return e.server.ClusterAddr().String() }

// Links is mesh.Linked's: the servers of other bridges that it has routes to.
func (e *Embedded) Links() int {
	all, err := e.server.Routez(nil)
	if err != nil {
		return 0
	}
	others := make(map[string]bool)
	for _, r := range all.Routes {
		others[r.RemoteID] = true
	}
	return len(others)
}

// urls are routes as the server wants them.
func (e *Embedded) urls(routes []string) ([]*url.URL, error) {
	routes = clean(routes)
	if len(routes) > MaxRoutes {
		return nil, fmt.Errorf("natsmesh: %d routes, at most %d", len(routes), MaxRoutes)
	}
	var urls []*url.URL
	for _, r := range routes {
		host, _, err := net.SplitHostPort(r)
		if err != nil {
			return nil, fmt.Errorf("natsmesh: route %q: %w", r, err)
		}
		if err := e.options.checkSecret(host); err != nil {
			return nil, err
		}
		urls = append(urls, &url.URL{Scheme: "nats-route", Host: r, User: url.UserPassword(routeUser, e.options.derived("route"))})
	}
	return urls, nil
}

// SetRoutes changes where other bridges are looked for.
func (e *Embedded) SetRoutes(routes []string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.server.Running() {
		return nil
	}
	routes = slices.Compact(slices.Sorted(slices.Values(clean(routes))))
	if slices.Equal(routes, e.routes) {
		return nil
	}
	urls, err := e.urls(routes)
	if err != nil {
		return err
	}
	// From its own, so that nothing else has changed.
	next := e.running.Clone()
	next.Routes = urls
	if err := e.server.ReloadOptions(next); err != nil {
		return errors.Join(errors.New("natsmesh: change of routes"), err)
	}
	e.routes, e.running = routes, next
	return nil
}
