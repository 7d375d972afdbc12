package working

import (
	"fmt"
	"math"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Fields of a stored Working (memory/FORMAT.md), and of an item of its plan.
const (
	fieldGoal = iota + 1
	fieldItem
	fieldActive
	fieldInactive
	fieldProgress
	fieldScratchpad
	fieldHeartbeat
	fieldEvent
	fieldDecision
	fieldQuestion
	fieldEvidence
	fieldCitation

	fieldItemText   = 1
	fieldItemStatus = 2
)

// Fields of a stored event, decision and piece of evidence.
const (
	fieldEventID = iota + 1
	fieldEventSummary
	fieldEventType
	fieldEventUrgency
	fieldEventVerdict
	fieldEventTime

	fieldSource  = 1
	fieldTitle   = 2
	fieldContent = 3
	fieldCited   = 4
	fieldScore   = 5
)

// Encode is the stored form of it; nothing of an empty one.
func Encode(w Working) []byte {
	dst := wire.AppendText(nil, fieldGoal, w.Goal)
	for _, item := range w.Plan {
		body := wire.AppendText(nil, fieldItemText, item.Text)
		dst = wire.AppendItem(dst, fieldItem, wire.AppendUint(body, fieldItemStatus, uint64(item.Status)))
	}
	for _, name := range w.Active {
		dst = wire.AppendItem(dst, fieldActive, name)
	}
	for _, name := range w.Inactive {
		dst = wire.AppendItem(dst, fieldInactive, name)
	}
	dst = wire.AppendText(dst, fieldProgress, w.Progress)
	dst = wire.AppendText(dst, fieldScratchpad, w.Scratchpad)
	dst = wire.AppendTime(dst, fieldHeartbeat, w.Heartbeat)
	for i := range w.Events {
		dst = wire.AppendItem(dst, fieldEvent, encodeEvent(&w.Events[i]))
	}
	for i := range w.Decisions {
		dst = wire.AppendItem(dst, fieldDecision, encodeDecision(&w.Decisions[i]))
	}
	for _, q := range w.Questions {
		dst = wire.AppendItem(dst, fieldQuestion, q)
	}
	for i := range w.Evidence {
		dst = wire.AppendItem(dst, fieldEvidence, encodeEvidence(&w.Evidence[i]))
	}
	for _, c := range w.Citations {
		dst = wire.AppendItem(dst, fieldCitation, c)
	}
	return dst
}

func encodeEvent(e *Event) []byte {
	dst := wire.AppendText(nil, fieldEventID, e.ID)
	dst = wire.AppendText(dst, fieldEventSummary, e.Summary)
	dst = wire.AppendText(dst, fieldEventType, e.Type)
	return wire.AppendUint(dst, fieldEventUrgency, uint64(e.Urgency))
}

func encodeDecision(d *Decision) []byte {
	dst := wire.AppendText(nil, fieldEventID, d.ID)
	dst = wire.AppendText(dst, fieldEventSummary, d.Summary)
	dst = wire.AppendUint(dst, fieldEventVerdict, uint64(d.Verdict))
	return wire.AppendTime(dst, fieldEventTime, d.Time)
}

func encodeEvidence(e *Evidence) []byte {
	dst := wire.AppendText(nil, fieldSource, e.Source)
	dst = wire.AppendText(dst, fieldTitle, e.Title)
	dst = wire.AppendText(dst, fieldContent, e.Content)
	dst = wire.AppendText(dst, fieldCited, e.Citation)
	if e.Score != 0 {
		dst = wire.AppendFixed64(dst, fieldScore, math.Float64bits(e.Score))
	}
	return dst
}

func decodeEvent(value []byte) (e Event, d Decision, err error) {
	for f, err := range wire.Fields(value) {
		if err != nil {
			return e, d, fmt.Errorf("working: decode event: %w", err)
		}
		switch f.Number {
		case fieldEventID:
			e.ID = string(f.Bytes)
		case fieldEventSummary:
			e.Summary = string(f.Bytes)
		case fieldEventType:
			e.Type = string(f.Bytes)
		case fieldEventUrgency:
			if f.Value <= uint64(Critical) {
				e.Urgency = Urgency(f.Value)
			}
		case fieldEventVerdict:
			if f.Value <= uint64(Terminate) {
				d.Verdict = Verdict(f.Value)
			}
		case fieldEventTime:
			d.Time = f.Time()
		}
	}
	d.ID, d.Summary = e.ID, e.Summary
	return e, d, nil
}

func decodeEvidence(value []byte) (e Evidence, err error) {
	for f, err := range wire.Fields(value) {
		if err != nil {
			return e, fmt.Errorf("working: decode evidence: %w", err)
		}
		switch f.Number {
		case fieldSource:
			e.Source = string(f.Bytes)
		case fieldTitle:
			e.Title = string(f.Bytes)
		case fieldContent:
			e.Content = string(f.Bytes)
		case fieldCited:
			e.Citation = string(f.Bytes)
		case fieldScore:
			if score := math.Float64frombits(f.Value); !math.IsNaN(score) {
				e.Score = score
			}
		}
	}
	return e, nil
}

// Decode reads what Encode wrote. A status that a later version wrote is Pending.
func Decode(value []byte) (Working, error) {
	var w Working
	for f, err := range wire.Fields(value) {
		if err != nil {
			return Working{}, fmt.Errorf("working: decode: %w", err)
		}
		switch f.Number {
		case fieldGoal:
			w.Goal = string(f.Bytes)
		case fieldItem:
			item, err := decodeItem(f.Bytes)
			if err != nil {
				return Working{}, err
			}
			w.Plan = append(w.Plan, item)
		case fieldActive:
			w.Active = append(w.Active, string(f.Bytes))
		case fieldInactive:
			w.Inactive = append(w.Inactive, string(f.Bytes))
		default:
			if err := w.set(f); err != nil {
				return Working{}, err
			}
		}
	}
	return w, nil
}

// set takes a field of what was noted.
func (w *Working) set(f wire.Field) error {
	switch f.Number {
	case fieldProgress:
		w.Progress = string(f.Bytes)
	case fieldScratchpad:
		w.Scratchpad = string(f.Bytes)
	case fieldHeartbeat:
		w.Heartbeat = f.Time()
	case fieldEvent:
		e, _, err := decodeEvent(f.Bytes)
		w.Events = append(w.Events, e)
		return err
	case fieldDecision:
		_, d, err := decodeEvent(f.Bytes)
		w.Decisions = append(w.Decisions, d)
		return err
	case fieldQuestion:
		w.Questions = append(w.Questions, string(f.Bytes))
	case fieldEvidence:
		e, err := decodeEvidence(f.Bytes)
		w.Evidence = append(w.Evidence, e)
		return err
	case fieldCitation:
		w.Citations = append(w.Citations, string(f.Bytes))
	}
	return nil
}

func decodeItem(value []byte) (Item, error) {
	var item Item
	for f, err := range wire.Fields(value) {
		if err != nil {
			return Item{}, fmt.Errorf("working: decode item: %w", err)
		}
		switch f.Number {
		case fieldItemText:
			item.Text = string(f.Bytes)
		case fieldItemStatus:
			if f.Value <= uint64(Failed) {
				item.Status = Status(f.Value)
			}
		}
	}
	return item, nil
}
