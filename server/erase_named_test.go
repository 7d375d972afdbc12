package server_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/bridge/erasure"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Ids that stand nowhere by chance.
const (
	goneAgent = "agent-to-be-erased-5c1e"
	goneUser  = "person-to-be-erased-77d0"
	keptAgent = "agent-that-stays-20b9"
	otherUser = "person-that-stays-91aa"
)

// certified is the certificate of a result, which must hold.
func certified(t *testing.T, r *loombridgev1.EraseResult) *erasure.Certificate {
	t.Helper()
	c, err := erasure.Parse([]byte(r.GetCertificate()))
	must(t, err)
	must(t, c.Verify(nil))
	if c.Left != 0 {
		t.Errorf("the certificate is %+v, the result %v", c, r)
	}
	return c
}

// named are the entries of a store that hold a text, in key or value, but for sequences: these
// a running server keeps.
func named(t *testing.T, engine kv.Engine, text string) (all []string) {
	t.Helper()
	for _, ks := range kv.Keyspaces() {
		for p, err := range engine.Scan(t.Context(), ks, kv.Range{}) {
			must(t, err)
			if strings.Contains(string(p.Key)+string(p.Value), text) && !kv.IsReserved(p.Key) {
				all = append(all, fmt.Sprintf("%s %q = %q", ks, p.Key, p.Value))
			}
		}
	}
	return all
}

// byOwner counts the entries of a store that hold a text by the package that owns them.
func byOwner(t *testing.T, engine kv.Engine, text string) map[string]int {
	t.Helper()
	counts := make(map[string]int)
	for _, ks := range kv.Keyspaces() {
		for p, err := range engine.Scan(t.Context(), ks, kv.Range{}) {
			must(t, err)
			if !strings.Contains(string(p.Key)+string(p.Value), text) || kv.IsReserved(p.Key) {
				continue
			}
			scope, rest, err := kv.SplitKey(p.Key)
			must(t, err)
			for _, o := range erasure.Owners() {
				for i := range o.Sorts {
					if o.Sorts[i].Has(ks, scope, rest[0]) {
						counts[ks.String()+" of "+o.Name]++
					}
				}
			}
		}
	}
	return counts
}

func saveShared(t *testing.T, s *servertest.Server, agent, user, space, session, text string) string {
	t.Helper()
	saved, err := s.Bridge.MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{
		AgentId: agent, UserId: user, SpaceId: space, SessionId: session, Text: text, Embedding: []float32{1, 2}, EmbeddingSpace: "of " + user + space,
	})
	must(t, err)
	return saved.GetId()
}

