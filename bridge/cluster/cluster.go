// Package cluster is the room of what several servers on one store have: who is there
// (registry), what they send each other (mesh, over natsmesh), agents and events of the others
// (peers), which one has a workspace (places), and the copying of a store to an engine that several
// can have (migration). One server alone opens none of it and pays for none: the rest of the house
// knows the others by hooks alone, which are nil then.
//
// The package itself opens the mesh that the settings ask for: a NATS server inside this one,
// joined to the NATS servers of the other servers on the store, or an external one.
//
// The mesh's secret is kept in the store, so that only servers on it are believed. There,
// too, embedded servers find each other's addresses.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/natsmesh"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
)

// The meshes that are no address.
const (
	Off      = "off"
	Embedded = "embedded"
)

// ErrAlone: the store is this server's alone, so there is none to reach.
var ErrAlone = errors.New("no other server can share this store; a mesh joins servers on one --store postgres://")

// Settings are what an operator says.
type Settings struct {
	// Mesh is Off, Embedded, or the URL of a server of NATS.
	Mesh string
	// Listen is the address where an embedded server listens for other embedded servers.
	Listen string
}

// Check refuses what is no mesh.
func Check(text string) error {
	if text == Off || text == Embedded {
		return nil
	}
	if _, err := natsmesh.Host(text); err != nil {
		return fmt.Errorf("is not %s or %s, and %w", Off, Embedded, err)
	}
	return nil
}

// Open returns the mesh of a server that is registered, not open yet, and what ends the
// search for others; nil where it is off.
func (s Settings) Open(ctx context.Context, registry *registry.Registry, logger *slog.Logger) (_ *mesh.Mesh, stop func() error, _ error) {
	none := func() error { return nil }
	if s.Mesh == Off {
		return nil, none, nil
	}
	if registry == nil {
		return nil, nil, ErrAlone
	}
	secret, err := registry.Secret(ctx)
	if err != nil {
		return nil, nil, err
	}
	self, o := registry.Self(), natsmesh.Options{Secret: secret, Logger: logger}
	if s.Mesh != Embedded {
		transport, err := natsmesh.Connect(s.Mesh, o)
		if err != nil {
			return nil, nil, err
		}
		m, err := newMesh(self, transport, secret, logger)
		return m, none, err
	}
	server, err := natsmesh.Embed(s.Listen, routes(registry), o)
	if err != nil {
		return nil, nil, err
	}
	if err := registry.SetMesh(ctx, reached(server.Addr(), self.Address)); err != nil {
		return nil, nil, errors.Join(err, server.Close())
	}
	m, err := newMesh(self, server, secret, logger)
	if err != nil {
		return nil, nil, err
	}
	return m, s.follow(registry, server, logger), nil
}

func newMesh(self registry.Bridge, transport mesh.Transport, secret []byte, logger *slog.Logger) (*mesh.Mesh, error) {
	m, err := mesh.New(mesh.Peer{ID: self.ID, Epoch: self.Epoch}, transport, &mesh.Options{Secret: secret, Logger: logger})
	if err != nil {
		return nil, errors.Join(err, transport.Close())
	}
	return m, nil
}

// routes are where others are looked for.
func routes(registry *registry.Registry) []string {
	var routes []string
	all, _ := registry.All()
	self := registry.Self()
	for _, b := range all {
		if b.ID != self.ID && b.Mesh != "" {
			routes = append(routes, b.Mesh)
		}
	}
	return routes
}

// follow joins the servers that come to the store, until it is stopped.
func (s Settings) follow(registry *registry.Registry, server *natsmesh.Embedded, logger *slog.Logger) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() {
		for {
			_, changed := registry.All()
			if err := server.SetRoutes(routes(registry)); err != nil {
				logger.Warn("other servers on the store are not looked for", "error", err)
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	})
	return func() error {
		cancel()
		following.Wait()
		return nil
	}
}

// reached is where others reach what listens: on all addresses of this machine by the host
// that the operator gave the server for the others, or by the machine's name.
func reached(listening, server string) string {
	host, port, err := net.SplitHostPort(listening)
	if err != nil || !unspecified(host) {
		return listening
	}
	if given, _, err := net.SplitHostPort(server); err == nil && !unspecified(given) {
		return net.JoinHostPort(given, port)
	}
	if name, err := os.Hostname(); err == nil {
		return net.JoinHostPort(name, port)
	}
	return listening
}

// unspecified reports whether a host means all addresses of a machine.
func unspecified(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}
