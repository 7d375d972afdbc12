package recall

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/context/assemble/converter"
	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/instruct"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// recentTasks is how many tasks of L1 a prompt shows at most.
	recentTasks = 10
	// importantTasks is how many of L2, where prompts show these, too.
	importantTasks = 10
	// maxShownTasks bounds both together.
	maxShownTasks = 20
	// layerL2 is what settings call the tier of important tasks.
	layerL2 = "L2"
)

// Tiers are the tiers of tasks. *tiers.Tiers is one.
type Tiers interface {
	At(view kv.Reader) tiers.View
	Foresee(along *kv.Reads, scope kv.Scope, sessionID string, n int)
}

var _ Tiers = (*tiers.Tiers)(nil)

// Tasks are recent tasks that no step of the prompt stands for, as messages, and the
// events that belong to them.
type Tasks struct {
	Tiers Tiers
	// Messages has the direct messages, which stand before the tasks. Nil: there are none.
	Messages *messages.Box
	// Parent returns the agent that started an agent, whose events count as its own;
	// empty is none. Nil: no agent has one.
	Parent func(ctx context.Context, scope kv.Scope) string
	Terms  Terms
}

// Name is that of the section.
func (t *Tasks) Name() string { return settings.Tasks }

// Excluded reports whether prompts leave out both of its sections.
func (t *Tasks) Excluded(p *settings.Prompt) bool {
	return p.Excludes(settings.Tasks) && p.Excludes(settings.Events)
}

// messageEntry is a task or event that becomes a message.
type messageEntry struct {
	id      string
	at      time.Time
	message session.Message
	section string
}

// Collect returns the messages: direct ones, tasks of L2, then tasks of L1 and events by time.
func (t *Tasks) Collect(ctx context.Context, a *gather.Ask) (gather.Found, error) {
	var found gather.Found
	var important, recent []messageEntry
	var err error
	if !a.Settings.Excludes(settings.Tasks) {
		if important, recent, err = t.tasks(ctx, a); err != nil {
			return found, err
		}
	}
	if t.showsEvents(a) {
		heard, err := t.events(ctx, a)
		if err != nil {
			return found, err
		}
		recent = merged(recent, heard, important)
	}
	direct, left, err := t.direct(ctx, a)
	if err != nil {
		return found, err
	}
	found.LeftOut = left
	t.fill(a, direct, slices.Concat(important, recent), &found)
	return found, nil
}

// foresee adds what Remembered reads.
func (t *Tasks) foresee(along *kv.Reads, scope kv.Scope, sessionID string) {
	t.Tiers.Foresee(along, scope, sessionID, recentTasks)
	if t.Messages != nil {
		t.Messages.Foresee(along, scope)
	}
}

// Remembered is Collect where nothing is asked for but the few newest tasks of the session.
func (t *Tasks) Remembered(ctx context.Context, a *gather.Ask) (gather.Found, bool, error) {
	if t.showsEvents(a) || slices.Contains(a.Settings.Sources.Layers, layerL2) {
		return gather.Found{}, false, nil
	}
	found, err := t.Collect(ctx, a)
	return found, err == nil, err
}

// tasks returns the tasks of L2, if the settings ask for them, and of L1, each oldest
// first.
func (t *Tasks) tasks(ctx context.Context, a *gather.Ask) (important, recent []messageEntry, err error) {
	view := t.Tiers.At(a.View)
	room, asked := recentTasks, recentTasks
	seen := make(map[string]bool)
	if slices.Contains(a.Settings.Sources.Layers, layerL2) {
		tasks, err := view.L2(ctx, a.Scope, a.SessionID, importantTasks)
		if err != nil {
			return nil, nil, err
		}
		slices.SortStableFunc(tasks, byTime)
		important = entries(a, tasks, seen)
		// Some of L1 are important, too, and stand there once: others take their place.
		room, asked = maxShownTasks-len(important), 0 // all of them
	}
	tasks, err := view.L1(ctx, a.Scope, a.SessionID, asked)
	if err != nil {
		return nil, nil, err
	}
	recent = entries(a, tasks, seen)
	return important, recent[max(len(recent)-room, 0):], nil
}

func byTime(a, b session.Task) int {
	return cmp.Or(a.CreateTime.Compare(b.CreateTime), cmp.Compare(a.Number, b.Number))
}

// entries are the tasks that become messages and are not seen yet.
func entries(a *gather.Ask, tasks []session.Task, seen map[string]bool) []messageEntry {
	reader := readerOf(a)
	var all []messageEntry
	for i := range tasks {
		task := &tasks[i]
		if seen[task.ID] || task.Step > 0 {
			continue
		}
		seen[task.ID] = true
		writer := a.Scope.Owner // its program took the task in
		if task.Action == converter.ActionMessage {
			writer = cmp.Or(task.SourceAgent, writer)
		}
		if m, ok := reader.Message(task, writer); ok {
			all = append(all, messageEntry{task.ID, task.CreateTime, m, settings.Tasks})
		}
	}
	return all
}

// fill makes the injections of entries: the direct messages, and of the others the newest
// as far as the cap of the tasks goes, in their order.
func (t *Tasks) fill(a *gather.Ask, direct, all []messageEntry, found *gather.Found) {
	limit, sum, from := a.Settings.Cap(settings.Tasks), 0, len(all)
	for i := range direct {
		sum += a.Count(direct[i].message.Content)
	}
	for i := range slices.Backward(all) {
		n := a.Count(all[i].message.Content)
		if limit > 0 && sum+n > limit {
			if i != len(all)-1 || len(direct) > 0 {
				break
			}
			all[i].message.Content = inject.Lines(all[i].message.Content, limit, a.Count)
			n = a.Count(all[i].message.Content)
		}
		sum, from = sum+n, i
	}
	for _, e := range all[:from] {
		found.LeftOut = append(found.LeftOut, e.id)
	}
	shown := slices.Concat(direct, all[from:])
	if len(shown) == 0 {
		return
	}
	in := inject.Injection{
		Name: settings.Tasks, Phase: inject.UserContext, Cache: inject.Dynamic, Priority: inject.DefaultPriority,
		MaxTokens: limit, Framed: true, Source: "tasks and events", Row: instruct.Plans, // each message has its role from its own row
	}
	for _, e := range shown {
		in.Messages = append(in.Messages, e.message)
		found.Refs = append(found.Refs, e.id)
	}
	found.Injections = append(found.Injections, in)
}
