package session

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
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

// Fields of a stored state of folds.
const (
	fieldStateFormat = iota + 1
	fieldStateVersion
	fieldStateLive
	fieldStateMark
	fieldStateBatch
	fieldStateThrough
	fieldStateSince
	fieldStateChange
	fieldStateGiven
	fieldStateGone
)

// Fields of a stored mark.
const (
	fieldMarkPreset = iota + 1
	fieldMarkOlder
	fieldMarkSeen
	fieldMarkBare
	fieldMarkOmitted
	fieldMarkWhole
	fieldMarkSummaryFirst
	fieldMarkSummaryLast
	fieldMarkSummaryCount
	fieldMarkSummaryText
	fieldMarkLeft
	fieldMarkLost
	fieldMarkWindow
)

// Fields of an entry of a journal.
const (
	fieldJournalKind = iota + 1
	fieldJournalTime
	fieldJournalBody
	fieldJournalChange
)

// Fields of a stored change.
const (
	fieldChangeBefore = iota + 1
	fieldChangeEntries
	fieldChangeSuperseded
	fieldChangeBatch
	fieldChangeThrough
	fieldChangeMark
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
	dst := wire.AppendUint(nil, fieldStateFormat, format)
	dst = wire.AppendUint(dst, fieldStateVersion, s.version)
	dst = wire.AppendText(dst, fieldStateLive, appendNumbers(nil, s.live))
	for _, preset := range s.presets() {
		dst = wire.AppendItem(dst, fieldStateMark, encodeMark(preset, s.marks[preset]))
	}
	dst = wire.AppendUint(dst, fieldStateBatch, s.batch)
	dst = wire.AppendUint(dst, fieldStateThrough, s.through)
	dst = wire.AppendUint(dst, fieldStateSince, s.since)
	dst = wire.AppendUint(dst, fieldStateChange, s.change)
	dst = wire.AppendUint(dst, fieldStateGiven, s.given)
	return wire.AppendUint(dst, fieldStateGone, s.gone)
}

func decodeState(value []byte) (foldState, error) {
	var s foldState
	for f, err := range wire.Fields(value) {
		if err != nil {
			return foldState{}, damaged(err)
		}
		if f.Number == fieldStateFormat && f.Value > pressedFormat {
			return foldState{}, fmt.Errorf("%w: format %d", ErrNewer, f.Value)
		}
		if err := s.set(f); err != nil {
			return foldState{}, err
		}
	}
	s.given = max(s.given, s.batch)
	return s, nil
}

