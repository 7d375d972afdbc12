package dashboard

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"

	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/redact"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/validate"
	"github.com/loom-bridge/loom-bridge/server/web"
)

const (
	// maxSpans are kept, and in one answer; defaultSpans unless a request says.
	maxSpans     = 1_000
	defaultSpans = 100
	// maxValueChars is how much of an attribute's text a span shows.
	maxValueChars = 1_000
	// spansEvery is how often a stream looks for further spans.
	spansEvery = 250 * time.Millisecond
)

// Spans keeps the last spans of calls, of whichever tenant. It is safe for concurrent use.
type Spans struct {
	mu    sync.Mutex
	ring  [maxSpans]kept
	total uint64 // spans that ended; the next one's place is what is left by maxSpans
}

type kept struct {
	tenant string
	span   trace.ReadOnlySpan
}

var _ trace.SpanProcessor = (*Spans)(nil)

// OnStart notes whose call a part belongs to. The server notes it of the call.
func (s *Spans) OnStart(parent context.Context, span trace.ReadWriteSpan) {
	if tenant, err := auth.TenantOf(parent); err == nil {
		span.SetAttributes(auth.TenantKey.String(tenant))
	}
}

// OnEnd keeps a span, in place of the oldest one. Nobody sees what is of no tenant.
func (s *Spans) OnEnd(span trace.ReadOnlySpan) {
	attributes := span.Attributes()
	i := slices.IndexFunc(attributes, func(a attribute.KeyValue) bool { return a.Key == auth.TenantKey })
	if i < 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring[s.total%maxSpans] = kept{attributes[i].Value.AsString(), span}
	s.total++
}

// Shutdown has nothing to end.
func (s *Spans) Shutdown(context.Context) error { return nil }

// ForceFlush has nothing to hand on.
func (s *Spans) ForceFlush(context.Context) error { return nil }

// since are a tenant's spans behind those that ended before, the oldest first, as far as they are
// kept, and how many have ended by now.
func (s *Spans) since(tenant string, before uint64) (found []trace.ReadOnlySpan, total uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := before
	if s.total > maxSpans {
		first = max(before, s.total-maxSpans)
	}
	for i := first; i < s.total; i++ {
		if one := s.ring[i%maxSpans]; one.tenant == tenant {
			found = append(found, one.span)
		}
	}
	return found, s.total
}

// span is a span as the page shows it.
type span struct {
	TraceID      string            `json:"trace_id"`
	SpanID       string            `json:"span_id"`
	ParentSpanID *string           `json:"parent_span_id"`
	Name         string            `json:"name"`
	StartTime    int64             `json:"start_time"`
	Duration     int64             `json:"duration"`
	Attributes   map[string]string `json:"attributes"`
	Status       string            `json:"status"`
	ErrorMessage *string           `json:"error_message"`
}

var statuses = map[codes.Code]string{codes.Unset: "unset", codes.Ok: "ok", codes.Error: "error"}

// errorKey is the attribute that says why a call failed.
const errorKey = "error.type"

// spansOf writes spans as the page reads them, with marks in place of secrets.
func (h *Handler) spansOf(from []trace.ReadOnlySpan) []span {
	shown := func(whole string) string {
		cut, _ := text.HeadChars(h.Redact.Text(redact.Eager().Text(text.Valid(whole), nil), nil), maxValueChars)
		return cut
	}
	all := make([]span, len(from))
	for i, one := range from {
		of := span{
			TraceID: one.SpanContext().TraceID().String(), SpanID: one.SpanContext().SpanID().String(), Name: shown(one.Name()),
			StartTime: one.StartTime().UnixNano(), Duration: one.EndTime().Sub(one.StartTime()).Nanoseconds(),
			Attributes: map[string]string{}, Status: statuses[one.Status().Code],
		}
		if above := one.Parent(); above.HasSpanID() {
			of.ParentSpanID = new(above.SpanID().String())
		}
		for _, a := range one.Attributes() {
			of.Attributes[shown(string(a.Key))] = shown(a.Value.String())
		}
		if why := of.Attributes[errorKey]; why != "" {
			of.Status, of.ErrorMessage = statuses[codes.Error], &why
		}
		all[i] = of
	}
	return all
}

// recentSpans are the last ones, the newest first.
func (h *Handler) recentSpans(r *http.Request, tenant string) (any, error) {
	limit := uint64(defaultSpans)
	if given := r.FormValue("limit"); given != "" {
		var err error
		if limit, err = strconv.ParseUint(given, 10, 32); err != nil {
			return nil, validate.Refuse("limit", "is not a number of spans")
		}
	}
	found, _ := h.Spans.since(tenant, 0)
	slices.Reverse(found)
	return h.spansOf(found[:min(uint64(len(found)), limit)]), nil
}

// trace are the spans of one trace, as they began.
func (h *Handler) trace(r *http.Request, tenant string) (any, error) {
	id, err := api.TraceIDFromHex(r.PathValue("trace"))
	if err != nil {
		return nil, validate.Refuse("trace_id", "is not a trace's id, which has "+strconv.Itoa(2*len(id))+" hexadecimal digits")
	}
	found, _ := h.Spans.since(tenant, 0)
	found = slices.DeleteFunc(found, func(one trace.ReadOnlySpan) bool { return one.SpanContext().TraceID() != id })
	slices.SortStableFunc(found, func(a, b trace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	return h.spansOf(found), nil
}

// spanStream sends spans as they end.
func (h *Handler) spanStream(w http.ResponseWriter, r *http.Request) {
	tenant, err := auth.TenantOf(r.Context())
	if err != nil {
		web.RefuseError(w, r, err)
		return
	}
	_, before := h.Spans.since(tenant, 0)
	look := time.NewTicker(spansEvery)
	defer look.Stop()
	stream(h, w, r, func() <-chan time.Time { return look.C }, func(send sender) bool {
		found, total := h.Spans.since(tenant, before)
		before = total
		return len(found) == 0 || send("spans", h.spansOf(found))
	})
}
