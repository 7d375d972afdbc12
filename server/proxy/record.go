package proxy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/hooks"
)

const (
	// Agent is whose log it is where a request names none by Loom-Agent-Id.
	Agent = "proxy"
	// maxMarks bounds the messages of the conversations that are remembered, 32 bytes each; of
	// others the log is read. One counts for besideMarks more.
	maxMarks    = 1 << 20
	besideMarks = 256
	// maxNames bounds the names of sessions by how they begin, and by the ids of answers.
	maxNames = 4096
	// maxItems bounds the items of a conversation that is recorded.
	maxItems = 20_000
	// maxSame bounds the sessions that are looked through for one that begins with the same
	// message; further conversations get sessions that only this process finds again.
	maxSame = 4
	// maxAppend bounds the messages of one call.
	maxAppend = 256
	// recordTime bounds the recording of a request or of an answer.
	recordTime = 30 * time.Second
	// pageEntries is how much of a log is read at a time.
	pageEntries = 1000
)

// conversation is a session that the proxy records, and what its log holds.
type conversation struct {
	place   place
	session string

	mu    sync.Mutex
	marks []mark // guarded by mu
	chain mark   // guarded by mu; of all marks in order
	// mu guards these: what the last prompt took, 0 for unknown, of how many bytes of a request it
	// was made, and whether it did not show all of it.
	tokens, bytes int
	folded        bool
}

// mayPass reports whether a request may take more than so many tokens; none is no bound. Where it
// goes on from a prompt that was counted, what is new takes at most a token for each byte.
func (c *conversation) mayPass(budget int, t *talk) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes := t.list.to - t.list.from
	if c.tokens > 0 {
		bytes = bytes - c.bytes + c.tokens
	}
	return budget > 0 && (c.folded || bytes > budget)
}

// took notes how many tokens the prompt of a request takes, or that it shows not all of it.
func (c *conversation) took(t *talk, tokens int, folded bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens, c.bytes, c.folded = tokens, t.list.to-t.list.from, folded
}

// endsAt reports whether the log has so many items.
func (c *conversation) endsAt(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.marks) == n
}

func (c *conversation) isFolded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.folded
}

// hold notes what the log has.
func (c *conversation) hold(marks ...mark) {
	for _, m := range marks {
		c.chain = c.chain.with(m)
	}
	c.marks = append(c.marks, marks...)
}

// place is whose conversation it is.
type place struct{ tenant, agent string }

// recorder adds what requests say to sessions. It is safe for concurrent use.
type recorder struct {
	sessions loombridgev1.SessionServiceClient

	mu      sync.Mutex                        // guards the fields below
	known   *cache.LRU[string, *conversation] // by place and session
	byFirst *cache.LRU[string, []string]      // sessions, by place and first mark
	byID    *cache.LRU[string, string]        // the session, by place and the id of an answer of Responses
}

func newRecorder(within grpc.ClientConnInterface) *recorder {
	r := &recorder{sessions: loombridgev1.NewSessionServiceClient(within)}
	r.forgetAll()
	return r
}

// forgetAll makes the next requests read their logs again.
func (r *recorder) forgetAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = cache.NewLRU[string, *conversation](maxMarks)
	r.byFirst, r.byID = cache.NewLRU[string, []string](maxNames), cache.NewLRU[string, string](maxNames)
}

func (p place) key(s string) string { return p.tenant + "\x00" + p.agent + "\x00" + s }

// who says in a context who calls, as the native API wants it.
func who(ctx context.Context, credential []string) context.Context {
	return metadata.NewOutgoingContext(ctx, metadata.MD{"authorization": credential})
}

// recorded is what became of a request.
type recorded struct {
	to    *conversation
	after int  // the items that its log has with it
	added int  // by it
	whole bool // the log has nothing else
	err   error
}

// request records what is new of a request in the conversation that was found for it.
func (r *recorder) request(ctx context.Context, c *conversation, session string, t *talk) (out recorded) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.continued(t.items, session != "" || t.previous != "")
	if first < 0 { // somebody else went on with it meanwhile
		c = r.fresh(c.place, t.items[0].mark)
		c.mu.Lock()
		defer c.mu.Unlock()
		first = 0
	}
	if err := r.add(ctx, c, t.items[first:]); err != nil {
		r.forget(c)
		return recorded{err: err}
	}
	r.keep(c, c.marks)
	return recorded{to: c, after: len(c.marks), added: len(t.items) - first, whole: first == len(c.marks)-(len(t.items)-first) && len(c.marks) == len(t.items)}
}

// answer records what was said to a request, unless the conversation went on without it.
func (r *recorder) answer(ctx context.Context, to recorded, a *answer) error {
	c := to.to
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.marks) != to.after {
		return nil
	}
	if err := r.add(ctx, c, a.items); err != nil {
		r.forget(c)
		return err
	}
	if a.id != "" {
		r.mu.Lock()
		r.byID.Put(c.place.key(a.id), c.session, 1)
		r.mu.Unlock()
	}
	return nil
}

// continued is the first of the items that the log does not have; -1 where they do not go on
// from it. A session that was named takes whatever is behind the last that both have.
func (c *conversation) continued(items []item, named bool) int {
	same := 0
	for same < len(items) && same < len(c.marks) && items[same].mark == c.marks[same] {
		same++
	}
	switch {
	case same == len(c.marks):
		return same
	case !named:
		return -1
	}
	last := c.marks[len(c.marks)-1]
	for i := len(items) - 1; i >= 0; i-- {
		if items[i].mark == last {
			return i + 1
		}
	}
	return same
}

