package server_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

const (
	oldestFirst = loombridgev1.ConversationOrder_CONVERSATION_ORDER_OLDEST_FIRST
	newestFirst = loombridgev1.ConversationOrder_CONVERSATION_ORDER_NEWEST_FIRST
)

// listing reads conversations page by page.
type listing struct {
	*servertest.Server
	tb testing.TB
}

// all returns the entries of a session, and how many pages they took.
func (l listing) all(sessionID string, order loombridgev1.ConversationOrder, size int32) ([]*loombridgev1.ConversationEntry, int) {
	l.tb.Helper()
	r := &loombridgev1.ListConversationRequest{
		AgentId: agent, SessionId: sessionID, Order: order, PageSize: size,
	}
	var entries []*loombridgev1.ConversationEntry
	for pages := 1; ; pages++ {
		got, err := l.Context.ListConversation(convert.AskText(l.tb.Context()), r)
		must(l.tb, err)
		entries = append(entries, got.GetEntries()...)
		if r.PageToken = got.GetNextPageToken(); r.PageToken == "" {
			return entries, pages
		}
	}
}

// label says what an entry is.
func label(e *loombridgev1.ConversationEntry) string {
	text := fmt.Sprint(e.GetPosition())
	switch {
	case e.GetTask() != nil:
		return text + " task " + e.GetTask().GetTaskId()
	case e.GetStep() != nil:
		return text + " step " + e.GetStep().GetId()
	}
	return text + " " + e.GetMessage().GetContent()
}

func labels(entries []*loombridgev1.ConversationEntry) []string {
	all := make([]string, len(entries))
	for i, e := range entries {
		all[i] = label(e)
	}
	return all
}

func userSays(text string) *loombridgev1.Message {
	return &loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: text}
}

// A conversation comes back as it was said and done, from either end, in pages of
// any size: messages as they came, steps, and each task behind the step that it
// was recorded with.
//
// F02
func TestConversationComesBack(t *testing.T) {
	l := listing{servertest.Start(t, nil), t}
	user := &loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: "", BlocksJson: `[{"type":"text","text":"hi"}]`, Pinned: true, ExtraJson: `{"cache":1.0}`}
	asks := &loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT, Content: "I look.", ToolCalls: []*loombridgev1.ModelToolCall{
		{Id: "c1", Name: "shell_run", ArgumentsJson: `{"n": 9007199254740993}`, ExtraJson: `{"x":null}`},
	}}
	seen := &loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: "gave 7", Observation: true}
	_, err := l.Bridge.Emit(t.Context(), taskEvent("s", "node.planning", `{"task_id":"t0","result":"done"}`))
	must(t, err)
	_, err = l.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: "s", Messages: []*loombridgev1.Message{user, asks}})
	must(t, err)
	_, err = l.Context.RecordStep(t.Context(), withTask("s", &loombridgev1.Task{TaskId: "t1", Action: "execute", Result: "ran"}))
	must(t, err)
	_, err = l.Bridge.Emit(t.Context(), taskEvent("s", "node.thinking", `{"task_id":"t2","result":"hm"}`))
	must(t, err)
	_, err = l.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: "s", Messages: []*loombridgev1.Message{seen}})
	must(t, err)

	want := []string{"0 task t0", "1 ", "2 I look.", "3 step step_001", "3 task t1", "3 task t2", "4 gave 7"}
	reversed := slices.Clone(want)
	slices.Reverse(reversed)
	for size := int32(1); size <= 8; size++ {
		forward, pages := l.all("s", oldestFirst, size)
		if got := labels(forward); !slices.Equal(got, want) {
			t.Fatalf("pages of %d: %q, want %q", size, got, want)
		}
		if wantPages := (len(want) + int(size) - 1) / int(size); pages != wantPages {
			t.Errorf("%d pages of %d, want %d", pages, size, wantPages)
		}
		backward, _ := l.all("s", newestFirst, size)
		if got := labels(backward); !slices.Equal(got, reversed) {
			t.Fatalf("newest first, pages of %d: %q, want %q", size, got, reversed)
		}
	}
	entries, _ := l.all("s", 0, 0)
	for i, m := range map[int]*loombridgev1.Message{1: user, 2: asks, 6: seen} {
		if !proto.Equal(entries[i].GetMessage(), m) {
			t.Errorf("entry %d is %v, want %v", i, entries[i].GetMessage(), m)
		}
	}
	if got := entries[4].GetTask(); got.GetResult() != "ran" || got.GetAction() != "execute" {
		t.Errorf("the task is %v", got)
	}
	step, err := l.Context.GetStep(convert.AskText(t.Context()), &loombridgev1.GetStepRequest{AgentId: agent, StepId: "step_001"})
	must(t, err)
	if !proto.Equal(entries[3].GetStep(), step) {
		t.Errorf("the step is %v, want %v", entries[3].GetStep(), step)
	}
}

