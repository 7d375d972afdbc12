package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

// face is a server and where it listens.
type face struct {
	*server.Server
	listener net.Listener
}

// faces are what the process serves: one address for everything while
// authentication is off; with it, loom.v1 has an address of its own, or none.
type faces []face

// openFaces makes the faces. The first one is the address of the native API. What
// is missing of what the environment asks for is told to agents of loom.v1.
func openFaces(config Config, parts *compose.Domain, o server.Options, listener net.Listener, missing []string, opened *closers) (faces, error) {
	loom := parts.Loom()
	loom.Options.Unserved = missing
	loom.Options.Replay = config.LoomReplay
	if o.Credentials == nil {
		o.Loom = loom
		return faces{{server.New(parts.Services(), &o), listener}}, nil
	}
	all := faces{{server.New(parts.Services(), &o), listener}}
	if config.LoomAddr == "" {
		return all, nil
	}
	other, err := listen("loom-addr", config.LoomAddr)
	if err != nil {
		return nil, err
	}
	opened.add(ignoreClosed(other.Close))
	if !local(other.Addr()) {
		return nil, &ConfigError{"loom-addr", config.LoomAddr, "can be reached by other machines, and loom.v1 knows no credentials; give a loopback address"}
	}
	if !o.Credentials.HasTenant(config.LoomTenant) {
		o.Logger.Warn("no credential names the tenant of --loom-tenant: only loom.v1 agents see its data", "tenant", config.LoomTenant)
	}
	o.Credentials, o.TLS = nil, nil
	o.Loom, o.LoomTenant = loom, config.LoomTenant
	o.Logger.Info("serving loom.v1", "address", addressOf(other), "tenant", config.LoomTenant)
	return append(all, face{server.New(server.Services{}, &o), other}), nil
}

// serve starts all faces. The channel gets the first error that one ends with.
func (f faces) serve() <-chan error {
	ended := make(chan error, len(f))
	for _, one := range f {
		go func() {
			if err := one.Serve(one.listener); err != nil {
				ended <- fmt.Errorf("%s: %w", addressOf(one.listener), err)
			}
		}()
	}
	return ended
}

// stop drains all faces side by side. It is a context.DeadlineExceeded when calls
// outlive everything; what they had acknowledged is in the store.
func (f faces) stop(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	errs := make([]error, len(f))
	var stopping sync.WaitGroup
	for i, one := range f {
		stopping.Go(func() { errs[i] = one.Shutdown(ctx) })
	}
	stopping.Wait()
	return errors.Join(errs...)
}
