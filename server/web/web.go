package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/conns"
)

// Options configure a Face. Shares, limits, credentials and TLS are shared with the native API.
type Options struct {
	// Server has the credentials, limits, shares, logger and TLS that hold for the face, too.
	Server server.Options
	// Hosts are the names, in addition to localhost, by which the face may be called. Default:
	// none. Addresses need no name.
	Hosts []string
}

// Face serves handlers over HTTP/1.1. All methods are safe for concurrent use, but for Handle,
// which comes before Serve.
type Face struct {
	credentials *auth.Credentials
	trust       bool
	hosts       []string
	limits      server.Limits
	shares      *server.Shares
	tls         *auth.TLS
	logger      *slog.Logger
	conns       *conns.Pool
	mux         *http.ServeMux
	http        *http.Server
}

// New makes a face without handlers.
func New(opts Options) *Face {
	o := opts.Server
	f := &Face{
		credentials: o.Credentials, trust: o.TrustNetwork, hosts: opts.Hosts, tls: o.TLS, limits: o.Limits.Full(),
		shares: o.Shares, logger: o.Logger, mux: http.NewServeMux(),
	}
	if f.logger == nil {
		f.logger = slog.New(slog.DiscardHandler)
	}
	if f.shares == nil {
		f.shares = server.NewShares(o.Limits, o.Credentials == nil)
	}
	f.conns = conns.NewPool(f.limits.MaxConnections, f.limits.SilentTimeout)
	f.http = &http.Server{
		Handler: f.outermost(), ReadHeaderTimeout: f.limits.ConnectionTimeout, IdleTimeout: server.IdleTimeout,
		MaxHeaderBytes: server.MaxHeaderBytes, ConnContext: withConn, ErrorLog: slog.NewLogLogger(f.logger.Handler(), slog.LevelDebug),
	}
	return f
}

// OnStop calls end when Shutdown begins, on another goroutine, so that requests without
// an end can end.
func (f *Face) OnStop(end func()) { f.http.RegisterOnShutdown(end) }

type connKey struct{}

// withConn lets a request find its connection in the pool.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conns.Of(c.RemoteAddr()))
}

// Serve answers on a listener until Shutdown, which makes it return nil. It closes the
// listener. While authentication is off an address that other machines can reach is
// refused with server.ErrOpenToAll.
func (f *Face) Serve(listener net.Listener) error {
	if f.credentials == nil && !f.trust && server.ReachableByOthers(listener.Addr()) {
		return errors.Join(fmt.Errorf("%w: %s", server.ErrOpenToAll, listener.Addr()), listener.Close())
	}
	pooled := f.conns.Listener(listener)
	if f.tls != nil {
		pooled = tls.NewListener(pooled, httpOnly(f.tls.Config()))
	}
	if err := f.http.Serve(pooled); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// httpOnly is a configuration for HTTP/1.1 in place of gRPC's HTTP/2.
func httpOnly(config *tls.Config) *tls.Config {
	choose := config.GetConfigForClient
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		current, err := choose(hello)
		if err != nil {
			return nil, err
		}
		current = current.Clone()
		current.NextProtos = []string{"http/1.1"}
		return current, nil
	}
	return config
}

// Shutdown lets requests finish for as long as the native API does, and closes all
// connections. What is still open then is cut off, which cancels it. Calling it again is
// harmless.
func (f *Face) Shutdown(ctx context.Context) error {
	patience, cancel := context.WithTimeout(ctx, f.limits.DrainTimeout)
	defer cancel()
	if err := f.http.Shutdown(patience); err != nil {
		_ = f.http.Close()
	}
	return nil
}
