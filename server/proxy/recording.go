package proxy

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/web"
)

const (
	// OffHeader names, with commas between, what is not to be done with a request: record, memory.
	OffHeader = "Loom-Off"
	// didHeader of an answer says what was done with the request.
	didHeader = "Loom-Did"
	// didTime is how long the header of an answer waits for the recording of the request, which
	// begins with the request and takes milliseconds.
	didTime = 5 * time.Second
)

// recording is that of one exchange.
type recording struct {
	h       *Handler
	dialect dialect
	ctx     context.Context // outlives the program
	records int             // of memory
	done    chan struct{}   // nil for one that records nothing
	request recorded        // set before done is closed
}

// begin adds memory to a request, and begins to record it; nil where there is neither.
func (h *Handler) begin(r *http.Request, x *exchange) *recording {
	remember, record := !off(r, "memory"), !off(r, "record")
	if h.record == nil || x.dialect == foreign || !remember && !record {
		return nil
	}
	ctx := who(r.Context(), r.Header.Values(web.CredentialHeader))
	rec := &recording{h: h, dialect: x.dialect, ctx: context.WithoutCancel(ctx)}
	id, _ := auth.Of(ctx)
	p := place{id.Tenant(), cmp.Or(r.Header.Get(auth.AgentKey), Agent)}
	body := x.body
	read := sync.OnceValues(func() (*talk, error) { return x.dialect.parse(body) })
	if remember {
		if t, err := read(); err == nil {
			x.body, rec.records = h.memory.add(ctx, p, x.dialect, t, body)
		}
	}
	if !record {
		return rec
	}
	rec.done = make(chan struct{})
	go func() { // beside the request
		defer close(rec.done)
		ctx, cancel := context.WithTimeout(rec.ctx, recordTime)
		defer cancel()
		t, err := read()
		if err != nil {
			rec.request = recorded{err: err}
			return
		}
		rec.request = h.record.request(ctx, p, r.Header.Get(auth.SessionKey), t)
	}()
	return rec
}

// off reports whether a request switches something off.
func off(r *http.Request, what string) bool {
	return slices.ContainsFunc(r.Header.Values(OffHeader), func(list string) bool {
		return slices.ContainsFunc(strings.Split(list, ","), func(name string) bool { return strings.EqualFold(strings.TrimSpace(name), what) })
	})
}

// did is what was done with the request; none where nothing is.
func (rec *recording) did() []string {
	if rec == nil {
		return nil
	}
	var all []string
	if rec.done != nil {
		all = append(all, rec.recorded())
	}
	if rec.records > 0 {
		all = append(all, fmt.Sprintf("memory %d", rec.records))
	}
	if len(all) == 0 {
		return nil
	}
	return []string{strings.Join(all, ", ")}
}

// recorded says how the recording went, if it does not take long.
func (rec *recording) recorded() string {
	timer := time.NewTimer(didTime)
	defer timer.Stop()
	select {
	case <-rec.done:
	case <-timer.C:
		return "recording"
	}
	if err := rec.request.err; err != nil {
		rec.h.opts.Logger.Debug("a request was not recorded", "error", err)
		return "recorded nothing: " + status.Code(err).String()
	}
	return fmt.Sprintf("recorded %d in %s", rec.request.added, rec.request.to.session)
}

// heard is what is said in an answer, as far as it is kept; nil for nothing.
type heard struct {
	events bool
	text   []byte
	long   bool
}

// listen prepares for an answer.
func (rec *recording) listen(a *http.Response) *heard {
	coding := a.Header.Get("Content-Encoding")
	if rec == nil || rec.done == nil || a.StatusCode != http.StatusOK || coding != "" && coding != "identity" {
		return nil
	}
	return &heard{events: strings.HasPrefix(a.Header.Get("Content-Type"), "text/event-stream")}
}

func (s *heard) take(part []byte) {
	switch {
	case s == nil || s.long:
	case len(s.text)+len(part) > maxAnswerBytes:
		s.text, s.long = nil, true
	default:
		s.text = append(s.text, part...)
	}
}

// end records an answer that has come whole.
func (rec *recording) end(s *heard) {
	if s == nil || s.long {
		return
	}
	<-rec.done
	if rec.request.err != nil {
		return
	}
	a := rec.dialect.read(s.text, s.events)
	if a == nil {
		return
	}
	ctx, cancel := context.WithTimeout(rec.ctx, recordTime)
	defer cancel()
	if err := rec.h.record.answer(ctx, rec.request, a); err != nil {
		rec.h.opts.Logger.Debug("an answer was not recorded", "error", err)
	}
}
