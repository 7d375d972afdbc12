package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/bridge/egress"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/web"
)

const (
	// Prefix begins the path of every request, before the name of the upstream.
	Prefix = "/proxy/"
	// MaxSilence is how long an upstream may send nothing before its answer is cut off, and
	// how long the header of one is waited for: models think long.
	MaxSilence = 15 * time.Minute
	// copyBytes is how much of an answer is passed on at a time.
	copyBytes = 32 << 10
)

// Upstream is a server of models.
type Upstream struct {
	// Name is the part of the path behind Prefix.
	Name string
	// URL is where its paths begin, without the /v1 that programs add.
	URL *url.URL
}

// Upstreams reads a list of NAME=URL.
func Upstreams(list []string) ([]Upstream, error) {
	var out []Upstream
	for _, item := range list {
		name, address, _ := strings.Cut(item, "=")
		u, err := url.Parse(address)
		switch {
		case name == "" || strings.ContainsFunc(name, func(c rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_", c) }):
			return nil, fmt.Errorf("%q has no name of small letters, digits, - and _ before the =", item)
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "":
			return nil, fmt.Errorf("%q leads to no URL of http or https, without user and query", name)
		case slices.ContainsFunc(out, func(o Upstream) bool { return o.Name == name }):
			return nil, fmt.Errorf("%q is there twice", name)
		}
		u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
		out = append(out, Upstream{name, u})
	}
	return out, nil
}

// Options configure a Handler.
type Options struct {
	// Upstreams are what it leads to.
	Upstreams []Upstream
	// Gate is the way there. Required.
	Gate *egress.Gate
	// Within is the native API, which records conversations and has memory. Default nil: requests
	// are passed on alone.
	Within grpc.ClientConnInterface
	// Window is how many tokens a prompt for a model may take; 0 where that is not known. Default:
	// none is known, and only sessions that somebody configured are folded.
	Window func(model string) int
	// StallTimeout is how long a program may take nothing of an answer. Default 60 s.
	StallTimeout time.Duration
	// Silence is in place of MaxSilence, for tests.
	Silence time.Duration
	// Logger logs what programs are not told. Default silent.
	Logger *slog.Logger
}

// Handler is the proxy. It is safe for concurrent use. Close it.
type Handler struct {
	opts   Options
	ways   *ways
	known  *known
	record *recorder // nil for none, like those below
	memory *memories
	fold   *folder
}

// New makes a handler.
func New(opts Options) *Handler {
	if opts.StallTimeout == 0 {
		opts.StallTimeout = time.Minute
	}
	if opts.Silence == 0 {
		opts.Silence = MaxSilence
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Handler{opts: opts, ways: newWays(opts.Gate, opts.Silence), known: newKnown()}
	if opts.Within != nil {
		h.record, h.memory, h.fold = newRecorder(opts.Within), newMemories(opts.Within), newFolder(opts.Within, opts.Window)
	}
	return h
}

// Close closes the connections to upstreams. Requests under way are cut off.
func (h *Handler) Close() error { return h.ways.close() }

// Forget drops what memory said for earlier messages, what these said, and what logs have: of a
// subject that was erased, no later request says anything.
func (h *Handler) Forget() {
	h.known.forget()
	if h.memory != nil {
		h.memory.forget()
		h.record.forgetAll()
	}
}

// Removed notes that records of memory are gone: no later request says what they said.
func (h *Handler) Removed(ids []string) {
	if h.memory != nil {
		h.memory.remove(ids)
	}
}

// ServeHTTP sends a request on. Its body has been read (package web).
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), Prefix), "/")
	i := slices.IndexFunc(h.opts.Upstreams, func(u Upstream) bool { return u.Name == name })
	if i < 0 {
		web.Refuse(w, r, http.StatusNotFound, "path", "names no upstream; --proxy-upstreams says which there are")
		return
	}
	to, err := h.opts.Upstreams[i].at(rest, r.URL.RawQuery)
	if err != nil {
		web.Refuse(w, r, http.StatusBadRequest, "path", "is not percent-encoded as paths are, or has . or .. in it")
		return
	}
	x := &exchange{to: to, upstream: h.opts.Upstreams[i], body: web.BodyOf(r)}
	var known bool
	if x.off, known = off(r); !known {
		web.Refuse(w, r, http.StatusBadRequest, OffHeader, "names something else than record, fold and memory")
		return
	}
	if r.Method == http.MethodPost {
		x.dialect = dialects[rest]
	}
	h.forward(w, r, x)
}

// at is the address of a path at an upstream.
func (u Upstream) at(escaped, query string) (*url.URL, error) {
	path, err := url.PathUnescape(escaped)
	if err != nil {
		return nil, err
	}
	// A server that decodes twice would leave the place where the upstream's paths begin.
	if twice, err := url.PathUnescape(path); leaves(path) || err == nil && leaves(twice) {
		return nil, errLeaves
	}
	to := *u.URL
	to.Path = u.URL.Path + "/" + path
	to.RawPath = u.URL.EscapedPath() + "/" + escaped
	to.RawQuery = query
	return &to, nil
}

