package natsmesh

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
)

// Limits and times of a transport.
const (
	// MinSecretBytes is the shortest secret that is taken.
	MinSecretBytes = 32
	// MaxRoutes bounds the addresses of other bridges.
	MaxRoutes = 256
	// pendingFrames and pendingBytes bound what NATS has received and the mesh has not
	// taken yet; more is dropped.
	pendingFrames = 65_536
	pendingBytes  = 256 << 20
	// reconnectWait is the pause between two attempts to reach a server.
	reconnectWait = 200 * time.Millisecond
	// connectTime bounds the first attempt.
	connectTime = 5 * time.Second
)

// ErrOpen: the mesh could be reached from other machines without a secret.
var ErrOpen = errors.New("natsmesh: other machines could reach the mesh, and it has no secret")

// transport sends over one connection to a server of NATS.
type transport struct {
	conn   *nats.Conn
	prefix string
	after  func() // closes what the connection stands on

	mu     sync.Mutex // guards the fields below
	ended  bool
	closed chan struct{} // by the connection
}

// Connect returns a transport over a server of NATS at a URL such as
// nats://user:password@host:4222 or tls://host:4222. Without a secret the host must be
// this machine. The server need not be there yet.
func Connect(address string, o Options) (mesh.Transport, error) {
	o = o.withDefaults()
	host, err := Host(address)
	if err != nil {
		return nil, err
	}
	if err := o.checkSecret(host); err != nil {
		return nil, err
	}
	return connect(o, address, nil, nats.RetryOnFailedConnect(true))
}

// Host is the host of the URL of a server of NATS.
func Host(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Hostname() == "" || u.Path != "" {
		return "", errors.New("is not a URL of a NATS server, such as nats://host:4222 or tls://host:4222")
	}
	return u.Hostname(), nil
}

// Options adjusts a transport. Nil and zero fields mean the defaults.
type Options struct {
	// Group is that of mesh.Options: servers of other groups are not joined.
	Group string
	// Secret is that of mesh.Options.
	Secret []byte
	// Logger logs lost connections. Default silent.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// checkSecret refuses what strangers could join.
func (o Options) checkSecret(hosts ...string) error {
	if len(o.Secret) > 0 && len(o.Secret) < MinSecretBytes {
		return fmt.Errorf("natsmesh: the secret has %d bytes, and needs %d or more", len(o.Secret), MinSecretBytes)
	}
	for _, host := range hosts {
		if len(o.Secret) == 0 && !loopback(host) {
			return fmt.Errorf("%w: %s is not this machine", ErrOpen, host)
		}
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// derived is a text for one use, made of the secret and the group.
func (o Options) derived(use string) string {
	key, err := hkdf.Key(sha256.New, o.Secret, nil, "loom mesh 1 "+use+"\x00"+o.Group, 16)
	if err != nil {
		panic(err) // only a length that is too large
	}
	return hex.EncodeToString(key)
}

func connect(o Options, address string, after func(), more ...nats.Option) (mesh.Transport, error) {
	t := &transport{prefix: "loom." + o.derived("subject"), after: after, closed: make(chan struct{})}
	options := append([]nats.Option{
		nats.Name("loom-bridge"), nats.NoEcho(), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait), nats.Timeout(connectTime),
		nats.ReconnectBufSize(-1), // what can't be sent is lost at once, not later
		nats.ClosedHandler(func(*nats.Conn) { close(t.closed) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				o.Logger.Warn("the connection to NATS is lost", "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			o.Logger.Warn("NATS reports a fault", "error", err)
		}),
	}, more...)
	conn, err := nats.Connect(address, options...)
	if err != nil {
		return nil, fmt.Errorf("natsmesh: connect: %w", err)
	}
	t.conn = conn
	return t, nil
}

// subject is where frames for a peer go; the zero Peer is all.
func (t *transport) subject(to mesh.Peer) string {
	if to.IsZero() {
		return t.prefix + ".all"
	}
	return t.prefix + ".to." + hex.EncodeToString([]byte(to.ID)) + "." + strconv.FormatUint(to.Epoch, 10)
}

// Links is mesh.Linked's: the connection to the server.
func (t *transport) Links() int {
	if t.conn.IsConnected() {
		return 1
	}
	return 0
}

// Open is mesh.Transport's.
func (t *transport) Open(self mesh.Peer, receive func(frame []byte)) error {
	var one sync.Mutex // the two subscriptions have a goroutine each
	for _, to := range []mesh.Peer{{}, self} {
		sub, err := t.conn.Subscribe(t.subject(to), func(msg *nats.Msg) {
			one.Lock()
			defer one.Unlock()
			receive(msg.Data)
		})
		if err == nil {
			err = sub.SetPendingLimits(pendingFrames, pendingBytes)
		}
		if err != nil {
			return fmt.Errorf("natsmesh: subscribe: %w", err)
		}
	}
	return nil
}

// Send is mesh.Transport's.
func (t *transport) Send(to mesh.Peer, frame []byte) error {
	return t.conn.Publish(t.subject(to), frame)
}

// Close is mesh.Transport's.
func (t *transport) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return nil
	}
	t.ended = true
	_ = t.conn.FlushTimeout(100 * time.Millisecond) // the goodbye
	// Draining waits for the callbacks that run, which closing does not.
	if err := t.conn.Drain(); err != nil {
		t.conn.Close()
	}
	<-t.closed
	if t.after != nil {
		t.after()
	}
	return nil
}

// clean removes what stands between the ends of an address.
func clean(addresses []string) []string {
	var all []string
	for _, a := range addresses {
		if a = strings.TrimSpace(a); a != "" {
			all = append(all, a)
		}
	}
	return all
}
