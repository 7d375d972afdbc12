package server_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// allFormats are the formats of prompts.
var allFormats = []loombridgev1.PromptFormat{
	loombridgev1.PromptFormat_PROMPT_FORMAT_NEUTRAL, loombridgev1.PromptFormat_PROMPT_FORMAT_OPENAI_CHAT,
	loombridgev1.PromptFormat_PROMPT_FORMAT_OPENAI_RESPONSES, loombridgev1.PromptFormat_PROMPT_FORMAT_ANTHROPIC,
	loombridgev1.PromptFormat_PROMPT_FORMAT_GEMINI,
}

// sentPrompts are prompts of a session as they were answered, with the step that was
// recorded next.
type sentPrompts struct {
	answers []*loombridgev1.AssembleResponse
	steps   []string
}

// mustSend makes a session that folds, with a prompt before each step in another format.
func mustSend(t *testing.T, s *servertest.Server, id string, turns int) *sentPrompts {
	t.Helper()
	c := &talk{tb: t, server: s, session: id, preset: ""}
	var sent sentPrompts
	for n := range turns {
		if n%5 == 0 {
			c.say(userSays(fmt.Sprintf("Wish %d", n)))
		}
		if n%3 == 1 {
			args := fmt.Sprintf(`{"command":"cat %d"}`, n)
			c.answer(c.ask("I look.", "bash", args), strings.Repeat(fmt.Sprintf("line of %d\n", n/2), 60))
		}
		got, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
			AgentId: agent, SessionId: id, Goal: fmt.Sprintf("goal %d", n/4), System: "You are careful.", MaxTokens: 6000,
			Format: allFormats[n%len(allFormats)], WithoutTools: n%2 == 0,
		})
		must(t, err)
		args := fmt.Sprintf(`{"path":"part_%d.txt"}`, n)
		recorded, err := s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
			AgentId: agent, SessionId: id, ToolName: "fs:read_file", Success: true,
			ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: args},
			OutputForm:    &loombridgev1.RecordStepRequest_OutputJson{OutputJson: fmt.Sprintf(`{"content":%q}`, strings.Repeat(fmt.Sprintf("text of %d\n", n), 80))},
		})
		must(t, err)
		sent.answers, sent.steps = append(sent.answers, got), append(sent.steps, recorded.GetStep().GetId())
	}
	return &sent
}

// bytesOf is a prompt without its receipt, which names it all the same.
func bytesOf(p *loombridgev1.AssembleResponse) *loombridgev1.AssembleResponse {
	p = proto.CloneOf(p)
	p.Receipt = &loombridgev1.Receipt{PromptId: p.GetReceipt().GetPromptId(), Policy: p.GetReceipt().GetPolicy(), Layout: p.GetReceipt().GetLayout()}
	return p
}

// mustComeBack asks for every prompt by the step behind it and by its id.
func (p *sentPrompts) mustComeBack(t *testing.T, s *servertest.Server, id string) {
	t.Helper()
	for i, want := range p.answers {
		got, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
			AgentId: agent, SessionId: id, AsOf: &loombridgev1.AssembleRequest_AsOfStepId{AsOfStepId: p.steps[i]},
		})
		must(t, err)
		if !proto.Equal(bytesOf(got), bytesOf(want)) {
			t.Fatalf("prompt %d comes back as %.3000v\nwant %.3000v", i, bytesOf(got), bytesOf(want))
		}
		if got, err = s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
			AgentId: agent, SessionId: id, AsOf: &loombridgev1.AssembleRequest_AsOfPromptId{AsOfPromptId: want.GetReceipt().GetPromptId()},
		}); err != nil || !proto.Equal(bytesOf(got), bytesOf(want)) {
			t.Fatalf("prompt %d comes back by its id as %v", i, err)
		}
	}
}

