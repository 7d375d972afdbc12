package session

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// The formats of the state and of what it names. A later version that writes
// something which this one would misread, or lose when it writes the state again,
// raises them.
const (
	plainFormat = 1
	// markedFormat is that of a state with marks: these count calls, in messages, too,
	// and results that are left out. Those of the plain format count steps.
	markedFormat = 2
	// pressedFormat is that of a state with what levels of pressure did.
	pressedFormat = 3
)

func encodeState(s foldState) []byte {
	format := uint64(plainFormat)
	if len(s.marks) > 0 {
		format = markedFormat
	}
	for _, m := range s.marks {
		if m.Window != "" {
			format = pressedFormat
		}
	}
	m := &storev1.FoldState{
		Format: format, Version: s.version, Live: appendNumbers(nil, s.live), LastBatch: s.batch, Decided: s.through, UndoneAt: s.since,
		LastChange: s.change, HighestBatch: s.given, Deleted: s.gone,
	}
	for _, preset := range s.presets() {
		m.Marks = append(m.Marks, storedMark(preset, s.marks[preset]))
	}
	return wire.Marshal(m)
}

func decodeState(value []byte) (foldState, error) {
	var m storev1.FoldState
	if err := wire.Unmarshal(value, &m); err != nil {
		return foldState{}, damaged(err)
	}
	if m.Format > pressedFormat {
		return foldState{}, fmt.Errorf("%w: format %d", ErrNewer, m.Format)
	}
	live, err := decodeNumbers(m.Live)
	if err != nil {
		return foldState{}, err
	}
	s := foldState{
		version: m.Version, live: live, batch: m.LastBatch, through: m.Decided, since: m.UndoneAt, change: m.LastChange,
		given: max(m.HighestBatch, m.LastBatch), gone: m.Deleted,
	}
	for _, mark := range m.Marks {
		s.setMark(mark.Preset, markOf(mark))
	}
	return s, nil
}

// appendNumbers appends ascending numbers, each as its distance to the one
// before it.
func appendNumbers(dst []byte, numbers []uint64) []byte {
	before := uint64(0)
	for _, n := range numbers {
		dst = protowire.AppendVarint(dst, n-before)
		before = n
	}
	return dst
}

func decodeNumbers(stored []byte) ([]uint64, error) {
	var numbers []uint64
	before := uint64(0)
	for len(stored) > 0 {
		step, size := protowire.ConsumeVarint(stored)
		if size < 0 || step == 0 || before+step < before {
			return nil, fmt.Errorf("%w: numbers are out of order", ErrDamaged)
		}
		before += step
		numbers = append(numbers, before)
		stored = stored[size:]
	}
	return numbers, nil
}

func storedMark(preset string, m history.Mark) *storev1.Mark {
	return &storev1.Mark{
		Preset: preset, Lines: uint64(m.Older), At: uint64(m.Seen), NoResults: uint64(m.Bare), NoLines: uint64(m.Omitted),
		Without: uint64(m.Whole), SummaryFirst: m.Summary.First, SummaryLast: m.Summary.Last, SummaryMessages: uint64(m.Summary.Count),
		Summary: m.Summary.Text, LeftOut: uint64(m.Left), AsText: uint64(m.Lost), Pressure: m.Window,
	}
}

func markOf(m *storev1.Mark) history.Mark {
	return history.Mark{
		Older: count(m.Lines), Seen: count(m.At), Bare: count(m.NoResults), Omitted: count(m.NoLines), Whole: count(m.Without),
		Summary: history.Summary{First: m.SummaryFirst, Last: m.SummaryLast, Count: count(m.SummaryMessages), Text: m.Summary},
		Left:    count(m.LeftOut), Lost: count(m.AsText), Window: m.Pressure,
	}
}

func encodeMark(preset string, m history.Mark) []byte { return wire.Marshal(storedMark(preset, m)) }

func decodeMark(stored []byte) (preset string, to history.Mark, err error) {
	var m storev1.Mark
	if err := wire.Unmarshal(stored, &m); err != nil {
		return "", history.Mark{}, damaged(err)
	}
	return m.Preset, markOf(&m), nil
}

func encodeJournalEntry(e journalEntry) []byte {
	m := &storev1.JournalEntry{Kind: e.kind, Time: wire.Micros(e.time), Body: append([]byte{}, e.body...)}
	if c := e.change; c != nil {
		m.Taken = &storev1.Taken{
			Previous: c.before, Entries: uint64(c.entries), Live: appendNumbers(nil, c.superseded), LastBatch: c.batch, Decided: c.through,
		}
		if c.mark != nil {
			m.Taken.Mark = storedMark("", *c.mark)
		}
	}
	return wire.Marshal(m)
}