var errLeaves = errors.New("proxy: path with dots")

// leaves reports whether a path has a segment that leads to where it stands, or up.
func leaves(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(s string) bool { return s == "." || s == ".." })
}

// exchange is one request, and what is done for it.
type exchange struct {
	upstream Upstream
	to       *url.URL
	dialect  dialect
	body     []byte
	off      []string    // parts that are not to be done
	sent     atomic.Bool // the upstream may have seen some of it
	silent   atomic.Bool // it was cut off because the upstream said nothing
}

// forward sends a request, and passes the answer on.
func (h *Handler) forward(w http.ResponseWriter, r *http.Request, x *exchange) {
	id, _ := auth.Of(r.Context())
	way, err := h.ways.take(id.Tenant(), x.upstream, len(x.body))
	if err != nil {
		web.RefuseError(w, r, err)
		return
	}
	defer h.ways.leave(way)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	quiet := time.AfterFunc(h.opts.Silence, func() { x.silent.Store(true); cancel() })
	defer quiet.Stop()
	recording := h.begin(r, x)
	defer recording.begun()
	answer, err := way.session.RoundTrip(x.request(ctx, r))
	if err != nil {
		x.failed(w, r, err)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	if code := answer.StatusCode; code < 200 || code >= 300 && code < 400 && answer.Header.Get("Location") != "" {
		w.Header().Set("X-Should-Retry", "false")
		web.Fail(w, status.Newf(codes.Unavailable, "the upstream %s answered with %d, which is not followed: the key goes nowhere else", x.upstream.Name, code))
		return
	}
	passBack(w.Header(), answer.Header)
	w.Header()[didHeader] = recording.did()
	w.WriteHeader(answer.StatusCode)
	said := recording.listen(answer)
	h.copy(w, answer.Body, quiet, said, recording.begun)
	recording.begun()
	recording.end(said)
}

// request is what is sent. Without GetBody the transport sends it once.
func (x *exchange) request(ctx context.Context, r *http.Request) *http.Request {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { x.sent.Store(true) }})
	out := (&http.Request{Method: r.Method, URL: x.to, Header: r.Header.Clone(), Body: http.NoBody}).WithContext(ctx)
	if len(x.body) > 0 {
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(x.body)), int64(len(x.body))
	}
	out.Header.Del("Expect") // the body is here already
	if x.dialect != foreign {
		out.Header.Set("Accept-Encoding", "identity") // it is read here, too
	}
	for name := range out.Header {
		if strings.HasPrefix(name, "Loom-") {
			out.Header.Del(name)
		}
	}
	return out
}

// failed answers for an upstream that did not.
func (x *exchange) failed(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // nobody reads it
	}
	code, text := codes.Unavailable, "the upstream "+x.upstream.Name+" can't be reached"
	switch {
	case errors.Is(err, egress.ErrDenied):
		code, text = codes.PermissionDenied, err.Error()
	case errors.Is(err, egress.ErrLimit):
		code, text = codes.ResourceExhausted, err.Error()
	case x.silent.Load():
		code, text = codes.DeadlineExceeded, "the upstream "+x.upstream.Name+" did not answer in time"
	case x.sent.Load():
		text = "the upstream " + x.upstream.Name + " ended the connection without an answer"
	}
	if x.sent.Load() {
		w.Header().Set("X-Should-Retry", "false") // it may have been answered, and paid for
	}
	web.Fail(w, status.New(code, text))
}

// own are headers of answers that are this server's to set: they say what browsers may do on its
// address, where the console is, too.
var own = []string{
	"X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy", "Cross-Origin-Resource-Policy", "Content-Security-Policy",
	"Set-Cookie", "Strict-Transport-Security", "Alt-Svc", "Clear-Site-Data", "Service-Worker-Allowed",
}

// passBack takes the headers of an answer over.
func passBack(to, from http.Header) {
	for name, values := range from {
		if !slices.Contains(own, name) && !strings.HasPrefix(name, "Access-Control-") && !strings.HasPrefix(name, "Loom-") {
			to[name] = values
		}
	}
}

// copy passes an answer on as it comes, and what is said in it, and calls begun behind each part.
// One that breaks breaks for the program, too.
func (h *Handler) copy(w http.ResponseWriter, answer io.Reader, quiet *time.Timer, said *heard, begun func()) {
	control := http.NewResponseController(w)
	_ = control.Flush() // the header; what fails fails below
	part := make([]byte, copyBytes)
	for {
		quiet.Reset(h.opts.Silence)
		n, err := answer.Read(part)
		if n > 0 {
			_ = control.SetWriteDeadline(time.Now().Add(h.opts.StallTimeout)) // every connection of net/http can
			if _, err := w.Write(part[:n]); err != nil || control.Flush() != nil {
				panic(http.ErrAbortHandler) // the program has left; so does the request to the upstream
			}
			begun()
			said.take(part[:n])
		}
		switch {
		case errors.Is(err, io.EOF):
			_ = control.SetWriteDeadline(time.Time{})
			return
		case err != nil:
			panic(http.ErrAbortHandler)
		}
	}
}
