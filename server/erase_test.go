package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
)

// erase erases a subject and returns the result.
func erase(ctx context.Context, s *servertest.Server, r *loombridgev1.EraseScopeRequest) (result *loombridgev1.EraseResult, err error) {
	stream, err := s.Memory.EraseScope(ctx, r)
	if err != nil {
		return nil, err
	}
	for {
		got, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return result, nil
		case err != nil:
			return nil, err
		}
		result = got.GetResult()
	}
}

func eraseAgent(id string) *loombridgev1.EraseScopeRequest {
	return &loombridgev1.EraseScopeRequest{Subject: &loombridgev1.EraseSubject{Owner: &loombridgev1.EraseSubject_AgentId{AgentId: id}}}
}

func erasePerson(id string) *loombridgev1.EraseScopeRequest {
	return &loombridgev1.EraseScopeRequest{Subject: &loombridgev1.EraseSubject{Owner: &loombridgev1.EraseSubject_UserId{UserId: id}}}
}

func dry(r *loombridgev1.EraseScopeRequest) *loombridgev1.EraseScopeRequest {
	r.DryRun = true
	return r
}

// mark stands in all that an agent stores.
func mark(agent string) string { return "mark" + agent + "mark" }

// furnish has an agent do a bit of everything that leaves anything in the store.
func furnish(t *testing.T, s *servertest.Server, agent, other string) {
	t.Helper()
	ctx, m := t.Context(), mark(agent)
	last := ""
	for i := range 3 {
		r := &loombridgev1.MemorySaveRequest{
			AgentId: agent, Text: fmt.Sprintf("the %dth seal of %s", i, m), SessionId: "s", Key: fmt.Sprint(m, i), RequestId: fmt.Sprint(m, i),
			Embedding: []float32{1, float32(i)}, EmbeddingSpace: "mine", MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: fmt.Sprintf(`{"seal":%q}`, m)},
		}
		if i > 0 {
			r.Relations = []*loombridgev1.RelationTo{{Name: "after", ToId: last}}
		}
		saved, err := s.Bridge.MemorySave(ctx, r)
		must(t, err)
		last = saved.GetId()
	}
	_, err := s.Memory.UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Id{Id: last}, Archived: proto.Bool(true)})
	must(t, err)
	say(t, s, agent, "a word to "+m)
	for _, args := range []string{
		fmt.Sprintf(`{"path":"%s.txt","content":%q}`, agent, strings.Repeat("line of "+m+"\n", 2000)), fmt.Sprintf(`{"path":"%s.txt"}`, agent),
	} {
		name := "fs:write_file"
		if !strings.Contains(args, "content") {
			name = "fs:read_file"
		}
		_, err = s.Bridge.Tool(ctx, &loombridgev1.ToolRequest{AgentId: agent, SessionId: "s", Name: name, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: args}})
		must(t, err)
	}
	for i, from := range []string{agent, other, agent} {
		_, err = s.Bridge.Emit(ctx, &loombridgev1.EmitRequest{AgentId: from, SessionId: "s", Topic: "seals", RequestId: fmt.Sprint(m, i), PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: fmt.Sprintf(`{"of":%q}`, mark(from))}})
		must(t, err)
		_, err = s.Events.SendMessage(ctx, &loombridgev1.SendMessageRequest{AgentId: from, Message: &loombridgev1.DirectMessage{SessionId: "s", TargetAgentId: "box", Content: "from " + mark(from), Ttl: nil}})
		must(t, err)
	}
	goal := "guard " + m
	_, err = s.Context.UpdateWorking(ctx, &loombridgev1.UpdateWorkingRequest{AgentId: agent, SessionId: "s", Goal: &goal})
	must(t, err)
	prompt(t, s, agent)
	_, err = s.Context.SpawnAgent(ctx, &loombridgev1.SpawnAgentRequest{AgentId: agent, SessionId: "s", ChildId: agent + "child", Goal: "watch the sea", ForkFrom: new("")})
	must(t, err)
}

func say(t *testing.T, s *servertest.Server, agent, text string) {
	t.Helper()
	_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: "s", Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: text}}})
	must(t, err)
}

