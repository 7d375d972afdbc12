package read

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/rehydrate"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// maxTakeUp entries at the end of the log are looked at for what was said last.
const maxTakeUp = 64

// TakenUp are the lines of folded results that the newest call, what the user said since, or
// the goal takes up. Only the ledger's folds keep names.
func (m *Moment) TakenUp(ctx context.Context, finder *rehydrate.Finder, goal string) ([]rehydrate.Line, error) {
	if len(m.Folds.Live) == 0 {
		return nil, nil
	}
	p := rehydrate.Shown{Folds: history.Live(m.Folds.Live)}
	var err error
	if p.New, err = m.newest(ctx, goal); err != nil {
		return nil, err
	}
	if len(finder.Wants(p)) == 0 {
		return nil, nil
	}
	// Few prompts get this far: what is shown in full is read for them alone.
	newest := strings.Join(p.New, "\n")
	for e, err := range m.log.Unfolded(ctx, m.Scope, m.SessionID, m.Folds.Live) {
		if err != nil {
			return nil, fmt.Errorf("assemble: read history: %w", err)
		}
		for _, text := range textsOf(e) {
			if !strings.Contains(newest, text) {
				p.Shown = append(p.Shown, text)
			}
		}
	}
	return m.linesOf(ctx, finder, p)
}

// linesOf returns the lines that are taken up again from folded results.
func (m *Moment) linesOf(ctx context.Context, finder *rehydrate.Finder, p rehydrate.Shown) ([]rehydrate.Line, error) {
	shown := p.Shown
	for i := range p.Folds {
		shown = append(shown, p.Folds[i].Text)
	}
	var lines []rehydrate.Line
	for _, want := range finder.Wants(p) {
		ref, result, err := m.original(ctx, want.Ref)
		if err != nil {
			return nil, err
		}
		lines = append(lines, rehydrate.Lines(ref, result, want.Names, shown)...)
	}
	return lines, nil
}

// original returns what a folded step, or message, gave, and its reference as a reader
// needs it. What is no longer there says nothing.
func (m *Moment) original(ctx context.Context, short string) (ref, result string, err error) {
	digits, isMessage := strings.CutPrefix(short, "m")
	number, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return "", "", nil //nolint:nilerr // a line of a fold that names neither
	}
	if isMessage {
		for e, err := range m.log.Range(ctx, m.Scope, m.SessionID, number, number) {
			if err != nil || e.Message == nil {
				return "", "", err
			}
			return session.MessageID(number), pairing.Words(e.Message), nil
		}
		return "", "", nil
	}
	e, err := m.log.Step(ctx, m.Scope, number)
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
func (m *Moment) newest(ctx context.Context, goal string) ([]string, error) {
	texts := []string{}
	looked, turn := 0, ""
	for e, err := range m.log.Before(ctx, m.Scope, m.SessionID, 0) {
		if err != nil {
			return nil, fmt.Errorf("assemble: read the end of the log: %w", err)
		}
		if looked++; looked > maxTakeUp {
			break
		}
		switch {
		case e.Step != nil:
			if turn != "" && e.Step.TurnID != turn {
				return append(texts, goal), nil
			}
			texts = append(texts, pairing.Arguments(e.Step))
			if turn = e.Step.TurnID; turn == "" && e.Step.CallID == "" {
				return append(texts, goal), nil
			}
		case e.Message.Role == session.Assistant:
			calls := pairing.CallsOf(e.Message)
			for _, c := range calls {
				texts = append(texts, c.Args)
			}
			if _, acts := step.ParseAction(pairing.Words(e.Message)); acts && len(calls) == 0 {
				texts = append(texts, pairing.Words(e.Message))
			}
			return append(texts, goal), nil
		case e.Message.Role == session.User && !e.Message.Observation && !pairing.OnlyResults(e.Message):
			texts = append(texts, pairing.Words(e.Message))
		}
	}
	return append(texts, goal), nil
}

// textsOf are the texts of an entry that a prompt may show.
func textsOf(e session.Entry) []string {
	if s := e.Step; s != nil {
		return []string{pairing.OutputOf(s), pairing.Arguments(s), s.Thought}
	}
	texts := []string{pairing.Words(e.Message)}
	for _, c := range pairing.CallsOf(e.Message) {
		texts = append(texts, c.Args)
	}
	return texts
}