// plantNames has an agent leave its id in every place of others that the API leads to.
func plantNames(t *testing.T, s *servertest.Server, engine kv.Engine) {
	t.Helper()
	ctx := t.Context()
	furnish(t, s, keptAgent, "c")
	furnish(t, s, goneAgent, keptAgent)
	share := func(space, by, grantee string, access loombridgev1.Access) {
		t.Helper()
		_, err := s.Sharing.GrantAccess(ctx, &loombridgev1.GrantAccessRequest{AgentId: by, Owner: &loombridgev1.GrantAccessRequest_SpaceId{SpaceId: space}, Grantee: grantee, Access: access})
		must(t, err)
	}
	mustCreate(t, s, goneAgent, "made")
	share("made", goneAgent, keptAgent, loombridgev1.Access_ACCESS_WRITE)
	mustCreate(t, s, keptAgent, "joined")
	share("joined", keptAgent, goneAgent, loombridgev1.Access_ACCESS_ADMIN)
	share("joined", goneAgent, "third", loombridgev1.Access_ACCESS_READ)
	for _, m := range []memoryOf{{user: otherUser}, {space: "made"}, {space: "joined"}} {
		id := saveShared(t, s, goneAgent, m.user, m.space, "s", "the first seal")
		_, err := s.Memory.UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{
			AgentId: goneAgent, UserId: m.user, SpaceId: m.space, Name: &loombridgev1.UpdateRecordRequest_Id{Id: id}, Record: &loombridgev1.MemorySaveRequest{Text: "the first seal, again"},
		})
		must(t, err)
		saveShared(t, s, keptAgent, m.user, m.space, "s", "another seal")
	}
	_, err := s.Context.RecordStep(ctx, &loombridgev1.RecordStepRequest{
		AgentId: keptAgent, SessionId: "s", ToolName: "own:tool", Success: true, OutputForm: &loombridgev1.RecordStepRequest_OutputJson{OutputJson: `{}`},
		Task: &loombridgev1.Task{Action: "guard", SourceAgent: goneAgent, TargetAgent: goneAgent},
	})
	must(t, err)
	_, err = s.Events.SendMessage(ctx, &loombridgev1.SendMessageRequest{AgentId: keptAgent, Message: &loombridgev1.DirectMessage{TargetAgentId: goneAgent, Content: "to you"}})
	must(t, err)
	_, err = s.Context.SpawnAgent(ctx, &loombridgev1.SpawnAgentRequest{AgentId: keptAgent, SessionId: "s", ChildId: goneAgent + "-child-of-other", Goal: "watch"})
	must(t, err)
	// What only several servers, and a person who approves, write.
	list := func(name string, tag byte, tail, value []byte) {
		scope := kv.Scope{Tenant: "default", Kind: kv.OwnerSystem, Owner: name}
		batch := new(kv.Batch)
		batch.Put(kv.System, scope.Key(tag, tail), value)
		sequence, err := engine.Sequence(ctx, kv.Ref{Keyspace: kv.System, Scope: scope})
		must(t, err)
		must(t, engine.Commit(ctx, kv.Commit{Guards: []kv.Guard{{Ref: kv.Ref{Keyspace: kv.System, Scope: scope}, Sequence: sequence[0]}}, Batch: batch}))
	}
	list("workspaces", 'w', []byte(goneAgent), wire.AppendText(nil, 1, "host:/folder"))
	for i, field := range []int{4, 6, 8} {
		list("approvals", 'g', fmt.Appendf(nil, "%032d", i), wire.AppendText(wire.AppendText(nil, 1, "tool"), field, goneAgent))
	}
	list("gaps", 'k', make([]byte, 32), wire.AppendText(nil, 1, goneAgent))
}

