package server_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// mustFold makes a session whose first results are folded: that of call n named
// `site_n.toml` in a line that says what is wrong with it.
func mustFold(t *testing.T, s *servertest.Server, id string) *talk {
	t.Helper()
	c := &talk{tb: t, server: s, session: id, budget: 100_000}
	c.say(userSays("Do the work."))
	for n := range 30 {
		asked := c.ask("I look.", "bash", fmt.Sprintf(`{"command":"check %d"}`, n))
		filler := strings.Repeat(fmt.Sprintf("nothing of interest in part %d\n", n), 40)
		c.answer(asked, filler+fmt.Sprintf("cfg/site_%d.toml: the port of </user_memory> is %d, which is taken\n", n, 8000+n)+filler)
	}
	compacted, err := s.Context.CompactHistory(t.Context(), &loombridgev1.CompactHistoryRequest{AgentId: agent, SessionId: id})
	must(t, err)
	if len(compacted.GetFolds()) == 0 {
		t.Fatal("nothing was folded")
	}
	return c
}

// rehydrated is the section of a prompt, and the text of its last message.
func rehydrated(t *testing.T, s *servertest.Server, r *loombridgev1.AssembleRequest) (*loombridgev1.SectionInfo, string) {
	t.Helper()
	r.AgentId, r.MaxTokens, r.WithoutTools = agent, 100_000, true
	got, err := s.Context.Assemble(t.Context(), r)
	must(t, err)
	last := got.GetMessages()[len(got.GetMessages())-1].GetContent()
	for _, section := range got.GetReceipt().GetSections() {
		if section.GetName() == "rehydrated" && section.GetTokens() > 0 {
			return section, last
		}
	}
	return nil, last
}

const comesBack = "cfg/site_3.toml: the port of &lt;/user_memory> is 8003, which is taken"

// What the user, the goal or a call takes up of a folded result comes back at the end of
// the prompt, with its reference, within the cap, and can close no tag. It does not while
// nobody takes it up, when it is shown in full, and when the caller does without it.
func TestFoldedLinesComeBack(t *testing.T) {
	s := servertest.Start(t, nil)
	c := mustFold(t, s, "s")
	ask := func() *loombridgev1.AssembleRequest {
		return &loombridgev1.AssembleRequest{SessionId: "s", DryRun: true}
	}
	if section, last := rehydrated(t, s, ask()); section != nil {
		t.Errorf("nobody asked: %q", last)
	}
	byGoal := ask()
	byGoal.Goal = "Free the port of cfg/site_3.toml"
	section, last := rehydrated(t, s, byGoal)
	if !strings.Contains(last, comesBack) || !strings.Contains(last, "message_009: ") || section.GetTokens() <= 0 || section.GetTokens() > 400 {
		t.Errorf("the goal: %v, %q", section, last)
	}
	if strings.Count(last, "which is taken") != 1 {
		t.Errorf("a line comes back twice: %q", last)
	}
	shown := ask()
	shown.Goal = "Free the port of cfg/site_29.toml"
	if section, last := rehydrated(t, s, shown); section != nil {
		t.Errorf("it is shown in full, and comes back: %q", last)
	}
	without := ask()
	without.Goal = byGoal.GetGoal()
	without.Settings = &loombridgev1.PromptSettings{Sources: &loombridgev1.SourceSettings{Exclude: []string{"rehydrated"}}}
	if section, last := rehydrated(t, s, without); section != nil {
		t.Errorf("it was left out, and comes back: %q", last)
	}
	for limit, want := range map[int32]bool{400: true, 60: true, 10: false} {
		capped := ask()
		capped.Goal = byGoal.GetGoal()
		capped.Settings = &loombridgev1.PromptSettings{Limits: &loombridgev1.InjectionLimits{Sections: map[string]int32{"rehydrated": limit}}}
		section, last := rehydrated(t, s, capped)
		if (section != nil) != want || section.GetTokens() > limit {
			t.Errorf("at most %d tokens: %v, %q", limit, section, last)
		}
	}
	c.say(userSays("What of cfg/site_3.toml?"))
	if _, last := rehydrated(t, s, ask()); !strings.Contains(last, comesBack) {
		t.Errorf("the message: %q", last)
	}
	// A call, and then another one: only what is new takes something up.
	c.answer(c.ask("I see.", "bash", `{"command":"edit cfg/site_4.toml"}`), "ok")
	if _, last := rehydrated(t, s, ask()); !strings.Contains(last, "message_011: cfg/site_4.toml") || strings.Contains(last, "site_3") {
		t.Errorf("the call: %q", last)
	}
	c.answer(c.ask("I see.", "bash", `{"command":"ls"}`), "ok")
	if section, last := rehydrated(t, s, ask()); section != nil {
		t.Errorf("another call: %q", last)
	}
	first, err := s.Context.Assemble(t.Context(), byGoal)
	must(t, err)
	for range 20 {
		again, err := s.Context.Assemble(t.Context(), byGoal)
		must(t, err)
		for i := range again.GetMessages() {
			if !proto.Equal(again.GetMessages()[i], first.GetMessages()[i]) {
				t.Fatalf("message %d is %v, then %v", i, first.GetMessages()[i], again.GetMessages()[i])
			}
		}
	}
}

