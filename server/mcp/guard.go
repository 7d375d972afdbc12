package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"google.golang.org/grpc/metadata"

	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/conns"
)

// guarded lets only those requests through that may be answered at all: it looks at the
// names, then at the credential, then at the room there is, and only then reads what was
// sent.
func (f *Face) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer f.survive()
		if refusal := f.names(r); refusal != "" {
			http.Error(w, refusal, http.StatusForbidden)
			return
		}
		id, err := f.authenticate(r)
		if err != nil {
			w.Header().Set("WWW-Authenticate", `Bearer realm="loom-bridge"`)
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		if c, ok := r.Context().Value(connKey{}).(*conns.Conn); ok {
			c.Known()
		}
		place, err := f.shares.Streams.TryTake(share.Owner{Tenant: id.Tenant()}, 1)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		defer place.Leave()
		// Puts what the URL says about the caller where the tools look for it, and for a
		// caller that says nothing the one agent that its credential names.
		query := r.URL.Query()
		for header, key := range map[string]string{HeaderAgent: "agent", HeaderSession: "session"} {
			if value := query.Get(key); value != "" && r.Header.Get(header) == "" {
				r.Header.Set(header, value)
			}
		}
		if agent, ok := id.Named(); ok && r.Header.Get(HeaderAgent) == "" {
			r.Header.Set(HeaderAgent, agent)
		}
		r = r.WithContext(context.WithValue(r.Context(), ownerKey{}, share.Owner{Tenant: id.Tenant(), Agent: r.Header.Get(HeaderAgent)}))
		f.read(w, r, id, next)
	})
}

type ownerKey struct{}

// ownerOf is who made a request that was let through.
func ownerOf(r *http.Request) share.Owner {
	owner, _ := r.Context().Value(ownerKey{}).(share.Owner)
	return owner
}

// survive logs the panic of a request, and cuts its connection off.
func (f *Face) survive() {
	if value := recover(); value != nil {
		f.own.own.Logger.Error("a request panicked", "panic", value, "stack", string(debug.Stack()))
		panic(http.ErrAbortHandler)
	}
}

// names checks what the request says about where it comes from and where it goes: a page
// of another site that a browser shows must not reach a server on this machine, under no
// name that it may have given it.
func (f *Face) names(r *http.Request) (refusal string) {
	host := hostOf(r.Host)
	if !f.served(host) && !isAddress(host) {
		return "the Host header does not name this server; add it with --mcp-hosts"
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return ""
	}
	from, err := url.Parse(origin)
	if err != nil || from.Hostname() == "" || !f.served(from.Hostname()) && from.Host != r.Host {
		return "the Origin may not call this server; name it with --mcp-hosts"
	}
	return ""
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
func (f *Face) authenticate(r *http.Request) (auth.Identity, error) {
	if f.credentials == nil {
		return auth.Anyone(auth.DefaultTenant), nil
	}
	given := metadata.MD{}
	for _, value := range r.Header.Values("Authorization") {
		given.Append("authorization", value)
	}
	id, _, err := f.credentials.Authenticate(metadata.NewIncomingContext(context.Background(), given))
	return id, err
}

// read takes the body in, as far as there is room for it, and goes on.
func (f *Face) read(w http.ResponseWriter, r *http.Request, id auth.Identity, next http.Handler) {
	most := f.limits.MaxReceiveBytes
	if r.ContentLength > int64(most) {
		http.Error(w, "the message is too large", http.StatusRequestEntityTooLarge)
		return
	}
	if r.ContentLength >= 0 {
		most = int(r.ContentLength)
	}
	room, err := f.shares.Requests.TryTake(share.Owner{Tenant: id.Tenant()}, int64(max(most, 1)))
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer room.Leave()
	timed := http.NewResponseController(w)
	_ = timed.SetReadDeadline(time.Now().Add(f.limits.ConnectionTimeout)) // every connection of net/http can
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(most)))
	if err != nil {
		code := http.StatusBadRequest
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			code = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "the message can't be read: "+err.Error(), code)
		return
	}
	_ = timed.SetReadDeadline(time.Time{})
	if n := batched(body); n > maxBatch {
		http.Error(w, fmt.Sprintf("a batch has more than %d messages; send them one by one", maxBatch), http.StatusRequestEntityTooLarge)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	next.ServeHTTP(w, r)
}

// maxBatch bounds the messages of one request, which make one place among the calls.
const maxBatch = 64

// batched counts the messages of a batch up to one more than it may have; 1 for what is none.
func batched(body []byte) int {
	d := json.NewDecoder(bytes.NewReader(body))
	if opening, err := d.Token(); err != nil || opening != json.Delim('[') {
		return 1
	}
	n := 0
	for ; n <= maxBatch && d.More(); n++ {
		var message json.RawMessage
		if d.Decode(&message) != nil {
			break // the protocol says what is wrong with it
		}
	}
	return n
}

// owned ties the sessions of older protocols to the credential that opened them.
func (f *Face) owned(next http.Handler) http.Handler {
	if f.credentials == nil {
		return next
	}
	verify := func(_ context.Context, token string, _ *http.Request) (*sdkauth.TokenInfo, error) {
		hash := sha256.Sum256([]byte(token))
		return &sdkauth.TokenInfo{UserID: hex.EncodeToString(hash[:])}, nil
	}
	return sdkauth.RequireBearerToken(verify, &sdkauth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
}
