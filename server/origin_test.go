package server_test

import (
	"fmt"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// What derives from a tool's words or from the web is no more than that, however many
// records lie between, and no save makes it more.
func TestOriginIsInherited(t *testing.T) {
	const (
		user  = loombridgev1.Origin_ORIGIN_USER
		agent = loombridgev1.Origin_ORIGIN_AGENT
		tool  = loombridgev1.Origin_ORIGIN_TOOL
		web   = loombridgev1.Origin_ORIGIN_WEB
	)
	s := servertest.Start(t, nil)
	save := func(key string, origin loombridgev1.Origin, replace bool, from ...string) *loombridgev1.Record {
		t.Helper()
		got, err := s.Bridge.MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "text of " + key, Key: key, Origin: origin, DerivedFrom: from, Replace: replace})
		must(t, err)
		found, err := s.Memory.GetRecord(t.Context(), &loombridgev1.GetRecordRequest{AgentId: "a", Name: &loombridgev1.GetRecordRequest_Id{Id: got.GetId()}})
		must(t, err)
		return found
	}
	want := func(what string, r *loombridgev1.Record, origin loombridgev1.Origin) {
		t.Helper()
		if r.GetOrigin() != origin {
			t.Errorf("%s has origin %s, want %s", what, r.GetOrigin(), origin)
		}
	}
	said, read, printed := save("said", user, false), save("read", web, false), save("printed", tool, false)
	want("of a user", save("a", agent, false, said.GetId()), agent)
	want("of a user, as its own", save("b", user, false, said.GetId()), user)
	want("of a tool", save("c", user, false, said.GetId(), printed.GetId()), tool)
	last := read
	for i := range 5 {
		last = save(fmt.Sprint("deep", i), user, i%2 == 1, last.GetId())
		want("derived from the web", last, web)
	}
	want("replaced", save("a", user, true, read.GetId()), web)
	want("replaced again, and of nothing", save("a", user, true), user) // another text takes its place
	want("replaced once more", save("a", user, true, last.GetId()), web)
	found, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "text", Filter: `origin = "web"`, Limit: 20})
	must(t, err)
	if n := len(found.GetHits()); n != 7 { // read, five that derive, and the one that was replaced
		t.Errorf("%d records are found as of the web, want 7", n)
	}
}