// Every prompt that was sent comes back byte for byte, in the format it had: at once,
// after its folds were undone, and after a restart.
func TestPromptsComeBack(t *testing.T) {
	for name, open := range map[string]func() (kv.Engine, error){
		"memory":  func() (kv.Engine, error) { return memkv.New(nil), nil },
		"rocksdb": func() (kv.Engine, error) { return rockskv.Open(filepath.Join(t.TempDir(), "db"), nil) },
	} {
		engine, err := open()
		must(t, err)
		var sent *sentPrompts
		t.Run(name+", first server", func(t *testing.T) {
			s := servertest.Start(t, &servertest.Options{Engine: engine})
			sent = mustSend(t, s, "s", 60)
			folded := false
			for _, p := range sent.answers {
				folded = folded || len(p.GetReceipt().GetFolds()) > 0
			}
			if !folded {
				t.Error("nothing was folded")
			}
			sent.mustComeBack(t, s, "s")
			// Asking leaves no record: the last prompt is still the last one.
			diff, err := s.Context.DiffPrompts(t.Context(), &loombridgev1.DiffPromptsRequest{AgentId: agent, SessionId: "s"})
			must(t, err)
			if diff.GetToPromptId() != sent.answers[59].GetReceipt().GetPromptId() {
				t.Errorf("the last prompt is %s", diff.GetToPromptId())
			}
			_, err = s.Context.Undo(t.Context(), &loombridgev1.UndoRequest{AgentId: agent, SessionId: "s"})
			must(t, err)
			sent.mustComeBack(t, s, "s")
		})
		t.Run(name+", after a restart", func(t *testing.T) {
			sent.mustComeBack(t, servertest.Start(t, &servertest.Options{Engine: engine}), "s")
		})
		must(t, engine.Close())
	}
}

// What can't be made again is PROMPT_GONE and says what is missing. A dry run is no
// prompt, and what another agent or session has sent is not there.
func TestPromptsThatAreGone(t *testing.T) {
	s := servertest.Start(t, nil)
	step, err := s.Context.RecordStep(t.Context(), withTask("s", nil))
	must(t, err)
	dry, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s", DryRun: true})
	must(t, err)
	byID := func(agentID, session, id string) error {
		_, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
			AgentId: agentID, SessionId: session, AsOf: &loombridgev1.AssembleRequest_AsOfPromptId{AsOfPromptId: id},
		})
		return err
	}
	MustFail(t, byID(agent, "s", dry.GetReceipt().GetPromptId()), codes.NotFound, "PROMPT_GONE")
	sent, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s"})
	must(t, err)
	id := sent.GetReceipt().GetPromptId()
	must(t, byID(agent, "s", id))
	MustFail(t, byID("other", "s", id), codes.NotFound, "PROMPT_GONE")
	MustFail(t, byID(agent, "other", id), codes.NotFound, "PROMPT_GONE")
	byStep := func(session, id string) error {
		_, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
			AgentId: agent, SessionId: session, AsOf: &loombridgev1.AssembleRequest_AsOfStepId{AsOfStepId: id},
		})
		return err
	}
	err = byStep("s", step.GetStep().GetId())
	MustFail(t, err, codes.NotFound, "PROMPT_GONE")
	if missing := infoOf(err).GetMetadata()["missing"]; !strings.Contains(missing, "a prompt before step_001") {
		t.Errorf("missing is %q", missing)
	}
	MustFail(t, byStep("s", "step_999"), codes.NotFound, "STEP_NOT_FOUND")
	MustFail(t, byStep("other", "step_001"), codes.InvalidArgument, "INVALID_REQUEST")
	MustFail(t, byStep("s", "step_1"), codes.InvalidArgument, "INVALID_REQUEST")
	_, err = s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
		AgentId: agent, SessionId: "s", Goal: "x", AsOf: &loombridgev1.AssembleRequest_AsOfPromptId{AsOfPromptId: id},
	})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	_, err = s.Context.DiffPrompts(t.Context(), &loombridgev1.DiffPromptsRequest{AgentId: agent, SessionId: "s"})
	MustFail(t, err, codes.NotFound, "PROMPT_GONE")
}