// prompt is the text of an agent's prompt.
func prompt(t *testing.T, s *servertest.Server, agent string) string {
	t.Helper()
	p, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s", Goal: "a goal", MaxTokens: 100_000})
	must(t, err)
	return p.String()
}

// holding are the entries of a store that hold a text, or stand under a scope.
func holding(t *testing.T, engine kv.Engine, text string, under kv.Scope) (all []string) {
	t.Helper()
	for _, ks := range kv.Keyspaces() {
		for p, err := range engine.Scan(t.Context(), ks, kv.Range{}) {
			must(t, err)
			scope, _, err := kv.SplitKey(p.Key)
			must(t, err)
			if scope == under || strings.Contains(string(p.Key)+string(p.Value), text) {
				all = append(all, fmt.Sprintf("%s %q = %q", ks, p.Key, p.Value))
			}
		}
	}
	return all
}

// unlinked leaves out the links of the audit's chain, which are written in the background.
func unlinked(entries []string) []string {
	return slices.DeleteFunc(slices.Clone(entries), func(e string) bool { return strings.Contains(e, `yaudit\x00l`) })
}

// under are the entries of scopes.
func under(t *testing.T, engine kv.Engine, scopes ...kv.Scope) (all []string) {
	t.Helper()
	for _, scope := range scopes {
		all = append(all, holding(t, engine, "no such text", scope)...)
	}
	return all
}

// exported are the lines of a memory's export.
func exported(t *testing.T, s *servertest.Server, agent string) (lines []string) {
	t.Helper()
	stream, err := s.Transfer.Export(t.Context(), &loombridgev1.ExportRequest{AgentId: agent})
	must(t, err)
	for {
		got, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return lines
		}
		must(t, err)
		lines = append(lines, got.GetLines()...)
	}
}

