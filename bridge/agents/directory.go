package agents

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Defaults of Options.
const (
	// DefaultIdleRegistration is longer than an agent that still runs takes to
	// reconnect.
	DefaultIdleRegistration = 10 * time.Minute
	// DefaultMissedHeartbeats is enough for a slow agent not to count as inactive.
	DefaultMissedHeartbeats = 3
	// DefaultMaxAgents is more than one server has been measured with.
	DefaultMaxAgents = 20_000
	// DefaultMaxStreams leaves room for agents with several streams.
	DefaultMaxStreams = 2 * DefaultMaxAgents
	// DefaultMaxTools is far more than a model can choose from.
	DefaultMaxTools = 1024
	// DefaultMaxTenantTools bounds the tools of all agents of a tenant: a list of
	// them takes milliseconds.
	DefaultMaxTenantTools = 65_536
	// DefaultMaxToolBytes bounds the names, descriptions and schemas of one agent's
	// tools: all of them stand in prompts.
	DefaultMaxToolBytes = 256 << 10
	// DefaultMaxTenantToolBytes bounds the tool bytes of all agents of a tenant together.
	DefaultMaxTenantToolBytes = 4 << 20
	// DefaultMaxBytes bounds what the registrations of one tenant keep in memory.
	DefaultMaxBytes = 256 << 20
	// DefaultQueueCalls is DefaultPendingCalls, so that a burst that comes faster than
	// the stream can be written is queued and not refused.
	DefaultQueueCalls = DefaultPendingCalls
	// DefaultPendingCalls bounds the unanswered calls of one stream.
	DefaultPendingCalls = 4096
	// DefaultPendingBytes bounds what those calls hold: many of the largest.
	DefaultPendingBytes = 64 << 20
	// DefaultMaxCalls bounds the calls that wait for agents. Each holds its
	// arguments and two goroutines, some 20 KiB.
	DefaultMaxCalls = 8192
	// DefaultKeepGaps is far longer than a gap is worth replaying.
	DefaultKeepGaps = time.Hour
)

// queueDirect bounds the events that wait for one stream alone. Each may be as
// large as a message.
const queueDirect = 64

// Options adjusts a Directory. Nil and zero fields mean the defaults.
type Options struct {
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// EventTime is the clock of events, which never goes back. It says which events a
	// stream was sent before another one took over. Default Now.
	EventTime func() time.Time
	// IdleRegistration is how long a registration outlives the last stream, or
	// waits for the first. Default DefaultIdleRegistration.
	IdleRegistration time.Duration
	// MaxAgents bounds the agents of a tenant. Default DefaultMaxAgents.
	MaxAgents int
	// MaxStreams bounds the open streams of a tenant. Default DefaultMaxStreams.
	MaxStreams int
	// MaxTools bounds the tools of one agent. Default DefaultMaxTools.
	MaxTools int
	// MaxTenantTools bounds the tools of all agents of a tenant; tools of the same name
	// count each. Default DefaultMaxTenantTools.
	MaxTenantTools int
	// MaxToolBytes bounds the names, descriptions and schemas of one agent's tools,
	// plus 64 bytes for each; MaxTenantToolBytes bounds the sum over a tenant's agents.
	// Defaults DefaultMaxToolBytes and DefaultMaxTenantToolBytes.
	MaxToolBytes, MaxTenantToolBytes int
	// Catalogue rules which names tools can have, and gets the directory as a supplier
	// of tools. Default: one without tools of the server.
	Catalogue *tools.Catalogue
	// KeepTools is how long the provider of a tool is remembered after its last
	// registration, also across restarts. Default DefaultKeepTools.
	KeepTools time.Duration
	// MaxBytes bounds the registrations of a tenant. Default DefaultMaxBytes.
	MaxBytes int
	// QueueCalls bounds the calls that wait to be sent on one stream. Default
	// DefaultQueueCalls.
	QueueCalls int
	// PendingCalls bounds the unanswered calls of one stream, including the waiting ones
	// to be sent. The calling agents share them. Default DefaultPendingCalls.
	PendingCalls int
	// PendingBytes bounds the bytes of those calls; one call is always taken.
	// Default DefaultPendingBytes.
	PendingBytes int
	// OneTenant says that there is one tenant only, so no calls are reserved for others.
	OneTenant bool
	// OnChange is called after the status of an agent changed, in order, one call
	// after another, on a goroutine of the directory and without its locks. An agent
	// that leaves the directory is Disconnected. While a call runs, changes are queued;
	// beyond a limit only the last one of each agent is kept, and then the oldest are
	// dropped. Closing the directory reports nothing, and waits for a running call.
	// Default nil: no calls.
	OnChange func(tenant string, c Change)
	// Holder names this bridge in its present life, on a store that other bridges have, too;
	// empty while others take it for dead. Default nil: the store is this process's alone.
	Holder func() string
	// Elsewhere reaches the agents of other bridges on the store. Default nil: there are
	// none.
	Elsewhere Elsewhere
	// Logger receives errors that can't be returned to a caller. Default: silent.
	Logger *slog.Logger
}

