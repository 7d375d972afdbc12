package server_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
)

// find asks where a text stood.
func find(tb testing.TB, s *servertest.Server, session, text string) *loombridgev1.FindInPromptsResponse {
	tb.Helper()
	got, err := s.Context.FindInPrompts(tb.Context(), &loombridgev1.FindInPromptsRequest{AgentId: agent, SessionId: session, Text: text})
	must(tb, err)
	return got
}

// omission is a planted text that prompts no longer show.
type omission struct {
	session, text string
	// in are the numbers of the prompts that showed it, first the first that did not, behind
	// those.
	in    []int64
	first int64
	batch int64
}

// Of texts that were planted in results of recorded runs and that folds took out of prompts,
// each is found: where from, in which prompts it stood, and which batch took it.
func TestPlantedOmissionsAreFoundSoak(t *testing.T) {
	dir := os.Getenv("LOOM_EVAL_DATA")
	if dir == "" {
		t.Skip("LOOM_EVAL_DATA does not name the folder with recorded runs")
	}
	runs := MustRuns(t, filepath.Join(dir, "trajectories", "mini_swe_dev.jsonl"))
	want := 40
	if os.Getenv("LOOM_SOAK_ROUNDS") != "" {
		want = 200
	}
	s := servertest.Start(t, nil)
	found, losses := 0, 0
	for i := range runs {
		if found >= want {
			break
		}
		session := fmt.Sprintf("%d %s", i, runs[i].ID)
		planted := make(map[string]*omission)
		for k := range runs[i].Messages {
			if m := &runs[i].Messages[k]; k > 2 && m.Role != "assistant" && m.Role != "system" {
				text := fmt.Sprintf("remark %c%c of the gardener", 'a'+k/26%26, 'a'+k%26)
				m.Text = text + "\n" + m.Text
				planted[text] = &omission{session: session, text: text}
			}
		}
		c := &talk{tb: t, server: s, session: session, budget: 32_000}
		c.onPrompt = func(p *loombridgev1.AssembleResponse) {
			for text, o := range planted {
				switch {
				case place(p, text) >= 0:
					o.in, o.first = append(o.in, int64(c.prompts)), 0
				case len(o.in) > 0 && o.first == 0:
					o.first, o.batch = int64(c.prompts), p.GetReceipt().GetBatch().GetNumber()
				}
			}
		}
		c.replay(&runs[i], 1<<20)
		for _, o := range planted {
			if o.first == 0 {
				continue
			}
			losses++
			if o.check(t, s) {
				found++
			}
		}
	}
	t.Logf("%d of %d planted omissions were found with the batch that took them", found, losses)
	if found < want || found != losses {
		t.Errorf("%d of %d were found, at least %d are wanted", found, losses, want)
	}
}

func (o *omission) check(t *testing.T, s *servertest.Server) bool {
	t.Helper()
	got := find(t, s, o.session, o.text)
	var in []int64
	for _, p := range got.GetPrompts() {
		if len(p.GetPlaces()) > 0 {
			in = append(in, p.GetNumber())
		}
	}
	if !slices.Equal(in, o.in) {
		t.Errorf("%s: %q stood in %v, found in %v", o.session, o.text, o.in, in)
		return false
	}
	if len(got.GetOrigins()) == 0 {
		t.Errorf("%s: nobody said %q", o.session, o.text)
		return false
	}
	last := got.GetLosses()[len(got.GetLosses())-1]
	if last.GetNumber() != o.first || last.GetCause() != loombridgev1.LossCause_LOSS_CAUSE_FOLD || last.GetBatch().GetNumber() != o.batch || len(last.GetBatch().GetRefs()) == 0 {
		t.Errorf("%s: %q was taken by batch %d in prompt %d, found %v", o.session, o.text, o.batch, o.first, last)
		return false
	}
	return true
}

