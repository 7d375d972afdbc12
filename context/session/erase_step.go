package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

const (
	// StepErased is what a prompt shows as the result of a call whose step was erased, where
	// the message that asks for the call asks for others, too.
	StepErased = "[This step was erased.]"
	// actionErased is the action of a task whose step was erased.
	actionErased = "erased"
	// maxApart is how far from a step the message that asks for it stands, and messages with
	// the same result.
	maxApart = 4 * MaxToolCalls
)

// erasedStep works out what the log of an agent is without one of its steps. All of it is one
// commit: what leads to the rest, the step's place, goes with the step. Positions, and numbers of
// tasks and of folds, keep what says that something stood there, because they have no gap.
type erasedStep struct {
	from   erase.Reader
	scope  kv.Scope
	number uint64

	place erase.Place
	step  *step.Step // nil where nothing stands there any more
	time  time.Time
	tasks []string
	// values are the entries that change, by key; a nil one goes, an empty one stays empty.
	values map[string][]byte
}

// read determines the step; false if there is no such step in the session.
func (s *erasedStep) read(ctx context.Context, within string) (found bool, err error) {
	s.values = make(map[string][]byte)
	places, err := s.from.Get(ctx, kv.Log, stepKey(s.scope, s.number))
	if err != nil || len(places[0]) == 0 {
		return false, err
	}
	if s.place.Session, s.place.Position, err = decodePlace(places[0]); err != nil {
		return false, err
	}
	if within != "" && within != s.place.Session {
		return false, nil
	}
	at, err := s.from.Get(ctx, kv.Log, entryKey(s.scope, s.place.Session, s.place.Position))
	if err != nil {
		return false, err
	}
	e, err := decodeEntry(at[0])
	if err != nil && !errors.Is(err, errUnknownKind) {
		return false, err
	}
	if e.Step != nil && e.Step.Number == s.number {
		s.step, s.time = e.Step, e.Time
	}
	s.values[string(stepKey(s.scope, s.number))] = []byte{}
	for _, part := range []func(context.Context) error{s.entries, s.folds, s.ofTasks, s.answers} {
		if err := part(ctx); err != nil {
			return false, err
		}
	}
	return true, nil
}

// StepTasks returns the ids of the tasks that were recorded with a step, whose memory records
// are erased with it. It returns none if there is no such step, or if the step is not of the
// given session.
func StepTasks(ctx context.Context, from erase.Reader, scope kv.Scope, number uint64, session string) ([]string, error) {
	s := &erasedStep{from: from, scope: scope, number: number}
	_, err := s.read(ctx, session)
	return s.tasks, err
}

// words looks for what the step says.
func (s *erasedStep) words() erase.Search {
	if s.step == nil {
		return erase.Search{}
	}
	texts := []string{s.step.Thought, s.step.Inline, s.step.Error, s.step.Observation, s.step.Evidence}
	for _, raw := range []json.RawMessage{s.step.Args, s.step.MinimalArgs} {
		if value, err := text.DecodeJSON(raw); err == nil {
			texts = append(texts, stringsIn(value)...)
		}
	}
	return erase.WordsOf(texts...)
}

// stringsIn are the texts in a JSON value.
func stringsIn(value any) (all []string) {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		for _, inner := range v {
			all = append(all, stringsIn(inner)...)
		}
	case map[string]any:
		for _, inner := range v {
			all = append(all, stringsIn(inner)...)
		}
	}
	slices.Sort(all)
	return all
}

func (s *erasedStep) put(position uint64, e Entry) {
	s.values[string(entryKey(s.scope, s.place.Session, position))] = appendEntry(nil, e)
}

// drop leaves of an entry that it was there, and when.
func (s *erasedStep) drop(e Entry) {
	value := wire.Marshal(&storev1.LogEntry{Kind: kindErased, Time: wire.Micros(e.Time)})
	s.values[string(entryKey(s.scope, s.place.Session, e.Position))] = value
}

// entries takes out the step, the message that asks for it, or the call in that, and whatever
// else has the call's result.
func (s *erasedStep) entries(ctx context.Context) error {
	if s.step == nil {
		return nil
	}
	first, last := s.place.Position-min(s.place.Position-1, maxApart), s.place.Position+maxApart
	var near []Entry
	r := kv.Range{Start: entryKey(s.scope, s.place.Session, first), End: afterKey(s.scope, s.place.Session, last)}
	for pair, err := range s.from.Scan(ctx, kv.Log, r) {
		e, err := readPair(pair, err)
		if errors.Is(err, errUnknownKind) {
			continue
		}
		if err != nil {
			return err
		}
		near = append(near, e)
	}
	asking, id := s.asking(near)
	own := Entry{Position: s.place.Position, Time: s.time}
	switch {
	case asking == nil:
		s.drop(own)
	case len(asking.Message.asksFor()) == 1:
		s.drop(*asking)
		s.drop(own)
	default:
		s.put(asking.Position, Entry{Time: asking.Time, Message: asking.Message.withoutCall(id)})
		own.Message = &Message{Role: Tool, ToolCallID: s.step.CallID, Name: s.calledName(), Content: StepErased}
		s.put(own.Position, own)
	}
	s.results(near, asking)
	return nil
}