func (s *foldState) set(f wire.Field) (err error) {
	switch f.Number {
	case fieldStateVersion:
		s.version = f.Value
	case fieldStateLive:
		s.live, err = decodeNumbers(f.Bytes)
	case fieldStateMark:
		preset, to, err := decodeMark(f.Bytes)
		if err != nil {
			return err
		}
		s.setMark(preset, to)
	case fieldStateBatch:
		s.batch = f.Value
	case fieldStateThrough:
		s.through = f.Value
	case fieldStateSince:
		s.since = f.Value
	case fieldStateChange:
		s.change = f.Value
	case fieldStateGiven:
		s.given = f.Value
	case fieldStateGone:
		s.gone = f.Value
	}
	return err
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

func encodeMark(preset string, m history.Mark) []byte {
	dst := wire.AppendText(nil, fieldMarkPreset, preset)
	dst = wire.AppendUint(dst, fieldMarkOlder, uint64(m.Older))
	dst = wire.AppendUint(dst, fieldMarkSeen, uint64(m.Seen))
	dst = wire.AppendUint(dst, fieldMarkBare, uint64(m.Bare))
	dst = wire.AppendUint(dst, fieldMarkOmitted, uint64(m.Omitted))
	dst = wire.AppendUint(dst, fieldMarkWhole, uint64(m.Whole))
	dst = wire.AppendUint(dst, fieldMarkSummaryFirst, m.Summary.First)
	dst = wire.AppendUint(dst, fieldMarkSummaryLast, m.Summary.Last)
	dst = wire.AppendUint(dst, fieldMarkSummaryCount, uint64(m.Summary.Count))
	dst = wire.AppendText(dst, fieldMarkSummaryText, m.Summary.Text)
	dst = wire.AppendUint(dst, fieldMarkLeft, uint64(m.Left))
	dst = wire.AppendUint(dst, fieldMarkLost, uint64(m.Lost))
	return wire.AppendText(dst, fieldMarkWindow, m.Window)
}

func decodeMark(stored []byte) (preset string, m history.Mark, err error) {
	for f, err := range wire.Fields(stored) {
		if err != nil {
			return "", history.Mark{}, damaged(err)
		}
		switch f.Number {
		case fieldMarkPreset:
			preset = string(f.Bytes)
		case fieldMarkOlder:
			m.Older = count(f)
		case fieldMarkSeen:
			m.Seen = count(f)
		case fieldMarkBare:
			m.Bare = count(f)
		case fieldMarkOmitted:
			m.Omitted = count(f)
		case fieldMarkWhole:
			m.Whole = count(f)
		case fieldMarkSummaryFirst:
			m.Summary.First = f.Value
		case fieldMarkSummaryLast:
			m.Summary.Last = f.Value
		case fieldMarkSummaryCount:
			m.Summary.Count = count(f)
		case fieldMarkSummaryText:
			m.Summary.Text = string(f.Bytes)
		case fieldMarkLeft:
			m.Left = count(f)
		case fieldMarkLost:
			m.Lost = count(f)
		case fieldMarkWindow:
			m.Window = string(f.Bytes)
		}
	}
	return preset, m, nil
}

func encodeJournalEntry(e journalEntry) []byte {
	dst := wire.AppendUint(nil, fieldJournalKind, e.kind)
	dst = wire.AppendTime(dst, fieldJournalTime, e.time)
	dst = wire.AppendItem(dst, fieldJournalBody, e.body)
	if e.change != nil {
		dst = wire.AppendItem(dst, fieldJournalChange, encodeChange(e.change))
	}
	return dst
}

// decodeJournalEntry reads what encodeJournalEntry wrote. Its body aliases
// value. It is ErrDamaged without a value, and ErrNewer for a kind that is not
// known.
func decodeJournalEntry(value []byte) (journalEntry, error) {
	var e journalEntry
	for f, err := range wire.Fields(value) {
		if err != nil {
			return journalEntry{}, damaged(err)
		}
		switch f.Number {
		case fieldJournalKind:
			e.kind = f.Value
		case fieldJournalTime:
			e.time = f.Time()
		case fieldJournalBody:
			e.body = f.Bytes
		case fieldJournalChange:
			if e.change, err = decodeChange(f.Bytes); err != nil {
				return journalEntry{}, err
			}
		}
	}
	switch {
	case e.kind == 0:
		return journalEntry{}, fmt.Errorf("%w: no kind", ErrDamaged)
	case e.kind > kindUndo:
		return journalEntry{}, fmt.Errorf("%w: kind %d", ErrNewer, e.kind)
	}
	return e, nil
}

func encodeChange(c *change) []byte {
	dst := wire.AppendUint(nil, fieldChangeBefore, c.before)
	dst = wire.AppendUint(dst, fieldChangeEntries, uint64(c.entries))
	dst = wire.AppendText(dst, fieldChangeSuperseded, appendNumbers(nil, c.superseded))
	dst = wire.AppendUint(dst, fieldChangeBatch, c.batch)
	dst = wire.AppendUint(dst, fieldChangeThrough, c.through)
	if c.mark != nil {
		dst = wire.AppendItem(dst, fieldChangeMark, encodeMark("", *c.mark))
	}
	return dst
}

func decodeChange(stored []byte) (*change, error) {
	c := &change{}
	for f, err := range wire.Fields(stored) {
		if err != nil {
			return nil, damaged(err)
		}
		if err := c.set(f); err != nil {
			return nil, err
		}
	}
	if c.entries < 1 || c.entries > maxChangeEntries {
		return nil, fmt.Errorf("%w: a change of %d entries", ErrDamaged, c.entries)
	}
	return c, nil
}

// maxChangeEntries is more than the folds that MaxFoldsBytes has room for.
const maxChangeEntries = MaxFoldsBytes / 8

func (c *change) set(f wire.Field) (err error) {
	switch f.Number {
	case fieldChangeBefore:
		c.before = f.Value
	case fieldChangeEntries:
		c.entries = count(f)
	case fieldChangeSuperseded:
		c.superseded, err = decodeNumbers(f.Bytes)
	case fieldChangeBatch:
		c.batch = f.Value
	case fieldChangeThrough:
		c.through = f.Value
	case fieldChangeMark:
		_, mark, markErr := decodeMark(f.Bytes)
		c.mark, err = &mark, markErr
	}
	return err
}

// Fields of the kept answer of an undo.
const (
	fieldUndoneBatch = iota + 1
	fieldUndoneRef
)

func encodeUndone(u Undone) []byte {
	dst := wire.AppendUint(nil, fieldUndoneBatch, u.Batch)
	for _, ref := range u.Refs {
		dst = wire.AppendItem(dst, fieldUndoneRef, ref)
	}
	return dst
}

func decodeUndone(answer []byte) (Undone, error) {
	var u Undone
	for f, err := range wire.Fields(answer) {
		if err != nil {
			return Undone{}, damaged(err)
		}
		switch f.Number {
		case fieldUndoneBatch:
			u.Batch = f.Value
		case fieldUndoneRef:
			u.Refs = append(u.Refs, string(f.Bytes))
		}
	}
	return u, nil
}