// An agent is erased from a running server: nothing of it is in the store or in any answer,
// what others have is as it was byte for byte, and the agent begins anew when it comes back.
// A dry run and the erasing of nobody change nothing and say so.
//
// Y28
func TestEraseScope(t *testing.T) {
	t.Parallel()
	engine := memkv.New(nil)
	t.Cleanup(func() { must(t, engine.Close()) })
	s := servertest.Start(t, &servertest.Options{Engine: engine})
	ctx := t.Context()
	furnish(t, s, "b", "c")
	furnish(t, s, "a", "b")
	a, b := kv.AgentScope("default", "a"), kv.AgentScope("default", "b")
	whole, neighbour, lines := holding(t, engine, "", a), under(t, engine, b), exported(t, s, "b")
	if len(lines) < 3 || len(neighbour) < 50 {
		t.Fatalf("b has %d lines and %d entries", len(lines), len(neighbour))
	}

	counted, err := erase(ctx, s, dry(eraseAgent("a")))
	must(t, err)
	if now := holding(t, engine, "", a); !slices.Equal(unlinked(now), unlinked(whole)) {
		t.Errorf("a dry run has changed the store, or says otherwise: %v", counted)
	}
	for _, r := range []*loombridgev1.EraseScopeRequest{eraseAgent("nobody"), dry(eraseAgent("nobody")), erasePerson("a")} {
		_, err := erase(ctx, s, r)
		MustFail(t, err, codes.NotFound, "SUBJECT_NOT_FOUND")
	}
	done, err := erase(ctx, s, eraseAgent("a"))
	must(t, err)
	for _, kind := range []string{"records", "versions", "vectors", "relations", "log_entries", "steps", "sessions", "prompts", "blobs", "events", "messages", "children", "audit_records"} {
		if n := done.GetCounts()[kind]; n == 0 || n != counted.GetCounts()[kind] {
			t.Errorf("%d %s were erased, a dry run found %d", n, kind, counted.GetCounts()[kind])
		}
	}
	if done.GetEntries() != counted.GetEntries() || done.GetBytes() != counted.GetBytes() || done.GetResumed() ||
		done.GetBytesState() != loombridgev1.EraseBytesState_ERASE_BYTES_STATE_KEPT {
		t.Errorf("the result is %v, a dry run's %v", done, counted)
	}
	if left := holding(t, engine, mark("a"), a); len(left) > 0 {
		t.Errorf("in the store is left %q", left)
	}
	if now := under(t, engine, b); !slices.Equal(now, neighbour) {
		t.Errorf("b has %d entries that differ from its %d before", len(now), len(neighbour))
	}
	if now := exported(t, s, "b"); !slices.Equal(now, lines) {
		t.Errorf("b exports %q, before %q", now, lines)
	}

	// Whatever is asked for says nothing of it.
	hits, err := s.Bridge.MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "seal", IncludeArchived: true})
	must(t, err)
	list, err := s.Memory.ListRecords(ctx, &loombridgev1.ListRecordsRequest{AgentId: "a", Filter: "archived = true OR archived = false"})
	must(t, err)
	_, err = s.Memory.GetRecord(ctx, &loombridgev1.GetRecordRequest{AgentId: "a", Name: &loombridgev1.GetRecordRequest_Key{Key: mark("a") + "0"}})
	MustFail(t, err, codes.NotFound, "RECORD_NOT_FOUND")
	steps, err := s.Context.ListSteps(ctx, &loombridgev1.ListStepsRequest{AgentId: "a", SessionId: "s"})
	must(t, err)
	sessions, err := s.Context.ListSessions(ctx, &loombridgev1.ListSessionsRequest{AgentId: "a"})
	must(t, err)
	blobs, err := s.Context.ListBlobs(ctx, &loombridgev1.ListBlobsRequest{AgentId: "a"})
	must(t, err)
	audit, err := s.Tools.ListAudit(ctx, &loombridgev1.ListAuditRequest{AgentId: "b"})
	must(t, err)
	box, err := s.Events.ListMessages(ctx, &loombridgev1.ListMessagesRequest{AgentId: "box"})
	must(t, err)
	said := fmt.Sprint(hits, list, steps, sessions, blobs, audit, box, strings.Join(topicOf(t, s, "seals", 6), "\n"))
	if strings.Contains(said, mark("a")) || len(hits.GetHits())+len(list.GetRecords())+len(steps.GetSteps())+len(sessions.GetSessions())+len(blobs.GetBlobs()) > 0 {
		t.Errorf("answers say %s", said)
	}
	if strings.Count(said, mark("b")) < 4 || strings.Count(said, "loom.erased") != 2 {
		t.Errorf("of what others did answers say %s", said)
	}

	// It comes back under the same names, and nothing remembers it.
	say(t, s, "a", "a first word")
	if p := prompt(t, s, "a"); strings.Contains(p, mark("a")) || !strings.Contains(p, "a first word") {
		t.Errorf("its first prompt is %s", p)
	}
	_, err = erase(ctx, s, eraseAgent("a"))
	must(t, err)
	_, err = erase(ctx, s, eraseAgent("a"))
	MustFail(t, err, codes.NotFound, "SUBJECT_NOT_FOUND")
}

// topicOf are the first events of a topic.
func topicOf(t *testing.T, s *servertest.Server, topic string, n int) (all []string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stream, err := s.Events.Subscribe(ctx, &loombridgev1.SubscribeRequest{AgentId: "b", Topics: []*loombridgev1.TopicPosition{{Topic: topic, AfterSequence: new(int64)}}})
	must(t, err)
	for len(all) < n {
		got, err := stream.Recv()
		must(t, err)
		if e := got.GetEvent(); e != nil {
			all = append(all, e.String())
		}
	}
	return all
}

