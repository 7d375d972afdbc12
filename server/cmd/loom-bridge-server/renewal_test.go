package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// killedRenewals is how many renewals a server is killed in, unless LOOM_SOAK_ROUNDS
	// asks for more: 1,000 in `make soak`.
	killedRenewals = 6
	// renewedWindow is the window of that session, over which each round goes.
	renewedWindow = 4000
	renewedAgent  = "a"
	// sessionRenewals are as many as a session has: a server reads all of it anew.
	sessionRenewals = 25
)

// sprinter is a session whose window is renewed again and again, on servers that are
// killed.
type sprinter struct {
	tb           testing.TB
	rand         *rand.Rand
	dir, session string
	server       *child
	client       contexts.Client
	// sprint is how often it was renewed, said how many messages it has.
	sprint, said int
	// early counts the kills before the renewal was there, late those after it.
	early, late int
	// took is about how long a prompt with a renewal takes.
	took time.Duration
}

func (s *sprinter) start() {
	s.tb.Helper()
	s.server = MustStartChild(s.tb, s.dir, "--history-policy", "preset", "--history-preset", "partitioned")
	s.client = contexts.New(MustDial(s.tb, s.server.Address))
}

func (s *sprinter) update(r *loombridgev1.UpdateWorkingRequest) *loombridgev1.Working {
	s.tb.Helper()
	r.AgentId, r.SessionId = renewedAgent, s.session
	got, err := s.client.UpdateWorking(s.tb.Context(), r)
	must(s.tb, err)
	w := got
	w.Dashboard.Rho, w.Dashboard.TokenBudget, w.Tokens = 0, 0, 0
	return w
}

// work changes the working state and says more than the window has room for.
func (s *sprinter) work(n int) *loombridgev1.Working {
	s.tb.Helper()
	word := func() string { return fmt.Sprintf("w%d", s.rand.IntN(1000)) }
	_, err := s.client.AppendMessages(s.tb.Context(), &loombridgev1.AppendMessagesRequest{AgentId: renewedAgent, SessionId: s.session, Messages: []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_USER, Content: "Look at " + word()},
		{Role: loombridgev1.Role_ROLE_ASSISTANT, Content: strings.TrimSpace(strings.Repeat(word()+" ", 1500))},
		{Role: loombridgev1.Role_ROLE_USER, Content: "And now " + word()},
	}})
	must(s.tb, err)
	s.said += 3
	id := fmt.Sprint("e", n)
	s.update(&loombridgev1.UpdateWorkingRequest{
		Signals: []*loombridgev1.Signal{{EventId: id, Summary: "it was " + word(), Urgency: loombridgev1.Urgency(1 + s.rand.IntN(4))}},
	})
	r := &loombridgev1.UpdateWorkingRequest{
		Goal: new("goal " + word()), GoalProgress: new(word() + " of it"), Scratchpad: new(strings.Repeat(word()+" ", s.rand.IntN(50))),
		Plan:         &loombridgev1.Plan{Items: []*loombridgev1.PlanItem{{Text: "plan " + word()}, {Text: word(), Status: loombridgev1.PlanStatus_PLAN_STATUS_DONE}}},
		AddQuestions: []string{"why " + id}, RemoveQuestions: []string{fmt.Sprint("why e", n-3)},
		AddEvidence: []*loombridgev1.Evidence{{Source: word(), Title: id, Content: word()}},
	}
	if n > 8 {
		r.Acknowledge = []*loombridgev1.Acknowledgement{{EventId: fmt.Sprint("e", n-8), Decision: loombridgev1.EventDecision_EVENT_DECISION_IGNORE}}
	}
	return s.update(r)
}

func (s *sprinter) prompt(dry bool) (*loombridgev1.AssembleResponse, error) {
	return s.client.Assemble(s.tb.Context(), &loombridgev1.AssembleRequest{AgentId: renewedAgent, SessionId: s.session, DryRun: dry})
}

// last is the number of the last snapshot; 0 for none.
func (s *sprinter) last() *loombridgev1.Snapshot {
	got, err := s.client.ListSnapshots(s.tb.Context(), &loombridgev1.ListSnapshotsRequest{AgentId: renewedAgent, SessionId: s.session, Last: true})
	if err != nil {
		return nil
	}
	last := got.GetSnapshots()[0]
	w := last.GetWorking()
	w.Dashboard.Rho, w.Dashboard.TokenBudget, w.Tokens = 0, 0, 0
	return last
}