// decodeJournalEntry reads what encodeJournalEntry wrote. It is ErrDamaged without a value, and
// ErrNewer for a kind that is not known.
func decodeJournalEntry(value []byte) (journalEntry, error) {
	var m storev1.JournalEntry
	if err := wire.Unmarshal(value, &m); err != nil {
		return journalEntry{}, damaged(err)
	}
	change, err := changeOf(m.Taken)
	if err != nil {
		return journalEntry{}, err
	}
	e := journalEntry{kind: m.Kind, time: wire.TimeOf(m.Time), body: m.Body, change: change}
	switch {
	case e.kind == 0:
		return journalEntry{}, fmt.Errorf("%w: no kind", ErrDamaged)
	case e.kind > kindUndo:
		return journalEntry{}, fmt.Errorf("%w: kind %d", ErrNewer, e.kind)
	}
	return e, nil
}

// maxChangeEntries is more than the folds that MaxFoldsBytes has room for.
const maxChangeEntries = MaxFoldsBytes / 8

func changeOf(m *storev1.Taken) (*undoneChange, error) {
	if m == nil {
		return nil, nil
	}
	superseded, err := decodeNumbers(m.Live)
	if err != nil {
		return nil, err
	}
	c := &undoneChange{before: m.Previous, entries: count(m.Entries), superseded: superseded, batch: m.LastBatch, through: m.Decided}
	if c.entries < 1 || c.entries > maxChangeEntries {
		return nil, fmt.Errorf("%w: a change of %d entries", ErrDamaged, c.entries)
	}
	if m.Mark != nil {
		mark := markOf(m.Mark)
		c.mark = &mark
	}
	return c, nil
}

func encodeUndone(u Undone) []byte {
	return wire.Marshal(&storev1.UndoAnswer{Batch: u.Batch, References: u.Refs})
}

func decodeUndone(answer []byte) (Undone, error) {
	var m storev1.UndoAnswer
	if err := wire.Unmarshal(answer, &m); err != nil {
		return Undone{}, damaged(err)
	}
	return Undone{Batch: m.Batch, Refs: m.References}, nil
}

// kindTask marks an entry that is a task. It stands under its own tag, so
// that what reads a conversation does not step over tasks.
const kindTask = 3

// Content is what makes two tasks the same to a request that is repeated: all
// that a caller says.
func (t *Task) Content() []byte {
	const fieldSession = 1000 // of no stored task
	return wire.AppendText(appendTask(nil, t), fieldSession, t.SessionID)
}

func encodeTask(t Task, written time.Time) []byte {
	return wire.Marshal(&storev1.LogEntry{
		Kind: kindTask, Time: wire.Micros(written), Body: appendTask([]byte{}, &t), Position: t.After, Step: t.Step,
	})
}

func appendTask(dst []byte, t *Task) []byte {
	return append(dst, wire.Marshal(&storev1.Task{
		Id: t.ID, Action: t.Action, Parameters: t.Parameters, Requester: t.SourceAgent, Assignee: t.TargetAgent, Parent: t.ParentTaskID,
		Result: t.Result, Tags: t.Tags, Importance: &t.Importance, Time: wire.Micros(t.CreateTime),
	})...)
}

// decodeTask reads what encodeTask wrote; its session and number stand in the
// key.
func decodeTask(value []byte) (t Task, written time.Time, err error) {
	var entry storev1.LogEntry
	if err := wire.Unmarshal(value, &entry); err != nil {
		return Task{}, time.Time{}, damaged(err)
	}
	if entry.Kind != kindTask {
		return Task{}, time.Time{}, fmt.Errorf("%w: kind %d where a task should be", ErrDamaged, entry.Kind)
	}
	var m storev1.Task
	if err := wire.Unmarshal(entry.Body, &m); err != nil {
		return Task{}, time.Time{}, damaged(err)
	}
	return Task{
		ID: m.Id, Action: m.Action, Parameters: m.Parameters, SourceAgent: m.Requester, TargetAgent: m.Assignee, ParentTaskID: m.Parent,
		Result: m.Result, Tags: m.Tags, Importance: m.GetImportance(), CreateTime: wire.TimeOf(m.Time), After: entry.Position, Step: entry.Step,
	}, wire.TimeOf(entry.Time), nil
}
