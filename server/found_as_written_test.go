package server_test

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Short names, names with signs, stop words and other spellings find what holds them, and
// nothing beside it in the session passes a least score.
func TestFoundAsItIsWritten(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, c := range []struct{ text, query string }{
		{"我养了一只猫", "猫"}, {"AT&T contract", "AT&T"}, {"We saw The Who live", "The Who"}, {"The IT team", "IT"}, {"Herr Müller", "Mueller"}, {"programs in C#", "C#"},
	} {
		agent := "asks-" + c.query
		for _, text := range []string{"The cat sleeps on the sofa", c.text, "It is cold, ask who is there", "昨日は映画を見ました"} {
			_, err := s.Bridge.MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: agent, SessionId: "s", Text: text})
			must(t, err)
		}
		answer, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: c.query, MinScore: 0.5})
		must(t, err)
		if hits := answer.GetHits(); len(hits) == 0 || hits[0].GetRecord().GetText() != c.text {
			t.Errorf("%q finds %v", c.query, hits)
		}
	}
	for _, text := range []string{"Ann is allergic to pears", "The wifi password is blue42", "Bob drives a red car"} {
		_, err := s.Bridge.MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "ann", SessionId: "s", Text: text})
		must(t, err)
	}
	answer, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "ann", Query: "what is Ann allergic to", MinScore: 0.3})
	must(t, err)
	if hits := answer.GetHits(); len(hits) != 1 {
		t.Errorf("finds %v, want the record that holds the words alone", hits)
	}
}
