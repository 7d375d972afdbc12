package working

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Limits of a Snapshot.
const (
	// MaxArtifacts bounds the names that a handoff has, MaxArtifactBytes one of them.
	MaxArtifacts     = 256
	MaxArtifactBytes = 512
	// maxHandoffGoalChars and maxHandoffProgressChars of goal and progress are shown: both
	// stand elsewhere in full.
	maxHandoffGoalChars     = 2000
	maxHandoffProgressChars = 4000
	// maxBriefChars of each are shown in a window that has no room for more.
	maxBriefChars = 200
)

// Snapshot is what an agent was at when its window was renewed, and what it was shown of
// that.
type Snapshot struct {
	// Sprint counts the renewals of a session, from 1. It ends with this one.
	Sprint int
	// Time is when that was.
	Time time.Time
	// Figures are those of the prompt that did not fit any more.
	Figures Figures
	// Working is what the agent was at, with the last five of its decisions.
	Working Working
	// Goal is what it worked towards: that of Working, or what the prompt was asked for.
	Goal string
	// Artifacts are the names of what the sprint brought forth, the oldest first, and then
	// those that were used most, the first most of all.
	Artifacts []string
	// Brief says that the handoff has only the beginnings of goal and progress.
	Brief bool
}

// Shorten makes the handoff shorter, for a window that has no room for it: half of the
// names go, those that were used least first, and with the last of them most of what is
// said of goal and progress. False where nothing is left to shorten.
func (s *Snapshot) Shorten() bool {
	if n := len(s.Artifacts); n > 0 {
		s.Artifacts = s.Artifacts[:n/2]
		return true
	}
	shortened := !s.Brief
	s.Brief = true
	return shortened
}

// Taken is what a snapshot keeps of w: all but its older decisions.
func (w Working) Taken() Working {
	w.Decisions = append([]Decision(nil), w.ShownDecisions()...)
	return w
}

// Progress is what the agent said of how far it is, or noted for itself.
func (s *Snapshot) Progress() string {
	if said := strings.TrimSpace(s.Working.Progress); said != "" {
		return said
	}
	return strings.TrimSpace(s.Working.Scratchpad)
}

// OpenTasks are the items of the plan that are not over.
func (s *Snapshot) OpenTasks() []string {
	var open []string
	for _, item := range s.Working.Plan {
		if item.Status == Pending || item.Status == InProgress {
			open = append(open, item.Text)
		}
	}
	return open
}

// none stands where a section of a handoff says nothing.
const none = "_(none)_"

// Handoff is the text with which the history begins from then on. The words of others are
// guarded.
func (s *Snapshot) Handoff() string {
	tasks := make([]string, 0, len(s.Working.Plan))
	for _, task := range s.OpenTasks() {
		tasks = append(tasks, "- "+quoted(task))
	}
	artifacts := make([]string, len(s.Artifacts))
	for i, name := range s.Artifacts {
		artifacts[i] = "- " + quoted(name)
	}
	figures := []string{
		fmt.Sprintf("- rho: %.2f", s.Figures.Pressure), fmt.Sprintf("- error_count: %d", s.Figures.Errors), fmt.Sprintf("- depth: %d", s.Figures.Depth),
	}
	goalChars, progressChars := maxHandoffGoalChars, maxHandoffProgressChars
	if s.Brief {
		goalChars, progressChars = maxBriefChars, maxBriefChars
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Handoff Document (Sprint %d)", s.Sprint)
	for _, section := range []struct{ title, text string }{
		{"Goal", shortBody(s.Goal, goalChars)},
		{"Progress Summary", shortBody(s.Progress(), progressChars)},
		{"Produced Artifacts", strings.Join(artifacts, "\n")},
		{"Open Tasks", strings.Join(tasks, "\n")},
		{"Context Snapshot", strings.Join(figures, "\n")},
	} {
		if section.text == "" {
			section.text = none
		}
		fmt.Fprintf(&b, "\n\n## %s\n%s", section.title, section.text)
	}
	return b.String()
}

// shortBody is the beginning of words of others, on lines of their own.
func shortBody(s string, chars int) string {
	head, cut := text.HeadChars(strings.TrimSpace(s), chars)
	if cut {
		head += text.Ellipsis
	}
	return body(head)
}

// Fields of a stored Snapshot (memory/FORMAT.md).
const (
	fieldSprint = iota + 1
	fieldTaken
	fieldPressure
	fieldBudget
	fieldErrors
	fieldDepth
	fieldState
	fieldSnapshotGoal
	fieldArtifact
	fieldBrief
)

// EncodeSnapshot is the stored form of a snapshot.
func EncodeSnapshot(s *Snapshot) []byte {
	dst := wire.AppendUint(nil, fieldSprint, uint64(s.Sprint))
	dst = wire.AppendTime(dst, fieldTaken, s.Time)
	dst = wire.AppendFixed64(dst, fieldPressure, math.Float64bits(s.Figures.Pressure))
	dst = wire.AppendUint(dst, fieldBudget, uint64(max(s.Figures.Budget, 0)))
	dst = wire.AppendUint(dst, fieldErrors, uint64(s.Figures.Errors))
	dst = wire.AppendUint(dst, fieldDepth, uint64(s.Figures.Depth))
	dst = wire.AppendText(dst, fieldState, Encode(s.Working))
	dst = wire.AppendText(dst, fieldSnapshotGoal, s.Goal)
	for _, name := range s.Artifacts {
		dst = wire.AppendItem(dst, fieldArtifact, name)
	}
	if s.Brief {
		dst = wire.AppendUint(dst, fieldBrief, 1)
	}
	return dst
}

// DecodeSnapshot reads what EncodeSnapshot wrote.
func DecodeSnapshot(value []byte) (Snapshot, error) {
	var s Snapshot
	for f, err := range wire.Fields(value) {
		if err != nil {
			return Snapshot{}, fmt.Errorf("working: decode snapshot: %w", err)
		}
		switch f.Number {
		case fieldSprint:
			s.Sprint = int(min(f.Value, math.MaxInt32))
		case fieldTaken:
			s.Time = f.Time()
		case fieldPressure:
			if p := math.Float64frombits(f.Value); !math.IsNaN(p) && !math.IsInf(p, 0) {
				s.Figures.Pressure = p
			}
		case fieldBudget:
			s.Figures.Budget = int(min(f.Value, math.MaxInt32))
		case fieldErrors:
			s.Figures.Errors = int(min(f.Value, math.MaxInt32))
		case fieldDepth:
			s.Figures.Depth = int(min(f.Value, math.MaxInt32))
		case fieldState:
			if s.Working, err = Decode(f.Bytes); err != nil {
				return Snapshot{}, err
			}
		case fieldSnapshotGoal:
			s.Goal = string(f.Bytes)
		case fieldArtifact:
			s.Artifacts = append(s.Artifacts, string(f.Bytes))
		case fieldBrief:
			s.Brief = f.Value != 0
		}
	}
	return s, nil
}
