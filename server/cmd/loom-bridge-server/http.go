package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"

	a2av1 "github.com/loom-bridge/loom-bridge/proto/gen/lf/a2a/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/figures"
	"github.com/loom-bridge/loom-bridge/server/compose"
	"github.com/loom-bridge/loom-bridge/server/console"
	"github.com/loom-bridge/loom-bridge/server/dashboard"
	"github.com/loom-bridge/loom-bridge/server/manual"
	"github.com/loom-bridge/loom-bridge/server/mcp"
	"github.com/loom-bridge/loom-bridge/server/proxy"
	"github.com/loom-bridge/loom-bridge/server/rest"
	"github.com/loom-bridge/loom-bridge/server/web"
)

const (
	// defaultHTTPAddr is where HTTP is served unless the settings say where, if it is free.
	defaultHTTPAddr = "127.0.0.1:50080"
	// addrOff is in place of an address that is not served.
	addrOff = "off"
)

// defaultUpstreams are where the proxy leads unless the settings say.
var defaultUpstreams = []string{"openai=https://api.openai.com", "anthropic=https://api.anthropic.com"}

// checkHTTPAddr takes a host and a port, or off.
func checkHTTPAddr(addr string) error {
	if addr == addrOff {
		return nil
	}
	return checkTCPAddr(addr)
}

// envDashboard begins variables of loom.v1's core.
const envDashboard = "LOOM_DASHBOARD"

// loomDashboard is what loom.v1's core serves to people.
type loomDashboard struct {
	// addr is where HTTP is served instead of at its default address: `loom run` tells its user to
	// look there. Empty for no dashboard.
	addr string
	// spans are kept for it; nil for no dashboard.
	spans *dashboard.Spans
	// debug lets its users emit events.
	debug bool
}

func readDashboard(getenv func(string) string) loomDashboard {
	if getenv(envDashboard) != "true" {
		return loomDashboard{}
	}
	return loomDashboard{
		net.JoinHostPort("127.0.0.1", cmp.Or(getenv(envDashboard+"_PORT"), "3030")), new(dashboard.Spans), getenv(envDashboard+"_DEBUG") == "true",
	}
}

// upstreams is a list of NAME=URL, or off.
func upstreams(to *[]string) scalar[[]string] {
	return checkedList(to, "name=url,...", func(list []string) error {
		if slices.Equal(list, []string{addrOff}) {
			return nil
		}
		_, err := proxy.Upstreams(list)
		return err
	})
}

// openProxy makes what leads programs to models; nil for nothing.
func (c *Config) openProxy(within *server.Within, parts *compose.Domain, o server.Options) *proxy.Handler {
	list := c.ProxyUpstreams
	if len(list) == 0 {
		list = defaultUpstreams
	}
	upstreams, err := proxy.Upstreams(list)
	if err != nil { // it was checked, so it is off
		return nil
	}
	return proxy.New(proxy.Options{Upstreams: upstreams, Gate: parts.Egress, Within: within, Window: parts.Tokens.Room, StallTimeout: o.Limits.StallTimeout, Logger: o.Logger})
}

// listenHTTP listens where HTTP is served; nil for nowhere. Without a setting a server goes
// without it whose address is taken, or that is reached by a socket alone, which only those
// open who may.
func (c *Config) listenHTTP(logger *slog.Logger) (net.Listener, error) {
	network, _, _ := splitAddr(c.Addr)
	if c.HTTPAddr == addrOff || c.HTTPAddr == "" && network == "unix" {
		return nil, nil
	}
	address := cmp.Or(c.HTTPAddr, c.Dashboard.addr, defaultHTTPAddr)
	listener, err := listen("http-addr", address)
	if _, taken := errors.AsType[takenError](err); taken && c.HTTPAddr == "" {
		logger.Warn("HTTP is not served: another program has the address; --http-addr chooses another one, or off", "address", address)
		return nil, nil
	}
	if err == nil && c.Credentials == "" && !c.TrustNetwork && !local(listener.Addr()) {
		_ = listener.Close()
		return nil, fmt.Errorf("--http-addr (%s) %q: %w; give --credentials, or a loopback address",
			envName("http-addr"), c.HTTPAddr, server.ErrOpenToAll)
	}
	return listener, err
}