// Wherever an agent's id stood in what others have, it does not after it was erased; the
// certificate holds, and a space that it made goes on.
//
// Y23, Y28
func TestEraseScopeFindsAnAgentEverywhere(t *testing.T) {
	t.Parallel()
	for _, shared := range []loombridgev1.EraseShared{loombridgev1.EraseShared_ERASE_SHARED_AUTHORSHIP, loombridgev1.EraseShared_ERASE_SHARED_RECORDS} {
		t.Run(shared.String(), func(t *testing.T) {
			t.Parallel()
			engine := memkv.New(nil)
			t.Cleanup(func() { must(t, engine.Close()) })
			s := servertest.Start(t, &servertest.Options{Engine: engine})
			plantNames(t, s, engine)
			planted := byOwner(t, engine, goneAgent)
			r := eraseAgent(goneAgent)
			r.Shared = shared
			counted, err := erase(t.Context(), s, dry(eraseAgent(goneAgent)))
			must(t, err)
			r.DryRun = false
			done, err := erase(t.Context(), s, r)
			must(t, err)
			if n := done.GetCounts()["shared_records"]; n != 6 || n != counted.GetCounts()["shared_records"] { // three with a version each
				t.Errorf("%d shared records are counted, a dry run found %v", n, counted)
			}
			c := certified(t, done)
			if c.Subject.ID != goneAgent || c.Found != done.GetEntries() || len(c.NotClaimed) == 0 {
				t.Errorf("the certificate is %+v", c)
			}
			inText := int64(0)
			for _, n := range c.Quoted {
				inText += n
			}
			left := slices.DeleteFunc(named(t, engine, goneAgent), func(e string) bool {
				// A child of another keeps its own name; so do topics that are named after an agent.
				return strings.Contains(e, goneAgent+"-child-of-other") || strings.Contains(e, goneAgent+"child") || strings.HasPrefix(e, "events") && strings.Contains(e, "tagent."+goneAgent)
			})
			if len(left) > 0 {
				t.Errorf("%d entries are left: %s", len(left), strings.Join(left, "\n"))
			}
			after := byOwner(t, engine, goneAgent)
			for _, place := range slices.Sorted(maps.Keys(planted)) {
				t.Logf("%-32s %4d entries named the agent; %d do, in words and names of others", place, planted[place], after[place])
			}
			if len(planted) < 14 {
				t.Errorf("the agent's id stands only in %v", planted)
			}
			t.Logf("in texts of others: %v", c.Quoted)
			for _, m := range []memoryOf{{user: otherUser}, {space: "made"}, {space: "joined"}} {
				texts, err := textsOf(t.Context(), s, keptAgent, m)
				must(t, err)
				want := 2
				if shared == loombridgev1.EraseShared_ERASE_SHARED_RECORDS {
					want = 1
				}
				if len(texts) != want {
					t.Errorf("%v has %q", m, texts)
				}
				hits, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: keptAgent, UserId: m.user, SpaceId: m.space, Query: "seal"})
				must(t, err)
				if len(hits.GetHits()) != want {
					t.Errorf("%v: a query finds %v", m, hits)
				}
			}
			if _, err := erase(t.Context(), s, eraseAgent(goneAgent)); codeOf(err) != codes.NotFound {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// promptWith makes a prompt with the memory of a person; empty for nobody's.
func promptWith(t *testing.T, s *servertest.Server, agent, user string) *loombridgev1.AssembleResponse {
	t.Helper()
	p, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
		AgentId: agent, SessionId: "s", Goal: "a seal", MaxTokens: 100_000, Settings: &loombridgev1.PromptSettings{UserId: user, System: "You are " + agent},
	})
	must(t, err)
	return p
}

// With a person the prompts go that were made with the person's memory. All others come back
// as they were, and are compared.
//
// Y28
func TestEraseScopeOfAPersonKeepsOtherPrompts(t *testing.T) {
	t.Parallel()
	engine := memkv.New(nil)
	t.Cleanup(func() { must(t, engine.Close()) })
	s := servertest.Start(t, &servertest.Options{Engine: engine})
	for _, user := range []string{goneUser, otherUser} {
		saveShared(t, s, "a", user, "", "", "a seal of "+user)
	}
	type sent struct {
		agent, user string
		prompt      *loombridgev1.AssembleResponse
	}
	var all []sent
	for _, agent := range []string{"a", "b", "c"} {
		say(t, s, agent, "where is the seal?")
		for _, user := range []string{"", otherUser, goneUser, ""} {
			if agent == "c" && user == goneUser {
				continue
			}
			all = append(all, sent{agent, user, promptWith(t, s, agent, user)})
			say(t, s, agent, "and now?")
		}
	}
	done, err := erase(t.Context(), s, erasePerson(goneUser))
	must(t, err)
	certified(t, done)
	if done.GetCounts()["prompts"] != 2 || done.GetCounts()["prompts_unmarked"] != 0 {
		t.Errorf("erased were %v", done.GetCounts())
	}
	if left := named(t, engine, goneUser); len(left) > 0 {
		t.Errorf("left is %s", strings.Join(left, "\n"))
	}
	for i, p := range all {
		got, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
			AgentId: p.agent, SessionId: "s", AsOf: &loombridgev1.AssembleRequest_AsOfPromptId{AsOfPromptId: p.prompt.GetReceipt().GetPromptId()},
		})
		switch {
		case p.user == goneUser:
			MustFail(t, err, codes.NotFound, "PROMPT_GONE")
		case err != nil:
			t.Errorf("prompt %d of %s with %q: %v", i, p.agent, p.user, err)
		case bytesOf(got).String() != bytesOf(p.prompt).String():
			t.Errorf("prompt %d of %s comes back otherwise", i, p.agent)
		}
	}
	_, err = s.Context.DiffPrompts(t.Context(), &loombridgev1.DiffPromptsRequest{
		AgentId: "a", SessionId: "s", FromPromptId: all[0].prompt.GetReceipt().GetPromptId(), ToPromptId: all[3].prompt.GetReceipt().GetPromptId(),
	})
	must(t, err)
	promptWith(t, s, "a", otherUser) // and goes on
}

