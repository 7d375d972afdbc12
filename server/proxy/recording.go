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

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/web"
)

const (
	// OffHeader names, with commas between, what is not to be done with a request: record, fold,
	// memory. What is not recorded is not folded.
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
	ctx     context.Context        // outlives the program
	hold    func(answer int) error // takes room for so many bytes of the answer
	memory  recalled
	folded  *folded       // nil for none
	failed  bool          // it may be that it had to be folded, and is not
	done    chan struct{} // the request is recorded; nil for one that records nothing
	request recorded      // set before done is closed
	made    chan struct{} // so is the prompt made
	prompt  string        // its id; set before made is closed
	first   chan struct{} // the program has the first of the answer, or gets none
	once    sync.Once     // closes first
}

// begun says that the program has the first of the answer, or gets none.
func (rec *recording) begun() {
	if rec != nil && rec.first != nil {
		rec.once.Do(func() { close(rec.first) })
	}
}

// begin does with a request what there is to do before it is sent, and begins to record it; nil
// where there is neither.
func (h *Handler) begin(r *http.Request, x *exchange) *recording {
	remember, record, fold := !slices.Contains(x.off, "memory"), !slices.Contains(x.off, "record"), !slices.Contains(x.off, "fold")
	if h.record == nil || x.dialect == foreign || !remember && !record {
		return nil
	}
	ctx := who(r.Context(), r.Header.Values(web.CredentialHeader))
	rec := &recording{h: h, dialect: x.dialect, ctx: context.WithoutCancel(ctx)}
	id, _ := auth.Of(ctx)
	own, _ := id.Named()
	p := place{id.Tenant(), cmp.Or(r.Header.Get(auth.AgentKey), own, Agent)}
	if !id.Owns(p.agent) { // what is known of the agent is not the caller's
		return rec.refused(record, status.Error(codes.PermissionDenied, auth.ErrAgentNotOwned.Error()))
	}
	request := toldTimes * len(x.body)
	rec.hold = func(answer int) error { return web.Hold(r, request+answer) }
	if err := rec.hold(0); err != nil {
		return rec.refused(record, server.StatusOf(ctx, err).Err())
	}
	t, err := x.dialect.parse(x.body, h.known)
	var shown chan *loombridgev1.AssembleResponse
	if record {
		rec.done, rec.made, rec.first, shown = make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan *loombridgev1.AssembleResponse, 1)
		body := x.body
		go func() { // beside the request
			defer close(rec.made)
			if rec.request.err = err; err != nil {
				close(rec.done)
				return
			}
			rec.record(p, r.Header.Get(auth.SessionKey), t, body, fold, shown)
		}()
	}
	if err != nil {
		return rec
	}
	if remember {
		rec.memory = h.memory.find(ctx, p, t)
	}
	prompt, err := within(ctx, shown)
	if prompt != nil {
		rec.folded, err = t.shown(x.dialect, x.body, prompt, rec.memory.added)
	}
	if rec.failed = err != nil; rec.failed {
		h.opts.Logger.Debug("a request was not folded", "error", err)
	}
	switch {
	case rec.folded != nil:
		x.body = replaced(x.body, t.list, rec.folded.conversation)
	case len(rec.memory.added) > 0:
		x.body = t.added(x.dialect, x.body, rec.memory.added)
	}
	return rec
}

// refused is the recording of a request that is passed on alone.
func (rec *recording) refused(record bool, why error) *recording {
	if !record {
		return nil
	}
	rec.done, rec.made = make(chan struct{}), make(chan struct{})
	rec.request.err = why
	close(rec.done)
	close(rec.made)
	return rec
}