// Each thing that takes a text out of a prompt is named as what it is.
func TestWhatTookATextIsNamed(t *testing.T) {
	s := servertest.Start(t, nil)
	const text = "the quince stands by the gate"
	must := func(err error) { t.Helper(); must(t, err) }
	assemble := func(session string, change func(*loombridgev1.AssembleRequest)) {
		t.Helper()
		r := &loombridgev1.AssembleRequest{AgentId: agent, SessionId: session, WithoutTools: true, MaxTokens: 9000}
		change(r)
		_, err := s.Context.Assemble(t.Context(), r)
		must(err)
	}
	long := func(c *talk, n int) {
		c.answer(c.ask("I look.", "bash", fmt.Sprint(n)), strings.Repeat("some line of a file\n", 150))
	}
	run := func(session, preset, said string, renew bool) *loombridgev1.FindInPromptsResponse {
		c := &talk{tb: t, server: s, session: session}
		c.answer(c.ask("I look.", "bash", "{}"), said)
		with := func(r *loombridgev1.AssembleRequest) { r.History = &loombridgev1.HistorySettings{Preset: preset} }
		assemble(session, with)
		for n := range 40 {
			if long(c, n); renew && n == 4 {
				_, err := s.Context.Renew(t.Context(), &loombridgev1.RenewRequest{AgentId: agent, SessionId: session})
				must(err)
			}
			if _, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
				AgentId: agent, SessionId: session, WithoutTools: true, MaxTokens: 9000, History: &loombridgev1.HistorySettings{Preset: preset},
			}); err != nil {
				break
			}
		}
		return find(t, s, session, text)
	}
	more := strings.Repeat(" and more of it", 150)
	for name, tt := range map[string]struct {
		got  *loombridgev1.FindInPromptsResponse
		want loombridgev1.LossCause
	}{
		"level":   {run("level", "partitioned", more+text+more, false), loombridgev1.LossCause_LOSS_CAUSE_LEVEL},
		"older":   {run("older", "design", text, false), loombridgev1.LossCause_LOSS_CAUSE_FOLD},
		"ledger":  {run("ledger", "", more+text+more, false), loombridgev1.LossCause_LOSS_CAUSE_FOLD},
		"renewal": {run("renewal", "", more+text+more, true), loombridgev1.LossCause_LOSS_CAUSE_RENEWAL},
		"source": {func() *loombridgev1.FindInPromptsResponse {
			assemble("source", func(r *loombridgev1.AssembleRequest) { r.System = text })
			assemble("source", func(r *loombridgev1.AssembleRequest) { r.System = "another" })
			return find(t, s, "source", text)
		}(), loombridgev1.LossCause_LOSS_CAUSE_SOURCE},
		"cap": {func() *loombridgev1.FindInPromptsResponse {
			with := func(most int32) func(*loombridgev1.AssembleRequest) {
				return func(r *loombridgev1.AssembleRequest) {
					r.Settings = &loombridgev1.PromptSettings{Injections: []*loombridgev1.Injection{{
						Name: "facts", Phase: loombridgev1.InjectionPhase_INJECTION_PHASE_RUNTIME, MaxTokens: most, Content: strings.Repeat("a fact of the garden\n", 100) + text,
					}}}
				}
			}
			assemble("cap", with(9000))
			assemble("cap", with(30))
			return find(t, s, "cap", text)
		}(), loombridgev1.LossCause_LOSS_CAUSE_CAP},
	} {
		if len(tt.got.GetLosses()) == 0 {
			t.Errorf("%s: no loss in %d prompts", name, len(tt.got.GetPrompts()))
			continue
		}
		if l := tt.got.GetLosses()[0]; l.GetCause() != tt.want || l.GetSection() == "" {
			t.Errorf("%s: %v", name, l)
		}
	}
}

// Without a text the prompts are listed; of another session, of none and of nothing there is
// nothing; a text that is too long is refused.
func TestFindInPromptsEdges(t *testing.T) {
	s := servertest.Start(t, nil)
	sent := mustSend(t, s, "s", 20)
	if got := find(t, s, "s", ""); len(got.GetPrompts()) != 20 || got.GetPrompts()[19].GetPromptId() != sent.answers[19].GetReceipt().GetPromptId() ||
		got.GetPrompts()[7].GetTokens() != sent.answers[7].GetTokens().GetTokens() || got.GetPrompts()[7].GetParts()["history"] != sent.answers[7].GetParts()["history"] {
		t.Errorf("listed %v", got)
	}
	if got := find(t, s, "s", "no prompt says this"); len(got.GetPrompts()) != 20 || len(got.GetOrigins())+len(got.GetLosses()) != 0 {
		t.Errorf("found %v", got)
	}
	if got := find(t, s, "other", "text"); len(got.GetPrompts()) != 0 {
		t.Errorf("found %v", got)
	}
	if got := find(t, s, "s", "You are careful."); got.GetPrompts()[3].GetPlaces()[0].GetSection() != "system" {
		t.Errorf("the system prompt is found as %v", got.GetPrompts()[3])
	}
	_, err := s.Context.FindInPrompts(t.Context(), &loombridgev1.FindInPromptsRequest{AgentId: agent, Text: strings.Repeat("x", 4097)})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	_, err = s.Context.FindInPrompts(t.Context(), &loombridgev1.FindInPromptsRequest{})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
}

