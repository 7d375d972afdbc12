package assemble

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/rehydrate"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// maxTakeUp entries at the end of the log are looked at for what was said last.
const maxTakeUp = 64

// stepper finds a step by its number; *session.Log does.
type stepper interface {
	Step(ctx context.Context, scope kv.Scope, number uint64) (session.Entry, error)
}

// takeUp finds the lines of folded results that the newest call, what the user said
// since, or the goal takes up. Only the ledger's folds keep names.
func (t *task) takeUp(ctx context.Context) error {
	steps, ok := t.moment.log.(stepper)
	if !ok || t.policy != session.PolicyLedger || t.prompt.Excludes(settings.Rehydrated) {
		return nil
	}
	state, err := t.moment.log.Folds(ctx, t.r.Scope, t.r.SessionID)
	if err != nil || len(state.Live) == 0 {
		return err
	}
	p := rehydrate.Prompt{Folds: history.Live(state.Live)}
	if p.New, err = t.newest(ctx); err != nil {
		return err
	}
	wants := t.a.finder.Wants(p)
	if len(wants) == 0 {
		return nil
	}
	// Few prompts get this far: what is shown in full is read for them alone.
	newest := strings.Join(p.New, "\n")
	for e, err := range t.moment.log.Unfolded(ctx, t.r.Scope, t.r.SessionID, state.Live) {
		if err != nil {
			return fmt.Errorf("assemble: read history: %w", err)
		}
		for _, text := range textsOf(e) {
			if !strings.Contains(newest, text) {
				p.Shown = append(p.Shown, text)
			}
		}
	}
	return t.bringBack(ctx, steps, p)
}

// bringBack makes the section of what is taken up.
func (t *task) bringBack(ctx context.Context, steps stepper, p rehydrate.Prompt) error {
	shown := p.Shown
	for i := range p.Folds {
		shown = append(shown, p.Folds[i].Text)
	}
	var lines []rehydrate.Line
	for _, want := range t.a.finder.Wants(p) {
		ref, result, err := t.original(ctx, steps, want.Ref)
		if err != nil {
			return err
		}
		lines = append(lines, rehydrate.Lines(ref, result, want.Names, shown)...)
	}
	t.back = rehydrate.Section(lines, t.prompt.Cap(settings.Rehydrated), t.count)
	return nil
}

// original returns what a folded step, or message, gave, and its reference as a reader
// needs it. What is no longer there says nothing.
func (t *task) original(ctx context.Context, steps stepper, short string) (ref, result string, err error) {
	digits, isMessage := strings.CutPrefix(short, "m")
	number, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return "", "", nil //nolint:nilerr // a line of a fold that names neither
	}
	if isMessage {
		for e, err := range t.moment.log.Range(ctx, t.r.Scope, t.r.SessionID, number, number) {
			if err != nil || e.Message == nil {
				return "", "", err
			}
			return session.MessageID(number), spokenText(e.Message), nil
		}
		return "", "", nil
	}
	e, err := steps.Step(ctx, t.r.Scope, number)
	if errors.Is(err, session.ErrStepNotFound) {
		return "", "", nil
	}
	if err != nil {
		return "", "", fmt.Errorf("assemble: %w", err)
	}
	return e.Step.ID(), pairing.OutputOf(e.Step), nil
}

// newest are the texts that may take something up: what the model asked for last, what
// the user said since, and the goal.
func (t *task) newest(ctx context.Context) ([]string, error) {
	texts := []string{}
	looked, turn := 0, ""
	for e, err := range t.moment.log.Before(ctx, t.r.Scope, t.r.SessionID, 0) {
		if err != nil {
			return nil, fmt.Errorf("assemble: read the end of the log: %w", err)
		}
		if looked++; looked > maxTakeUp {
			break
		}
		switch {
		case e.Step != nil:
			if turn != "" && e.Step.TurnID != turn {
				return append(texts, t.r.Goal), nil
			}
			texts = append(texts, pairing.Arguments(e.Step))
			if turn = e.Step.TurnID; turn == "" && e.Step.CallID == "" {
				return append(texts, t.r.Goal), nil
			}
		case e.Message.Role == session.Assistant:
			calls := pairing.CallsOf(e.Message)
			for _, c := range calls {
				texts = append(texts, c.Args)
			}
			if _, acts := step.ParseAction(spokenText(e.Message)); acts && len(calls) == 0 {
				texts = append(texts, spokenText(e.Message))
			}
			return append(texts, t.r.Goal), nil
		case e.Message.Role == session.User && !e.Message.Observation && !pairing.OnlyResults(e.Message):
			texts = append(texts, spokenText(e.Message))
		}
	}
	return append(texts, t.r.Goal), nil
}