// within is the prompt that a request is to show, once it is there; nil for none.
func within(ctx context.Context, shown <-chan *loombridgev1.AssembleResponse) (*loombridgev1.AssembleResponse, error) {
	if shown == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, foldTime)
	defer cancel()
	select {
	case prompt := <-shown:
		return prompt, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// record records a request, and has the session's prompt made of it: before it is sent where it
// may show less than the request has, else for its receipt, once the answer has begun.
func (rec *recording) record(p place, session string, t *talk, body []byte, fold bool, shown chan<- *loombridgev1.AssembleResponse) {
	ctx, cancel := context.WithTimeout(rec.ctx, recordTime)
	defer cancel()
	c, err := rec.h.record.find(ctx, p, session, t)
	var b bounds
	if fold = fold && err == nil && t.previous == "" && len(t.elements) > 0; fold {
		b, fold = rec.h.fold.bounds(ctx, c, t)
	}
	if !fold {
		shown <- nil
	}
	if rec.request.err = err; err == nil {
		rec.request = rec.h.record.request(ctx, c, session, t)
	}
	close(rec.done)
	if !fold && rec.request.err == nil {
		<-rec.first
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(rec.ctx, recordTime)
		defer cancel()
	}
	prompt := &loombridgev1.AssembleResponse{} // which shows nothing
	if rec.request.err == nil && rec.request.whole && rec.request.to.endsAt(rec.request.after) {
		made, err := rec.h.fold.made(ctx, rec.request.to, t, body, fold, b)
		if err != nil {
			rec.h.opts.Logger.Debug("a request has no prompt", "error", err)
		} else {
			prompt = made
		}
	}
	rec.prompt = prompt.GetReceipt().GetPromptId()
	if fold {
		shown <- prompt
	}
}

// parts are what OffHeader can name.
var parts = []string{"record", "fold", "memory"}

// off are the parts that are not to be done with a request. known is false where a name is of
// none: who mistypes it would not know what is done.
func off(r *http.Request) (names []string, known bool) {
	for _, list := range r.Header.Values(OffHeader) {
		for name := range strings.SplitSeq(list, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			if name != "" && !slices.Contains(parts, name) {
				return nil, false
			}
			names = append(names, name)
		}
	}
	return names, true
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
	switch {
	case rec.folded != nil:
		all = append(all, fmt.Sprintf("folded %d", rec.folded.changed))
	case rec.failed:
		all = append(all, "folded nothing")
	}
	if rec.memory.records > 0 {
		all = append(all, fmt.Sprintf("memory %d", rec.memory.records))
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
	hold   func(bytes int) error
	room   int // for so many bytes of text
}

// heardStep is for how much more of an answer there has to be room at a time.
const heardStep = 256 << 10

// listen prepares for an answer.
func (rec *recording) listen(a *http.Response) *heard {
	coding := a.Header.Get("Content-Encoding")
	if rec == nil || rec.done == nil || a.StatusCode != http.StatusOK || coding != "" && coding != "identity" {
		return nil
	}
	return &heard{events: strings.HasPrefix(a.Header.Get("Content-Type"), "text/event-stream"), hold: rec.hold}
}

func (s *heard) take(part []byte) {
	if s == nil || s.long {
		return
	}
	if n := len(s.text) + len(part); n > s.room {
		s.room = n + heardStep
		s.long = n > maxAnswerBytes || s.hold(toldTimes*s.room) != nil
	}
	if s.long {
		s.text = nil
		return
	}
	s.text = append(s.text, part...)
}

// end records an answer that has come whole, and reports what it says of the prompt's size.
func (rec *recording) end(s *heard) {
	if s == nil || s.long {
		return
	}
	<-rec.done
	if rec.request.err != nil {
		return
	}
	<-rec.made
	a := rec.dialect.read(s.text, s.events)
	if a == nil {
		return
	}
	ctx, cancel := context.WithTimeout(rec.ctx, recordTime)
	defer cancel()
	if ask := a.usage.report(rec.memory.tokens); rec.prompt != "" && !rec.failed && ask.GetPromptTokens() > 0 && rec.request.to.endsAt(rec.request.after) {
		ask.AgentId, ask.SessionId, ask.PromptId = rec.request.to.place.agent, rec.request.to.session, rec.prompt
		if _, err := rec.h.fold.prompts.ReportUsage(ctx, ask); err != nil {
			rec.h.opts.Logger.Debug("what a provider counted was not taken", "error", err)
		}
	}
	if err := rec.h.record.answer(ctx, rec.request, a); err != nil {
		rec.h.opts.Logger.Debug("an answer was not recorded", "error", err)
	}
}