func (o *Options) withDefaults() Options {
	var filled Options
	if o != nil {
		filled = *o
	}
	if filled.Now == nil {
		filled.Now = time.Now
	}
	if filled.EventTime == nil {
		filled.EventTime = filled.Now
	}
	if filled.Logger == nil {
		filled.Logger = slog.New(slog.DiscardHandler)
	}
	fill(&filled.IdleRegistration, DefaultIdleRegistration)
	fill(&filled.MaxAgents, DefaultMaxAgents)
	fill(&filled.MaxStreams, DefaultMaxStreams)
	fill(&filled.MaxTools, DefaultMaxTools)
	fill(&filled.MaxTenantTools, DefaultMaxTenantTools)
	fill(&filled.MaxToolBytes, DefaultMaxToolBytes)
	fill(&filled.MaxTenantToolBytes, DefaultMaxTenantToolBytes)
	fill(&filled.KeepTools, DefaultKeepTools)
	if filled.Catalogue == nil {
		filled.Catalogue = tools.NewCatalogue(tools.NewRegistry(nil), nil)
	}
	fill(&filled.MaxBytes, DefaultMaxBytes)
	fill(&filled.QueueCalls, DefaultQueueCalls)
	fill(&filled.PendingCalls, DefaultPendingCalls)
	fill(&filled.PendingBytes, DefaultPendingBytes)
	return filled
}

func fill[T ~int | ~int64](field *T, byDefault T) {
	if *field <= 0 {
		*field = byDefault
	}
}

// Directory holds the agents of all tenants. All methods are safe for concurrent
// use.
type Directory struct {
	engine  kv.Engine
	writer  *kv.Writer
	opts    Options
	now     func() time.Time
	gaps    *gapKeeper
	known   *knownTools
	changes *changes
	calls   *share.Pool // calls that wait for agents
	done    chan struct{}
	replan  chan struct{} // holds a token when the sweeper is to plan anew
	running sync.WaitGroup

	started time.Time

	mu             sync.Mutex // guards the fields below, and the entries and tenants
	closed         bool
	tenants        map[string]*tenantAgents
	lastGeneration uint64
	lastOrder      uint64
	version        uint64 // of the last announced change
	others         others
	planned        time.Time // of the next sweep; zero for none
}

// New returns an empty directory. It keeps states and gaps in engine, which it
// writes to through writer; both stay the caller's to close, after the directory.
func New(engine kv.Engine, writer *kv.Writer, opts *Options) *Directory {
	filled := opts.withDefaults()
	d := &Directory{
		engine:  engine,
		writer:  writer,
		started: filled.Now(),
		opts:    filled,
		now:     filled.Now,
		gaps:    newGapKeeper(engine, writer, filled),
		known:   newKnownTools(engine, writer, filled),
		changes: &changes{tell: filled.OnChange, logger: filled.Logger, ready: make(chan struct{}, 1)},
		calls: share.New(share.Options{
			Name: "calls that wait for agents", Total: int64(DefaultMaxCalls), OneTenant: filled.OneTenant,
		}),
		done:    make(chan struct{}),
		replan:  make(chan struct{}, 1),
		tenants: make(map[string]*tenantAgents),
	}
	filled.Catalogue.Add(relay{d})
	d.running.Go(d.sweep)
	d.running.Go(d.gaps.run)
	d.running.Go(d.known.run)
	d.running.Go(d.changes.run)
	return d
}

// Close ends all links and waits for what the directory does in the background.
// Later calls are ErrClosed. Closing twice is harmless.
func (d *Directory) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		d.running.Wait()
		return nil
	}
	d.closed = true
	var links []*Link
	for _, h := range d.tenants {
		for _, e := range h.agents {
			links = append(links, e.links...)
			e.links = nil
		}
	}
	clear(d.tenants)
	d.mu.Unlock()
	for _, link := range links {
		link.stop()
	}
	close(d.done)
	d.changes.close()
	d.gaps.close()
	d.known.close()
	d.running.Wait()
	return nil
}

// Register enters an agent, or replaces what it registered before; its streams
// stay as they are. It returns the entry. Errors: *invalid.Error, *share.LimitError,
// *TakenError, *share.ExhaustedError, ErrClosed; then nothing has changed.
func (d *Directory) Register(tenant, id string, r Registration) (Agent, error) {
	if err := r.check(id, d.opts.MaxTools); err != nil {
		return Agent{}, err
	}
	r = r.normalized()
	size := r.size()
	d.mu.Lock()
	defer d.mu.Unlock()
	if parent := d.entry(tenant, r.Parent); r.Depth == 0 && r.Parent != "" && parent != nil && !parent.hidden {
		r.Depth = parent.registration.Depth + 1
	}
	if r.Exclusive {
		if err := d.taken(tenant, id, r.Tools); err != nil {
			return Agent{}, err
		}
	}
	e, err := d.entryToRegister(tenant, id, size, len(r.Tools))
	if err != nil {
		return Agent{}, err
	}
	if r.Tools, err = d.budget(e, r); err != nil {
		if e.order == 0 && len(e.links) == 0 {
			d.remove(e)
		}
		return Agent{}, err
	}
	d.known.provides(tenant, id, r.Tools)
	d.lastOrder = d.after(d.lastOrder)
	e.register(r, size, d.lastOrder, d.now(), d.opts.Catalogue.Called)
	d.report(e)
	d.touch(e)
	if len(e.links) == 0 {
		d.plan(e.idleSince.Add(d.opts.IdleRegistration))
	}
	return e.agent(), nil
}

