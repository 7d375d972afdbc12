package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// The stages of a prompt come one after the other, and each once: a result is offloaded when
// it is recorded and compressed from what was recorded; images and messages fade as they are
// then; caps hold for what is injected, a result's cap for what is left of it; what does not
// fit leaves last; and the goal, for which there was room from the beginning, ends all of it.
// What one stage has made is not made again by another, and a second call changes nothing.
//
// P04
func TestStagesInOrder(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, agent)
	const goal = "Repair the pump"
	c.say(user("Hello."), assistant("Hello."))
	c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, BlocksJson: `[{"type":"text","text":"See."},` +
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="},"description":"a pump"}]`})
	c.say(assistant("I see."))
	c.talkOf(1, 14)
	long := strings.Repeat("a line that a tool has printed\n", 2000)
	step := c.report("my:tool", `{"for":"the pump"}`, quoted(t, long))
	c.say(user("Go on."))
	_, err := s.Context.UpdateWorking(t.Context(), &loombridgev1.UpdateWorkingRequest{AgentId: agent, SessionId: "s", Goal: new(goal), Plan: planOf(&loombridgev1.PlanItem{Text: "look"})})
	must(t, err)
	ask := func(budget int32) *loombridgev1.AssembleResponse {
		settings := patient("")
		settings.Variation = new(0.0)
		settings.Injections = []*loombridgev1.Injection{{Name: "own", Phase: runtimePhase, MaxTokens: 20, Content: strings.Repeat("a line of words\n", 100)}}
		got, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
			AgentId: agent, SessionId: "s", WithoutTools: true, Model: "gpt-4o", MaxTokens: budget, Settings: settings, History: literally("three_phase"),
		})
		must(t, err)
		return got
	}
	p := ask(20_000)
	all := strings.Join(texts(p), "\n")
	// Recorded and offloaded, before anything is shown of it.
	if step.GetOutputBlob() == nil || c.read(step.GetStep().GetId()) == "" {
		t.Errorf("the result was not offloaded: %v", step)
	}
	// Compressed once, from the whole: no mark within another, and no cap behind it.
	if n := strings.Count(all, "[COMPRESSED:"); n != 1 || strings.Count(all, "Full data: ") != 1 {
		t.Errorf("the result is compressed %d times:\n%s", n, all)
	}
	if n := c.tokens(all[strings.Index(all, "[COMPRESSED:"):strings.LastIndex(all, "Go on.")]); n > 3000 {
		t.Errorf("the result takes %d tokens", n)
	}
	// The image became a line before its message was summarized: the summary has no image.
	summary := texts(p)[0]
	if !strings.HasPrefix(summary, "[Summary of ") || strings.Contains(all, "base64") {
		t.Errorf("the image is still there:\n%s", all)
	}
	// The cap holds for the injection, before the whole was made to fit.
	if own := sectionOf(p, "own"); own.GetTokens() > 20+4 || own.GetBeforeTokens() < 400 {
		t.Errorf("the injection is %v", own)
	}
	// With less room whole messages leave, and what was injected, the newest message and the
	// goal stay as they are.
	tail := lastText(p)
	if !strings.HasPrefix(tail, "Go on.") || !strings.HasSuffix(tail, "Current Goal: "+goal+"\nProgress: 0/1 steps completed\nNext: look") {
		t.Errorf("the end is %q", tail)
	}
	for budget := p.GetTokens().GetTokens(); budget > 300; budget -= 150 {
		less := ask(budget)
		if got := lastText(less); got != tail || less.GetTokens().GetTokens() > budget {
			t.Errorf("with %d tokens it takes %d and ends %q", budget, less.GetTokens().GetTokens(), got)
		}
		for i, text := range texts(less) {
			if i > 0 && !strings.Contains(all, text) {
				t.Errorf("with %d tokens there is something else: %.200q", budget, text)
			}
		}
	}
	if again := ask(20_000); fmt.Sprint(texts(again)) != fmt.Sprint(texts(p)) {
		t.Error("a second call makes another prompt")
	}
}

// What prompts show of memory stays for five minutes in preset three_phase, as its document
// says, and nowhere else when it is changed.
//
// I21, K48, X01
func TestPresetsKeepOnWrite(t *testing.T) {
	for preset, stays := range map[string]bool{"": false, "design": false, "reduction": false, "task_context": false, "three_phase": true} {
		s := servertest.Start(t, nil)
		tea := remember(t, s, &loombridgev1.MemorySaveRequest{UserId: "eva", Text: "Eva likes green tea"})
		MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{
			SessionId: "s", History: &loombridgev1.HistorySettings{Preset: preset},
		})
		ask := func() string { return wholeText(promptFor(t, s, "s", "Which tea does Eva like?", settingsFor("eva"))) }
		if text := ask(); !strings.Contains(text, "green tea") {
			t.Fatalf("%q: got\n%s", preset, text)
		}
		_, err := s.Memory.UpdateRecord(t.Context(), &loombridgev1.UpdateRecordRequest{
			AgentId: agent, UserId: "eva", Name: &loombridgev1.UpdateRecordRequest_Id{Id: tea.GetId()}, Record: &loombridgev1.MemorySaveRequest{Text: "Eva likes white tea"},
		})
		must(t, err)
		for _, wait := range []time.Duration{0, 299 * time.Second, time.Second, time.Second} {
			s.Clock.Advance(wait)
			old := stays && s.Clock.Now().Sub(servertest.NewClock().Now()) < 300*time.Second
			if got := strings.Contains(ask(), "green tea"); got != old {
				t.Errorf("%q, after %v more: what was said before is there: %v", preset, wait, got)
			}
		}
	}
}

// A kept section of the whole hour stays as long, whatever is asked meanwhile, and is made anew
// at its end, or at once where what it is made of changes.
//
// P40, K48, I02
func TestStableSectionsStay(t *testing.T) {
	s := servertest.Start(t, nil)
	MustWrite(t, s, "AGENTS.md", "Use tabs.")
	ask := func() string { return wholeText(promptFor(t, s, "s", "Hello", settingsFor(""))) }
	if text := ask(); !strings.Contains(text, "Use tabs.") {
		t.Fatalf("got\n%s", text)
	}
	for _, wait := range []time.Duration{time.Hour - time.Second, time.Second, time.Second} {
		s.Clock.Advance(wait)
		if text := ask(); strings.Count(text, "Use tabs.") != 1 {
			t.Errorf("%v later:\n%s", wait, text)
		}
	}
	MustWrite(t, s, "AGENTS.md", "Use blanks.")
	if text := ask(); strings.Contains(text, "tabs") || !strings.Contains(text, "Use blanks.") {
		t.Errorf("changed:\n%s", text)
	}
}
