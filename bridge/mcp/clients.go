package mcp

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/text"
)

const (
	// requestTime bounds what a server may take to greet and to list its tools.
	requestTime = 30 * time.Second
	// firstPause and lastPause are the times between two attempts to connect: it doubles.
	firstPause, lastPause = time.Second, time.Minute
	// maxTools and maxListBytes bound what one server may list; more is left out.
	maxTools     = 512
	maxListBytes = 4 << 20
	// maxDescription bounds what one tool says of itself; the rest is cut off.
	maxDescription = 2 << 10
)

// Options are how servers are reached. Nil fields mean that such servers are refused.
type Options struct {
	// Tenant is whose agents may call the tools. Required.
	Tenant string
	// Runner runs programs, under Policy, in the workspace that Root returns.
	Runner sandbox.Runner
	Policy sandbox.Policy
	Root   func() (*os.Root, error)
	// Network returns what asks a server on a network. The function ends it.
	Network func(s Server) (way http.RoundTripper, end func(), err error)
	// Takes tells whether a tool of that name would be one of its own. Default: all are.
	Takes func(name string) bool
	// Logger hears of servers that come and go. Default: silent.
	Logger *slog.Logger
}

// Clients are the connections to servers. All methods are safe for concurrent use.
type Clients struct {
	opts    Options
	clients []*client
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// client is the connection to one server.
type client struct {
	Server
	set   *Clients
	ready atomic.Pointer[connected]
}

// connected is a server that is there, and the tools that it has listed.
type connected struct {
	session *sdk.ClientSession
	offers  []tools.Offer // sorted by name
}

var _ tools.Supplier = (*Clients)(nil)

// Start begins to connect to all servers, and returns at once. Close it after use.
func Start(servers []Server, opts Options) *Clients {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Takes == nil {
		opts.Takes = func(string) bool { return true }
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Clients{opts: opts, cancel: cancel}
	for _, s := range servers {
		one := &client{Server: s, set: c}
		c.clients = append(c.clients, one)
		c.running.Go(func() { one.keep(ctx) })
	}
	return c
}

// Close ends all connections and the programs behind them.
func (c *Clients) Close() error {
	c.cancel()
	c.running.Wait()
	return nil
}

// Find returns the tool of a server that is there.
func (c *Clients) Find(tenant, name string) (*tools.Tool, bool) {
	server, _, ok := strings.Cut(name, ":")
	if !ok || tenant != c.opts.Tenant {
		return nil, false
	}
	for _, one := range c.clients {
		now := one.ready.Load()
		if one.Name != server || now == nil {
			continue
		}
		at, found := slices.BinarySearchFunc(now.offers, name, func(o tools.Offer, name string) int { return strings.Compare(o.Name, name) })
		if !found {
			return nil, false
		}
		t, err := tools.NewRemote(now.offers[at].Descriptor, func(ctx context.Context, in tools.Input) (tools.Output, error) {
			return now.call(ctx, strings.TrimPrefix(name, server+":"), in)
		})
		return t, err == nil
	}
	return nil, false
}

// Offers yields the tools of the servers that are there.
func (c *Clients) Offers(tenant string) iter.Seq[tools.Offer] {
	return func(yield func(tools.Offer) bool) {
		if tenant != c.opts.Tenant {
			return
		}
		for _, one := range c.clients {
			now := one.ready.Load()
			if now == nil {
				continue
			}
			for _, o := range now.offers {
				if !yield(o) {
					return
				}
			}
		}
	}
}

// keep connects again and again until ctx ends.
func (c *client) keep(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		err := c.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		c.set.opts.Logger.Warn("an MCP server is away", "server", c.Name, "error", text.OneLine(err.Error()), "again_in", pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		if pause = min(2*pause, lastPause); time.Since(began) > lastPause {
			pause = firstPause
		}
	}
}

// connect greets the server and serves its tools until it is gone, and returns why.
func (c *client) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	way, closing, err := c.transport(ctx)
	if err != nil {
		return err
	}
	defer closing()
	changed := make(chan struct{}, 1)
	host := sdk.NewClient(&sdk.Implementation{Name: "loom", Version: "1"}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case changed <- struct{}{}:
			default:
			}
		},
	})
	greeting, greeted := context.WithTimeout(ctx, requestTime)
	session, err := host.Connect(greeting, way, &sdk.ClientSessionOptions{ProtocolVersion: c.ProtocolVersion})
	greeted()
	if err != nil {
		return err
	}
	gone := make(chan error, 1)
	go func() { gone <- session.Wait() }()
	defer c.ready.Store(nil)
	defer func() { _ = session.Close() }()
	for {
		if err := c.list(ctx, session); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-gone:
			return fmt.Errorf("mcp: the connection ended: %w", err)
		case <-changed:
			// A server that changes its list all the time is asked once a second.
			select {
			case <-ctx.Done():
			case <-time.After(firstPause):
			}
		}
	}
}

// list asks for the tools, and serves those that can be.
func (c *client) list(ctx context.Context, session *sdk.ClientSession) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	next := &connected{session: session}
	bytes, left := 0, 0
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return fmt.Errorf("mcp: list the tools: %w", err)
		}
		o, ok := c.offer(t)
		if bytes += len(o.Name) + len(o.Description) + len(o.Schema); bytes > maxListBytes || len(next.offers) == maxTools {
			left++
			break // the server may go on for ever
		}
		if !ok || !c.set.opts.Takes(o.Name) {
			left++
			continue
		}
		next.offers = append(next.offers, o)
	}
	slices.SortFunc(next.offers, func(a, b tools.Offer) int { return strings.Compare(a.Name, b.Name) })
	next.offers = slices.CompactFunc(next.offers, func(a, b tools.Offer) bool { return a.Name == b.Name })
	level := slog.LevelInfo
	if c.ready.Swap(next) != nil {
		level = slog.LevelDebug // it may change its list all the time
	}
	c.set.opts.Logger.Log(ctx, level, "an MCP server is ready", "server", c.Name, "tools", len(next.offers), "left_out", left)
	return nil
}