// DiffPrompts names the section of the first byte that differs, and every section that
// does.
func TestDiffPrompts(t *testing.T) {
	s := servertest.Start(t, nil)
	send := func(change func(r *loombridgev1.AssembleRequest)) *loombridgev1.AssembleResponse {
		t.Helper()
		r := &loombridgev1.AssembleRequest{
			AgentId: agent, SessionId: "s", Goal: "the goal", System: "You are careful.", WithoutTools: true, MaxTokens: 20_000,
		}
		change(r)
		got, err := s.Context.Assemble(t.Context(), r)
		must(t, err)
		return got
	}
	diff := func(from, to *loombridgev1.AssembleResponse) *loombridgev1.DiffPromptsResponse {
		t.Helper()
		got, err := s.Context.DiffPrompts(t.Context(), &loombridgev1.DiffPromptsRequest{
			AgentId: agent, SessionId: "s", FromPromptId: from.GetReceipt().GetPromptId(), ToPromptId: to.GetReceipt().GetPromptId(),
		})
		must(t, err)
		return got
	}
	same := func(*loombridgev1.AssembleRequest) {}
	c := &talk{tb: t, server: s, session: "s"}
	c.say(userSays("Do it."))
	c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT, Content: "I begin."})
	base := send(same)
	for section, change := range map[string]func(r *loombridgev1.AssembleRequest){
		"system": func(r *loombridgev1.AssembleRequest) { r.System = "You are careless." },
		"goal":   func(r *loombridgev1.AssembleRequest) { r.Goal = "another goal" },
		"tools":  func(r *loombridgev1.AssembleRequest) { r.WithoutTools = false },
		"facts": func(r *loombridgev1.AssembleRequest) {
			r.Settings = &loombridgev1.PromptSettings{Injections: []*loombridgev1.Injection{{
				Name: "facts", Phase: loombridgev1.InjectionPhase_INJECTION_PHASE_RUNTIME, Content: "The sky is blue.",
			}}}
		},
	} {
		got := diff(base, send(change))
		if got.GetDifference().GetSection() != section {
			t.Errorf("%s: %v", section, got)
		}
		if at := got.GetDifference().GetByte(); at <= 0 || got.GetFromExcerpt() == got.GetToExcerpt() {
			t.Errorf("%s: byte %d, %q and %q", section, at, got.GetFromExcerpt(), got.GetToExcerpt())
		}
	}
	if got := diff(base, send(same)); got.GetDifference() != nil {
		t.Errorf("the same prompt twice: %v", got)
	}
	c.say(userSays("And that."))
	if got := diff(base, send(same)); got.GetDifference().GetSection() != "history" {
		t.Errorf("a new message: %v", got)
	}
}

// The receipt says where a prompt first differs from the one before, as DiffPrompts does.
func TestReceiptsTellTheDifference(t *testing.T) {
	s := servertest.Start(t, nil)
	c := &talk{tb: t, server: s, session: "s"}
	var sent sentPrompts
	for n := range 60 {
		if n%4 == 0 {
			c.say(userSays(fmt.Sprintf("Wish %d", n)))
		} else {
			c.answer(c.ask("I look.", "bash", fmt.Sprintf(`{"command":"cat %d"}`, n)), strings.Repeat(fmt.Sprintf("line of %d\n", n), 90))
		}
		for range 1 + n%2 {
			got, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
				AgentId: agent, SessionId: "s", Goal: fmt.Sprintf("goal %d", n/7), System: fmt.Sprintf("You are careful %d.", n/13), MaxTokens: 6000,
				Format: loombridgev1.PromptFormat_PROMPT_FORMAT_ANTHROPIC, WithoutTools: n/20 == 1,
			})
			must(t, err)
			sent.answers = append(sent.answers, got)
		}
	}
	if first := sent.answers[0].GetReceipt(); first.GetDifference() != nil {
		t.Errorf("the first prompt differs by %v", first.GetDifference())
	}
	sections := make(map[string]int)
	for i, p := range sent.answers[1:] {
		got, err := s.Context.DiffPrompts(t.Context(), &loombridgev1.DiffPromptsRequest{
			AgentId: agent, SessionId: "s", FromPromptId: sent.answers[i].GetReceipt().GetPromptId(), ToPromptId: p.GetReceipt().GetPromptId(),
		})
		must(t, err)
		section := p.GetReceipt().GetDifference().GetSection()
		if same := section == "" && got.GetDifference() == nil; !same && !proto.Equal(got.GetDifference(), p.GetReceipt().GetDifference()) {
			t.Errorf("prompt %d: the receipt says %v, DiffPrompts %v", i+1, p.GetReceipt().GetDifference(), got.GetDifference())
		}
		sections[section]++
	}
	if sections["tools"] == 0 || sections["system"] == 0 || sections["history"] == 0 || sections[""] == 0 {
		t.Errorf("sections %v", sections)
	}
	same := &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s", DryRun: true, Goal: "goal 9", System: "You are careful.", MaxTokens: 6000}
	_, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s", Goal: "goal 9", System: "You are careful.", MaxTokens: 6000})
	must(t, err)
	again, err := s.Context.Assemble(t.Context(), same)
	must(t, err)
	if d := again.GetReceipt().GetDifference(); d == nil || d.GetSection() != "" {
		t.Errorf("the same prompt differs by %v", d)
	}
}

