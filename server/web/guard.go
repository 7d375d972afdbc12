package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/conns"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// Audience is who may make a request.
type Audience int

const (
	// Callers have the credential of a call. Browsers call from pages of the face alone.
	Callers Audience = iota
	// Hosts are callers, and pages of this machine and of configured names.
	Hosts
	// Operators are callers that run the server.
	Operators
	// Programs are callers that speak to somebody else through this server, whom the header
	// Authorization is for: their own credential is in Loom-Authorization. They may send more.
	Programs
	// Everybody needs no credential. Pages of other sites may link to its pages.
	Everybody
)

// CredentialHeader has the credential of Programs, and MaxProgramBytes bounds what they send: as
// much as the providers of models take with images.
const (
	CredentialHeader = "Loom-Authorization"
	MaxProgramBytes  = 32 << 20
)

// Handle serves a pattern of http.ServeMux.
func (f *Face) Handle(pattern string, who Audience, handler http.Handler) {
	f.mux.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refusal := f.origin(r, who); refusal != "" {
			Refuse(w, r, http.StatusForbidden, "Origin", refusal)
			return
		}
		if who == Everybody {
			handler.ServeHTTP(w, r)
			return
		}
		f.guarded(w, r, who, handler)
	}))
}

// outermost looks at what no handler may be asked under.
func (f *Face) outermost() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer f.survive()
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Cache-Control", "no-store")
		if host := hostOf(r.Host); !f.served(host) && !isAddress(host) {
			Refuse(w, r, http.StatusForbidden, "Host", "does not name this server; add it with --mcp-hosts")
			return
		}
		if _, pattern := f.mux.Handler(r); pattern == "" {
			Refuse(w, r, http.StatusNotFound, "path", "is nothing that is served; /docs lists what is")
			return
		}
		f.mux.ServeHTTP(w, r)
	})
}

// survive logs the panic of a request, and cuts its connection off.
func (f *Face) survive() {
	if value := recover(); value != nil {
		if err, ok := value.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			f.logger.Error("a request panicked", "panic", value, "stack", string(debug.Stack()))
		}
		panic(http.ErrAbortHandler)
	}
}

// guarded looks at the credential, then at the room there is, and only then reads what was
// sent.
func (f *Face) guarded(w http.ResponseWriter, r *http.Request, who Audience, next http.Handler) {
	credential, most := "Authorization", f.limits.MaxReceiveBytes
	if who == Programs {
		credential, most = CredentialHeader, MaxProgramBytes
	}
	signedIn := (who == Callers || who == Operators) && bySignIn(r)
	id, err := f.authenticate(r.Header.Values(credential))
	if err != nil {
		if signedIn { // the cookie ends with its token
			f.setCookie(w, r, "", -1)
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="loom-bridge"`)
		RefuseError(w, r, err)
		return
	}
	if c, ok := r.Context().Value(connKey{}).(*conns.Conn); ok {
		c.Known()
	}
	r = r.WithContext(auth.With(r.Context(), id))
	if who == Operators {
		if err := auth.Operator(r.Context()); err != nil {
			RefuseError(w, r, err)
			return
		}
	}
	place, err := f.shares.Streams.TryTake(share.Owner{Tenant: id.Tenant()}, 1)
	if err != nil {
		RefuseError(w, r, err)
		return
	}
	defer place.Leave()
	f.read(w, r, id, most, next)
}

// origin checks what a browser says about the page that makes a request.
func (f *Face) origin(r *http.Request, who Audience) (refusal string) {
	if origin := r.Header.Get("Origin"); origin != "" {
		from, err := url.Parse(origin)
		if err != nil || from.Hostname() == "" || from.Host != r.Host && !(who == Hosts && f.served(from.Hostname())) {
			return "may not call this server; pages may call that it serves itself"
		}
		return ""
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return ""
	}
	if who == Everybody && r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		return ""
	}
	return "is a page of another site, which may not call this server"
}

// served reports whether a name is this machine's for itself, or one that was configured.
func (f *Face) served(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.IsLoopback()
	}
	return host == "localhost" || slices.ContainsFunc(f.hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// isAddress reports whether a host is an IP address: unlike a name, it can't be made to
// resolve elsewhere.
func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

// authenticate says who makes a request, by the same rules as for a call of the native
// API. A client certificate alone identifies no caller here.
func (f *Face) authenticate(credential []string) (auth.Identity, error) {
	if f.credentials == nil {
		return auth.Anyone(auth.DefaultTenant), nil
	}
	given := metadata.MD{}
	given.Append("authorization", credential...)
	id, _, err := f.credentials.Authenticate(metadata.NewIncomingContext(context.Background(), given))
	return id, err
}

// read takes the body in, of so many bytes at most and as far as there is room for it, and goes
// on.
func (f *Face) read(w http.ResponseWriter, r *http.Request, id auth.Identity, most int, next http.Handler) {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		w.Header().Set("Accept-Encoding", "identity")
		Refuse(w, r, http.StatusUnsupportedMediaType, "Content-Encoding", "is "+validate.Cut(coding, maxShown)+"; send the body unpacked")
		return
	}
	tooLarge := fmt.Errorf("%w: the body exceeds %d bytes", server.ErrTooLarge, most)
	if r.ContentLength > int64(most) {
		RefuseError(w, r, tooLarge)
		return
	}
	if r.ContentLength >= 0 {
		most = int(r.ContentLength)
	}
	room, err := f.shares.Requests.TryTake(share.Owner{Tenant: id.Tenant()}, int64(max(most, 1)))
	if err != nil {
		RefuseError(w, r, err)
		return
	}
	defer room.Leave()
	timed := http.NewResponseController(w)
	_ = timed.SetReadDeadline(time.Now().Add(f.limits.ConnectionTimeout)) // every connection of net/http can
	body, err := readAll(http.MaxBytesReader(w, r.Body, int64(most)), r.ContentLength)
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			RefuseError(w, r, tooLarge)
			return
		}
		Refuse(w, r, http.StatusBadRequest, "body", "can't be read: "+err.Error())
		return
	}
	_ = timed.SetReadDeadline(time.Time{})
	r.Body = &readBody{*bytes.NewReader(body), body, room}
	next.ServeHTTP(w, r)
}

// readAll reads a body whose length may be known, for which there is room then: it is read into
// its place, and not copied again and again as that grows.
func readAll(from io.Reader, length int64) ([]byte, error) {
	if length < 0 {
		return io.ReadAll(from)
	}
	body := make([]byte, length)
	n, err := io.ReadFull(from, body)
	return body[:n], err
}

// readBody is a body that was read.
type readBody struct {
	bytes.Reader
	all  []byte
	room *share.Holding
}

func (*readBody) Close() error { return nil }

// BodyOf is the whole body of a request that a Face serves to callers, hosts, operators or
// programs. It is not to be changed.
func BodyOf(r *http.Request) []byte {
	body, _ := r.Body.(*readBody)
	if body == nil {
		return nil
	}
	return body.all
}

// Hold takes room in memory for so many bytes beside the body of a request, from what its tenant
// may have of requests, until it has been served; a later call says how many there are by then.
// Error: a *share.ExhaustedError, and it has what it had before.
func Hold(r *http.Request, beside int) error {
	body, _ := r.Body.(*readBody)
	if body == nil {
		return nil
	}
	return body.room.Resize(int64(len(body.all) + beside))
}

// maxShown bounds what a refusal repeats of a header.
const maxShown = 64