// calledName is the tool's name as the model wrote it.
func (s *erasedStep) calledName() string {
	if s.step.CalledAs != "" {
		return s.step.CalledAs
	}
	return s.step.ToolName
}

// asking is the message that asks for the step's call, the nearest one before it or else
// behind it, and the call's id there; nil where there is none.
func (s *erasedStep) asking(near []Entry) (*Entry, string) {
	at := slices.IndexFunc(near, func(e Entry) bool { return e.Position >= s.place.Position })
	if s.step.CallID == "" {
		return s.unnamed(near[:max(at, 0)])
	}
	asks := func(e *Entry) bool {
		return e.Message != nil && slices.ContainsFunc(e.Message.asksFor(), func(c askedCall) bool { return c.ID == s.step.CallID })
	}
	for i := at - 1; i >= 0; i-- {
		if asks(&near[i]) {
			return &near[i], s.step.CallID
		}
	}
	for i := max(at, 0); i < len(near); i++ {
		if asks(&near[i]) {
			return &near[i], s.step.CallID
		}
	}
	return nil, ""
}

// unnamed is asking for a step whose call has no id: it answers the next call of the tool in
// the last message that asks for any.
func (s *erasedStep) unnamed(before []Entry) (*Entry, string) {
	answered := 0
	for i := len(before) - 1; i >= 0; i-- {
		e := &before[i]
		switch {
		case e.Step != nil && e.Step.CallID == "" && (e.Step.CalledAs == s.calledName() || e.Step.CalledAs == "" && e.Step.ToolName == s.calledName()),
			e.Message != nil && e.Message.Role == Tool && e.Message.ToolCallID == "" && e.Message.Name == s.calledName():
			answered++
		case e.Message != nil && e.Message.Role == Assistant:
			for _, c := range e.Message.asksFor() {
				if !c.unnamed || c.Name != s.calledName() {
					continue
				}
				if answered == 0 {
					return e, c.ID
				}
				answered--
			}
			return nil, ""
		}
	}
	return nil, ""
}

// results takes the call's result out of messages that have it, too: up to the next message
// that asks for a call with that id.
func (s *erasedStep) results(near []Entry, asking *Entry) {
	id := s.step.CallID
	if id == "" {
		return
	}
	for i := range near {
		e := &near[i]
		if e.Message == nil || asking != nil && e.Position <= asking.Position || asking == nil && e.Position < s.place.Position {
			continue
		}
		m := e.Message
		switch {
		case m.Role == Assistant && slices.ContainsFunc(m.asksFor(), func(c askedCall) bool { return c.ID == id }):
			return
		case m.Role == Tool && m.ToolCallID == id:
			s.drop(*e)
		case len(m.BlocksJSON) > 0:
			if blocks := content.WithoutResult(m.BlocksJSON, id, StepErased); !bytes.Equal(blocks, m.BlocksJSON) {
				own := *m
				own.BlocksJSON = blocks
				s.put(e.Position, Entry{Time: e.Time, Message: &own})
			}
		}
	}
}

// askedCall is a call that a message asks for; unnamed, if its host gave it no id.
type askedCall struct {
	ToolCall
	unnamed bool
}

// asksFor are the calls that a message asks for.
func (m *Message) asksFor() (all []askedCall) {
	for _, c := range m.ToolCalls {
		all = append(all, askedCall{c, c.ID == ""})
	}
	if len(all) > 0 || m.Role != Assistant {
		return all
	}
	for _, p := range content.Parse(m.BlocksJSON) {
		if p.Kind == content.Call {
			all = append(all, askedCall{ToolCall{ID: p.ID, Name: p.Name}, p.Unnamed})
		}
	}
	return all
}

// withoutCall is a message whose call with an id says nothing any more. An empty id is the
// first call without one.
func (m *Message) withoutCall(id string) *Message {
	own := *m
	own.ToolCalls = slices.Clone(m.ToolCalls)
	for i := range own.ToolCalls {
		c := &own.ToolCalls[i]
		if c.ID != id {
			continue
		}
		c.Arguments = "{}"
		if c.Custom() {
			c.Arguments = ""
		}
		break
	}
	own.BlocksJSON = content.WithoutArguments(m.BlocksJSON, id)
	return &own
}

