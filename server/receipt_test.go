package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// A receipt has a line for every section that was looked for, also where there is nothing
// to show, and says why; and for those that the settings leave out.
//
// I01, X01
func TestReceiptSaysWhatIsMissing(t *testing.T) {
	const empty, leftOut = loombridgev1.SectionOutcome_SECTION_OUTCOME_EMPTY, loombridgev1.SectionOutcome_SECTION_OUTCOME_LEFT_OUT
	s := servertest.Start(t, nil)
	remember(t, s, &loombridgev1.MemorySaveRequest{UserId: "eva", Text: "Eva likes green tea"})
	check := func(p *loombridgev1.AssembleResponse, name string, outcome loombridgev1.SectionOutcome, reason string) {
		t.Helper()
		got := sectionOf(p, name)
		if got.GetOutcome() != outcome || got.GetTokens() != 0 || !strings.Contains(got.GetReason(), reason) || reason == "" {
			t.Errorf("%s: %v, want %v, %q", name, got, outcome, reason)
		}
	}
	nobody := promptFor(t, s, "nobody", "Which tea?", settingsFor(""))
	check(nobody, "user_memory", empty, "no user is named")
	for _, name := range []string{"skills", "notes", "knowledge", "playbook", "tasks"} {
		check(nobody, name, empty, sectionOf(nobody, name).GetReason())
	}
	other := promptFor(t, s, "other", "zebra crossing", settingsFor("eva"))
	check(other, "user_memory", empty, "nothing fits what is asked")
	silent := promptFor(t, s, "silent", "", settingsFor("eva"))
	check(silent, "user_memory", empty, "no message and no goal")
	settings := settingsFor("eva")
	settings.Sources = &loombridgev1.SourceSettings{Exclude: []string{"user_memory"}}
	check(promptFor(t, s, "s", "Which tea?", settings), "user_memory", leftOut, "the settings leave it out")
	shown := sectionOf(promptFor(t, s, "s", "Which tea?", settingsFor("eva")), "user_memory")
	if shown.GetTokens() == 0 || shown.GetOutcome() != loombridgev1.SectionOutcome_SECTION_OUTCOME_SHOWN || shown.GetSource() == "" {
		t.Errorf("found, the receipt says %v", shown)
	}
}

// The receipt says where AGENTS.md is from and how long it is, and why one that is there
// can't be read.
//
// F19
func TestReceiptOfAgents(t *testing.T) {
	s := servertest.Start(t, nil)
	path := filepath.Join(s.Workspace, "AGENTS.md")
	must(t, os.WriteFile(path, []byte("Use tabs."), 0o600))
	const section = "notes:agents_md"
	if got := sectionOf(promptFor(t, s, "s", "Hello", settingsFor("")), section); got.GetSource() != "AGENTS.md of the workspace, 9 bytes" {
		t.Errorf("read: %v", got)
	}
	settings := settingsFor("")
	settings.AgentsMd = "Use spaces."
	if got := sectionOf(promptFor(t, s, "s", "", settings), section); got.GetSource() != "agents_md of the settings, 11 bytes" {
		t.Errorf("in its place: %v", got)
	}
	for why, replace := range map[string]func(){
		"NUL":           func() { must(t, os.WriteFile(path, []byte("Use\x00tabs."), 0o600)) },
		"can't be read": func() { must(t, os.Remove(path)); must(t, os.Mkdir(path, 0o700)) },
	} {
		must(t, os.RemoveAll(path))
		must(t, os.WriteFile(path, nil, 0o600))
		replace()
		p := promptFor(t, s, "s", "", settingsFor(""))
		if got := sectionOf(p, section); got.GetOutcome() != loombridgev1.SectionOutcome_SECTION_OUTCOME_FAILED || !strings.Contains(got.GetReason(), why) {
			t.Errorf("%s: %v", why, got)
		}
		if text := wholeText(p); strings.Contains(text, "\x00") || strings.Contains(text, "tabs") {
			t.Errorf("%s: %q", why, text)
		}
	}
}

// What is known of the user and the user's first message are one message for a provider
// that does not make one of neighbours, and two for one that does.
//
// I08
func TestFirstMessageOfUser(t *testing.T) {
	s := servertest.Start(t, nil)
	settings := plain()
	settings.Injections = []*loombridgev1.Injection{injection("known", contextPhase, forSession, 50, "known")}
	MustTell(t, s, loombridgev1.Role_ROLE_USER, "Hello")
	ask := func(format loombridgev1.PromptFormat) *loombridgev1.AssembleResponse {
		return MustPrompt(t, s, &loombridgev1.AssembleRequest{System: "You help.", Goal: "Win", Settings: settings, Format: format})
	}
	checkTexts(t, ask(0), []string{"You help.", "known\n\nHello\n\n---\n\nCurrent Goal: Win"})
	if got := strings.Count(ask(loombridgev1.PromptFormat_PROMPT_FORMAT_OPENAI_CHAT).GetPromptJson(), `"role":"user"`); got != 1 {
		t.Errorf("OpenAI gets %d messages of the user in a row", got)
	}
	if got := strings.Count(ask(loombridgev1.PromptFormat_PROMPT_FORMAT_ANTHROPIC).GetPromptJson(), `"type":"text"`); got < 3 {
		t.Errorf("Anthropic gets %d blocks", got)
	}
	MustTell(t, s, loombridgev1.Role_ROLE_ASSISTANT, "Well?")
	checkTexts(t, ask(0), []string{"You help.", "known", "Hello", "Well?", "Current Goal: Win"})
}
