package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// asGPT is a model whose tokens are those of the server's default counter.
const asGPT = "gpt-4o"

// Within max_tokens short records come whole, and of a long one the passage that answers,
// with its place and how to read the rest. The bound holds whatever it is.
func TestMemoryQueryPassages(t *testing.T) {
	s := servertest.Start(t, nil)
	counter, err := tokens.New(nil)
	must(t, err)
	size := func(text string) int32 {
		n, err := counter.Count(asGPT, text)
		must(t, err)
		return int32(n.Tokens) //nolint:gosec // small
	}
	told := "The harbour pilot in Bergen is Marit, and she answers only before eight in the morning – naïvely early."
	talk := strings.Repeat("Then we spoke of the weather for a while, of trains that are late, and of where to eat. ", 20)
	long := talk + "\n\n" + told + "\n\n" + talk
	id := MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: long}).GetId()
	for i := range 5 {
		MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: fmt.Sprintf("The harbour has %d cranes.", i)})
	}
	ask := func(budget int32) *loombridgev1.MemoryQueryResponse {
		found, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "Who is the harbour pilot?", Limit: 100, MaxTokens: budget})
		must(t, err)
		return found
	}
	for budget := int32(1); budget < 900; budget += 1 + budget/10 {
		found, sum := ask(budget), int32(0)
		for _, hit := range found.GetHits() {
			sum += size(hit.GetRecord().GetText())
			end := int32(0)
			for _, p := range hit.GetPassages() {
				if p.GetStart() < end || !strings.HasPrefix(long[p.GetStart():], p.GetText()) || hit.GetRecord().GetId() != id || hit.GetRecord().GetText() != "" {
					t.Fatalf("of %d tokens hit %v", budget, hit)
				}
				sum, end = sum+size(p.GetText()), p.GetStart()+int32(len(p.GetText()))
			}
		}
		r := found.GetReceipt()
		if sum > budget || sum != r.GetTokens() || int(r.GetLeftOut()["over_max_tokens"]) != 6-len(found.GetHits()) {
			t.Fatalf("of %d tokens %d are told as %v", budget, sum, r)
		}
		if reason := r.GetEmptyReason(); (len(found.GetHits()) == 0) != (reason == loombridgev1.EmptyReason_EMPTY_REASON_ALL_OVER_MAX_TOKENS) {
			t.Fatalf("of %d tokens: %d hits, %v", budget, len(found.GetHits()), reason)
		}
	}
	found := ask(60)
	var part *loombridgev1.MemoryHit
	for _, hit := range found.GetHits() {
		if len(hit.GetPassages()) > 0 {
			part = hit
		}
	}
	if part.GetPassages()[0].GetText() != told || len(found.GetHits()) < 3 {
		t.Errorf("of 60 tokens %v", found)
	}
	whole, err := s.Memory.GetRecord(t.Context(), &loombridgev1.GetRecordRequest{AgentId: agent, Name: &loombridgev1.GetRecordRequest_Id{Id: part.GetRecord().GetId()}})
	must(t, err)
	if whole.GetText() != long {
		t.Error("GetRecord does not give the whole")
	}
	if all := ask(5000); len(all.GetHits()) != 6 || all.GetReceipt().GetTokens() < size(long) {
		t.Errorf("of 5000 tokens %v", all.GetReceipt())
	}
}

// A prompt shows of a long record the passages that answer, and says so. Knowledge is named, and
// the model reads the whole by that name.
//
// I12, P27
func TestPromptShowsPassages(t *testing.T) {
	s := servertest.Start(t, nil)
	pump := "The gearbox of the big pump takes oil of grade 7, nine litres of it, once a year."
	night := "At night the pump must stand still, as the neighbours of the mill sleep badly."
	line := "Then we spoke of the weather for a while, of trains that are late, and of where to eat."
	talk := strings.Repeat(line+" ", 12)
	long := pump + "\n\n" + talk + "\n\n" + night + "\n\n" + talk
	remember(t, s, &loombridgev1.MemorySaveRequest{UserId: "eva", Text: long})
	own := remember(t, s, &loombridgev1.MemorySaveRequest{Text: talk + "\n" + long, Kind: "knowledge"}).GetId()
	capped := settingsFor("eva")
	capped.Limits = &loombridgev1.InjectionLimits{Sections: map[string]int32{"user_memory": 130}}
	got := wholeText(promptFor(t, s, "s", "Which grade of oil does the pump take, and what about the pump at night?", capped))
	for _, want := range []string{
		"<user_memory>\n- " + pump, night + "…",
		"… was left out: search memory for these words to read all of it]\n</user_memory>",
		"\n…" + line + " \n" + pump + " … " + night + "… [part of 3.3KB, record " + own + "]\nSource: ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if found := MustAsk(t, s, "s", "query_l4_memory", `{"query":"the whole","record_id":"`+own+`"}`); found.Count != 1 || found.values("statement")[0] != talk+"\n"+long {
		t.Errorf("found %v", found)
	}
	answer, err := s.Bridge.Tool(t.Context(), &loombridgev1.ToolRequest{AgentId: agent, SessionId: "s", Name: "query_l4_memory", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"query":"x","record_id":"nothing"}`}})
	if err != nil || answer.GetSuccess() || !strings.Contains(answer.GetErrorMessage(), "Record not found: nothing") {
		t.Errorf("%v, %v", answer, err)
	}
}
