package working

import (
	"fmt"
	"math"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// Encode is the stored form of it; nothing of an empty one.
func Encode(w Working) []byte { return wire.Marshal(stored(w)) }

// EncodeChanged is Encode with the moment of the change, which ChangeTime reads.
func EncodeChanged(w Working, at time.Time) []byte {
	m := stored(w)
	m.Time = wire.Micros(at)
	return wire.Marshal(m)
}

// ChangeTime is when a stored working state changed last; zero where that is not known.
func ChangeTime(value []byte) (time.Time, error) {
	var m storev1.Working
	if err := wire.Unmarshal(value, &m); err != nil {
		return time.Time{}, fmt.Errorf("working: decode: %w", err)
	}
	return wire.TimeOf(m.Time), nil
}

func stored(w Working) *storev1.Working {
	m := &storev1.Working{
		Goal: w.Goal, Active: w.Active, Inactive: w.Inactive, Progress: w.Progress, Scratchpad: w.Scratchpad,
		Heartbeat: wire.Micros(w.Heartbeat), Questions: w.Questions, Citations: w.Citations,
	}
	for _, item := range w.Plan {
		m.Plan = append(m.Plan, &storev1.PlanItem{Text: item.Text, Status: uint64(item.Status), Begun: item.Begun, Ended: item.Ended})
	}
	for _, e := range w.Events {
		m.Events = append(m.Events, &storev1.WaitingEvent{Id: e.ID, Summary: e.Summary, Type: e.Type, Urgency: uint64(e.Urgency)})
	}
	for _, d := range w.Decisions {
		m.Decisions = append(m.Decisions, &storev1.Decision{Id: d.ID, Summary: d.Summary, Decision: uint64(d.Verdict), Time: wire.Micros(d.Time)})
	}
	for _, e := range w.Evidence {
		// No score is a negative zero.
		m.Evidence = append(m.Evidence, &storev1.Evidence{
			Source: e.Source, Title: e.Title, Content: e.Content, Citation: e.Citation, Score: e.Score + 0,
		})
	}
	return m
}

// upTo is a stored number, and 0 for one that only a later version knows.
func upTo[T ~uint8](n uint64, most T) T {
	if n > uint64(most) {
		return 0
	}
	return T(n)
}

// Decode reads what Encode wrote. A status that a later version wrote is Pending.
func Decode(value []byte) (Working, error) {
	var m storev1.Working
	if err := wire.Unmarshal(value, &m); err != nil {
		return Working{}, fmt.Errorf("working: decode: %w", err)
	}
	w := Working{
		Goal: m.Goal, Active: m.Active, Inactive: m.Inactive, Progress: m.Progress, Scratchpad: m.Scratchpad,
		Heartbeat: wire.TimeOf(m.Heartbeat), Questions: m.Questions, Citations: m.Citations,
	}
	for _, item := range m.Plan {
		w.Plan = append(w.Plan, Item{Text: item.Text, Status: upTo(item.Status, Failed), Begun: item.Begun, Ended: item.Ended})
	}
	for _, e := range m.Events {
		w.Events = append(w.Events, Event{ID: e.Id, Summary: e.Summary, Type: e.Type, Urgency: upTo(e.Urgency, Critical)})
	}
	for _, d := range m.Decisions {
		w.Decisions = append(w.Decisions, Decision{ID: d.Id, Summary: d.Summary, Verdict: upTo(d.Decision, Terminate), Time: wire.TimeOf(d.Time)})
	}
	for _, e := range m.Evidence {
		one := Evidence{Source: e.Source, Title: e.Title, Content: e.Content, Citation: e.Citation}
		if !math.IsNaN(e.Score) {
			one.Score = e.Score
		}
		w.Evidence = append(w.Evidence, one)
	}
	return w, nil
}