// find returns the conversation of a request: that of the session it names, or the longest that it
// goes on from.
func (r *recorder) find(ctx context.Context, p place, session string, t *talk) (*conversation, error) {
	if len(t.items) > maxItems {
		return nil, status.Errorf(codes.ResourceExhausted, "there are more than %d messages", maxItems)
	}
	if session == "" && t.previous != "" {
		r.mu.Lock()
		session, _ = r.byID.Get(p.key(t.previous))
		r.mu.Unlock()
		session = cmp.Or(session, baseOf(sha256.Sum256([]byte(t.previous))))
	}
	if session != "" {
		return r.open(ctx, p, session)
	}
	if len(t.items) == 0 {
		return nil, status.Error(codes.InvalidArgument, "there is no message")
	}
	if c := r.longest(p, t.items); c != nil {
		return c, nil
	}
	base := baseOf(t.items[0].mark)
	for i := range maxSame {
		name := base
		if i > 0 {
			name += "-" + strconv.Itoa(i+1)
		}
		c, err := r.open(ctx, p, name)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		goesOn := c.continued(t.items, false) >= 0
		c.mu.Unlock()
		if goesOn {
			return c, nil
		}
	}
	return r.fresh(p, t.items[0].mark), nil
}

func baseOf(first mark) string { return "proxy-" + hex.EncodeToString(first[:8]) }

// fresh is a conversation of its own.
func (r *recorder) fresh(p place, first mark) *conversation {
	return &conversation{place: p, session: baseOf(first) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)}
}

// longest is the known conversation with the most of what items begin with; nil for none.
func (r *recorder) longest(p place, items []item) (best *conversation) {
	var candidates []*conversation
	r.mu.Lock()
	sessions, _ := r.byFirst.Get(p.key(string(items[0].mark[:])))
	for _, session := range sessions {
		if c := r.of(p.key(session)); c != nil {
			candidates = append(candidates, c)
		}
	}
	r.mu.Unlock()
	most := 0
	for _, c := range candidates {
		c.mu.Lock()
		if n := len(c.marks); n > most && n <= len(items) && c.marks[n-1] == items[n-1].mark && c.continued(items, false) >= 0 {
			best, most = c, n
		}
		c.mu.Unlock()
	}
	return best
}

// keep remembers a conversation. Its lock is held, or nobody else knows it.
func (r *recorder) keep(c *conversation, marks []mark) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.Put(c.place.key(c.session), c, min(len(marks)+besideMarks, maxMarks))
	if len(marks) == 0 {
		return
	}
	first := c.place.key(string(marks[0][:]))
	if all, _ := r.byFirst.Get(first); !slices.Contains(all, c.session) {
		r.byFirst.Put(first, append(slices.Clip(all), c.session), len(all)+1)
	}
}

// forget makes the next request read the log again.
func (r *recorder) forget(c *conversation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if key := c.place.key(c.session); r.of(key) == c {
		r.known.Delete(key)
	}
}

// of is the known conversation with a key; nil for none. The lock is held.
func (r *recorder) of(key string) *conversation {
	c, _ := r.known.Get(key)
	return c
}

// open returns the conversation of a session, whose log it reads unless it is known.
func (r *recorder) open(ctx context.Context, p place, session string) (*conversation, error) {
	r.mu.Lock()
	c := r.of(p.key(session))
	r.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c = &conversation{place: p, session: session}
	ask := &loombridgev1.ListConversationRequest{AgentId: p.agent, SessionId: session, PageSize: pageEntries}
	for {
		page, err := r.sessions.ListConversation(ctx, ask)
		if err != nil && status.Code(err) != codes.NotFound {
			return nil, err
		}
		for _, e := range page.GetEntries() {
			switch {
			case e.GetMessage() != nil:
				c.hold(markOf(e.GetMessage()))
			case e.GetStep() != nil:
				c.hold(stepMark(e.GetStep().GetCallId()))
			}
		}
		if ask.PageToken = page.GetNextPageToken(); ask.PageToken == "" || len(c.marks) > maxItems {
			break
		}
	}
	r.mu.Lock()
	other := r.of(p.key(session)) // somebody else read it, too
	r.mu.Unlock()
	if other != nil {
		return other, nil
	}
	r.keep(c, c.marks)
	return c, nil
}

// add adds items to a log. The lock of the conversation is held. The same items behind the same
// are one request, however often they are added.
func (r *recorder) add(ctx context.Context, c *conversation, items []item) error {
	for len(items) > 0 {
		n := slices.IndexFunc(items, func(i item) bool { return i.result != nil })
		if n < 0 {
			n = len(items)
		}
		n = min(n, maxAppend)
		id := sha256.New()
		id.Write([]byte(c.session))
		id.Write(c.chain[:])
		for _, m := range marksOf(items[:max(n, 1)]) {
			id.Write(m[:])
		}
		request := "proxy-" + hex.EncodeToString(id.Sum(nil)[:16])
		var err error
		if n == 0 {
			n = 1
			ask := items[0].step()
			ask.AgentId, ask.SessionId, ask.RequestId = c.place.agent, c.session, request
			err = hooks.RecordStep(ctx, r.sessions, ask, items[0].result.text, true)
		} else {
			ask := &loombridgev1.AppendMessagesRequest{AgentId: c.place.agent, SessionId: c.session, RequestId: request}
			for i := range items[:n] {
				ask.Messages = append(ask.Messages, items[i].said())
			}
			_, err = r.sessions.AppendMessages(ctx, ask)
		}
		if err != nil {
			return err
		}
		c.hold(marksOf(items[:n])...)
		items = items[n:]
	}
	return nil
}

func marksOf(items []item) []mark {
	out := make([]mark, len(items))
	for i := range items {
		out[i] = items[i].mark
	}
	return out
}
