package assemble_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	formats "github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// server makes prompts, on a store of its own.
type server struct {
	engine    kv.Engine
	writer    *kv.Writer
	log       *session.Log
	assembler *assemble.Assembler
	// keepsNothing of histories from one call to the next.
	keepsNothing bool
}

// life is what happens, by chance, to the sessions of two servers, of which one keeps nothing.
type life struct {
	*rand.Rand
	tb       testing.TB
	servers  [2]*server
	request  assemble.Request
	last     string // id of the last prompt
	tokens   int    // of the last prompt
	calls    int
	waiting  []string // ids of calls without a result
	lines    []string // of earlier outputs
	copies   int
	happened map[string]int
}

func newLife(tb testing.TB) *life {
	tb.Helper()
	l := &life{tb: tb, Rand: rand.New(rand.NewPCG(chance.Seed(tb), 1)), happened: make(map[string]int)}
	now := func() time.Time { return time.Unix(1_000_000, 0) }
	for i := range l.servers {
		s := &server{engine: memkv.New(nil), keepsNothing: i == 1}
		s.writer = kv.NewWriter(s.engine, nil)
		tb.Cleanup(func() {
			if err := errors.Join(s.writer.Close(), s.engine.Close()); err != nil {
				tb.Error(err)
			}
		})
		s.log = session.New(s.engine, s.writer, &session.Options{Now: now})
		s.assembler = assemble.New(s.log, MustCounter(tb), &assemble.Options{Engine: s.engine, Now: now})
		l.servers[i] = s
	}
	l.request = assemble.Request{Scope: scope, SessionID: "s", MaxTokens: 4000, Goal: "the goal", Settings: plainEnd()}
	return l
}

// each does the same to both servers. They must agree on what comes of it, and so on an error,
// of which some may be.
func each[V any](l *life, what string, do func(s *server) (V, error), may ...error) (V, bool) {
	l.tb.Helper()
	var got [2]V
	var errs [2]error
	for i, s := range l.servers {
		if s.keepsNothing {
			s.log.Forget(l.request.Scope.Tenant, func(kv.Scope) bool { return true })
			s.assembler.ForgetHistories()
		}
		got[i], errs[i] = do(s)
	}
	if fmt.Sprint(errs[0]) != fmt.Sprint(errs[1]) {
		l.tb.Fatalf("%s: %v, where nothing is kept %v", what, errs[0], errs[1])
	}
	same := cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(history.Fold{})}
	if diff := cmp.Diff(got[1], got[0], same); diff != "" {
		l.tb.Fatalf("%s of %+v (-nothing kept +kept):\n%s", what, l.request, diff)
	}
	allowed := errs[0] == nil
	for _, err := range may {
		allowed = allowed || errors.Is(errs[0], err)
	}
	if !allowed {
		l.tb.Fatalf("%s: %v", what, errs[0])
	}
	if errs[0] == nil {
		l.happened[what]++
	}
	return got[0], errs[0] == nil
}

// output is what a tool gives: some lines of before, and some of its own.
func (l *life) output() string {
	var out []string
	for range l.IntN(30) * (1 + l.IntN(3)) {
		if n := len(l.lines); n > 8 && l.IntN(3) == 0 {
			from := l.IntN(n - 8)
			out = append(out, l.lines[from:from+4+l.IntN(4)]...)
			continue
		}
		own := fmt.Sprintf("src/file_%d.go:%d: func name%d() error %s", l.IntN(50), l.IntN(500), l.IntN(1000), strings.Repeat("é ", l.IntN(9)))
		out, l.lines = append(out, own), append(l.lines, own)
	}
	return strings.Join(out, "\n")
}

func (l *life) say(messages ...session.Message) {
	l.tb.Helper()
	each(l, "AppendMessages", func(s *server) (any, error) {
		return s.log.AppendMessages(l.tb.Context(), l.request.Scope, l.request.SessionID, messages, "")
	})
}