// openHTTP makes the face of all that is not gRPC.
func (c *Config) openHTTP(within *server.Within, parts *compose.Domain, o server.Options, at listeners, metrics *figures.Metrics, opened *closers) (face, error) {
	calls, err := rest.New(within, rest.Options{StallTimeout: o.Limits.StallTimeout})
	if err != nil {
		return face{}, err
	}
	names := c.MCPHosts
	if host, _, err := net.SplitHostPort(c.HTTPAddr); err == nil {
		names = append([]string{host}, names...)
	}
	f := web.New(web.Options{Server: o, Hosts: names})
	f.Handle(rest.Prefix, web.Callers, calls)
	f.Handle("GET /metrics", web.Operators, metrics)
	f.Handle("GET /settings", web.Operators, http.HandlerFunc(c.serveInForce))
	f.Handle("GET /healthz", web.Everybody, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }))
	f.Handle("GET /readyz", web.Everybody, ready(within))
	f.Handle("GET /openapi.json", web.Everybody, http.HandlerFunc(rest.OpenAPI))
	f.Handle("GET /{$}", web.Everybody, http.RedirectHandler(console.Path, http.StatusFound))
	f.Handle("GET "+console.Path, web.Everybody, http.HandlerFunc(console.ServeHTTP))
	f.Handle("POST "+web.SignInPath, web.Callers, f.SignIn())
	f.Handle("DELETE "+web.SignInPath, web.Everybody, f.SignOut())
	f.Handle("GET /docs", web.Everybody, http.HandlerFunc(rest.Docs))
	f.Handle("GET "+manual.Path, web.Everybody, http.HandlerFunc(manual.ServeHTTP))
	agentCards := cards(within, addressOf(at.grpc))
	f.Handle("GET "+cardPath, web.Callers, agentCards)
	f.Handle("GET "+agentPath+cardPath, web.Callers, agentCards)
	f.Handle("GET /docs/style.css", web.Everybody, http.HandlerFunc(rest.Style))
	c.handleMCP(f, within, o)
	if c.Dashboard.addr != "" {
		seen := dashboard.Options{
			Events: parts.Events, Agents: parts.Agents, Audit: parts.Audit, Spans: c.Dashboard.spans, Redact: c.Redact, StallTimeout: o.Limits.Full().StallTimeout,
		}
		if c.Dashboard.debug {
			seen.Calls = within
		}
		dashboard.New(seen).Serve(f)
	}
	if models := c.openProxy(within, parts, o); models != nil {
		opened.add(models.Close)
		within.OnErase(models.Forget)
		parts.Memory.OnRemoved(models.Removed)
		f.Handle(proxy.Prefix, web.Programs, models)
	}
	return face{f, at.http}, nil
}

// handleMCP serves hosts of the Model Context Protocol.
func (c *Config) handleMCP(f *web.Face, within *server.Within, o server.Options) {
	hosts := mcp.NewFace(within, mcp.FaceOptions{
		Options: mcp.Options{Version: buildVersion(), Logger: o.Logger}, Authenticated: o.Credentials != nil, MaxReceiveBytes: o.Limits.Full().MaxReceiveBytes,
	})
	f.Handle(mcp.Path, web.Hosts, hosts)
	f.OnStop(hosts.EndStreams)
}

// ready answers whether calls are answered, as the standard health service of gRPC says it.
func ready(within *server.Within) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), reachTime)
		defer cancel()
		answer, err := healthv1.NewHealthClient(within).Check(ctx, &healthv1.HealthCheckRequest{})
		switch {
		case err != nil:
			web.Fail(w, web.Status(ctx, err))
		case answer.GetStatus() != healthv1.HealthCheckResponse_SERVING:
			http.Error(w, answer.GetStatus().String(), http.StatusServiceUnavailable)
		default:
			_, _ = io.WriteString(w, "ok\n")
		}
	})
}

// cardPath is where the card of the only agent that serves tasks is; behind agentPath it is that of
// the agent which is named there.
const (
	cardPath  = "/.well-known/agent-card.json"
	agentPath = "/a2a/{agent}"
)

// cards serves the cards of agents. grpcAddress is where the server listens for gRPC: clients are
// told its port, and the name by which they asked.
func cards(within grpc.ClientConnInterface, grpcAddress string) http.Handler {
	client := a2av1.NewA2AServiceClient(within)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := metadata.NewOutgoingContext(r.Context(), metadata.MD{"authorization": r.Header.Values("Authorization")})
		card, err := client.GetExtendedAgentCard(ctx, &a2av1.GetExtendedAgentCardRequest{Tenant: r.PathValue("agent")})
		if err != nil {
			web.Fail(w, web.Status(r.Context(), err))
			return
		}
		card.SupportedInterfaces[0].Url = reached(grpcAddress, r.Host)
		body, err := protojson.Marshal(card)
		if err != nil {
			web.Fail(w, web.Status(r.Context(), err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "private, max-age=60")
		_, _ = w.Write(body)
	})
}

// reached is an address with the name by which the server was asked.
func reached(address, asked string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return address // a socket
	}
	name := asked
	if host, _, err := net.SplitHostPort(asked); err == nil {
		name = host
	}
	return net.JoinHostPort(strings.Trim(name, "[]"), port)
}
