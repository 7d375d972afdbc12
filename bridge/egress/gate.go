package egress

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/secret"
	"github.com/loom-bridge/loom-bridge/bridge/share"
)

// Defaults and limits of a gate.
const (
	// DefaultMaxConnections bounds the connections of the server; tenants and agents share
	// them.
	DefaultMaxConnections = 1024
	// DefaultMaxPerCall bounds the connections of one call at a time.
	DefaultMaxPerCall = 64
	// DefaultMaxBytes bounds what one call sends and receives.
	DefaultMaxBytes = 4 << 30
	// DefaultMaxRequests bounds the connections and plain requests of one call altogether:
	// each is a line of the audit.
	DefaultMaxRequests = 10_000
	// DefaultMaxTime bounds one connection.
	DefaultMaxTime = time.Hour
	// DefaultDialTime bounds connecting to a host.
	DefaultDialTime = 15 * time.Second
	// headerTime bounds the wait for the header of a request, and for the first bytes of a
	// tunnel; answerTime that for the header of an answer.
	headerTime = 30 * time.Second
	answerTime = 5 * time.Minute
	// maxHeaderBytes bounds headers.
	maxHeaderBytes = 256 << 10
)

// Limits bound what calls do. Zero fields are the defaults.
type Limits struct {
	// Bytes bounds what one call sends and receives together. Default DefaultMaxBytes.
	Bytes int64
	// Requests bounds the connections of one call altogether. Default DefaultMaxRequests.
	Requests int64
}

// Caller is whose a session is.
type Caller struct {
	Tenant, Agent, Session, CallID string
	// Tool is the one that was called.
	Tool string
}

// Options adjusts a Gate. Nil and zero fields mean the defaults.
type Options struct {
	// Limits bound each call.
	Limits Limits
	// Pool holds the connections of the server, which tenants and agents share. Default:
	// one of DefaultMaxConnections.
	Pool *share.Pool
	// Resolver looks names up. Default: that of the system.
	Resolver Resolver
	// Dial connects to an address. Default: that of the system.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// ExtraRoots are root certificates in PEM, trusted in addition to the system's.
	ExtraRoots []byte
	// Dir is where the file of certificates for processes lies. Default: the system's
	// folder of temporary files.
	Dir string
	// Audit takes a record of every connection. Default: there are none.
	Audit func(ctx context.Context, r audit.Record) error
	// Secret reads the value of a secret from where its rule says. Default: none can be
	// read.
	Secret func(from string) (string, error)
	// Secrets gets the secrets that were read. Default nil.
	Secrets *secret.Set
	// Now is the clock of the audit. Default time.Now.
	Now func() time.Time
	// Logger logs what can't be written. Default silent.
	Logger *slog.Logger
}

// Gate is the way out of a server. All methods are safe for concurrent use.
type Gate struct {
	opts     Options
	limits   Limits
	pool     *share.Pool
	resolver Resolver
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	now      func() time.Time
	logger   *slog.Logger
	counts   gateCounts

	once      sync.Once
	prepared  error // guarded by once
	authority *authority
	roots     *x509.CertPool
	folder    string // guarded by once; with the file of certificates
}

// gateCounts are what a gate counts.
type gateCounts struct {
	allowed, denied, failed, limited atomic.Int64
	sent, received, open             atomic.Int64
}

// Stats are what went through a gate since it was made.
type Stats struct {
	// Allowed, Denied, Failed and Limited count connections by outcome: established,
	// allowed by no rule, not answered by the other side, and beyond a limit.
	Allowed, Denied, Failed, Limited int64
	// Sent and Received are bytes to and from hosts.
	Sent, Received int64
	// Open are the connections that are open now.
	Open int64
}

// New returns a gate. Close it.
func New(opts *Options) *Gate {
	g := &Gate{now: time.Now, logger: slog.New(slog.DiscardHandler), resolver: net.DefaultResolver}
	if opts != nil {
		g.opts = *opts
	}
	g.limits = g.opts.Limits.withDefaults()
	if g.pool = g.opts.Pool; g.pool == nil {
		g.pool = share.New(share.Options{Name: "connections of tools", Total: DefaultMaxConnections})
	}
	if g.opts.Resolver != nil {
		g.resolver = g.opts.Resolver
	}
	if g.dial = g.opts.Dial; g.dial == nil {
		g.dial = (&net.Dialer{}).DialContext
	}
	if g.opts.Now != nil {
		g.now = g.opts.Now
	}
	if g.opts.Logger != nil {
		g.logger = g.opts.Logger
	}
	return g
}

func (l Limits) withDefaults() Limits {
	if l.Bytes <= 0 {
		l.Bytes = DefaultMaxBytes
	}
	if l.Requests <= 0 {
		l.Requests = DefaultMaxRequests
	}
	return l
}

// Stats returns what went through the gate.
func (g *Gate) Stats() Stats {
	c := &g.counts
	return Stats{
		Allowed: c.allowed.Load(), Denied: c.denied.Load(), Failed: c.failed.Load(), Limited: c.limited.Load(),
		Sent: c.sent.Load(), Received: c.received.Load(), Open: c.open.Load(),
	}
}

// Close removes what the gate left on disk. Sessions must have been closed. Closing twice is
// harmless.
func (g *Gate) Close() error {
	g.once.Do(func() { g.prepared = errClosed })
	if g.folder == "" {
		return nil
	}
	return os.RemoveAll(g.folder)
}

var errClosed = errors.New("egress: closed")

// prepare makes the authority and the file of certificates, once.
func (g *Gate) prepare() error {
	g.once.Do(func() { g.prepared = g.makeAuthority() })
	return g.prepared
}