// textsOf are the texts of an entry that a prompt may show.
func textsOf(e session.Entry) []string {
	if s := e.Step; s != nil {
		return []string{pairing.OutputOf(s), pairing.Arguments(s), s.Thought}
	}
	texts := []string{spokenText(e.Message)}
	for _, c := range pairing.CallsOf(e.Message) {
		texts = append(texts, c.Args)
	}
	return texts
}

// asked is how often a session called tools, and how often it asked for what had been
// folded away.
type asked struct {
	// Through is the place of the last entry that was looked at.
	Through uint64 `json:"through"`
	Calls   int64  `json:"calls"`
	Faults  int64  `json:"faults"`
	// newCalls and newFaults are those since the prompt before.
	newCalls, newFaults int64
}

// asks counts the calls that came since the session's last prompt, actions that are
// text among them. A fault is one that reads back what the folds of that prompt name, by
// its reference or by where its result is stored, or that was made before, word for word,
// and is folded.
func (t *task) asks(ctx context.Context, s *source) asked {
	before, ok := t.a.known.asked(t.r.Scope, sessionOf(t.r.SessionID))
	if !ok {
		before = t.a.asked(ctx, t.r.Scope, sessionOf(t.r.SessionID))
	}
	now := asked{Through: max(before.Through, t.through), Calls: before.Calls, Faults: before.Faults}
	for _, g := range s.groups {
		for i := range g.Members {
			m := &g.Members[i]
			if m.Entry.Position <= before.Through {
				continue
			}
			for _, call := range madeBy(g, i) {
				now.newCalls++
				if t.a.finder.Fault(s.state.Live, call, t.stored(ctx, s, call)) {
					now.newFaults++
				}
			}
		}
	}
	now.Calls += now.newCalls
	now.Faults += now.newFaults
	return now
}

// stored are the references of steps whose stored results a call names.
func (t *task) stored(ctx context.Context, s *source, call history.Call) []string {
	if t.a.stepOf == nil || len(s.state.Live) == 0 {
		return nil
	}
	var refs []string
	for _, name := range rehydrate.Named(call.Args) {
		if id := t.a.stepOf(ctx, t.r.Scope, sessionOf(t.r.SessionID), name); id != "" {
			refs = append(refs, id)
		}
	}
	return refs
}

// madeBy are the calls of the i-th entry of a group that no other entry has.
func madeBy(g *pairing.Group, i int) []history.Call {
	m := &g.Members[i]
	switch {
	case m.Entry.Step != nil && m.Use == pairing.Alone:
		return []history.Call{{Name: pairing.CalledName(m.Entry.Step), Args: pairing.Arguments(m.Entry.Step)}}
	case m.Entry.Message == nil || m.Entry.Message.Role != session.Assistant:
		return nil
	case i+1 < len(g.Members) && g.Members[i+1].Use == pairing.Observed:
		// An action that is text is one text in folds, too.
		if a, ok := step.ParseAction(spokenText(m.Entry.Message)); ok {
			return []history.Call{{Args: a.Text}}
		}
	}
	return pairing.CallsOf(m.Entry.Message)
}

// asked is what the record of the session's last prompt says.
func (a *Assembler) asked(ctx context.Context, scope kv.Scope, id string) asked {
	if a.past == nil {
		return asked{}
	}
	extra, err := a.past.LastExtra(ctx, scope, id)
	var last sentExtra
	if err != nil || json.Unmarshal(extra, &last) != nil {
		return asked{}
	}
	return last.Asked
}

// taken is the section of what came back.
func (t *task) taken() []inject.Injection {
	if t.back.Text == "" {
		return nil
	}
	return []inject.Injection{t.back}
}