// A person's memory goes with the prompts that may have shown it, and nothing else does.
//
// Y28
func TestEraseScopeOfAPerson(t *testing.T) {
	t.Parallel()
	engine := memkv.New(nil)
	t.Cleanup(func() { must(t, engine.Close()) })
	s := servertest.Start(t, &servertest.Options{Engine: engine})
	ctx := t.Context()
	for _, user := range []string{"u", "v"} {
		for _, agent := range []string{"a", "b"} {
			_, err := s.Bridge.MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: agent, UserId: user, Text: "a goal of " + mark(user) + " told by " + agent, Key: mark(user) + agent})
			must(t, err)
		}
	}
	_, err := s.Bridge.MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "a goal of its own"})
	must(t, err)
	_, err = s.Context.ConfigureSession(ctx, &loombridgev1.ConfigureSessionRequest{AgentId: "a", SessionId: "s", Prompt: &loombridgev1.PromptSettings{UserId: "u"}})
	must(t, err)
	say(t, s, "a", "what is the goal?")
	if p := prompt(t, s, "a"); !strings.Contains(p, mark("u")) {
		t.Fatalf("the prompt does not show the memory: %s", p)
	}
	v := kv.Scope{Tenant: "default", Kind: kv.OwnerUser, Owner: "v"}
	other, own := under(t, engine, v), exported(t, s, "a")
	done, err := erase(ctx, s, erasePerson("u"))
	must(t, err)
	if done.GetCounts()["records"] != 2 || done.GetCounts()["prompts"] != 1 {
		t.Errorf("erased were %v", done)
	}
	u := v
	u.Owner = "u"
	if left := holding(t, engine, mark("u"), u); len(left) > 0 {
		t.Errorf("left is %q", left)
	}
	if !slices.Equal(under(t, engine, v), other) || !slices.Equal(exported(t, s, "a"), own) {
		t.Error("what others have is not as it was")
	}
	if p := prompt(t, s, "a"); strings.Contains(p, mark("u")) {
		t.Errorf("the next prompt is %s", p)
	}
}

// Only who operates the server erases anybody: no agent itself, and no tenant another's.
//
// Y28
func TestEraseScopeOfCallers(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Credentials: MustCredentials(t, `
[[credential]]
token = "a"
tenant = "acme"
agents = ["a"]
[[credential]]
token = "all"
tenant = "acme"
agents = ["*"]
[[credential]]
token = "root"
tenant = "acme"
agents = ["root"]
operates = true
[[credential]]
token = "foreign"
tenant = "umbrella"
agents = ["*"]
`)}})
	as := func(token string) context.Context { return withToken(t.Context(), "Bearer "+token) }
	for token, user := range map[string]string{"a": "", "all": "u", "foreign": ""} {
		_, err := s.Bridge.MemorySave(as(token), &loombridgev1.MemorySaveRequest{AgentId: "a", UserId: user, Text: "a seal"})
		must(t, err)
	}
	in := func(tenant string, r *loombridgev1.EraseScopeRequest) *loombridgev1.EraseScopeRequest {
		r.Subject.Tenant = tenant
		return r
	}
	for _, token := range []string{"a", "all", "foreign"} {
		for _, r := range []*loombridgev1.EraseScopeRequest{
			eraseAgent("a"), dry(eraseAgent("a")), erasePerson("u"), in("acme", eraseAgent("a")), in("umbrella", eraseAgent("a")), eraseAgent("nobody"),
		} {
			_, err := erase(as(token), s, r)
			MustFail(t, err, codes.PermissionDenied, "OPERATOR_REQUIRED")
		}
	}
	_, err := erase(as("wrong"), s, eraseAgent("a"))
	MustFail(t, err, codes.Unauthenticated, "UNAUTHENTICATED")
	for _, bad := range []*loombridgev1.EraseScopeRequest{
		{}, {Subject: &loombridgev1.EraseSubject{}}, eraseAgent(""), erasePerson(""), eraseAgent(strings.Repeat("x", 257)), erasePerson("a\x00b"), in("a\x00b", eraseAgent("a")),
	} {
		_, err := erase(as("root"), s, bad)
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	}
	for _, r := range []*loombridgev1.EraseScopeRequest{eraseAgent("a"), erasePerson("u"), in("umbrella", eraseAgent("a"))} {
		if done, err := erase(as("root"), s, r); err != nil || done.GetCounts()["records"] != 1 {
			t.Errorf("who operates erases %v: %v, %v", r, done, err)
		}
	}
}

// stopping is an engine that stops at a write until it is told, or dies at one: nothing is
// written any more then.
type stopping struct {
	kv.Engine
	left  atomic.Int64 // writes until it dies; negative: it does not
	stop  chan struct{}
	there chan struct{} // gets a token where a drop waits
}

