package server_test

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
)

// What stands in a person's memory is read by all agents that were granted access, and
// changed by who may act for the agent that saved it. Request ids are each agent's own.
func TestPersonsMemoryHasOwners(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Credentials: MustCredentials(t, apart+`
[[credential]]
token = "editor"
tenant = "acme"
agents = ["editor"]
edits = ["victim"]
`)}})
	as := func(token string) context.Context { return withToken(t.Context(), "Bearer "+token) }
	save := func(agent, key, text, request string) (*loombridgev1.MemorySaveResponse, error) {
		return s.Bridge.MemorySave(as(agent), &loombridgev1.MemorySaveRequest{AgentId: agent, UserId: "ann", Key: key, Text: text, RequestId: request})
	}
	update := func(token, agent, key string) error {
		_, err := s.Memory.UpdateRecord(as(token), &loombridgev1.UpdateRecordRequest{
			AgentId: agent, UserId: "ann", Name: &loombridgev1.UpdateRecordRequest_Key{Key: key}, Record: &loombridgev1.MemorySaveRequest{Text: "changed by " + agent},
		})
		return err
	}
	remove := func(token, agent, key string) error {
		_, err := s.Memory.DeleteRecords(as(token), &loombridgev1.DeleteRecordsRequest{AgentId: agent, UserId: "ann", Name: &loombridgev1.DeleteRecordsRequest_Key{Key: key}})
		return err
	}
	for _, agent := range []string{"victim", "a", "editor"} {
		MustGrant(as("operator"), t, s, "any", memoryOf{user: "ann"}, agent, loombridgev1.Access_ACCESS_WRITE)
	}
	saved, err := save("victim", "name", "Her name is Ann", "1")
	must(t, err)
	_, err = save("a", "city", "She lives in Berlin", "1") // the same request id
	must(t, err)
	again, err := save("victim", "name", "Her name is Ann", "1")
	must(t, err)
	if again.GetId() != saved.GetId() {
		t.Errorf("the repeated request saved %s beside %s", again.GetId(), saved.GetId())
	}
	_, err = save("a", "name", "Her name is Eve", "2")
	MustFail(t, err, codes.AlreadyExists, "RECORD_EXISTS")
	MustFail(t, update("a", "a", "name"), codes.PermissionDenied, "AGENT_NOT_OWNED")
	MustFail(t, remove("a", "a", "name"), codes.PermissionDenied, "AGENT_NOT_OWNED")
	_, err = s.Bridge.MemorySave(as("a"), &loombridgev1.MemorySaveRequest{AgentId: "a", UserId: "ann", Text: "Her name is Eve", Supersedes: saved.GetId()})
	MustFail(t, err, codes.PermissionDenied, "AGENT_NOT_OWNED")
	_, err = s.Memory.BatchSave(as("a"), &loombridgev1.BatchSaveRequest{AgentId: "a", UserId: "ann", Records: []*loombridgev1.MemorySaveRequest{
		{Text: "fine"}, {Text: "Her name is Eve", Supersedes: saved.GetId()},
	}})
	MustFail(t, err, codes.PermissionDenied, "AGENT_NOT_OWNED")

	record, err := s.Memory.GetRecord(as("a"), &loombridgev1.GetRecordRequest{AgentId: "a", UserId: "ann", Name: &loombridgev1.GetRecordRequest_Key{Key: "name"}})
	must(t, err)
	if r := record; r.GetText() != "Her name is Ann" || r.GetAgentId() != "victim" || r.GetVersion() != 1 {
		t.Errorf("another agent reads %v", r)
	}
	must(t, update("victim", "victim", "name"))
	must(t, update("editor", "editor", "name"))
	MustFail(t, update("editor", "editor", "city"), codes.PermissionDenied, "AGENT_NOT_OWNED")
	must(t, update("operator", "any", "name"))
	all := &loombridgev1.DeleteRecordsRequest{AgentId: "a", UserId: "ann", Filter: "version >= 1", DryRun: true}
	for _, all.DryRun = range []bool{true, false} {
		gone, err := s.Memory.DeleteRecords(as("a"), all)
		must(t, err)
		if gone.GetDeleted() != 1 || gone.GetNotOwned() != 1 {
			t.Errorf("all that an agent may delete, dry run %t: %v", all.DryRun, gone)
		}
	}
	_, err = s.Bridge.MemorySave(as("a"), &loombridgev1.MemorySaveRequest{AgentId: "a", UserId: "ann", Key: "name", Text: "Her name is Eve", Replace: true})
	MustFail(t, err, codes.PermissionDenied, "AGENT_NOT_OWNED")
	must(t, remove("operator", "any", "name"))
}

// In an agent's own memory, and without authentication, nothing of this shows: any
// agent changes what any other saved for a person.
func TestPersonsMemoryWithoutAuthentication(t *testing.T) {
	s := servertest.Start(t, nil)
	for i, user := range []string{"ann", ""} {
		_, err := s.Bridge.MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "one", UserId: user, Key: "k", Text: "first", RequestId: "r"})
		must(t, err)
		other := []string{"two", "one"}[i]
		_, err = s.Memory.UpdateRecord(t.Context(), &loombridgev1.UpdateRecordRequest{
			AgentId: other, UserId: user, Name: &loombridgev1.UpdateRecordRequest_Key{Key: "k"}, Record: &loombridgev1.MemorySaveRequest{Text: "second"},
		})
		must(t, err)
		got, err := s.Memory.GetRecord(t.Context(), &loombridgev1.GetRecordRequest{AgentId: other, UserId: user, Name: &loombridgev1.GetRecordRequest_Key{Key: "k"}})
		must(t, err)
		if want := []string{"one", ""}[i]; got.GetText() != "second" || got.GetAgentId() != want {
			t.Errorf("user %q: %v", user, got)
		}
	}
}

// One agent can't use up the embedding spaces of a person's memory.
func TestSpacesOfAPersonAreShared(t *testing.T) {
	s := servertest.Start(t, nil)
	made := map[string]int{}
	save := func(agent string) error {
		_, err := s.Bridge.MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{
			AgentId: agent, UserId: "ann", Text: "x", Embedding: []float32{1, 2}, EmbeddingSpace: fmt.Sprint(agent, made[agent]),
		})
		if err == nil {
			made[agent]++
		}
		return err
	}
	var err error
	for err == nil && made["greedy"] < 100 {
		err = save("greedy")
	}
	MustFail(t, err, codes.ResourceExhausted, "TOO_LARGE")
	for i := range 4 {
		must(t, save(fmt.Sprint("modest", i)))
	}
	if made["greedy"] < 50 || made["greedy"] > 60 {
		t.Errorf("one agent made %d of 64 spaces", made["greedy"])
	}
}
