package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/figures"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/socket"
	"github.com/loom-bridge/loom-bridge/server/compose"
	"github.com/loom-bridge/loom-bridge/server/tracing"
	"github.com/loom-bridge/loom-bridge/server/web"
)

// face is a server and where it listens.
type face struct {
	endpoint
	listener net.Listener
}

// endpoint serves one listener.
type endpoint interface {
	Serve(listener net.Listener) error
	Shutdown(ctx context.Context) error
}

// faces are the served addresses: one for everything while authentication is off; with
// authentication, loom.v1 has its own address or is off.
type faces []face

// listeners are opened before the store: the address of the native API, and that of
// HTTP, nil for none.
type listeners struct{ grpc, http net.Listener }

// openFaces makes the faces. The first one is the address of the native API, the
// last that of hosts, if there is one.
func openFaces(config Config, parts *compose.Domain, o server.Options, at listeners, metrics *figures.Metrics, opened *closers) (faces, error) {
	listener := at.grpc
	all, err := openGRPC(config, parts, o, listener, opened)
	if err != nil {
		return nil, err
	}
	if own := openOwn(config, o, addressOf(listener), opened); own != nil {
		all = append(all, face{all[0].endpoint, own})
	}
	if at.http == nil && config.MCPAddr == "" {
		return all, nil
	}
	within := all[0].endpoint.(*server.Server).Within()
	opened.add(within.Close)
	if at.http != nil {
		web, err := config.openHTTP(within, parts, o, at, metrics, opened)
		if err != nil {
			return nil, err
		}
		all = append(all, web)
	}
	if config.MCPAddr == "" {
		return all, nil
	}
	hosts, err := openMCP(config, within, o, opened)
	return append(all, hosts), err
}

// openOwn listens on the socket of the data directory, where programs of this machine look for
// its server. A server goes without it that speaks TLS, whose store nobody else has, and that
// can't have it.
func openOwn(config Config, o server.Options, address string, opened *closers) net.Listener {
	if o.TLS != nil || config.Ephemeral {
		return nil
	}
	path, err := socket.Path(config.DataDir)
	if err != nil {
		o.Logger.Debug("other programs don't find this server by its data directory", "error", err)
		return nil
	}
	if address == "unix:"+path {
		return nil
	}
	own, err := socket.Listen(path)
	if err != nil {
		o.Logger.Warn("other programs don't find this server by its data directory", "error", err)
		return nil
	}
	opened.add(ignoreClosed(own.Close))
	return own
}

// openMCP makes the face of hosts of the Model Context Protocol.
func openMCP(config Config, within *server.Within, o server.Options, opened *closers) (face, error) {
	listener, err := listen("mcp-addr", config.MCPAddr)
	if err != nil {
		return face{}, err
	}
	opened.add(ignoreClosed(listener.Close))
	if o.Credentials == nil && !config.TrustNetwork && !local(listener.Addr()) {
		return face{}, fmt.Errorf("--mcp-addr (%s) %q: %w; give --credentials, or a loopback address",
			envName("mcp-addr"), config.MCPAddr, server.ErrOpenToAll)
	}
	f := web.New(web.Options{Server: o, Hosts: config.MCPHosts})
	config.handleMCP(f, within, o)
	return face{f, listener}, nil
}

// openGRPC makes the faces that speak gRPC.
func openGRPC(config Config, parts *compose.Domain, o server.Options, listener net.Listener, opened *closers) (faces, error) {
	loom := parts.Loom()
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
	return append(all, face{server.New(server.Services{Erasures: parts.Erasures}, &o), other}), nil
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

// traces begins to make traces; nil where none are asked for.
func (c Config) traces(ctx context.Context, logger *slog.Logger, opened *closers) (*tracing.Traces, error) {
	spans := c.Dashboard.spans
	if !c.OTel {
		if spans == nil {
			return nil, nil
		}
		return tracing.Handed(spans), nil
	}
	var also []trace.SpanProcessor
	if spans != nil {
		also = append(also, spans)
	}
	traces, err := tracing.Open(ctx, buildVersion(), logger, also...)
	if err != nil {
		return nil, &ConfigError{"otel", "true", err.Error()}
	}
	opened.add(traces.Stop)
	return traces, nil
}

// startMetrics serves metrics on the address of HTTP, or on a separate one.
func startMetrics(config Config, http net.Listener, opened *closers) (served *figures.Metrics, address string, err error) {
	if config.MetricsAddr == "" && http == nil {
		return nil, "", nil
	}
	served = figures.New()
	if config.MetricsAddr == "" {
		return served, addressOf(http), nil
	}
	listener, err := listen("metrics-addr", config.MetricsAddr)
	if err != nil {
		return nil, "", err
	}
	opened.add(served.Serve(listener).Close)
	return served, addressOf(listener), nil
}