// folds unmakes the folds that were made of the step, and those behind them, which the next
// prompt makes again of what is left. Conclusions of other sub-tasks are a caller's words, and
// stay.
func (s *erasedStep) folds(ctx context.Context) error {
	j := journal{s.scope, s.place.Session}
	state, err := j.state(ctx, s.from)
	if err != nil {
		return err
	}
	type kept struct {
		journalEntry
		history.Fold
	}
	var stay []kept
	end, remarked := uint64(0), false           // where what is unmade begins, 0 for nowhere
	drop := func(number uint64, at time.Time) { // its number stays
		s.values[string(journalKey(s.scope, s.place.Session, number))] = encodeJournalEntry(journalEntry{time: at, kind: kindUndo})
	}
	for pair, err := range s.from.Scan(ctx, kv.Log, kv.Prefix(journalPrefix(s.scope, s.place.Session))) {
		if err != nil {
			return err
		}
		e, err := decodeJournalEntry(pair.Value)
		if err != nil {
			return err
		}
		e.number = keyPosition(pair.Key)
		_, live := slices.BinarySearch(state.live, e.number)
		switch e.kind {
		case kindFold:
			f, err := e.fold()
			switch {
			case err != nil:
				return err
			case s.madeOf(f):
				drop(e.number, e.time)
				if live && (end == 0 || f.Spans[0].First < end) {
					end = f.Spans[0].First
				}
			case live:
				stay = append(stay, kept{e, f})
			}
		case kindMark:
			_, m, err := decodeMark(e.body)
			if err != nil {
				return err
			}
			if s.summarized(m) || e.change != nil && e.change.mark != nil && s.summarized(*e.change.mark) {
				drop(e.number, e.time)
				remarked = true
			}
		}
	}
	if end == 0 && !remarked {
		return nil
	}
	state.change = 0 // what is undone may not bring it back
	maps.DeleteFunc(state.marks, func(_ string, m history.Mark) bool { return s.summarized(m) })
	if end > 0 {
		state.live, state.through = nil, min(state.through, end-1)
		for _, k := range stay {
			if k.Spans[len(k.Spans)-1].Last >= end && k.Policy != history.PolicySubtask {
				drop(k.number, k.time)
				continue
			}
			state.live = append(state.live, k.number)
			if k.Through >= end {
				k.Through = end - 1
				k.body = history.AppendFold(nil, k.Fold)
				s.values[string(journalKey(s.scope, s.place.Session, k.number))] = encodeJournalEntry(k.journalEntry)
			}
		}
	}
	s.values[string(foldsKey(s.scope, s.place.Session))] = encodeState(state)
	return nil
}

// madeOf reports whether a fold stands for the step, or refers to what that shows.
func (s *erasedStep) madeOf(f history.Fold) bool {
	id := step.ID(s.number)
	if f.Holds(s.place.Position) || slices.Contains(f.Refs, id) {
		return true
	}
	for rest := f.Text; ; {
		_, behind, found := strings.Cut(rest, id)
		if !found || behind == "" || behind[0] < '0' || '9' < behind[0] {
			return found
		}
		rest = behind
	}
}

// summarized reports whether a preset's summary stands for the step, too.
func (s *erasedStep) summarized(m history.Mark) bool {
	return m.Summary.Text != "" && m.Summary.First <= s.place.Position && s.place.Position <= m.Summary.Last
}

// ofTasks empties the tasks that were recorded with the step.
func (s *erasedStep) ofTasks(ctx context.Context) error {
	for pair, err := range s.from.Scan(ctx, kv.Log, kv.Prefix(taskPrefix(s.scope, s.place.Session))) {
		if err != nil {
			return err
		}
		t, written, err := decodeTask(pair.Value)
		if err != nil {
			return err
		}
		if t.Step != s.number || t.Action == actionErased {
			continue
		}
		s.tasks = append(s.tasks, t.ID)
		s.values[string(pair.Key)] = encodeTask(Task{
			ID: t.ID, Action: actionErased, Result: actionErased, Importance: t.Importance, CreateTime: t.CreateTime, After: t.After, Step: t.Step,
		}, written)
	}
	return nil
}

// answers takes out the kept answer of the call: the number of its step stands in the first
// field, and it was given when the step was recorded.
func (s *erasedStep) answers(ctx context.Context) error {
	if s.step == nil {
		return nil
	}
	for pair, err := range s.from.Scan(ctx, kv.Log, kv.AnswersOf(s.scope)) {
		if err != nil {
			return err
		}
		answer, at := kv.AnswerIn(pair.Value)
		if !at.Truncate(time.Microsecond).Equal(s.time) {
			continue
		}
		if n, err := decodeCounter(answer); err == nil && n == s.number {
			s.values[string(pair.Key)] = nil
		}
	}
	return nil
}
