package rest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	protos "github.com/loom-bridge/loom-bridge/proto"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/web"
)

// Prefix begins the path of every call.
const Prefix = "/v1/"

// Options configure a Handler.
type Options struct {
	// StallTimeout is how long a reader may take nothing before its request ends. Default 60 s.
	StallTimeout time.Duration
	// Heartbeat is how often a stream of events that has nothing to say says so. Default 15 s.
	Heartbeat time.Duration
}

// Handler serves the calls. It is safe for concurrent use.
type Handler struct {
	conn grpc.ClientConnInterface
	opts Options
	mux  *runtime.ServeMux
}

// New makes a handler over a connection to the native API. It fails only if the rules don't
// fit the protos.
func New(conn grpc.ClientConnInterface, opts Options) (*Handler, error) {
	if opts.StallTimeout == 0 {
		opts.StallTimeout = time.Minute
	}
	if opts.Heartbeat == 0 {
		opts.Heartbeat = 15 * time.Second
	}
	all, err := bindings(protos.REST)
	if err != nil {
		return nil, err
	}
	h := &Handler{conn: conn, opts: opts}
	h.mux = runtime.NewServeMux(runtime.WithDisablePathLengthFallback(), runtime.WithIncomingHeaderMatcher(passed), runtime.WithRoutingErrorHandler(h.unrouted))
	// The last one that was added is the first that a path is compared with.
	for _, b := range slices.Backward(ordered(all)) {
		if err := h.refuseOthers(b, all); err != nil {
			return nil, err
		}
	}
	for _, b := range slices.Backward(ordered(all)) {
		if err := h.mux.HandlePath(b.verb, b.path, h.serve(b)); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// ServeHTTP makes a call. A path is compared as it is written, so that an id may hold what
// separates the parts of one.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	written := *r.URL
	written.Path, written.RawPath = r.URL.EscapedPath(), ""
	r.URL = &written
	h.mux.ServeHTTP(w, r)
}

// refuseOthers answers the methods that a path does not have, in the name of one of them.
func (h *Handler) refuseOthers(b binding, all []binding) error {
	var allowed []string
	for _, other := range all {
		if other.path == b.path {
			allowed = append(allowed, other.verb)
		}
	}
	return h.mux.HandlePath(http.MethodOptions, b.path, func(w http.ResponseWriter, r *http.Request, _ map[string]string) {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		web.Refuse(w, r, http.StatusMethodNotAllowed, "method", "is not served on this path: use "+strings.Join(allowed, " or "))
	})
}

// unrouted answers what no path fits, or no method.
func (h *Handler) unrouted(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, code int) {
	if code == http.StatusMethodNotAllowed && r.Method != http.MethodOptions {
		r.Method = http.MethodOptions
		h.mux.ServeHTTP(w, r)
		return
	}
	web.Refuse(w, r, code, "path", "is that of no call; /openapi.json has them all")
}

// passed are the forwarded headers, in addition to Authorization and Grpc-Timeout.
func passed(header string) (string, bool) {
	name := strings.ToLower(header)
	return name, slices.Contains([]string{auth.AgentKey, auth.SessionKey, auth.WriterKey, convert.JSONKey, "traceparent", "tracestate"}, name)
}

// unsendable names a header that a call would take along and can't.
func unsendable(headers http.Header) string {
	for name, values := range headers {
		if _, along := passed(name); !along && name != "Authorization" {
			continue
		}
		if slices.ContainsFunc(values, func(v string) bool { return strings.ContainsFunc(v, func(c rune) bool { return c < ' ' || c > '~' }) }) {
			return name
		}
	}
	return ""
}

// serve makes the call of a binding.
func (h *Handler) serve(b binding) runtime.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request, path map[string]string) {
		request, err := decode(r, b, path)
		if wrong, ok := errors.AsType[*mediaTypeError](err); ok {
			web.Refuse(w, r, http.StatusUnsupportedMediaType, "Content-Type", wrong.Error())
			return
		}
		if err != nil {
			web.RefuseError(w, r, err)
			return
		}
		if name := unsendable(r.Header); name != "" {
			web.Refuse(w, r, http.StatusBadRequest, name, "holds more than printable ASCII, as which calls take it along")
			return
		}
		ctx, err := runtime.AnnotateContext(r.Context(), h.mux, r, b.method)
		if err != nil {
			web.Refuse(w, r, http.StatusBadRequest, "Grpc-Timeout", "is no time such as 10S, 500m for milliseconds")
			return
		}
		if b.streaming {
			h.stream(ctx, w, r, b, request)
			return
		}
		answer := b.out.New().Interface()
		if err := h.conn.Invoke(ctx, b.method, request, answer); err != nil {
			web.Fail(w, web.Status(ctx, err))
			return
		}
		h.answer(ctx, w, answer)
	}
}

func (h *Handler) answer(ctx context.Context, w http.ResponseWriter, answer proto.Message) {
	body, err := protojson.Marshal(answer)
	if err != nil {
		web.Fail(w, web.Status(ctx, err))
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.opts.StallTimeout)) // every connection of net/http can
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // who does not read it has left
}
