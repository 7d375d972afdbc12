package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/redact"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/web"
)

const (
	// window is how far counts and rates look back.
	window = time.Minute
	// maxEvents bounds the events that one answer counts, maxAgents the agents that it names. What
	// is beyond is left out.
	maxEvents = 10_000
	maxAgents = 1_000
	// heartbeat is the time between two pings of a stream.
	heartbeat = 10 * time.Second
	// previewChars is how much of a payload an event shows.
	previewChars = 100
)

// Bus has the events.
type Bus interface {
	Subscribe(ctx context.Context, tenant string, selections []events.Subscribed, opts *events.SubscribeOptions) (*events.Subscription, error)
	Readers() events.Readers
}

// Directory knows the agents.
type Directory interface {
	Some(tenant string, limit int, match func(agents.Agent) bool) []agents.Agent
}

// Audit has the calls of tools.
type Audit interface {
	List(ctx context.Context, tenant string, q audit.Query) ([]audit.Record, audit.Cursor, error)
}

// Options are what a Handler reads. What is not said to be optional is required.
type Options struct {
	Events Bus
	Agents Directory
	Audit  Audit
	// Spans are made by the server's traces.
	Spans *Spans
	// Redact finds secrets beside the built-in patterns; nil: none.
	Redact *redact.Redactor
	// Calls emits events, for those who ask for one; nil refuses them.
	Calls grpc.ClientConnInterface
	// StallTimeout is how long a reader of the stream may take nothing.
	StallTimeout time.Duration
}

// Handler answers the page. All methods are safe for concurrent use.
type Handler struct {
	Options
	readers atomic.Int64 // of the stream
	stop    chan struct{}
	stopped sync.Once
}

// New returns a handler; Close ends its streams.
func New(o Options) *Handler { return &Handler{Options: o, stop: make(chan struct{})} }

// Close ends the streams. Closing twice is harmless.
func (h *Handler) Close() { h.stopped.Do(func() { close(h.stop) }) }

// Serve has a face serve the page's endpoints to those who run the server: it shows the events and
// calls of all agents.
func (h *Handler) Serve(f *web.Face) {
	f.OnStop(h.Close)
	f.Handle("GET /api/events/stream", web.Operators, http.HandlerFunc(h.eventStream))
	f.Handle("GET /api/spans/stream", web.Operators, http.HandlerFunc(h.spanStream))
	answers := map[string]func(r *http.Request, tenant string) (any, error){
		"GET /api/events/status":  func(*http.Request, string) (any, error) { return status{h.readers.Load()}, nil },
		"GET /api/topology":       h.topology,
		"GET /api/flow":           h.flow,
		"GET /api/metrics":        h.metrics,
		"GET /api/spans/recent":   h.recentSpans,
		"GET /api/traces/{trace}": h.trace,
	}
	if h.Calls != nil {
		answers["POST /api/debug/emit"] = h.emit
	} else {
		f.Handle("POST /api/debug/emit", web.Operators, http.HandlerFunc(refuseEmit))
	}
	for path, answer := range answers {
		f.Handle(path, web.Operators, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			tenant, err := auth.TenantOf(r.Context())
			if err != nil {
				web.RefuseError(w, r, err)
				return
			}
			found, err := answer(r, tenant)
			if err != nil {
				web.Fail(w, web.Status(r.Context(), err))
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(found) // who does not read it has left
		}))
	}
}

type status struct {
	Subscribers int64 `json:"subscribers"`
}

// subscribe reads all topics of a tenant, from a time on if there is one.
func (h *Handler) subscribe(ctx context.Context, tenant string, since time.Time) (*events.Subscription, error) {
	everything, err := pattern.Parse("**")
	if err != nil {
		return nil, err
	}
	return h.Events.Subscribe(ctx, tenant, []events.Subscribed{{Pattern: everything, Since: since, QoS: events.Realtime}}, nil)
}

// recent calls each with the events of the window.
func (h *Handler) recent(ctx context.Context, tenant string, each func(e *events.Event)) error {
	from, err := h.subscribe(ctx, tenant, time.Now().Add(-window))
	if err != nil {
		return err
	}
	defer from.Close()
	for range maxEvents {
		next, ok, err := from.Take(ctx)
		if err != nil || !ok {
			return err
		}
		each(&next.Event)
	}
	return nil
}

// calls are the calls of tools of the window.
func (h *Handler) calls(ctx context.Context, tenant string) ([]audit.Record, error) {
	records, _, err := h.Audit.List(ctx, tenant, audit.Query{From: time.Now().Add(-window), Limit: audit.MaxPage})
	return records, err
}

// agents are those of a tenant, by id.
func (h *Handler) agents(tenant string) []agents.Agent {
	found := h.Agents.Some(tenant, maxAgents, func(agents.Agent) bool { return true })
	slices.SortFunc(found, func(a, b agents.Agent) int { return cmp.Compare(a.ID, b.ID) })
	return found
}

type (
	topology struct {
		Agents    []agent `json:"agents"`
		Edges     []edge  `json:"edges"`
		Timestamp string  `json:"timestamp"`
	}
	agent struct {
		ID           string   `json:"id"`
		Topics       []string `json:"topics"`
		Capabilities []string `json:"capabilities"`
	}
	edge struct {
		FromTopic  string `json:"from_topic"`
		ToAgent    string `json:"to_agent"`
		EventCount int64  `json:"event_count"`
	}
)

