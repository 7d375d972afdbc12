package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// What is cut from a prompt is said there, with how to read the rest: of skills, notes, playbooks
// and AGENTS.md. Of many skills the one that fits the goal is listed, and an active one of ordinary
// length is told in full.
func TestPromptsSayWhatIsCut(t *testing.T) {
	s := servertest.Start(t, nil)
	skill := func(i, lines int) {
		MustSave(t, s, &loombridgev1.MemorySaveRequest{
			AgentId: agent, Kind: "skill", Text: fmt.Sprintf("```\n%sEND-OF-SKILL-%d\n```", strings.Repeat("do this then that, and write it down\n", lines), i),
			MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: fmt.Sprintf(`{"name": "skill-%d", "description": "Use this for job number %d. %s"}`,
				i, i, strings.Repeat("It covers reading, editing and checking. ", 7))},
		})
	}
	for i := range 17 {
		skill(i, 215) // 8 KB
	}
	assemble := func() string {
		got, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s", Goal: "job number 16"})
		must(t, err)
		return got.String()
	}
	activate := func(names ...string) {
		_, err := s.Context.UpdateWorking(t.Context(), &loombridgev1.UpdateWorkingRequest{AgentId: agent, SessionId: "s", Activate: names})
		must(t, err)
	}
	wants := func(what, prompt string, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if !strings.Contains(prompt, text) {
				t.Errorf("%s: no %q", what, text)
			}
		}
	}
	var names []string
	for i := range 17 {
		names = append(names, fmt.Sprintf("skill-%d", i))
	}
	wants("list", assemble(), append(names, "Descriptions are shortened")...)
	activate("skill-16")
	wants("active", assemble(), "END-OF-SKILL-16")
	for i := range 40 {
		MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Kind: "note", Text: fmt.Sprintf("note %d %s", i, strings.Repeat("of something to keep in mind ", 10))})
	}
	wants("notes", assemble(), "More notes were saved than fit here")
	MustSave(t, s, &loombridgev1.MemorySaveRequest{
		AgentId: agent, Kind: "playbook", Text: "job number 16: " + strings.Repeat("first this, then that ", 20),
		MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: `{"name":"job","status":"approved"}`},
	})
	wants("playbook", assemble(), "[Cut here. Search memory for these words to read the whole playbook.]")
	activate("skill-1", "skill-2", "skill-3")
	if prompt := assemble(); strings.Contains(prompt, "END-OF-SKILL-16") && strings.Contains(prompt, "END-OF-SKILL-3") {
		t.Error("four skills of 8 KB are told in full")
	} else {
		wants("too many active", prompt, "Cut here. The rest of this skill")
	}
}
