package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/server/auth"
)

const (
	// Path is where the protocol is served.
	Path = "/mcp"
	// firstStateless is the first version of the protocol without sessions.
	firstStateless = "2026-07-28"
)

// FaceOptions configure a Face.
type FaceOptions struct {
	Options
	// Authenticated says that callers show credentials. Default: there is one tenant, and
	// sessions have no owner.
	Authenticated bool
	// MaxReceiveBytes bounds a request.
	MaxReceiveBytes int
}

// Face serves a Server over HTTP, to requests whose caller is known (package auth) and that
// were read whole. All methods are safe for concurrent use.
type Face struct {
	own      *Server
	sessions *sessions
	handler  http.Handler
	// streams is done when streams without an end have to end.
	streams    context.Context
	endStreams context.CancelFunc
}

// NewFace makes a face over a connection to the native API.
func NewFace(conn grpc.ClientConnInterface, opts FaceOptions) *Face {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Face{own: New(conn, &opts.Options)}
	f.sessions = newSessions(f.own.server, !opts.Authenticated)
	f.streams, f.endStreams = context.WithCancel(context.Background())
	f.handler = f.routes(opts.MaxReceiveBytes)
	if opts.Authenticated {
		f.handler = owned(f.handler)
	}
	return f
}

// EndStreams ends the requests that have no end. Further ones end at once.
func (f *Face) EndStreams() { f.endStreams() }

// ServeHTTP answers a request.
func (f *Face) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, _ := auth.Of(r.Context())
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
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the message can't be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	if n := batched(body); n > maxBatch {
		http.Error(w, fmt.Sprintf("a batch has more than %d messages; send them one by one", maxBatch), http.StatusRequestEntityTooLarge)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	f.handler.ServeHTTP(w, r)
}

// routes are the handlers: clients of the newest protocol are served without state, all
// others with a session, which their cancellations and list changes need.
func (f *Face) routes(maxBytes int) http.Handler {
	get := func(*http.Request) *sdk.Server { return f.own.server }
	options := sdk.StreamableHTTPOptions{
		Logger: slog.New(loud{f.own.own.Logger.Handler()}), MaxRequestBodyBytes: int64(maxBytes), SessionTimeout: sessionIdle,
		DisableLocalhostProtection:   true, // package web looks at more than that
		PropagateRequestCancellation: true,
	}
	withSession := sdk.NewStreamableHTTPHandler(get, &options)
	options.Stateless = true
	stateless := sdk.NewStreamableHTTPHandler(get, &options)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if endless := r.Method == http.MethodGet || r.Header.Get("Mcp-Method") == "subscriptions/listen"; endless {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(f.streams, cancel)()
			r = r.WithContext(ctx)
		}
		switch {
		case r.Header.Get("Mcp-Protocol-Version") >= firstStateless:
			stateless.ServeHTTP(w, r)
		case r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "":
			f.sessions.opening(w, r, ownerOf(r), withSession)
		default:
			withSession.ServeHTTP(w, r)
		}
	})
}

// ownerOf is who makes a request.
func ownerOf(r *http.Request) share.Owner {
	id, _ := auth.Of(r.Context())
	return share.Owner{Tenant: id.Tenant(), Agent: r.Header.Get(HeaderAgent)}
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
func owned(next http.Handler) http.Handler {
	verify := func(_ context.Context, token string, _ *http.Request) (*sdkauth.TokenInfo, error) {
		hash := sha256.Sum256([]byte(token))
		return &sdkauth.TokenInfo{UserID: hex.EncodeToString(hash[:])}, nil
	}
	return sdkauth.RequireBearerToken(verify, &sdkauth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
}