// after is the number that follows another one. Where there are other bridges, numbers are
// times or later, so that they rise from bridge to bridge.
func (d *Directory) after(last uint64) uint64 {
	if d.opts.Elsewhere == nil {
		return last + 1
	}
	return max(last+1, uint64(max(0, d.now().UnixMicro()))) //nolint:gosec // not negative
}

// Delete takes an agent out of the directory and deletes the stored data for it:
// its state and its gap. Its streams stay open, but get no more calls. False
// means that there was neither an entry nor a state, at no bridge.
func (d *Directory) Delete(ctx context.Context, tenant, id string) (bool, error) {
	far, err := d.deleteElsewhere(ctx, tenant, id)
	if err != nil {
		return false, err
	}
	near, err := d.DeleteHere(ctx, tenant, id)
	return near || far, err
}

// DeleteHere is Delete for an agent of this bridge.
func (d *Directory) DeleteHere(ctx context.Context, tenant, id string) (bool, error) {
	stored, err := d.deleteStored(ctx, tenant, id)
	if err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.entry(tenant, id)
	if e == nil || e.hidden {
		return stored, nil
	}
	d.known.provides(tenant, nobody, e.registration.Tools)
	d.leave(e)
	return true, nil
}

// Get returns an agent, and false if it is not in the directory.
func (d *Directory) Get(tenant, id string) (Agent, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var far []*other
	if o := d.others.tenants[tenant]; o != nil {
		far = o.agents[id]
	}
	return merged(d.entry(tenant, id), far)
}

// Some returns agents of a tenant that match, in no order and at most so many. match is called
// under a lock of the directory.
func (d *Directory) Some(tenant string, limit int, match func(Agent) bool) []Agent {
	d.mu.Lock()
	defer d.mu.Unlock()
	var far map[string][]*other
	if o := d.others.tenants[tenant]; o != nil {
		far = o.agents
	}
	var near map[string]*directoryEntry
	if h := d.tenants[tenant]; h != nil {
		near = h.agents
	}
	var found []Agent
	add := func(id string) bool {
		if a, ok := merged(near[id], far[id]); ok && match(a) {
			found = append(found, a)
		}
		return len(found) < limit
	}
	for id := range near {
		if !add(id) {
			return found
		}
	}
	for id := range far {
		if near[id] == nil && !add(id) {
			return found
		}
	}
	return found
}

// Tools returns the tools of the agents with an open stream, by name. Of several with
// one name it returns the one that a call would reach.
func (d *Directory) Tools(tenant string) []AgentTool {
	found := d.tools(tenant)
	slices.SortFunc(found, func(a, b AgentTool) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// tools returns the tools that can be called, in no order; see agents.
func (d *Directory) tools(tenant string) []AgentTool {
	d.mu.Lock()
	defer d.mu.Unlock()
	h, o := d.tenants[tenant], d.others.tenants[tenant]
	var found []AgentTool
	if h != nil {
		found = make([]AgentTool, 0, len(h.providers))
		for name := range h.providers {
			if t, ok := d.target(tenant, name); ok && t.tool.Connected {
				found = append(found, t.tool)
			}
		}
	}
	if o != nil {
		for name := range o.tools {
			if h != nil && len(h.providers[name]) > 0 {
				continue
			}
			if t, ok := d.target(tenant, name); ok && t.tool.Connected {
				found = append(found, t.tool)
			}
		}
	}
	return found
}

// Awaits reports whether a registered agent without a stream, which may come back, listens
// to a topic. Shortly after the directory was made the answer is always true, because any
// agent may come back.
func (d *Directory) Awaits(tenant, topic string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now().Sub(d.started) < comeback {
		return true
	}
	if h := d.tenants[tenant]; h != nil {
		for _, e := range h.agents {
			if e.order > 0 && len(e.links) == 0 && !e.parted && e.registration.Listens(topic) {
				return true
			}
		}
	}
	if o := d.others.tenants[tenant]; o != nil {
		for _, far := range o.agents {
			if a := bestOf(far); a != nil && a.Order > 0 && a.Streams == 0 && !a.Parted && a.Listens(topic) {
				return true
			}
		}
	}
	return false
}

// Lookup returns the tool that a call would reach or, where no provider has an
// open stream, the tool of the latest registration. For a tool registered before a restart
// only the name and the agent are known. False means that no agent registered it.
func (d *Directory) Lookup(tenant, name string) (AgentTool, bool) {
	d.mu.Lock()
	t, ok := d.target(tenant, name)
	d.mu.Unlock()
	if ok {
		return t.tool, true
	}
	if id, ok := d.awayProvider(tenant, name); ok {
		return AgentTool{ProvidedTool: ProvidedTool{Name: name}, AgentID: id}, true
	}
	return AgentTool{}, false
}