// A listing says by which batch prompts show an entry, and after Undo by none.
// Folding hides nothing from it.
//
// F02, B12
func TestConversationTellsWhatIsFolded(t *testing.T) {
	l := listing{servertest.Start(t, nil), t}
	c := &talk{tb: t, server: l.Server, session: "s", budget: 8000}
	c.say(userSays("Do the work."))
	for n := range 60 {
		id := c.ask("I look.", "bash", fmt.Sprintf(`{"command":"cat %d"}`, n))
		c.answer(id, strings.Repeat(fmt.Sprintf("line %d\n", n), 60))
	}
	compacted, err := l.Context.CompactHistory(t.Context(), &loombridgev1.CompactHistoryRequest{AgentId: agent, SessionId: "s"})
	must(t, err)
	entries, _ := l.all("s", oldestFirst, 50)
	folded := 0
	for _, e := range entries {
		in, ref := false, cmp.Or(e.GetStep().GetId(), session.MessageID(uint64(e.GetPosition())))
		for _, f := range compacted.GetFolds() {
			in = in || slices.Contains(eachRef(f.GetRefs()), ref)
		}
		if e.GetFoldBatch() != 0 {
			folded++
		}
		if in && e.GetFoldBatch() != compacted.GetBatch().GetNumber() || !in && e.GetFoldBatch() != 0 {
			t.Errorf("%s has the batch %d, within a fold: %v", label(e), e.GetFoldBatch(), in)
		}
		if e.GetMessage().GetRole() == loombridgev1.Role_ROLE_TOOL && strings.Count(e.GetMessage().GetContent(), "\n") != 60 {
			t.Errorf("%d does not come back whole", e.GetPosition())
		}
	}
	if len(entries) != 121 || folded < 80 {
		t.Errorf("%d entries, %d of them folded", len(entries), folded)
	}
	_, err = l.Context.Undo(t.Context(), &loombridgev1.UndoRequest{AgentId: agent, SessionId: "s"})
	must(t, err)
	entries, _ = l.all("s", newestFirst, 50)
	for _, e := range entries {
		if e.GetFoldBatch() != 0 {
			t.Fatalf("%s has the batch %d after Undo", label(e), e.GetFoldBatch())
		}
	}
}

// A page fits one message: what is longer together comes in several, the largest
// possible entry too.
func TestConversationFitsTheMessage(t *testing.T) {
	l := listing{servertest.Start(t, &servertest.Options{Server: server.Options{Limits: server.Limits{MaxSendBytes: 3 << 20}}}), t}
	for n := range 9 {
		text := strings.Repeat(string(rune('a'+n)), 1<<20-8)
		_, err := l.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{
			AgentId: agent, SessionId: "s", Messages: []*loombridgev1.Message{userSays(text)},
		})
		must(t, err)
	}
	for _, order := range []loombridgev1.ConversationOrder{oldestFirst, newestFirst} {
		entries, pages := l.all("s", order, 1000)
		if len(entries) != 9 || pages < 4 {
			t.Errorf("%v: %d entries on %d pages", order, len(entries), pages)
		}
	}
}

// What is added while somebody reads from the newest entry on does not turn up in
// the middle; who reads from the oldest one meets it at the end.
func TestConversationGoesOn(t *testing.T) {
	l := listing{servertest.Start(t, nil), t}
	add := func(n int) {
		t.Helper()
		_, err := l.Context.RecordStep(t.Context(), withTask("s", &loombridgev1.Task{TaskId: fmt.Sprint("t", n), Action: "execute"}))
		must(t, err)
	}
	for n := range 3 {
		add(n)
	}
	read := func(order loombridgev1.ConversationOrder, next int) string {
		t.Helper()
		r := &loombridgev1.ListConversationRequest{AgentId: agent, SessionId: "s", Order: order, PageSize: 1}
		got, err := l.Context.ListConversation(t.Context(), r)
		must(t, err)
		first := got.GetEntries()
		add(next)
		r.PageSize, r.PageToken = 1000, got.GetNextPageToken()
		got, err = l.Context.ListConversation(t.Context(), r)
		must(t, err)
		return strings.Join(labels(append(first, got.GetEntries()...)), ", ")
	}
	if got, want := read(oldestFirst, 3), "1 step step_001, 1 task t0, 2 step step_002, 2 task t1, 3 step step_003, 3 task t2, 4 step step_004, 4 task t3"; got != want {
		t.Errorf("oldest first: %s, want %s", got, want)
	}
	if got, want := read(newestFirst, 4), "4 task t3, 4 step step_004, 3 task t2, 3 step step_003, 2 task t1, 2 step step_002, 1 task t0, 1 step step_001"; got != want {
		t.Errorf("newest first: %s, want %s", got, want)
	}
}

