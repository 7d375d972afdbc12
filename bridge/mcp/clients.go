package mcp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/secret"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// maxAllServers bounds the servers of all tenants.
const maxAllServers = 1024

// Errors of adding, refreshing and removing servers.
var (
	ErrInvalid    = errors.New("mcp: bad server")
	ErrNotFound   = errors.New("mcp: no such server")
	ErrExists     = errors.New("mcp: there is a server of that name")
	ErrConfigured = errors.New("mcp: the server stands in the settings of the bridge, and is changed there")
	ErrTooMany    = errors.New("mcp: too many servers")
	ErrClosed     = errors.New("mcp: closed")
)

// Options are how servers are reached. Nil fields mean that such servers are refused.
type Options struct {
	// Engine and Writer keep the servers that Add adds. Nil: nothing is kept.
	Engine kv.Engine
	Writer *kv.Writer
	// Key is the file with the key of this machine, by which what is kept is sealed; it is made
	// where it is not there. Default: a key that ends with the process.
	Key string
	// Runner runs programs, under Policy, in the workspace that Root returns.
	Runner sandbox.Runner
	Policy sandbox.Policy
	Root   func(tenant string) (*os.Root, error)
	// Path is where programs are looked for that the sandbox's own folders have not: a
	// list such as PATH. Such a program reads its own installation: its interpreter, and
	// the packages next to it.
	Path string
	// Trusted says that callers that add servers may name such programs, too, as the
	// settings may.
	Trusted bool
	// Network returns what asks a server on a network. The function ends it. Configured
	// says that the server stands in the settings.
	Network func(tenant string, s Server, configured bool) (way http.RoundTripper, end func(), err error)
	// Takes reports whether a tool of that name would be the server's own. Default: all
	// are.
	Takes func(name string) bool
	// Called is what models call a tool of that name. Default: its name.
	Called func(name string) string
	// Count counts the tokens that a tool takes in a prompt. Default: it is not counted.
	Count func(d tools.Descriptor) int
	// Secrets gets what is secret of the variables, headers, arguments and addresses of servers:
	// stars stand for it in what they say. Default nil.
	Secrets *secret.Set
	// Logger logs servers that come and go. Default: silent.
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Clients are the connections to servers. All methods are safe for concurrent use.
type Clients struct {
	opts    Options
	vault   *vault
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	// changing is held while a server is added or removed.
	changing sync.Mutex

	mu      sync.RWMutex
	tenants map[string][]*client // guarded by mu; sorted by name; a slice never changes
}

var _ tools.Supplier = (*Clients)(nil)

// Start begins to connect to the servers of the settings, by tenant, and to the stored
// servers, and returns at once. Close it after use. An error comes from reading the stored
// servers.
func Start(ctx context.Context, servers map[string][]Server, opts Options) (*Clients, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Takes == nil {
		opts.Takes = func(string) bool { return true }
	}
	if opts.Called == nil {
		opts.Called = func(name string) string { return name }
	}
	if opts.Count == nil {
		opts.Count = func(tools.Descriptor) int { return 0 }
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	c := &Clients{opts: opts, tenants: map[string][]*client{}}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	var kept []addedServer
	var err error
	if c.vault, err = openVault(opts.Key); err == nil {
		kept, err = c.load(ctx)
	}
	if err == nil {
		err = c.sealOld(ctx, plainOf(kept))
	}
	if err != nil {
		c.cancel()
		return nil, err
	}
	for tenant, list := range servers {
		for _, s := range list {
			c.begin(tenant, s, true)
		}
	}
	for _, k := range kept {
		if c.find(k.tenant, k.Name) != nil {
			opts.Logger.Warn("an MCP server that was added is left out: one of the settings has its name", "server", k.Name)
			continue
		}
		if k.closed {
			opts.Logger.Warn("an MCP server that was added can't be reached", "server", k.Name, "error", errSealed, "key", opts.Key)
		}
		c.begin(k.tenant, k.Server, false)
	}
	return c, nil
}

// Close ends all connections and the programs behind them.
func (c *Clients) Close() error {
	c.cancel()
	c.changing.Lock() // a later addition finds it closed
	defer c.changing.Unlock()
	c.running.Wait()
	return nil
}

// begin begins to connect to a server.
func (c *Clients) begin(tenant string, s Server, configured bool) *client {
	one := &client{Server: s, tenant: tenant, configured: configured, set: c, again: make(chan struct{}, 1), changed: make(chan struct{})}
	one.status.State = Connecting
	c.opts.Secrets.Put(tenant, "mcp "+s.Name, s.secrets())
	ctx, cancel := context.WithCancel(c.ctx)
	one.stop, one.ended = cancel, make(chan struct{})
	c.mu.Lock()
	list := append(slices.Clone(c.tenants[tenant]), one)
	slices.SortFunc(list, func(a, b *client) int { return strings.Compare(a.Name, b.Name) })
	c.tenants[tenant] = list
	c.mu.Unlock()
	c.running.Go(func() {
		defer close(one.ended)
		one.keep(ctx)
	})
	return one
}

// of are the servers of a tenant, by name.
func (c *Clients) of(tenant string) []*client {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.tenants[tenant]
}

func (c *Clients) find(tenant, name string) *client {
	list := c.of(tenant)
	at := slices.IndexFunc(list, func(one *client) bool { return one.Name == name })
	if at < 0 {
		return nil
	}
	return list[at]
}

// Add begins to connect to a further server of a tenant, which is kept: the next start
// connects to it, too. The same server again changes nothing. An error is ErrInvalid, ErrExists, ErrTooMany, ErrClosed or one of
// the store.
func (c *Clients) Add(ctx context.Context, tenant string, s Server) (Status, error) {
	if err := s.Check(); err != nil {
		return Status{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	there := c.find(tenant, s.Name)
	switch {
	case c.ctx.Err() != nil:
		return Status{}, ErrClosed
	case there != nil && !there.configured && reflect.DeepEqual(there.Server, s):
		return there.Status(), nil
	case there != nil && (there.configured || there.Check() == nil):
		return Status{}, fmt.Errorf("%w: %s", ErrExists, s.Name)
	case there != nil: // this machine can't read it
	case len(c.of(tenant)) >= MaxServers:
		return Status{}, fmt.Errorf("%w: at most %d of a tenant", ErrTooMany, MaxServers)
	case c.count() >= maxAllServers:
		return Status{}, fmt.Errorf("%w: at most %d of all tenants", ErrTooMany, maxAllServers)
	}
	if s.URL != "" && c.opts.Network != nil {
		_, end, err := c.opts.Network(tenant, s, false)
		if err != nil {
			return Status{}, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		end()
	}
	if err := c.keep(ctx, sealed, tenant, s); err != nil {
		return Status{}, err
	}
	if there != nil {
		c.end(there)
	}
	return c.begin(tenant, s, false).Status(), nil
}

func (c *Clients) count() (n int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, list := range c.tenants {
		n += len(list)
	}
	return n
}

// Remove ends the connection to a server that was added, and forgets it. Its tools are
// gone when it returns; calls in flight fail. An error is ErrNotFound, ErrConfigured or
// one of the store.
func (c *Clients) Remove(ctx context.Context, tenant, name string) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	one := c.find(tenant, name)
	switch {
	case one == nil:
		return fmt.Errorf("%w: %s", ErrNotFound, name)
	case one.configured:
		return fmt.Errorf("%w: %s", ErrConfigured, name)
	}
	// Deletes a server that was stored, and what its tools were: when it is added again, it has
	// looked at it again.
	if err := c.commit(ctx, tenant, func(_ context.Context, tx *kv.Tx) error {
		tx.Delete(kv.System, keptKey(tenant, name))
		tx.Delete(kv.System, pinsKey(tenant, name))
		return nil
	}); err != nil {
		return err
	}
	c.end(one)
	return nil
}

// end ends the connection to a server that the tenant no longer has.
func (c *Clients) end(one *client) {
	c.mu.Lock()
	c.tenants[one.tenant] = slices.DeleteFunc(slices.Clone(c.tenants[one.tenant]), func(o *client) bool { return o == one })
	c.mu.Unlock()
	one.stop()
	<-one.ended
	c.opts.Secrets.Put(one.tenant, "mcp "+one.Name, nil)
}

// Refresh connects anew to a server, and waits until it is ready, can't be reached, or
// ctx ends. Calls in flight fail. accept says yes to what it says of its tools now, as when
// they were seen first. An error is ErrNotFound or that of ctx.
func (c *Clients) Refresh(ctx context.Context, tenant, name string, accept bool) (Status, error) {
	one := c.find(tenant, name)
	if one == nil {
		return Status{}, fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	if accept {
		one.accepted.Store(true)
	}
	before := one.Status().Attempts
	select {
	case one.again <- struct{}{}:
	default: // somebody has asked already
	}
	return one.wait(ctx, func(s Status) bool { return s.Attempts > before && s.State != Connecting })
}

// List returns the servers of a tenant, by name.
func (c *Clients) List(tenant string) []Status {
	var out []Status
	for _, one := range c.of(tenant) {
		out = append(out, one.Status())
	}
	return out
}

// All returns the servers of all tenants.
func (c *Clients) All() []Status {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var out []Status
	for _, list := range c.tenants {
		for _, one := range list {
			out = append(out, one.Status())
		}
	}
	return out
}

// Settle waits until each server is ready or has failed once, or ctx ends.
func (c *Clients) Settle(ctx context.Context, tenant string) []Status {
	for _, one := range c.of(tenant) {
		_, _ = one.wait(ctx, func(s Status) bool { return s.State != Connecting })
	}
	return c.List(tenant)
}

// Find returns the tool of a server that is there, by its name or by what models call it.
func (c *Clients) Find(tenant, name string) (*tools.Tool, bool) {
	for _, one := range c.of(tenant) {
		now := one.ready.Load()
		if now == nil {
			continue
		}
		at, ok := now.byName[name]
		if !ok {
			continue
		}
		own := now.tools[at]
		t, err := tools.NewRemote(own.offer.Descriptor, func(ctx context.Context, in tools.Input) (tools.Output, error) {
			return own.run(ctx, now, in)
		})
		return t, err == nil
	}
	return nil, false
}

// Offers yields the tools of the servers that are there.
func (c *Clients) Offers(tenant string) iter.Seq[tools.Offer] {
	return func(yield func(tools.Offer) bool) {
		for _, one := range c.of(tenant) {
			now := one.ready.Load()
			if now == nil {
				continue
			}
			for i := range now.tools {
				if !yield(now.tools[i].offer) {
					return
				}
			}
		}
	}
}
