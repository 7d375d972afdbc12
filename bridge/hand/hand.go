package hand

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/approval"
	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/secret"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/throttle"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
	"github.com/loom-bridge/loom-bridge/memory/redact"
)

// Defaults and limits of calls.
const (
	// DefaultTimeout ends a call that names no timeout.
	DefaultTimeout = 30 * time.Second
	// MaxTimeout bounds every call: what takes longer is no tool call.
	MaxTimeout = 10 * time.Minute
	// DefaultMaxRunning bounds the tools that run here at once. Each may hold a few
	// MiB: arguments, a chunk, the shown output.
	DefaultMaxRunning = 128
	// DefaultMaxPerAgent is what one agent may have of them while no other runs any.
	DefaultMaxPerAgent = DefaultMaxRunning - DefaultMaxRunning/16
	// DefaultMaxWaiting bounds the calls that wait to run.
	DefaultMaxWaiting = 1024
	// MaxOutputBytes bounds the JSON text of an answer's output. What is longer
	// is cut, and whole in the blob. One value of the store holds it, so that an
	// answer can be kept for its request id.
	MaxOutputBytes = 1 << 20
	// maxUploads bounds the results that are streamed in at once, each with a chunk
	// in memory, which tenants and agents share; maxWaitingUploads bounds the waiting ones.
	maxUploads        = 32
	maxWaitingUploads = 256
	// DefaultMaxResultBytes bounds a result that is streamed in.
	DefaultMaxResultBytes = 64 << 20
	// MaxThoughtBytes bounds what the model said before the call.
	MaxThoughtBytes = 64 << 10
	// MaxIDBytes bounds turn, call and request ids.
	MaxIDBytes = kv.MaxRequestIDBytes
	// commitTime bounds recording a step after the caller has gone.
	commitTime = 30 * time.Second
	// stopTime is how long a tool may go on after its deadline before it is
	// left alone: long enough to finish a write that has begun.
	stopTime = 500 * time.Millisecond
)

// Workspaces gives each agent its workspace.
type Workspaces interface {
	// Root returns the workspace of the scope's agent. It stays open and belongs
	// to the Workspaces.
	Root(scope kv.Scope) (*os.Root, error)
}

// Divided is an optional interface of Workspaces, for agents that share a workspace.
type Divided interface {
	// Closed reports whether an entry of the workspace of the scope's agent, by its name,
	// belongs to another agent alone. It is asked for every name that is looked at.
	Closed(scope kv.Scope, name string) bool
}

// closedTo is what of an agent's workspace is closed to it.
func (h *Hand) closedTo(scope kv.Scope) func(name string) bool {
	divided, ok := h.Workspaces.(Divided)
	if !ok {
		return nil
	}
	return func(name string) bool { return divided.Closed(scope, name) }
}

// Deps are what a hand works with. All but Policies, Approvals, Audit, Count, Compressor, Pressure, Bounds, Style and Observed are required;
// they stay the caller's to close, after the hand.
type Deps struct {
	Tools      *tools.Catalogue
	Log        *session.Log
	Blobs      *blob.Store
	Reducer    *step.Reducer
	Engine     kv.Reader // the one that Writer writes to; lease.Of knows the other servers on it
	Writer     *kv.Writer
	Workspaces Workspaces
	// Policies says what calls may do, and which need a person's approval. Default: the
	// profile work, and approval for the tools that require it.
	Policies *policy.Resolver
	// Approvals asks people. Default: what needs approval is denied.
	Approvals *approval.Broker
	// Audit gets a record of every call. Default: no audit.
	Audit *audit.Log
	// Count counts the tokens of a text, for Bounds. Default: four bytes are one.
	Count func(text string) int
	// Compressor shortens results. Default: one that takes four bytes for a token.
	Compressor *compress.Compressor
	// Pressure is how full the window of a session is, 0 to 1, for a Compressor whose
	// threshold follows that. Default: always empty.
	Pressure func(scope kv.Scope, sessionID string) float64
	// Bounds returns the limits of an agent. Default: no limits.
	Bounds func(ctx context.Context, scope kv.Scope) (Bounds, error)
	// ForeseeBounds adds what Bounds reads. Default: that is not known.
	ForeseeBounds func(along *kv.Reads, scope kv.Scope)
	// Style is how the observations of a session refer to blobs. Default: as the
	// Options say.
	Style func(ctx context.Context, scope kv.Scope, sessionID string) step.ReferenceStyle
	// Observed is how much the observations of a session say; 0 is what the Reducer says.
	// Default: that.
	Observed func(ctx context.Context, scope kv.Scope, sessionID string) step.ObservationStyle
}