// topology is who listens to what, and how much came.
func (h *Handler) topology(r *http.Request, tenant string) (any, error) {
	counts := map[string]int64{}
	if err := h.recent(r.Context(), tenant, func(e *events.Event) { counts[e.Topic]++ }); err != nil {
		return nil, err
	}
	out := topology{Agents: []agent{}, Edges: []edge{}, Timestamp: stamp(time.Now())}
	for _, a := range h.agents(tenant) {
		out.Agents = append(out.Agents, agent{a.ID, append([]string{}, a.Topics...), append([]string{}, a.Capabilities...)})
		for _, topic := range a.Topics {
			e := edge{FromTopic: topic, ToAgent: a.ID}
			one := agents.Registration{Topics: []string{topic}, Exclusive: a.Exclusive}
			for name, n := range counts {
				if one.Listens(name) {
					e.EventCount += n
				}
			}
			out.Edges = append(out.Edges, e)
		}
	}
	return out, nil
}

type metrics struct {
	EventsPerSec          float64 `json:"events_per_sec"`
	ActiveAgents          int     `json:"active_agents"`
	ActiveSubscriptions   int     `json:"active_subscriptions"`
	ToolInvocationsPerSec float64 `json:"tool_invocations_per_sec"`
}

// metrics are how much goes on.
func (h *Handler) metrics(r *http.Request, tenant string) (any, error) {
	out := metrics{ActiveSubscriptions: h.Events.Readers().Subscriptions}
	if err := h.recent(r.Context(), tenant, func(*events.Event) { out.EventsPerSec += 1 / window.Seconds() }); err != nil {
		return nil, err
	}
	calls, err := h.calls(r.Context(), tenant)
	if err != nil {
		return nil, err
	}
	out.ToolInvocationsPerSec = float64(len(calls)) / window.Seconds()
	for _, a := range h.agents(tenant) {
		if a.Status == agents.Active {
			out.ActiveAgents++
		}
	}
	return out, nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// header is what an agent of loom.v1 said in the metadata of an event; nil for nothing.
func header(e *events.Event, key string) *string {
	return given(cmp.Or(e.Headers["loom."+key], e.Headers[key]))
}

func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// senderOf is who emitted an event.
func senderOf(e *events.Event) string {
	if said := header(e, "sender"); said != nil {
		return *said
	}
	return e.Source
}

// event is an event as the page shows it.
type event struct {
	Timestamp      string  `json:"timestamp"`
	EventType      string  `json:"event_type"`
	EventID        string  `json:"event_id"`
	Topic          string  `json:"topic"`
	Sender         *string `json:"sender"`
	ThreadID       *string `json:"thread_id"`
	CorrelationID  *string `json:"correlation_id"`
	PayloadPreview string  `json:"payload_preview"`
	TraceID        string  `json:"trace_id,omitempty"`
}

func eventOf(e *events.Event) event {
	preview, _ := text.HeadChars(text.Valid(string(e.Payload[:min(len(e.Payload), 4*previewChars)])), previewChars)
	return event{
		stamp(e.Time), "event_published", e.ID, e.Topic, given(senderOf(e)), header(e, "thread_id"), header(e, "correlation_id"),
		preview, e.Headers["trace_id"],
	}
}

// eventStream sends events as they come.
func (h *Handler) eventStream(w http.ResponseWriter, r *http.Request) {
	tenant, err := auth.TenantOf(r.Context())
	if err != nil {
		web.RefuseError(w, r, err)
		return
	}
	from, err := h.subscribe(r.Context(), tenant, time.Time{})
	if err != nil {
		web.Fail(w, web.Status(r.Context(), err))
		return
	}
	defer from.Close()
	h.readers.Add(1)
	defer h.readers.Add(-1)
	stream(h, w, r, from.Ready, func(send sender) bool {
		for {
			next, ok, err := from.Take(r.Context())
			if err != nil || !ok {
				return err == nil
			}
			if !send("", eventOf(&next.Event)) {
				return false
			}
		}
	})
}

// sender sends a message, named unless the name is empty, and reports whether it could.
type sender func(name string, message any) bool

// stream answers with messages until more, which is called when there may be some, reports that
// there will be none.
func stream[T any](h *Handler, w http.ResponseWriter, r *http.Request, ready func() <-chan T, more func(send sender) bool) {
	control := http.NewResponseController(w)
	write := func(lines string) bool {
		_ = control.SetWriteDeadline(time.Now().Add(h.StallTimeout)) // every connection of net/http can
		_, err := w.Write([]byte(lines))
		return err == nil && control.Flush() == nil
	}
	send := func(name string, message any) bool {
		line, err := json.Marshal(message)
		if name != "" {
			name = "event: " + name + "\n"
		}
		return err == nil && write(name+"data: "+string(line)+"\n\n")
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	ping := time.NewTicker(heartbeat)
	defer ping.Stop()
	for going := write(":\n\n"); going; {
		select {
		case <-ready():
			going = more(send)
		case <-ping.C:
			going = write("event: ping\ndata: \n\n")
		case <-h.stop:
			return
		case <-r.Context().Done():
			return
		}
	}
}