func newStopping(engine kv.Engine, left int64) *stopping {
	s := &stopping{Engine: engine, there: make(chan struct{}, 1)}
	s.left.Store(left)
	return s
}

func (s *stopping) write() error {
	for {
		left := s.left.Load()
		if left == 0 {
			return kv.ErrFailed
		}
		if left < 0 || s.left.CompareAndSwap(left, left-1) {
			return nil
		}
	}
}

func (s *stopping) Commit(ctx context.Context, c kv.Commit) error {
	if err := s.write(); err != nil {
		return err
	}
	return s.Engine.Commit(ctx, c)
}

func (s *stopping) DropRange(ctx context.Context, ks kv.Keyspace, r kv.Range) error {
	if s.stop != nil {
		select {
		case s.there <- struct{}{}:
		default:
		}
		<-s.stop
	}
	if err := s.write(); err != nil {
		return err
	}
	return s.Engine.(kv.RangeDropper).DropRange(ctx, ks, r)
}

// While an agent is erased its streams are ended and its calls refused, over either API;
// others go on. A second call for it waits for the same end.
//
// Y28
func TestEraseScopeMeanwhile(t *testing.T) {
	t.Parallel()
	inner := memkv.New(nil)
	t.Cleanup(func() { must(t, inner.Close()) })
	engine := newStopping(inner, -1)
	engine.stop = make(chan struct{})
	goOn := sync.OnceFunc(func() { close(engine.stop) })
	s := servertest.Start(t, &servertest.Options{Engine: engine})
	t.Cleanup(goOn)
	ctx := t.Context()
	furnish(t, s, "a", "b")
	for _, agent := range []string{"a", "b"} {
		_, err := s.Bridge.MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: agent, UserId: "u", Text: "a seal"})
		must(t, err)
	}
	attached := MustAttach(t, ctx, s.Bridge, &loombridgev1.AttachHello{AgentId: "a"}).stream
	watching, err := s.Memory.WatchRecords(ctx, &loombridgev1.WatchRecordsRequest{AgentId: "a"})
	must(t, err)
	_, err = watching.Recv()
	must(t, err)

	first := make(chan error, 1)
	go func() {
		result, err := erase(ctx, s, eraseAgent("a"))
		if err == nil && (result.GetCounts()["records"] != 3 || result.GetResumed()) {
			err = fmt.Errorf("the first call got %v", result)
		}
		first <- err
	}()
	<-engine.there
	for err = nil; err == nil; {
		_, err = attached.Recv()
	}
	MustFail(t, err, codes.FailedPrecondition, "BEING_ERASED")
	for err = nil; err == nil; {
		_, err = watching.Recv()
	}
	MustFail(t, err, codes.FailedPrecondition, "BEING_ERASED")
	_, err = s.Bridge.MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "once more"})
	MustFail(t, err, codes.FailedPrecondition, "BEING_ERASED")
	_, err = s.Bridge.MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "seal"})
	MustFail(t, err, codes.FailedPrecondition, "BEING_ERASED")
	_, err = s.Context.Assemble(ctx, &loombridgev1.AssembleRequest{AgentId: "a", SessionId: "s", MaxTokens: 1000})
	MustFail(t, err, codes.FailedPrecondition, "BEING_ERASED")
	_, err = s.LoomMemory.SavePlan(ctx, &loomv1pb.SavePlanRequest{SessionId: "a", Plan: &loomv1pb.PlanRecord{}})
	if code := codeOf(err); code != codes.FailedPrecondition {
		t.Errorf("over loom.v1: %v", err)
	}
	// One that reaches the domain on another way meets the writer's bar.
	_, err = s.Events.SendMessage(ctx, &loombridgev1.SendMessageRequest{AgentId: "b", Message: &loombridgev1.DirectMessage{TargetAgentId: "a", Content: "hello"}})
	MustFail(t, err, codes.FailedPrecondition, "BEING_ERASED")
	_, err = erase(ctx, s, eraseAgent("b"))
	MustFail(t, err, codes.Aborted, "ERASURE_RUNNING")
	if _, err = erase(ctx, s, dry(eraseAgent("b"))); err != nil {
		t.Errorf("a dry run beside it: %v", err)
	}
	for user, text := range map[string]string{"": "its own", "u": "the person's"} {
		if _, err := s.Bridge.MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: "b", UserId: user, Text: text}); err != nil {
			t.Errorf("another agent: %v", err)
		}
	}
	second, err := s.Memory.EraseScope(ctx, eraseAgent("a"))
	must(t, err)
	got, err := second.Recv() // it waits
	must(t, err)
	if got.GetStep() != loombridgev1.EraseStep_ERASE_STEP_ERASING {
		t.Errorf("the second call hears %v", got)
	}
	goOn()
	must(t, <-first)
	for got.GetResult() == nil {
		got, err = second.Recv()
		must(t, err)
	}
	if r := got.GetResult(); r.GetCounts()["records"] != 3 || !r.GetResumed() {
		t.Errorf("the second call got %v", r)
	}
	if _, err = s.Bridge.MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "anew"}); err != nil {
		t.Errorf("when it is over: %v", err)
	}
}