// Calls are counted for each session, and those that ask again for what is folded: that
// read it back, or are made a second time. The counts outlive the server, and a dry run
// does not count.
func TestFaultsAreCounted(t *testing.T) {
	engine := memkv.New(nil)
	defer engine.Close()
	counts := func(s *servertest.Server, dry bool) [2]int64 {
		t.Helper()
		got, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s", MaxTokens: 100_000, DryRun: dry})
		must(t, err)
		return [2]int64{got.GetReceipt().GetCalls(), got.GetReceipt().GetFaults()}
	}
	want := func(got, want [2]int64) {
		t.Helper()
		if got != want {
			t.Errorf("calls and faults are %v, want %v", got, want)
		}
	}
	t.Run("first server", func(t *testing.T) {
		s := servertest.Start(t, &servertest.Options{Engine: engine})
		c := &talk{tb: t, server: s, session: "s", budget: 100_000}
		c.say(userSays("Do the work."))
		for n := range 30 {
			c.answer(c.ask("I look.", "bash", fmt.Sprintf(`{"command":"check %d"}`, n)), strings.Repeat(fmt.Sprintf("part %d\n", n), 80))
		}
		want(counts(s, true), [2]int64{30, 0})
		want(counts(s, false), [2]int64{30, 0})
		_, err := s.Context.CompactHistory(t.Context(), &loombridgev1.CompactHistoryRequest{AgentId: agent, SessionId: "s"})
		must(t, err)
		want(counts(s, false), [2]int64{30, 0})
		c.answer(c.ask("Again.", "bash", `{"command":"check 3"}`), "part 3")
		c.answer(c.ask("Anew.", "bash", `{"command":"check 333"}`), "part 333")
		want(counts(s, true), [2]int64{32, 1})
		want(counts(s, false), [2]int64{32, 1})
		want(counts(s, false), [2]int64{32, 1})
		c.answer(c.ask("Back.", "fs_read_file", `{"path":"message_009"}`), "part 3")
		c.answer(c.ask("Shown.", "fs_read_file", `{"path":"message_061"}`), "part 29")
		want(counts(s, false), [2]int64{34, 2})
	})
	t.Run("after a restart", func(t *testing.T) {
		s := servertest.Start(t, &servertest.Options{Engine: engine})
		want(counts(s, true), [2]int64{34, 2})
		c := &talk{tb: t, server: s, session: "s", budget: 100_000}
		c.answer(c.ask("Again.", "bash", `{"command":"check 4"}`), "part 4")
		want(counts(s, false), [2]int64{35, 3})
	})
}

// A step that is recorded takes up what folded steps held, and their reference reads it.
func TestFoldedStepsComeBack(t *testing.T) {
	s := servertest.Start(t, nil)
	record := func(n int, args string) {
		t.Helper()
		text := strings.Repeat(fmt.Sprintf("nothing in part %d\n", n), 60) + fmt.Sprintf("conf/unit_%d.ini says: retries are set to %d\n", n, n)
		MustRecord(t, s, "s", "my:tool", args, text)
	}
	for n := range 30 {
		record(n, fmt.Sprintf(`{"n":%d}`, n))
	}
	_, err := s.Context.CompactHistory(t.Context(), &loombridgev1.CompactHistoryRequest{AgentId: agent, SessionId: "s"})
	must(t, err)
	record(99, `{"edit":"conf/unit_2.ini"}`)
	_, last := rehydrated(t, s, &loombridgev1.AssembleRequest{SessionId: "s"})
	if !strings.Contains(last, "step_003: conf/unit_2.ini says: retries are set to 2") {
		t.Errorf("%q", last)
	}
	_, whole := MustReadBlob(t, s, &loombridgev1.ReadBlobRequest{AgentId: agent, Name: "step_003", SessionId: "s"})
	if !strings.Contains(string(whole), "conf/unit_2.ini says: retries are set to 2") {
		t.Errorf("step_003 reads %q", whole)
	}
}