// What is damaged is passed over and named, whatever it is; the rest is found as before.
func TestFindsBesideWhatIsDamaged(t *testing.T) {
	engine := memkv.New(nil)
	defer engine.Close()
	s := servertest.Start(t, &servertest.Options{Engine: engine})
	mustSend(t, s, "s", 20)
	whole := find(t, s, "s", "text of 2")
	if len(whole.GetOrigins()) != 1 || len(whole.GetLosses()) == 0 || len(whole.GetUnread()) > 0 {
		t.Fatalf("found %v", whole)
	}
	writer := kv.NewWriter(engine, nil)
	defer writer.Close()
	scope := kv.AgentScope(auth.DefaultTenant, agent)
	put := func(key, value []byte) {
		must(t, writer.Do(t.Context(), kv.Request{
			Blind: []kv.Ref{{Keyspace: kv.Log, Scope: scope}},
			Stage: func(_ context.Context, tx *kv.Tx) error { tx.Put(kv.Log, key, value); return nil },
		}))
	}
	for tag, names := range map[byte]string{'p': "prompt ", 'x': "a text of prompt ", 'e': "entry ", 'f': "a fold of the session"} {
		var all []kv.Pair
		for pair, err := range engine.Scan(t.Context(), kv.Log, kv.Prefix(scope.Key(tag))) {
			must(t, err)
			all = append(all, pair)
		}
		if len(all) == 0 {
			t.Errorf("nothing is stored as %c", tag)
		}
		for _, pair := range all {
			put(pair.Key, []byte{0xff})
			got := find(t, s, "s", "text of 2")
			if u := got.GetUnread(); len(u) == 0 || !strings.HasPrefix(u[0], names) {
				t.Errorf("%c %q is damaged: unread %q", tag, pair.Key, u)
			}
			want := len(whole.GetPrompts())
			if tag == 'p' {
				want--
			}
			if len(got.GetPrompts()) != want {
				t.Errorf("%c %q is damaged: %d prompts", tag, pair.Key, len(got.GetPrompts()))
			}
			put(pair.Key, pair.Value)
		}
	}
	if got := find(t, s, "s", "text of 2"); !proto.Equal(got, whole) {
		t.Errorf("found %v, before it was damaged %v", got, whole)
	}
}

// A text is found however JSON has written its letters.
func TestFindsWhatJSONEscapes(t *testing.T) {
	s := servertest.Start(t, nil)
	for form, arguments := range map[string]string{
		"plain":   `{"q":"the café <b> & \"quince\""}`,
		"ascii":   `{"q":"the caf\u00e9 <b> & \"quince\""}`,
		"upper":   `{"q":"the caf\u00E9 <b> & \"quince\""}`,
		"html":    `{"q":"the café \u003cb\u003e \u0026 \"quince\""}`,
		"all":     `{"q":"the caf\u00e9 \u003cb\u003e \u0026 \u0022quince\u0022"}`,
		"slashes": `{"q":"the caf\u00e9 <b> & \"quince\" a\/b"}`,
	} {
		c := &talk{tb: t, server: s, session: form}
		c.answer(c.ask("I look.", "bash", arguments), "done")
		_, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: form, WithoutTools: true})
		must(t, err)
		got := find(t, s, form, `café <b> & "quince"`)
		if len(got.GetOrigins()) != 1 || len(got.GetPrompts()[0].GetPlaces()) != 1 {
			t.Errorf("%s: found %v", form, got)
		}
	}
}
