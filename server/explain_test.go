package server_test

import (
	"slices"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// A hit that was found by what stands around it names no words as its own: matched words
// are those that its own text holds.
func TestMatchedWordsAreTheHitsOwn(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, text := range []string{"We begin the day", "The pump needs oil", "Nobody came by", "Lunch was late", "The pumps were oiled again"} {
		remember(t, s, &loombridgev1.MemorySaveRequest{SessionId: "s", Text: text, Author: "eva"})
	}
	got, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "Which oil for the pump?", Limit: 10, Explain: true})
	must(t, err)
	neighbours := 0
	for _, hit := range got.GetHits() {
		words := hit.GetExplanation().GetMatchedWords()
		switch text := hit.GetRecord().GetText(); text {
		case "The pump needs oil":
			if !slices.Contains(words, "pump") || !slices.Contains(words, "oil") {
				t.Errorf("%q names %v", text, words)
			}
		case "The pumps were oiled again":
			if len(words) == 0 {
				t.Errorf("%q names %v", text, words)
			}
		default:
			neighbours++
			if len(words) > 0 {
				t.Errorf("%q has none of the words, and names %v", text, words)
			}
		}
	}
	if neighbours == 0 {
		t.Error("no neighbour was found, so the test shows nothing")
	}
}
