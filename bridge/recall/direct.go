package recall

import (
	"context"

	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/context/assemble/converter"
	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
)

const (
	// directShare is which part of the cap of tasks direct messages have.
	directShare = 0.30
	// directLeast is how many of them stand there in any case.
	directLeast = 1
)

// readerOf is whose prompt it is.
func readerOf(a *gather.Ask) *converter.Reader {
	return &converter.Reader{Agent: a.Scope.Owner, Instructors: a.Settings.Sources.Instructors}
}

// direct returns the agent's direct messages of the session, in order, within their share
// of the tasks' cap, and the ids of messages that did not fit. A prompt without a session
// shows messages of all sessions.
func (t *Tasks) direct(ctx context.Context, a *gather.Ask) (shown []messageEntry, left []string, err error) {
	if t.Messages == nil || a.Settings.Excludes(settings.Tasks) {
		return nil, nil, nil
	}
	q := messages.Query{SessionID: a.SessionID, Limit: messages.DefaultLimit}
	if q.SessionID == session.DefaultSession {
		q.SessionID = ""
	}
	reader := readerOf(a)
	all, err := t.Messages.At(a.View).List(ctx, a.Scope.Tenant, a.Scope.Owner, q)
	if err != nil {
		return nil, nil, err
	}
	limit := a.Settings.Cap(settings.Tasks)
	room := int(float64(limit) * directShare)
	sum := 0
	for i := range all {
		task := topics.AsTask(&all[i])
		m, ok := reader.Message(&task, task.SourceAgent)
		if !ok {
			continue
		}
		n := a.Count(m.Content)
		if limit > 0 && (sum+n > room || len(left) > 0) {
			if len(left) > 0 || len(shown) >= directLeast || sum >= limit {
				left = append(left, task.ID)
				continue
			}
			m.Content = inject.Lines(m.Content, max(1, min(n, limit-sum)), a.Count)
			n = a.Count(m.Content)
		}
		sum += n
		shown = append(shown, messageEntry{task.ID, task.CreateTime, m, settings.Tasks})
	}
	return shown, left, nil
}
