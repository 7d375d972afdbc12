package egress

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/share"
)

// ErrDenied: the policy does not allow it. It comes as a *DeniedError.
var ErrDenied = errors.New("egress: denied")

// DeniedError says for the model why a request was refused. It is an ErrDenied.
type DeniedError struct{ Text string }

func (e *DeniedError) Error() string { return e.Text }

// Is makes errors.Is(err, ErrDenied) true.
func (e *DeniedError) Is(target error) bool { return target == ErrDenied }

// ErrLimit: the call used up what it may.
var ErrLimit = errors.New("egress: limit")

// maxDenied bounds the refusals that a session remembers.
const maxDenied = 16

// Session is what one call may reach. All methods are safe for concurrent use.
type Session struct {
	gate      *Gate
	caller    Caller
	policy    Policy
	secrets   []sealed
	token     string // that clients of the proxy show where others can reach it
	transport *http.Transport
	ctx       context.Context // ends with the session
	cancel    context.CancelFunc
	running   sync.WaitGroup // connections and questions

	bytes    atomic.Int64 // sent and received
	requests atomic.Int64

	mu     sync.Mutex
	closed bool                 // guarded by mu
	shared bool                 // guarded by mu; others can reach the proxy
	denied []string             // guarded by mu
	asked  map[string]*question // guarded by mu; by host and port
}

// Session begins what a call may reach. Close it. An ErrPolicy says that the policy is not
// well formed.
func (g *Gate) Session(c Caller, p Policy) (*Session, error) {
	p, err := g.unsealed(p)
	if err != nil {
		return nil, err
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	if err := g.prepare(); err != nil {
		return nil, err
	}
	s := &Session{gate: g, caller: c, policy: p, secrets: seal(p), token: rand.Text(), asked: map[string]*question{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.transport = &http.Transport{
		DialContext: s.dialHost, TLSClientConfig: &tls.Config{RootCAs: g.roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: headerTime, ResponseHeaderTimeout: cmp.Or(p.AnswerTime, answerTime), MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConnsPerHost: 8, MaxConnsPerHost: DefaultMaxPerCall, IdleConnTimeout: time.Minute, DisableCompression: true,
	}
	if p.Via != nil {
		s.transport.Proxy = http.ProxyURL(p.Via)
	}
	return s, nil
}

// Close ends all connections and waits until they are in the audit. Closing twice is
// harmless.
func (s *Session) Close() error {
	s.mu.Lock()
	s.closed = true
	for _, q := range s.asked {
		q.withdraw()
	}
	s.mu.Unlock()
	s.cancel()
	s.transport.CloseIdleConnections()
	s.running.Wait()
	return nil
}

// Denied are the refusals so far, each once and at most 16, as texts for a model.
func (s *Session) Denied() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.denied)
}

// Env are the variables that lead a process to the proxy at an address (host:port), with the
// placeholders of secrets. Shared says that others than the process can reach the address:
// then clients have to show a token, which is part of the variables.
func (s *Session) Env(address string, shared bool) []string {
	s.mu.Lock()
	s.shared = shared
	s.mu.Unlock()
	user := ""
	if shared {
		user = "loom:" + s.token + "@"
	}
	proxy := "http://" + user + address
	var env []string
	for _, name := range []string{"http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env = append(env, name+"="+proxy)
	}
	for _, name := range []string{
		"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "PIP_CERT", "AWS_CA_BUNDLE",
		"CARGO_HTTP_CAINFO", "DENO_CERT", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
	} {
		env = append(env, name+"="+s.gate.bundle())
	}
	env = append(env, "NODE_USE_ENV_PROXY=1")
	if !shared {
		// The process has its own loopback, for its own servers.
		own := s.ownHosts()
		env = append(env, "no_proxy="+own, "NO_PROXY="+own)
		if host, port, err := net.SplitHostPort(address); err == nil {
			env = append(env, fmt.Sprintf("JAVA_TOOL_OPTIONS=-Dhttp.proxyHost=%[1]s -Dhttp.proxyPort=%[2]s -Dhttps.proxyHost=%[1]s -Dhttps.proxyPort=%[2]s", host, port))
		}
	}
	for _, have := range s.secrets {
		env = append(env, have.Env+"="+have.placeholder)
	}
	return env
}

// ownHosts returns the names of the loopback except names with a rule.
func (s *Session) ownHosts() string {
	var own []string
	for _, host := range []string{"localhost", "127.0.0.1", "::1"} {
		if !slices.ContainsFunc(s.policy.Rules, func(r Rule) bool { return r.Host != "*" && r.names(destination{host: host}) }) {
			own = append(own, host)
		}
	}
	return strings.Join(own, ",")
}

// Files returns the files that the variables name; the process must be able to read them.
func (s *Session) Files() []string { return []string{s.gate.bundle()} }

// decide returns the rules that allow a connection to a target. It may ask a person.
func (s *Session) decide(ctx context.Context, t destination) ([]Rule, error) {
	var rules []Rule
	for _, r := range s.policy.Rules {
		if r.allows(t) {
			rules = append(rules, r)
		}
	}
	if len(rules) > 0 {
		return rules, nil
	}
	if s.policy.Open {
		return []Rule{{Host: "*", Ports: []int{t.port}}}, nil
	}
	if s.policy.Ask == nil {
		return nil, s.deny(t, "it is not among the hosts that are allowed"+s.allowed())
	}
	if err := s.ask(ctx, t); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err() // the request gave up: it was not refused
		}
		return nil, s.deny(t, err.Error())
	}
	return []Rule{{Host: t.host, Ports: []int{t.port}}}, nil
}