// fingerprint is the hash of a prompt's bytes.
func fingerprint(tb testing.TB, p *loombridgev1.AssembleResponse) [32]byte {
	tb.Helper()
	all, err := proto.MarshalOptions{Deterministic: true}.Marshal(bytesOf(p))
	must(tb, err)
	return sha256.Sum256(all)
}

// Every prompt of recorded runs comes back byte for byte after the server and the store
// were opened anew. A part of the runs by default, all with LOOM_SOAK_ROUNDS.
func TestRecordedPromptsComeBackSoak(t *testing.T) {
	dir := os.Getenv("LOOM_EVAL_DATA")
	if dir == "" {
		t.Skip("LOOM_EVAL_DATA does not name the folder with recorded runs")
	}
	every := 23
	if os.Getenv("LOOM_SOAK_ROUNDS") != "" {
		every = 1
	}
	runs := MustRuns(t, filepath.Join(dir, "trajectories", "mini_swe_dev.jsonl"))
	type sent struct {
		session, id string
		sum         [32]byte
	}
	var prompts []sent
	store := filepath.Join(t.TempDir(), "db")
	folds := 0
	t.Run("sent", func(t *testing.T) {
		s := mustStartOn(t, store)
		for i := 0; i < len(runs); i += every {
			id := fmt.Sprintf("%d %s", i, runs[i].ID)
			c := &talk{tb: t, server: s, session: id, budget: 32_000}
			c.onPrompt = func(p *loombridgev1.AssembleResponse) {
				prompts = append(prompts, sent{id, p.GetReceipt().GetPromptId(), fingerprint(t, p)})
			}
			c.replay(&runs[i], 1<<20)
			folds += c.batches
		}
	})
	back := 0
	t.Run("after a restart", func(t *testing.T) {
		s := mustStartOn(t, store)
		for _, p := range prompts {
			got, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
				AgentId: agent, SessionId: p.session, AsOf: &loombridgev1.AssembleRequest_AsOfPromptId{AsOfPromptId: p.id},
			})
			if err != nil || fingerprint(t, got) != p.sum {
				t.Errorf("%s: prompt %s does not come back: %v", p.session, p.id, err)
				continue
			}
			back++
		}
	})
	t.Logf("%d of %d prompts of %d runs come back byte for byte, with %d batches of folds", back, len(prompts), (len(runs)+every-1)/every, folds)
	if back != len(prompts) || len(prompts) == 0 || folds == 0 {
		t.Errorf("%d of %d prompts, %d batches", back, len(prompts), folds)
	}
}

// mustStartOn starts a server on a store that is opened and closed with the test.
func mustStartOn(t *testing.T, store string) *servertest.Server {
	t.Helper()
	engine, err := rockskv.Open(store, nil)
	must(t, err)
	t.Cleanup(func() { must(t, engine.Close()) })
	return servertest.Start(t, &servertest.Options{Engine: engine})
}