// Options adjusts a Hand. Nil and zero fields mean the defaults.
type Options struct {
	// Style is how observations refer to blobs. Default step.ReferenceHint.
	Style step.ReferenceStyle
	// MaxRunning bounds the tools that run here at once, and MaxWaiting the calls
	// that wait for one to end. Tenants and agents share both. Tools that other agents
	// run do not count. Defaults DefaultMaxRunning and DefaultMaxWaiting.
	MaxRunning, MaxWaiting int
	// OneTenant keeps no slots for other tenants: there are none.
	OneTenant bool
	// Limits bound how often, and how many at once, tools are called. Default: they do not.
	Limits *throttle.Limits
	// MaxResultBytes bounds a result that a caller streams in. Default
	// DefaultMaxResultBytes.
	MaxResultBytes int64
	// Redact replaces secrets in recorded data by marks. Default nil: nothing is redacted.
	Redact *redact.Redactor
	// Secrets are what the server knows to be secret: stars stand for it in all that tools give,
	// recorded or not. Default: it knows none.
	Secrets *secret.Set
	// OnTask is called after a step was recorded that brought a task of the session. The
	// caller of Record waits for it. Default: nothing is called.
	OnTask func(ctx context.Context, scope kv.Scope, sessionID string)
	// OnProgress is called when a tool says how far it is, at most once in ProgressEvery
	// for a call. The tool waits for it. Default: nothing is called.
	OnProgress func(ctx context.Context, r Request, tool string, p tools.Progress)
	// Now gives the time of steps. Default time.Now.
	Now func() time.Time
	// Logger logs panics and steps that could not be recorded or read. Default
	// silent.
	Logger *slog.Logger
}

// Hand runs tools and records what they did. All methods are safe for
// concurrent use.
type Hand struct {
	Deps
	redact     *redact.Redactor
	secrets    *secret.Set
	maxResult  int64
	onTask     func(ctx context.Context, scope kv.Scope, sessionID string)
	onProgress func(ctx context.Context, r Request, tool string, p tools.Progress) // may be nil
	now        func() time.Time
	logger     *slog.Logger
	slots      *share.Pool
	uploads    *share.Pool // of results that are streamed in
	limits     *throttle.Limits
	requests   requestLocks
	steps      stepCounts
	others     lease.Members // nil on a store of this process alone

	stopSettling context.CancelFunc // set before the first call

	mu      sync.Mutex
	closed  bool           // guarded by mu
	running sync.WaitGroup // added to under mu
}

// New returns a hand. Nil options are the defaults.
func New(d Deps, opts *Options) *Hand {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	h := &Hand{
		Deps:       d,
		others:     lease.Of(d.Engine),
		redact:     o.Redact,
		secrets:    o.Secrets,
		maxResult:  o.MaxResultBytes,
		onTask:     o.OnTask,
		onProgress: o.OnProgress,
		now:        time.Now,
		logger:     slog.New(slog.DiscardHandler),

		stopSettling: func() {},

		slots:  newSlots(o),
		limits: o.Limits,
		uploads: share.New(share.Options{
			Name: "results that are streamed in", OneTenant: o.OneTenant, Total: maxUploads, Waiting: maxWaitingUploads,
		}),
	}
	if h.Policies == nil {
		h.Policies = policy.NewResolver(policy.NewSet(), nil)
	}
	if h.Count == nil {
		h.Count = func(text string) int { return (len(text) + 3) / 4 }
	}
	if h.Compressor == nil {
		h.Compressor = compress.New(h.Count, nil)
	}
	if h.Style == nil {
		h.Style = func(context.Context, kv.Scope, string) step.ReferenceStyle { return o.Style }
	}
	if h.Observed == nil {
		h.Observed = func(context.Context, kv.Scope, string) step.ObservationStyle { return 0 }
	}
	if h.ForeseeBounds == nil {
		h.ForeseeBounds = func(*kv.Reads, kv.Scope) {}
	}
	if h.Bounds == nil {
		h.Bounds = func(context.Context, kv.Scope) (Bounds, error) { return Bounds{}, nil }
	}
	if h.Pressure == nil {
		h.Pressure = func(kv.Scope, string) float64 { return 0 }
	}
	if h.onTask == nil {
		h.onTask = func(context.Context, kv.Scope, string) {}
	}
	if h.maxResult <= 0 {
		h.maxResult = DefaultMaxResultBytes
	}
	if o.Now != nil {
		h.now = o.Now
	}
	if o.Logger != nil {
		h.logger = o.Logger
	}
	return h
}

// begin counts a call in, unless the hand is closed.
func (h *Hand) begin() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	h.running.Add(1)
	return nil
}

// Close refuses further calls and waits until the running ones have ended, including tools
// that outlived their deadline, or until ctx ends.
func (h *Hand) Close(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.stopSettling()
	ended := make(chan struct{})
	go func() {
		h.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