// A server that dies at any write of an erasure leaves what the next one ends by itself: the
// same is gone and the same is left. Until it is through, the subject is refused.
//
// Y28
func TestEraseScopeKilled(t *testing.T) {
	t.Parallel()
	made := memkv.New(nil)
	t.Cleanup(func() { must(t, made.Close()) })
	s := servertest.Start(t, &servertest.Options{Engine: made})
	furnish(t, s, "b", "c")
	furnish(t, s, "a", "b")
	must(t, s.Face.Shutdown(t.Context())) // what writes in the background is left alone: a twin has all of one moment
	a, b := kv.AgentScope("default", "a"), kv.AgentScope("default", "b")
	deaths := int64(0)
	for died := true; died; {
		engine := twin(t, made)
		neighbour := under(t, engine, b)
		t.Run(fmt.Sprint("dies at write ", deaths), func(t *testing.T) {
			dying := newStopping(engine, -1)
			s := servertest.Start(t, &servertest.Options{Engine: dying})
			dying.left.Store(deaths)
			_, err := erase(t.Context(), s, eraseAgent("a"))
			died = err != nil
		})
		intents := holding(t, engine, "yerasures#", kv.Scope{})
		t.Run(fmt.Sprint("goes on behind write ", deaths), func(t *testing.T) {
			s := servertest.Start(t, &servertest.Options{Engine: engine})
			done, err := erase(t.Context(), s, eraseAgent("a"))
			switch {
			case !died:
				MustFail(t, err, codes.NotFound, "SUBJECT_NOT_FOUND")
			case len(intents) > 0 && codeOf(err) == codes.NotFound: // it was through before the call came
			case err != nil || done.GetCounts()["records"] != 3 || done.GetResumed() != (len(intents) > 0):
				t.Errorf("with %d intents: %v, %v", len(intents), done, err)
			}
		})
		if left := holding(t, engine, mark("a"), a); len(left) > 0 {
			t.Fatalf("%d writes: left is %q", deaths, left)
		}
		if now := under(t, engine, b); !slices.Equal(now, neighbour) {
			t.Fatalf("%d writes: what b has is not as it was", deaths)
		}
		deaths++
	}
	if deaths < 10 {
		t.Errorf("it died %d times", deaths)
	}
}

// twin is a store with the same entries.
func twin(t *testing.T, of kv.Engine) kv.Engine {
	t.Helper()
	engine := memkv.New(nil)
	t.Cleanup(func() { must(t, engine.Close()) })
	for _, ks := range kv.Keyspaces() {
		for scope, err := range kv.Scopes(t.Context(), of, ks) {
			must(t, err)
			batch := new(kv.Batch)
			for p, err := range of.Scan(t.Context(), ks, kv.Prefix(scope.AppendPrefix(nil))) {
				must(t, err)
				batch.Put(ks, p.Key, p.Value)
			}
			must(t, engine.Commit(t.Context(), kv.Commit{Guards: []kv.Guard{{Ref: kv.Ref{Keyspace: ks, Scope: scope}}}, Batch: batch}))
		}
	}
	return engine
}