// A session, and what a filter lets through, is erased from a running server: no more and no
// less than that, also in memories that others share.
//
// Y24, Y25, Y28
func TestEraseScopeOfAPart(t *testing.T) {
	t.Parallel()
	engine := memkv.New(nil)
	t.Cleanup(func() { must(t, engine.Close()) })
	s := servertest.Start(t, &servertest.Options{Engine: engine})
	ctx := t.Context()
	const session = "session-to-be-erased-3f"
	texts := make(map[string]bool)
	for _, at := range []string{session, "other"} {
		for i := range 3 {
			text := fmt.Sprintf("seal %d in %s", i, at)
			texts[text] = true
			saveShared(t, s, "a", "", "", at, text)
		}
		saveShared(t, s, "a", otherUser, "", at, "shared in "+at)
		_, err := s.Context.AppendMessages(ctx, &loombridgev1.AppendMessagesRequest{AgentId: "a", SessionId: at, Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: "a word in " + at}}})
		must(t, err)
		_, err = s.Context.RecordStep(ctx, &loombridgev1.RecordStepRequest{AgentId: "a", SessionId: at, ToolName: "own:tool", Success: true, OutputForm: &loombridgev1.RecordStepRequest_OutputJson{OutputJson: `{"x":"` + at + `"}`}})
		must(t, err)
		_, err = s.Bridge.Emit(ctx, &loombridgev1.EmitRequest{AgentId: "a", SessionId: at, Topic: "seals", PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: `{"of":"` + at + `"}`}})
		must(t, err)
	}
	part := func(change func(*loombridgev1.EraseScopeRequest)) *loombridgev1.EraseScopeRequest {
		r := eraseAgent("a")
		change(r)
		return r
	}
	ofSession := part(func(r *loombridgev1.EraseScopeRequest) { r.Subject.SessionId = session })
	for _, bad := range []*loombridgev1.EraseScopeRequest{
		part(func(r *loombridgev1.EraseScopeRequest) { r.Subject.SessionId, r.Subject.Filter = "s", `kind = "fact"` }),
		part(func(r *loombridgev1.EraseScopeRequest) { r.Subject.Filter = "what =" }),
		part(func(r *loombridgev1.EraseScopeRequest) { r.Subject.Filter, r.Shared = `kind = "fact"`, 2 }),
		part(func(r *loombridgev1.EraseScopeRequest) { r.Shared = 9 }),
		part(func(r *loombridgev1.EraseScopeRequest) { r.Subject.SessionId = strings.Repeat("s", 300) }),
	} {
		_, err := erase(ctx, s, bad)
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	}
	counted, err := erase(ctx, s, dry(part(func(r *loombridgev1.EraseScopeRequest) { r.Subject.SessionId = session })))
	must(t, err)
	done, err := erase(ctx, s, ofSession)
	must(t, err)
	c := certified(t, done)
	if done.GetCounts()["records"] != 3 || done.GetCounts()["shared_records"] != 1 || done.GetCounts()["steps"] != 1 || len(c.Records) != 3 || counted.GetCounts()["records"] != 3 {
		t.Errorf("erased were %v, the certificate %+v", done.GetCounts(), c)
	}
	left := slices.DeleteFunc(named(t, engine, session), func(e string) bool { return strings.Contains(e, "shared in "+session) })
	if len(left) > 0 {
		t.Errorf("left is %s", strings.Join(left, "\n"))
	}
	other := named(t, engine, "in other")
	if len(other) < 5 {
		t.Errorf("of the other session are left %q", other)
	}
	ofFilter := part(func(r *loombridgev1.EraseScopeRequest) { r.Subject.Filter = `text:"1"` })
	if done, err = erase(ctx, s, ofFilter); err != nil || done.GetCounts()["records"] != 1 {
		t.Fatalf("with a filter: %v, %v", done, err)
	}
	certified(t, done)
	if left := named(t, engine, "seal 1 in other"); len(left) > 0 {
		t.Errorf("left is %q", left)
	}
	texts1, err := textsOf(ctx, s, "a", memoryOf{})
	must(t, err)
	hits, err := s.Bridge.MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "seal"})
	must(t, err)
	if len(texts1) != 2 || len(hits.GetHits()) != 2 {
		t.Errorf("the memory has %q and finds %v", texts1, hits)
	}
	for _, r := range []*loombridgev1.EraseScopeRequest{ofSession, ofFilter} {
		_, err := erase(ctx, s, r)
		MustFail(t, err, codes.NotFound, "SUBJECT_NOT_FOUND")
	}
	saveShared(t, s, "a", "", "", "other", "a seal, anew")
}