func (l *life) do(callID, turnID string) {
	l.tb.Helper()
	did := step.Step{
		SessionID: l.request.SessionID, ToolName: "shell:exec", MinimalArgs: fmt.Appendf(nil, `{"command":"make %d"}`, l.IntN(40)),
		CallID: callID, TurnID: turnID, Inline: l.output(), Pinned: l.IntN(30) == 0, Outcome: step.Succeeded,
	}
	switch l.IntN(8) {
	case 0:
		did.Outcome, did.Error = step.Failed, "exit status 2"
	case 1: // what is shown of it says how to read it
		did.Inline, did.OutcomeRef, did.OutcomePath, did.Observation = "", strings.Repeat("a", 64), "memory/results/a.json", "It has 900 lines."
	case 2:
		did.ToolName, did.Args = step.ToolReadFile, []byte(`{"path":"src/a.go"}`)
	}
	each(l, "RecordStep", func(s *server) (struct{}, error) {
		return struct{}{}, s.writer.Do(l.tb.Context(), kv.Request{Refs: []kv.Ref{s.log.Ref(l.request.Scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
			_, _, err := s.log.StageStep(ctx, tx, l.request.Scope, func(uint64) (step.Step, error) { return did, nil })
			return err
		}})
	})
}

// goOn lets something happen.
func (l *life) goOn() {
	l.tb.Helper()
	ctx, at, id := l.tb.Context(), l.request.Scope, l.request.SessionID
	switch l.IntN(18) {
	case 0:
		l.say(text(session.User, fmt.Sprint("Do task ", l.IntN(100))))
	case 1:
		l.say(text(session.Assistant, "I think so."))
	case 2, 3, 4:
		l.do("", "")
	case 5, 6: // a message that asks for calls, whose results come now or later
		for range 1 + l.IntN(3) {
			l.calls++
			l.waiting = append(l.waiting, fmt.Sprint("call_", l.calls))
		}
		l.say(asks("I look.", l.waiting...))
	case 7, 8, 9:
		if len(l.waiting) == 0 {
			l.calls++
			l.do(fmt.Sprint("call_", l.calls), fmt.Sprint("turn_", l.calls/3)) // it may be asked for later
			return
		}
		call := l.waiting[0]
		if l.waiting = l.waiting[1:]; l.IntN(2) == 0 {
			l.do(call, "")
		} else {
			l.say(answers(call, l.output()))
		}
	case 10:
		each(l, "CompactHistory", func(s *server) (assemble.Compaction, error) {
			return s.assembler.Compact(ctx, assemble.CompactRequest{Scope: at, SessionID: id})
		}, assemble.ErrOverflow)
	case 11:
		each(l, "UndoFold", func(s *server) (any, error) { return s.log.Undo(ctx, at, id, 0, "") }, session.ErrNothingToUndo)
	case 12: // a level of pressure
		turn := fmt.Sprint("turn ", l.calls, l.IntN(99))
		each(l, "ReportOverflow", func(s *server) (any, error) { return s.assembler.ReportOverflow(ctx, at, id, turn) }, assemble.ErrOverflow, assemble.ErrRefusedAgain)
	case 13:
		each(l, "Renew", func(s *server) (any, error) {
			return s.assembler.Renew(ctx, assemble.RenewRequest{Scope: at, SessionID: id, Goal: "the goal"})
		}, assemble.ErrOverflow, assemble.ErrRefusedAgain)
	case 14:
		l.change()
	case 15:
		l.fork()
	case 16: // a provider counts otherwise
		if l.last == "" {
			return
		}
		r := assemble.UsageReport{Scope: at, SessionID: id, PromptID: l.last, Usage: tokens.Usage{Prompt: l.tokens * (70 + l.IntN(80)) / 100, Completion: l.IntN(50)}}
		each(l, "ReportUsage", func(s *server) (assemble.UsageLearned, error) { return s.assembler.ReportUsage(ctx, r) }, assemble.ErrPromptUnknown)
	case 17:
		if l.IntN(4) == 0 {
			l.erase()
		}
	}
}

// change has the next prompts made under other settings.
func (l *life) change() {
	r := &l.request
	switch l.IntN(6) {
	case 0:
		r.Model = []string{"gpt-4o", "claude-sonnet-4-5", "gpt-4", "unheard-of"}[l.IntN(4)]
	case 1, 2:
		r.Format = assemble.Format(l.IntN(formats.Formats)) //nolint:gosec // a handful
	case 3:
		r.MaxTokens = 2500 + l.IntN(6000)
	case 4:
		r.History.ResultTokens = 100 + l.IntN(1000)
	case 5:
		r.History.Policy, r.History.Preset = []string{session.PolicyLedger, session.PolicyLedger, session.PolicyAppendOnly, session.PolicyPreset}[l.IntN(4)], ""
		if r.History.Policy == session.PolicyPreset {
			r.History.Preset = presets[l.IntN(len(presets))]
		}
	}
}

// fork goes on with a copy of the session, or with another agent that was there before.
func (l *life) fork() {
	l.tb.Helper()
	l.waiting, l.last = nil, ""
	from := l.request.Scope
	if l.request.Scope = kv.AgentScope(scope.Tenant, fmt.Sprint("agent-", 1+l.IntN(2))); l.IntN(3) == 0 {
		return
	}
	l.copies++
	to := kv.AgentScope(scope.Tenant, fmt.Sprint("copy-", l.copies))
	if _, ok := each(l, "fork", func(s *server) (any, error) {
		parts, err := s.log.Parts(l.tb.Context(), from, l.request.SessionID)
		if err != nil || len(parts) == 0 {
			return nil, cmpError(err)
		}
		_, err = s.log.Import(l.tb.Context(), to, l.request.SessionID, parts)
		return nil, err
	}, errEmpty); ok {
		l.request.Scope = to
	}
}

var errEmpty = errors.New("nothing to copy")

func cmpError(err error) error {
	if err == nil {
		return errEmpty
	}
	return err
}

// erase removes all that the agent has, whose positions are given again.
func (l *life) erase() {
	l.tb.Helper()
	l.waiting, l.last = nil, ""
	own := func(s kv.Scope) bool { return s == l.request.Scope }
	each(l, "erase", func(s *server) (any, error) {
		err := s.writer.Do(l.tb.Context(), kv.Request{Refs: []kv.Ref{s.log.Ref(l.request.Scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
			for tag := range 256 {
				for pair, err := range s.engine.Scan(ctx, kv.Log, kv.Prefix(l.request.Scope.Key(byte(tag)))) {
					if err != nil {
						return err
					}
					tx.Delete(kv.Log, pair.Key)
				}
			}
			return nil
		}})
		s.log.Forget(l.request.Scope.Tenant, own)
		s.assembler.Forget(own)
		return nil, err
	})
}

// A server that keeps what it made of a history for the next prompt makes the prompts of one
// that keeps nothing, byte for byte and with the same receipts, whatever happens in between.
func TestKeptHistoryChangesNoPrompt(t *testing.T) {
	happened := make(map[string]int)
	for range rounds(30, 3) {
		l := newLife(t)
		for range 150 {
			l.goOn()
			if l.IntN(3) == 0 {
				continue
			}
			if p, ok := each(l, "Assemble", func(s *server) (assemble.Prompt, error) { return s.assembler.Assemble(t.Context(), l.request) }, assemble.ErrOverflow); ok {
				l.last, l.tokens = p.Receipt.PromptID, p.Tokens.Tokens
			}
		}
		for what, n := range l.happened {
			happened[what] += n
		}
	}
	t.Log(happened)
	for _, what := range []string{"Assemble", "CompactHistory", "UndoFold", "ReportOverflow", "Renew", "ReportUsage", "fork", "erase"} {
		if happened[what] == 0 {
			t.Errorf("%s succeeded %d times", what, happened[what])
		}
	}
}
