package proxy

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/web"
)

const (
	// OffHeader names, with commas between, what is not to be done with a request: record.
	OffHeader = "Loom-Off"
	// didHeader of an answer says what was done with the request.
	didHeader = "Loom-Did"
	// didTime is how long the header of an answer waits for the recording of the request.
	didTime = 250 * time.Millisecond
)

// recording is that of one exchange; nil for none.
type recording struct {
	h       *Handler
	dialect dialect
	ctx     context.Context // outlives the program
	done    chan struct{}
	request recorded // set before done is closed
}

// begin begins to record a request.
func (h *Handler) begin(r *http.Request, x *exchange) *recording {
	if h.record == nil || x.dialect == foreign || off(r, "record") {
		return nil
	}
	rec := &recording{
		h: h, dialect: x.dialect, done: make(chan struct{}),
		ctx: who(context.WithoutCancel(r.Context()), r.Header.Values(web.CredentialHeader)),
	}
	id, _ := auth.Of(r.Context())
	p := place{id.Tenant(), r.Header.Get(auth.AgentKey)}
	if p.agent == "" {
		p.agent = Agent
	}
	go func() {
		defer close(rec.done)
		defer func() { // of hostile text: it costs the recording alone
			if value := recover(); value != nil {
				h.opts.Logger.Error("recording a request panicked", "panic", value)
				rec.request = recorded{err: fmt.Errorf("a fault")}
			}
		}()
		ctx, cancel := context.WithTimeout(rec.ctx, recordTime)
		defer cancel()
		t, err := x.dialect.parse(x.body)
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
	timer := time.NewTimer(didTime)
	defer timer.Stop()
	select {
	case <-rec.done:
	case <-timer.C:
		return []string{"recording"}
	}
	if err := rec.request.err; err != nil {
		rec.h.opts.Logger.Debug("a request was not recorded", "error", err)
		return []string{"recorded nothing: " + status.Code(err).String()}
	}
	return []string{fmt.Sprintf("recorded %d in %s", rec.request.added, rec.request.to.session)}
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
	if rec == nil || a.StatusCode != http.StatusOK || coding != "" && coding != "identity" {
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
	if rec == nil || s == nil || s.long {
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