// round kills a server while it renews the window, and looks what is there.
func (s *sprinter) round(n int) {
	t := s.tb
	before := s.work(n)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if s.rand.IntN(4) == 0 {
			_, _ = s.client.Renew(t.Context(), &loombridgev1.RenewRequest{AgentId: renewedAgent, SessionId: s.session})
			return
		}
		_, _ = s.prompt(false)
	}()
	time.Sleep(time.Duration(rand.Int64N(int64(s.took) * 3 / 2))) // a random point of the call
	must(t, s.server.Process.Kill())
	_ = s.server.Wait()
	<-done
	s.start()
	if after := s.update(&loombridgev1.UpdateWorkingRequest{}); !proto.Equal(before, after) {
		t.Fatalf("round %d: the working state was\n%v\nand is\n%v", n, before, after)
	}
	last := s.last()
	renewed := int(last.GetSprint()) == s.sprint+1
	switch {
	case renewed && proto.Equal(last.GetWorking(), before):
		s.late++
		s.sprint++
	case int(last.GetSprint()) == s.sprint:
		s.early++
	default:
		t.Fatalf("round %d: after sprint %d the snapshot is\n%v\nof\n%v", n, s.sprint, last, before)
	}
	began := time.Now()
	p, err := s.prompt(false)
	must(t, err)
	s.took = max(time.Since(began), time.Millisecond)
	if level := p.GetReceipt().GetBatch().GetLevel(); !renewed && level != loombridgev1.PressureLevel_PRESSURE_LEVEL_RENEWAL || renewed && level != 0 {
		t.Fatalf("round %d: renewed %v, and the next prompt is of %v", n, renewed, level)
	}
	if !renewed {
		s.sprint++
	}
	text := ""
	for _, m := range p.GetMessages() {
		text += m.GetContent() + "\n"
	}
	if r := p.GetReceipt(); r.GetPressure() >= 1 || int(r.GetSprint()) != s.sprint || strings.Count(text, "# Handoff Document") != 1 || !strings.Contains(text, fmt.Sprintf("(Sprint %d)", s.sprint)) {
		t.Fatalf("round %d: pressure %v, sprint %d of %d", n, r.GetPressure(), r.GetSprint(), s.sprint)
	}
	if after := s.update(&loombridgev1.UpdateWorkingRequest{}); !proto.Equal(before, after) || !proto.Equal(s.last().GetWorking(), before) {
		t.Fatalf("round %d: the working state is\n%v\nand was\n%v", n, after, before)
	}
}

// Whenever a server is killed in a renewal, that has happened or not: the working state is
// as it was, the snapshot has it, the prompt takes less than its window, and nothing is
// lost.
//
// H29, P36, P37
func TestRenewalsOfAKilledServerSoak(t *testing.T) {
	t.Parallel()
	s := &sprinter{tb: t, rand: rand.New(rand.NewPCG(1, 2)), dir: t.TempDir(), took: 20 * time.Millisecond}
	s.start()
	all := soakRoundsOr(t, killedRenewals)
	for n := 0; n < all; {
		s.session, s.sprint, s.said = fmt.Sprint("s", n), 0, 0
		_, err := s.client.ConfigureSession(t.Context(), &loombridgev1.ConfigureSessionRequest{AgentId: renewedAgent, SessionId: s.session, MaxTokens: renewedWindow})
		must(t, err)
		for range min(sessionRenewals, all-n) {
			s.round(n)
			n++
		}
		s.check()
	}
	t.Logf("%d renewals: killed before %d, after %d", all, s.early, s.late)
}

// check looks whether everything is there that was.
func (s *sprinter) check() {
	t := s.tb
	seen := 0
	for token := ""; ; {
		got, err := s.client.ListSnapshots(t.Context(), &loombridgev1.ListSnapshotsRequest{AgentId: renewedAgent, SessionId: s.session, PageToken: token})
		must(t, err)
		for _, one := range got.GetSnapshots() {
			if seen++; int(one.GetSprint()) != seen {
				t.Fatalf("snapshot %d is of sprint %d", seen, one.GetSprint())
			}
		}
		if token = got.GetNextPageToken(); token == "" {
			break
		}
	}
	newest, err := s.client.ListConversation(t.Context(), &loombridgev1.ListConversationRequest{
		AgentId: renewedAgent, SessionId: s.session, Order: loombridgev1.ConversationOrder_CONVERSATION_ORDER_NEWEST_FIRST, PageSize: 1,
	})
	must(t, err)
	if n := int(newest.GetEntries()[0].GetPosition()); seen != s.sprint || n != s.said {
		t.Errorf("%d snapshots of %d renewals, %d of %d messages", seen, s.sprint, n, s.said)
	}
}

// The export writes the snapshots of renewals as files.
//
// F21
func TestExportOfSnapshots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir, "--history-policy", "preset", "--history-preset", "partitioned")
	s := &sprinter{tb: t, rand: rand.New(rand.NewPCG(1, 2)), client: p.context(), session: "default"}
	said := s.work(0)
	_, err := s.client.Renew(t.Context(), &loombridgev1.RenewRequest{AgentId: renewedAgent, SessionId: s.session})
	must(t, err)
	handoff := s.last().GetHandoff()
	must(t, p.Stop())
	out := filepath.Join(dir, "out")
	stdout, _, err := exportTo(t, filepath.Join(dir, "store"), out)
	must(t, err)
	files := filesIn(t, out)
	if !strings.Contains(stdout, "1 snapshots") || files["snapshots/default/sprint_001.md"] != handoff+"\n" {
		t.Errorf("told %q, wrote %q", stdout, files["snapshots/default/sprint_001.md"])
	}
	if document := files["snapshots/default/sprint_001.json"]; !strings.Contains(document, `"goal":"`+said.GetGoal()) || !strings.Contains(document, said.GetQuestions()[0]) {
		t.Errorf("the snapshot is %s", document)
	}
}
