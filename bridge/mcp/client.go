package mcp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/text"
)

const (
	// requestTime bounds what a server may take to greet and to list its tools, newestTime
	// to greet in the newest version where another one is tried next.
	requestTime, newestTime = 30 * time.Second, 10 * time.Second
	// olderVersion is the newest one in which servers are greeted as they always were.
	olderVersion = "2025-11-25"
	// firstPause and lastPause are the times between two attempts to connect: it doubles.
	firstPause, lastPause = time.Second, time.Minute
	// maxTools and maxListBytes bound what one server may list; more is left out.
	maxTools     = 512
	maxListBytes = 4 << 20
	// maxDescription bounds what one tool says of itself; the rest is cut off.
	maxDescription = 2 << 10
	// maxProblem bounds the description of a fault, maxIdentity what a server calls itself.
	maxProblem, maxIdentity = 500, 100
)

// State is how a connection is.
type State int

// The states of a connection.
const (
	// Connecting: nothing is known yet.
	Connecting State = iota
	// Ready: the tools can be called.
	Ready
	// Away: it can't be reached; it is tried again.
	Away
)

func (s State) String() string { return [...]string{"connecting", "ready", "away"}[s] }

// Status is a server and how it is. It has no secrets: of variables and headers it has the
// names.
type Status struct {
	Server
	Tenant string
	// Configured says that it stands in the settings; otherwise it was added.
	Configured bool
	State      State
	// Problem says why it is away.
	Problem string
	// Identity is what the server calls itself, and its version; Protocol is the version
	// that is spoken. Empty while it is not ready.
	Identity, Protocol string
	// Tools is how many tools can be called, LeftOut how many can't, and Tokens what all
	// of them would take in a prompt.
	Tools, LeftOut, Tokens int
	// Changed are the tools of which the server said something else when they were seen first.
	// They are held back until somebody says yes (Clients.Refresh).
	Changed []string
	// Since is when the state began.
	Since time.Time
	// Attempts counts the times that it was connected to.
	Attempts int
}

// client is the connection to one server.
type client struct {
	Server
	tenant     string
	configured bool
	set        *Clients
	ready      atomic.Pointer[connected]
	again      chan struct{} // callers that want it connected anew
	stop       context.CancelFunc
	ended      chan struct{}
	accepted   atomic.Bool // somebody says yes to what the server says of its tools now
	pins       *pins       // used by keep alone

	mu      sync.Mutex
	status  Status        // guarded by mu; without the server
	changed chan struct{} // guarded by mu; closed when status changes
}

// connected is a server that is there, and the tools that it has listed.
type connected struct {
	session *sdk.ClientSession
	tools   []serverTool
	byName  map[string]int // by name, and by what models call it
	calls   *calls
}

// serverTool is a tool of a server.
type serverTool struct {
	offer tools.Offer
	// said stands for what the server says of it; empty for what the bridge says.
	said string
	run  func(ctx context.Context, n *connected, in tools.Input) (tools.Output, error)
}

// Status says how the server is.
func (c *client) Status() Status {
	c.mu.Lock()
	s := c.status
	c.mu.Unlock()
	s.Server, s.Tenant, s.Configured = c.Server, c.tenant, c.configured
	s.Env, s.Headers = withoutValues(c.Env), withoutValues(c.Headers)
	return s
}

// masked is a text of the server without what the bridge knows to be secret.
func (c *client) masked(s string) string { return c.set.opts.Secrets.For(c.tenant).Text(s) }

func withoutValues(m map[string]string) map[string]string {
	out := maps.Clone(m)
	for name := range out {
		out[name] = ""
	}
	return out
}

// set changes the status.
func (c *client) change(to func(s *Status)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.status.State
	to(&c.status)
	if before != c.status.State || c.status.Since.IsZero() {
		c.status.Since = c.set.opts.Now()
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// wait waits for a status.
func (c *client) wait(ctx context.Context, until func(s Status) bool) (Status, error) {
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		s := c.Status()
		if until(s) {
			return s, nil
		}
		select {
		case <-changed:
		case <-c.ended:
			return s, ErrClosed
		case <-ctx.Done():
			return s, ctx.Err()
		}
	}
}

// keep connects again and again until ctx ends.
func (c *client) keep(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		c.change(func(s *Status) {
			s.Attempts++
			if s.State != Away {
				s.State = Connecting
			}
		})
		err := c.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil { // somebody wants it connected anew
			pause = firstPause
			continue
		}
		problem := text.Head(c.masked(text.OneLine(text.Valid(explain(c.Command, err).Error()))), maxProblem)
		c.change(func(s *Status) {
			*s = Status{State: Away, Problem: problem, Attempts: s.Attempts}
		})
		c.set.opts.Logger.Warn("an MCP server is away", "server", c.Name, "error", problem, "again_in", pause)
		if time.Since(began) > lastPause {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
		case <-c.again:
			c.change(func(s *Status) { s.State = Connecting })
			pause = firstPause
		case <-time.After(pause):
			pause = min(2*pause, lastPause)
		}
	}
}