// Sessions are listed in the order of their ids, with what is known of them: those
// that ended, those with tasks only, and none of another agent.
func TestSessionsAreListed(t *testing.T) {
	engine := memkv.New(nil)
	defer engine.Close()
	s := servertest.Start(t, &servertest.Options{Engine: engine})
	begun := s.Clock.Now()
	for _, id := range []string{"b", "a", "a\x01", "ab", "default", "é"} {
		_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: id, Messages: []*loombridgev1.Message{userSays("hi")}})
		must(t, err)
	}
	s.Clock.Advance(1e9)
	_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: "ab", Messages: []*loombridgev1.Message{userSays("ho")}})
	must(t, err)
	s.Clock.Advance(1e9)
	_, err = s.Bridge.Emit(t.Context(), taskEvent("only tasks", "node.thinking", `{"task_id":"t2","result":"hm"}`))
	must(t, err)
	_, err = s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: "other", SessionId: "canary", Messages: []*loombridgev1.Message{userSays("canary")}})
	must(t, err)
	_, err = s.Context.EndSession(t.Context(), &loombridgev1.EndSessionRequest{AgentId: agent, SessionId: "b"})
	must(t, err)
	_, err = s.Context.EndSession(t.Context(), &loombridgev1.EndSessionRequest{AgentId: agent, SessionId: "never begun"})
	must(t, err)

	want := []string{"a", "a\x01", "ab", "b", "default", "only tasks", "é"}
	for size := int32(1); size <= 8; size++ {
		var got []*loombridgev1.SessionInfo
		r := &loombridgev1.ListSessionsRequest{AgentId: agent, PageSize: size, IncludeClosed: true}
		for {
			page, err := s.Context.ListSessions(t.Context(), r)
			must(t, err)
			got = append(got, page.GetSessions()...)
			if r.PageToken = page.GetNextPageToken(); r.PageToken == "" {
				break
			}
		}
		ids := make([]string, len(got))
		for i, one := range got {
			ids[i] = one.GetSessionId()
			last, updated := int64(1), begun
			switch ids[i] {
			case "ab":
				last, updated = 2, begun.Add(1e9)
			case "only tasks":
				last, updated = 0, begun.Add(2e9)
			}
			if one.GetLastPosition() != last || one.GetEnded() != (ids[i] == "b") || !one.GetUpdateTime().AsTime().Equal(updated) {
				t.Errorf("%q is %v", ids[i], one)
			}
			if begin := one.GetBeginTime().AsTime(); !begin.Equal(begun) && ids[i] != "only tasks" {
				t.Errorf("%q begins at %v", ids[i], begin)
			}
		}
		if !slices.Equal(ids, want) {
			t.Fatalf("pages of %d: %q, want %q", size, ids, want)
		}
	}
	// The session of another agent, by its name.
	got, err := s.Context.ListConversation(t.Context(), &loombridgev1.ListConversationRequest{AgentId: agent, SessionId: "canary"})
	must(t, err)
	if proto.Size(got) != 0 {
		t.Errorf("a foreign session gives %v", got)
	}
}

// What is no token of the listing, or of its order, is refused.
func TestListingsRefuseOtherTokens(t *testing.T) {
	s := servertest.Start(t, nil)
	for range 2 {
		_, err := s.Context.RecordStep(t.Context(), withTask("s", nil))
		must(t, err)
	}
	got, err := s.Context.ListConversation(t.Context(), &loombridgev1.ListConversationRequest{AgentId: agent, SessionId: "s", PageSize: 1})
	must(t, err)
	for _, token := range []string{"x", "c1.", "c1.1", "c1.1.-1", "c1.1y2p0ij32e8e8.0", "c2.1.1", "p1.1", strings.Repeat("a", 129)} {
		_, err := s.Context.ListConversation(t.Context(), &loombridgev1.ListConversationRequest{AgentId: agent, SessionId: "s", PageToken: token})
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	}
	_, err = s.Context.ListConversation(t.Context(), &loombridgev1.ListConversationRequest{AgentId: agent, SessionId: "s", PageToken: got.GetNextPageToken(), Order: newestFirst})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	for _, token := range []string{"x", "i1.", "i1.!", got.GetNextPageToken()} {
		_, err := s.Context.ListSessions(t.Context(), &loombridgev1.ListSessionsRequest{AgentId: agent, PageToken: token})
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	}
}