// ask asks a person about a target, once in a session. Concurrent requests for the same
// target wait for the answer. The question belongs to the session: it stays when the request
// that raised it gives up, and the answer holds for later requests.
func (s *Session) ask(ctx context.Context, t destination) error {
	q, err := s.question(ctx, t.String())
	if err != nil {
		return err
	}
	select {
	case <-q.answered:
		return q.refused
	case <-ctx.Done():
		return ctx.Err()
	}
}

// question is the one about a host and port; the first one who asks puts it to a person.
func (s *Session) question(ctx context.Context, about string) (*question, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch q := s.asked[about]; {
	case q != nil:
		return q, nil
	case s.closed:
		return nil, errEnded
	case len(s.asked) >= maxAsked:
		return nil, fmt.Errorf("a call asks about at most %d hosts", maxAsked)
	}
	ctx, withdraw := context.WithCancel(context.WithoutCancel(ctx))
	q := &question{answered: make(chan struct{}), withdraw: withdraw}
	s.asked[about] = q
	s.running.Go(func() {
		defer withdraw()
		q.refused = s.policy.Ask(ctx, about)
		close(q.answered)
	})
	return q, nil
}

// errEnded: the call is over.
var errEnded = errors.New("the call has ended")

// maxAsked bounds the hosts that a person is asked about for one call.
const maxAsked = 32

// question is one that a person was asked.
type question struct {
	withdraw context.CancelFunc // ends the asking
	answered chan struct{}
	refused  error // set before answered is closed
}

// allowed lists some of what may be reached.
func (s *Session) allowed() string {
	const most = 8
	var hosts []string
	for _, r := range s.policy.Rules {
		if !slices.Contains(hosts, r.Host) {
			hosts = append(hosts, r.Host)
		}
	}
	switch {
	case len(hosts) == 0:
		return " (none)"
	case len(hosts) > most:
		return " (" + strings.Join(hosts[:most], ", ") + " and more)"
	}
	return " (" + strings.Join(hosts, ", ") + ")"
}

// deny makes the refusal of a target and remembers it.
func (s *Session) deny(t destination, why string) error {
	profile := ""
	if s.policy.Name != "" {
		profile = fmt.Sprintf(" by the profile %q", s.policy.Name)
	}
	text := fmt.Sprintf("Permission denied: no connection to %s%s: %s. Use an allowed host, or ask the operator to allow this one in the profile.", t, profile, strings.TrimPrefix(why, "Permission denied: "))
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.denied) < maxDenied && !slices.Contains(s.denied, text) {
		s.denied = append(s.denied, text)
	}
	return &DeniedError{text}
}

// dialHost connects to host:port as the policy allows, for the transport.
func (s *Session) dialHost(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	t := destination{host: host}
	if t.port, err = strconv.Atoi(port); err != nil {
		return nil, err
	}
	if via := s.policy.Via; via != nil && host == via.Hostname() && port == portOf(via) {
		return s.connect(ctx, t, []Rule{{Host: host, Private: true}})
	}
	rules, err := s.decide(ctx, t)
	if err != nil {
		return nil, err
	}
	return s.connect(ctx, t, rules)
}

// portOf is the port of a URL, or that of its scheme.
func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// connect connects to a target that rules allow.
func (s *Session) connect(ctx context.Context, t destination, rules []Rule) (net.Conn, error) {
	var rule *Rule
	if i := slices.IndexFunc(rules, func(r Rule) bool { return r.Address != "" || r.Private }); i >= 0 {
		rule = &rules[i]
	}
	list, err := s.addresses(ctx, t, rule)
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return nil, s.deny(t, refused.text)
	}
	if err != nil {
		return nil, err
	}
	if !s.enter() {
		return nil, errClosed
	}
	conn, err := s.hold(ctx, list)
	if err != nil {
		s.running.Done()
	}
	return conn, err
}

// enter counts a connection in, unless the session is closed.
func (s *Session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.running.Add(1)
	}
	return !s.closed
}

// hold connects, and holds a place for the connection while it is open.
func (s *Session) hold(ctx context.Context, list []netip.AddrPort) (net.Conn, error) {
	place, err := s.gate.pool.TryTake(share.Owner{Tenant: s.caller.Tenant, Agent: s.caller.Agent}, 1)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrLimit, err.Error()) // its cause would be taken for a refusal of the call
	}
	conn, err := s.dial(ctx, list)
	if err != nil {
		place.Leave()
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(DefaultMaxTime)) // connections of the system have them
	s.gate.counts.open.Add(1)
	c := &counted{Conn: conn, session: s, left: func() {
		place.Leave()
		s.gate.counts.open.Add(-1)
		s.running.Done()
	}}
	c.stop = context.AfterFunc(s.ctx, func() { _ = c.Close() })
	return c, nil
}

// counted is a connection to a host whose bytes are counted, within the call's limit.
type counted struct {
	net.Conn
	session        *Session
	left           func()
	stop           func() bool
	once           sync.Once
	sent, received atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	c.session.gate.counts.received.Add(int64(n))
	if e := c.session.use(n); e != nil {
		return n, e
	}
	return n, err
}

func (c *counted) Write(p []byte) (int, error) {
	if err := c.session.use(len(p)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	c.sent.Add(int64(n))
	c.session.gate.counts.sent.Add(int64(n))
	return n, err
}

// Close closes the connection. Closing twice is harmless.
func (c *counted) Close() (err error) {
	c.once.Do(func() {
		err = c.Conn.Close()
		c.left()
		if c.stop != nil {
			c.stop()
		}
	})
	return err
}

// use takes bytes of the call's limit.
func (s *Session) use(n int) error {
	if s.bytes.Add(int64(n)) > s.gate.limits.Bytes {
		return fmt.Errorf("%w: a call sends and receives at most %d bytes", ErrLimit, s.gate.limits.Bytes)
	}
	return nil
}