// connect greets the server and serves its tools until it is gone, and returns why; nil
// when it is to be connected anew.
func (c *client) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	way, closing, err := c.transport(ctx)
	if err != nil {
		return err
	}
	defer closing()
	changed, running := make(chan struct{}, 1), newCalls()
	host := sdk.NewClient(&sdk.Implementation{Name: "loom", Version: "1"}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case changed <- struct{}{}:
			default:
			}
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { running.progress(r.Params) },
	})
	version, limit := c.version()
	greeting, greeted := context.WithTimeout(ctx, limit)
	session, err := host.Connect(greeting, way, &sdk.ClientSessionOptions{ProtocolVersion: version})
	greeted()
	if err != nil {
		return err
	}
	gone := make(chan error, 1)
	go func() { gone <- session.Wait() }()
	defer c.ready.Store(nil)
	defer func() { _ = session.Close() }()
	for {
		if err := c.list(ctx, session, running); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.again:
			c.change(func(s *Status) { s.State = Connecting })
			return nil
		case err := <-gone:
			if err == nil {
				err = io.EOF // it ended in order
			}
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

// version is the protocol version to begin with, and how long the greeting may take. Where
// none is asked for, the newest and the one before it alternate: an older server may not
// answer, or end, when it is greeted in the newest.
func (c *client) version() (version string, limit time.Duration) {
	switch {
	case c.ProtocolVersion != "":
		return c.ProtocolVersion, requestTime
	case c.Status().Attempts%2 == 0:
		return olderVersion, requestTime
	}
	return "", newestTime
}

// list requests the tools, and serves the usable ones.
func (c *client) list(ctx context.Context, session *sdk.ClientSession, running *calls) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	next := &connected{session: session, calls: running}
	bytes, left := 0, 0
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return fmt.Errorf("mcp: list the tools: %w", err)
		}
		own, ok := c.offer(t)
		d := own.offer.Descriptor
		if bytes += len(d.Name) + len(d.Description) + len(d.Schema); bytes > maxListBytes || len(next.tools) == maxTools {
			left++
			break // the server may go on for ever
		}
		if !ok || !c.set.opts.Takes(d.Name) {
			left++
			continue
		}
		next.tools = append(next.tools, own)
	}
	var changed []string
	var err error
	if next.tools, changed, err = c.pin(ctx, next.tools); err != nil {
		return err
	}
	left += len(changed)
	next.tools = append(next.tools, c.further(session)...)
	left += next.arrange(c.set.opts.Called)
	tokens := 0
	for i := range next.tools {
		o := &next.tools[i].offer
		o.Tokens = c.set.opts.Count(o.Descriptor)
		tokens += o.Tokens
	}
	if len(changed) > 0 {
		c.set.opts.Logger.WarnContext(ctx, "an MCP server says something else of its tools than before", "server", c.Name, "held_back", changed)
	}
	level := slog.LevelInfo
	if c.ready.Swap(next) != nil {
		level = slog.LevelDebug // it may change its list all the time
	}
	c.change(func(s *Status) {
		s.State, s.Problem, s.Tools, s.LeftOut, s.Tokens = Ready, "", len(next.tools), left, tokens
		if s.Changed = changed; len(changed) > 0 {
			s.Problem = heldBack(changed)
		}
		if about := session.InitializeResult(); about != nil {
			s.Protocol = text.Head(c.masked(text.OneLine(text.Valid(about.ProtocolVersion))), maxIdentity)
			if i := about.ServerInfo; i != nil {
				s.Identity = text.Head(c.masked(strings.TrimSpace(text.OneLine(text.Valid(i.Name+" "+i.Version)))), maxIdentity)
			}
		}
	})
	c.set.opts.Logger.Log(ctx, level, "an MCP server is ready", "server", c.Name, "tools", len(next.tools), "tokens", tokens, "left_out", left)
	return nil
}

// heldBack says which tools are not served, and what to do about it.
func heldBack(changed []string) string {
	return text.Head("the server says something else of these tools than when they were seen first, so they are held back until somebody who has looked says yes (ConnectMcpServer with accept_changed): "+
		strings.Join(changed, ", "), maxProblem)
}

// arrange sorts the tools by name, and removes duplicates by name, or by the name that
// models would use. It returns how many it removed.
func (n *connected) arrange(called func(name string) string) (left int) {
	slices.SortStableFunc(n.tools, func(a, b serverTool) int { return strings.Compare(a.offer.Name, b.offer.Name) })
	n.byName = make(map[string]int, 2*len(n.tools))
	kept := n.tools[:0]
	for _, t := range n.tools {
		_, taken := n.byName[t.offer.Name]
		_, alike := n.byName[called(t.offer.Name)]
		if taken || alike {
			left++
			continue
		}
		n.byName[t.offer.Name], n.byName[called(t.offer.Name)] = len(kept), len(kept)
		kept = append(kept, t)
	}
	n.tools = kept
	return left
}
