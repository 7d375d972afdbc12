package recall

import (
	"cmp"
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
	// DefaultDirectShare is which part of the cap of tasks direct messages have.
	DefaultDirectShare = 0.30
	// DefaultDirectMin is how many of them stand there in any case.
	DefaultDirectMin = 1
)

// readerOf is whose prompt it is.
func readerOf(a *gather.Ask) *converter.Reader {
	return &converter.Reader{Agent: a.Scope.Owner, Instructors: a.Settings.Sources.Instructors}
}

// direct are the agent's direct messages of the session, in their order, as far as their
// share of the tasks' cap goes, and the ids of those that had no room. A prompt of no
// session of its own shows those of all.
func (t *Tasks) direct(ctx context.Context, a *gather.Ask) (shown []entry, left []string, err error) {
	if t.Messages == nil || a.Settings.Excludes(settings.Tasks) {
		return nil, nil, nil
	}
	from := a.Settings.Sources
	q := messages.Query{SessionID: a.SessionID, Limit: cmp.Or(from.DirectMessages, messages.DefaultLimit)}
	if q.SessionID == session.DefaultSession {
		q.SessionID = ""
	}
	reader := readerOf(a)
	all, err := t.Messages.At(a.View).List(ctx, a.Scope.Tenant, a.Scope.Owner, q)
	if err != nil {
		return nil, nil, err
	}
	limit := a.Settings.Cap(settings.Tasks)
	room := int(float64(limit) * cmp.Or(from.DirectShare, DefaultDirectShare))
	least, sum := cmp.Or(from.DirectMin, DefaultDirectMin), 0
	for i := range all {
		task := topics.AsTask(&all[i])
		m, ok := reader.Message(&task, task.SourceAgent)
		if !ok {
			continue
		}
		n := a.Count(m.Content)
		if limit > 0 && (sum+n > room || len(left) > 0) {
			if len(left) > 0 || len(shown) >= least || sum >= limit {
				left = append(left, task.ID)
				continue
			}
			m.Content = inject.Lines(m.Content, max(1, min(n, limit-sum)), a.Count)
			n = a.Count(m.Content)
		}
		sum += n
		shown = append(shown, entry{task.ID, task.CreateTime, m, settings.Tasks})
	}
	return shown, left, nil
}