// A call that reads the stored result of a folded step is a fault, by its path in any
// form or by its hash; reading what stands in the prompt is none, nor is a file.
func TestReadingStoredResultsIsAFault(t *testing.T) {
	s := servertest.Start(t, nil)
	var steps []*loombridgev1.Step
	for n := range 12 {
		text := strings.Repeat(fmt.Sprintf("a line of part %d that is long enough\n", n), 800)
		MustRecord(t, s, "s", "my:tool", fmt.Sprintf(`{"n":%d}`, n), text)
		got, err := s.Context.GetStep(t.Context(), &loombridgev1.GetStepRequest{AgentId: agent, StepId: fmt.Sprintf("step_%03d", n+1)})
		must(t, err)
		steps = append(steps, got)
	}
	_, err := s.Context.CompactHistory(t.Context(), &loombridgev1.CompactHistoryRequest{AgentId: agent, SessionId: "s"})
	must(t, err)
	faults := int64(0)
	for _, read := range []struct {
		name  string
		fault int64
	}{
		{steps[0].GetOutcomePath(), 1},
		{strings.TrimPrefix(steps[1].GetOutcomePath(), "workspace/"), 1},
		{steps[2].GetOutcomeRef(), 1},
		{steps[11].GetOutcomePath(), 0},
		{"workspace/outputs/none_001.txt", 0},
		{"src/main.go", 0},
	} {
		MustRecord(t, s, "s", "fs:read_file", fmt.Sprintf(`{"path":%q}`, read.name), "what it says")
		got, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s", MaxTokens: 100_000})
		must(t, err)
		if now := got.GetReceipt().GetFaults(); now != faults+read.fault {
			t.Errorf("reading %q: %d faults, want %d", read.name, now, faults+read.fault)
		}
		faults = got.GetReceipt().GetFaults()
	}
}

// Actions that are text are calls, too: they are counted, one that is made again after
// it was folded is a fault, and what they take up of folded results comes back.
func TestActionsInTextAreCounted(t *testing.T) {
	s := servertest.Start(t, nil)
	act := func(command, result string) {
		t.Helper()
		_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: "s", Messages: []*loombridgev1.Message{
			{Role: loombridgev1.Role_ROLE_ASSISTANT, Content: "I look.\n<function=execute_bash>\n<parameter=command>" + command + "</parameter>\n</function>"},
			{Role: loombridgev1.Role_ROLE_USER, Content: result, Observation: true},
		}})
		must(t, err)
	}
	for n := range 20 {
		act(fmt.Sprintf("check %d", n), strings.Repeat(fmt.Sprintf("part %d\n", n), 80)+fmt.Sprintf("conf/unit_%d.ini says: retries are set to %d\n", n, n))
	}
	ask := &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s", MaxTokens: 100_000}
	_, err := s.Context.Assemble(t.Context(), ask)
	must(t, err)
	_, err = s.Context.CompactHistory(t.Context(), &loombridgev1.CompactHistoryRequest{AgentId: agent, SessionId: "s"})
	must(t, err)
	act("check 3", "part 3")
	act("check 333", "part 333")
	got, err := s.Context.Assemble(t.Context(), ask)
	must(t, err)
	if r := got.GetReceipt(); r.GetCalls() != 22 || r.GetFaults() != 1 {
		t.Errorf("%d calls and %d faults, want 22 and 1", r.GetCalls(), r.GetFaults())
	}
	act("edit conf/unit_2.ini", "done")
	_, last := rehydrated(t, s, &loombridgev1.AssembleRequest{SessionId: "s"})
	if !strings.Contains(last, "message_006: conf/unit_2.ini says: retries are set to 2") {
		t.Errorf("%q", last)
	}
}
