package record

import (
	"context"
	"encoding/json"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/rehydrate"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

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
func (a *Recorder) asks(ctx context.Context, m *Made) asked {
	before, ok := a.Known.asks.Get(sessionKey{m.Scope, m.SessionID})
	if !ok {
		before = a.asked(ctx, m.Scope, m.SessionID)
	}
	now := asked{Through: max(before.Through, m.Through), Calls: before.Calls, Faults: before.Faults}
	for _, g := range m.Source.Groups {
		for i := range g.Members {
			member := &g.Members[i]
			if member.Entry.Position <= before.Through {
				continue
			}
			for _, call := range madeBy(g, i) {
				now.newCalls++
				if a.finder.Fault(m.Source.State.Live, call, a.stored(ctx, m, call)) {
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
func (a *Recorder) stored(ctx context.Context, m *Made, call history.Call) []string {
	if a.stepOf == nil || len(m.Source.State.Live) == 0 {
		return nil
	}
	var refs []string
	for _, name := range rehydrate.Named(call.Args) {
		if id := a.stepOf(ctx, m.Scope, m.SessionID, name); id != "" {
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
		if a, ok := step.ParseAction(pairing.Words(m.Entry.Message)); ok {
			return []history.Call{{Args: a.Text}}
		}
	}
	return pairing.CallsOf(m.Entry.Message)
}

// asked is what the record of the session's last prompt says.
func (a *Recorder) asked(ctx context.Context, scope kv.Scope, id string) asked {
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
