package recall

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/context/assemble/converter"
	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
)

const (
	// mostEvents is how many events a prompt shows at most.
	mostEvents = 20
	// leastEvents is how many there must be for any to be shown.
	leastEvents = 2
	// lastEvents is how many of the newest events of a topic are looked at.
	lastEvents = 50
)

// defaultActions are the actions of events that are shown.
var defaultActions = []string{converter.ActionThinking, converter.ActionToolCall}

// showsEvents reports whether a prompt shows events: in the layout that has a place for
// them, or where settings name their actions.
func (t *Tasks) showsEvents(a *gather.Ask) bool {
	return !a.Settings.Excludes(settings.Events) && (a.Layout == settings.TaskContext || len(a.Settings.Sources.EventActions) > 0)
}

// heard is an event that may be shown.
type heard struct {
	event events.Event
	task  session.Task
	score float64
}

// events returns the most important events of the agent and its parent in the session,
// oldest first. Events of other agents are not shown: as messages they would read as the
// agent's own words.
func (t *Tasks) events(ctx context.Context, a *gather.Ask) ([]messageEntry, error) {
	actions := a.Settings.Sources.EventActions
	if len(actions) == 0 {
		actions = defaultActions
	}
	parent := ""
	if t.Parent != nil {
		parent = t.Parent(ctx, a.Scope)
	}
	words := askedWords(a, t.Terms)
	var all []heard
	for _, action := range actions {
		last, err := t.last(ctx, a, action)
		if err != nil {
			return nil, err
		}
		for i := range last {
			e := &last[i]
			if e.Source != a.Scope.Owner && (parent == "" || e.Source != parent) {
				continue
			}
			task, ok := taskOf(e)
			if !ok || task.SessionID != cmp.Or(a.SessionID, session.DefaultSession) || task.Step > 0 {
				continue
			}
			all = append(all, heard{*e, task, rank(e, a.Now, matched(t.Terms, e, words), nodeOf(e.Source, a.Scope.Owner, parent))})
		}
	}
	return t.chosen(a, all), nil
}

// last are the newest events of a topic.
func (t *Tasks) last(ctx context.Context, a *gather.Ask, topic string) ([]events.Event, error) {
	scope := store.Ref(a.Scope.Tenant, topic).Scope
	record, err := store.RecordOf(ctx, a.View, scope)
	if err != nil || record.Empty() {
		return nil, err
	}
	from := record.First
	if record.Last >= lastEvents {
		from = max(from, record.Last-lastEvents+1)
	}
	return store.Page(ctx, a.View, scope, from, store.Limit{Events: lastEvents, Bytes: 4 * store.MaxPageBytes})
}

// taskOf returns the task that an event reports; false if its payload is no object. A task
// without an id gets the event's id.
func taskOf(e *events.Event) (session.Task, bool) {
	var payload map[string]json.RawMessage
	if e.PayloadKind != events.JSON || json.Unmarshal(e.Payload, &payload) != nil || payload == nil {
		return session.Task{}, false
	}
	text := func(name string) (s string) {
		_ = json.Unmarshal(payload[name], &s) // what is no text is not there
		return s
	}
	parameters := json.RawMessage(e.Payload)
	if inner := payload["parameters"]; len(inner) > 0 && inner[0] == '{' {
		parameters = inner
	} else if s := text("parameters_json"); s != "" {
		parameters = json.RawMessage(s)
	}
	return session.Task{
		ID: cmp.Or(text("task_id"), e.ID), Action: e.Topic, Parameters: parameters, Result: text("result"),
		SourceAgent: cmp.Or(text("source_agent"), e.Source), ParentTaskID: text("parent_task_id"),
		SessionID: cmp.Or(e.SessionID, text("session_id"), session.DefaultSession), CreateTime: e.Time,
	}, true
}

// chosen are the best events, one for each id, oldest first; none where there are too
// few.
func (t *Tasks) chosen(a *gather.Ask, all []heard) []messageEntry {
	slices.SortStableFunc(all, func(a, b heard) int {
		return cmp.Or(cmp.Compare(b.score, a.score), b.event.Time.Compare(a.event.Time))
	})
	reader := readerOf(a)
	var entries []messageEntry
	seen := make(map[string]bool)
	for i := range all {
		m, ok := reader.Message(&all[i].task, all[i].event.Source)
		if id := all[i].task.ID; ok && !seen[id] && len(entries) < mostEvents {
			seen[id] = true
			entries = append(entries, messageEntry{id, all[i].event.Time, m, settings.Events})
		}
	}
	if len(entries) < leastEvents {
		return nil
	}
	slices.SortStableFunc(entries, func(a, b messageEntry) int { return a.at.Compare(b.at) })
	return entries
}

// merged are tasks and events by time, without events that are one of the tasks, by id or
// because they say the same.
func merged(tasks, heard, others []messageEntry) []messageEntry {
	all := slices.Clone(tasks)
	for _, e := range heard {
		same := func(task messageEntry) bool {
			return task.id == e.id || task.message.Role == e.message.Role && task.message.Content == e.message.Content
		}
		if !slices.ContainsFunc(tasks, same) && !slices.ContainsFunc(others, same) {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b messageEntry) int { return a.at.Compare(b.at) })
	return all
}

// sourceNode is where an event came from.
type sourceNode uint8

const (
	unknownNode sourceNode = iota
	otherNode
	ownNode
	parentNode
)

func nodeOf(source, agent, parent string) sourceNode {
	switch source {
	case "":
		return unknownNode
	case agent:
		return ownNode
	case parent:
		return parentNode
	}
	return otherNode
}

// The parts of an event's rank, which sum up to one, and the age that halves the first.
const (
	ageShare    = 0.40
	actionShare = 0.25
	wordsShare  = 0.20
	nodeShare   = 0.15
	ageHalf     = time.Hour
)

// rank is how much an event counts, from 0 to 1: how young it is, what it is, how many of
// the words that are searched for it has, and whose it is.
func rank(e *events.Event, now time.Time, words float64, from sourceNode) float64 {
	age := max(0, now.Sub(e.Time).Seconds())
	action, known := map[string]float64{
		converter.ActionThinking: 1, converter.ActionPlanning: .9, converter.ActionToolCall: .8, "node.error": .7, converter.ActionExecute: .6,
	}[e.Topic]
	if !known {
		action = .5
	}
	node := map[sourceNode]float64{parentNode: 1, ownNode: .8, otherNode: .5, unknownNode: .3}[from]
	return ageShare*math.Exp2(-age/ageHalf.Seconds()) + actionShare*action + wordsShare*words + nodeShare*node
}

// noWords is what the words count where none are searched for.
const noWords = 0.5

// matched is which part of the words an event has.
func matched(terms Terms, e *events.Event, words map[string]float64) float64 {
	if len(words) == 0 {
		return noWords
	}
	found := make(map[string]bool)
	for term := range terms(string(e.Payload[:min(len(e.Payload), maxMatchedBytes)])) {
		if words[term] > 0 {
			found[term] = true
		}
	}
	return float64(len(found)) / float64(len(words))
}

// maxMatchedBytes is how much of a payload is looked through for words.
const maxMatchedBytes = 16 << 10
