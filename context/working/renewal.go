package working

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
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
	// Figures are the figures of the prompt that did not fit.
	Figures Figures
	// Working is what the agent was at, with the last five of its decisions.
	Working Working
	// Goal is what it worked towards: that of Working, or what the prompt was asked for.
	Goal string
	// Artifacts are the names of the sprint's products, oldest first, and then the most
	// used names, most used first.
	Artifacts []string
	// Brief says that the handoff has only the beginnings of goal and progress.
	Brief bool
}

// Shorten makes the handoff shorter, for a window that has no room for it: it drops half of
// the names, least used first, and with the last of them most of the text on goal and
// progress. False if nothing is left to shorten.
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
		section.text = cmp.Or(section.text, none)
		fmt.Fprintf(&b, "\n\n## %s\n%s", section.title, section.text)
	}
	return b.String()
}

// shortBody returns the beginning of a text of others, on separate lines.
func shortBody(s string, chars int) string {
	head, cut := text.HeadChars(strings.TrimSpace(s), chars)
	if cut {
		head += text.Ellipsis
	}
	return body(head)
}

// EncodeSnapshot is the stored form of a snapshot.
func EncodeSnapshot(s *Snapshot) []byte {
	return wire.Marshal(&storev1.Snapshot{
		Sprint: uint64(s.Sprint), Time: wire.Micros(s.Time), Pressure: &s.Figures.Pressure, TokensLeft: uint64(max(s.Figures.Budget, 0)),
		Failures: uint64(s.Figures.Errors), Depth: uint64(s.Figures.Depth), Working: Encode(s.Working), Goal: s.Goal, Outputs: s.Artifacts,
		Beginnings: s.Brief,
	})
}

// DecodeSnapshot reads what EncodeSnapshot wrote.
func DecodeSnapshot(value []byte) (Snapshot, error) {
	var m storev1.Snapshot
	if err := wire.Unmarshal(value, &m); err != nil {
		return Snapshot{}, fmt.Errorf("working: decode snapshot: %w", err)
	}
	state, err := Decode(m.Working)
	if err != nil {
		return Snapshot{}, err
	}
	count := func(n uint64) int { return int(min(n, math.MaxInt32)) }
	s := Snapshot{
		Sprint: count(m.Sprint), Time: wire.TimeOf(m.Time), Working: state, Goal: m.Goal, Artifacts: m.Outputs, Brief: m.Beginnings,
		Figures: Figures{Budget: count(m.TokensLeft), Errors: count(m.Failures), Depth: count(m.Depth)},
	}
	if p := m.GetPressure(); !math.IsNaN(p) && !math.IsInf(p, 0) {
		s.Figures.Pressure = p
	}
	return s, nil
}
