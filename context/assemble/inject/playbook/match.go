package playbook

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/guard"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// When an entry is shown.
const (
	// MinScore is the least score of one.
	MinScore = 0.1
	// MaxAge is how long an entry is good since it was used last, or else changed.
	MaxAge = 30 * 24 * time.Hour
	// LowConfidence: a hint of a lower score says so.
	LowConfidence = 0.5
	// shownTools of its tools stand in a hint.
	shownTools = 5
)

// Found is an entry that was found for a task.
type Found struct {
	Entry
	// RecordID is the record's that holds it.
	RecordID string
	// Score is how well it fits what the task says, from 0 to 1.
	Score float64
	// ChangeTime is when its record was changed last, for an entry that does not say so.
	ChangeTime time.Time
}

// Match is the best of the entries for a task at a time, and whether there is one: it is
// approved, it is for tasks of that type, it was used or changed within MaxAge, and its
// score is at least MinScore. Of equal scores the first of found is the best. An empty
// task type is any.
func Match(found []Found, taskType string, now time.Time) (best Found, ok bool) {
	for i := range found {
		f := &found[i]
		if f.fits(taskType, now) && (!ok || f.Score > best.Score) {
			best, ok = *f, true
		}
	}
	return best, ok
}

func (f *Found) fits(taskType string, now time.Time) bool {
	types := f.Trigger.TaskTypes
	return f.Status == Approved && f.Score >= MinScore && now.Sub(f.touched()) <= MaxAge &&
		(len(types) == 0 || taskType == "" || slices.ContainsFunc(types, func(t string) bool { return strings.EqualFold(t, taskType) }))
}

// touched is when it was used last, or else changed.
func (f *Found) touched() time.Time {
	for _, t := range []time.Time{f.LastUseTime, f.UpdateTime, f.ChangeTime} {
		if !t.IsZero() {
			return t
		}
	}
	return f.CreateTime
}

// rest says how to read what a hint leaves out.
const rest = "Search memory for these words to read the whole playbook."

// Hint is what a prompt says of an entry.
func Hint(f Found, limit int) inject.Injection {
	in := inject.Injection{
		Name: settings.Playbook, Phase: inject.UserContext, Cache: inject.Session, Priority: inject.PlaybookPriority,
		MaxTokens: limit, Tag: guard.TagPlaybook, Framed: true, Source: "playbook " + f.RecordID,
		Rest:       rest,
		Attributes: inject.Attribute("confidence", strconv.FormatFloat(f.Score, 'f', 2, 64)),
	}
	lines := []string{guard.Text(text.OneLine(f.Description))}
	if tools := f.tools(); len(tools) > 0 {
		lines = append(lines, guard.Inline("Tools: "+strings.Join(tools, " → ")))
	}
	if f.Quality.Turns > 0 {
		lines = append(lines, fmt.Sprintf("Average %s steps, success %.0f%%", number(f.Quality.Turns), math.Round(f.Quality.SuccessRate*100)))
	}
	if f.Score < LowConfidence {
		lines = append(lines, "Low confidence: adapt as needed.")
	}
	if f.cut {
		lines = append(lines, inject.CutNote(rest))
	}
	in.Text = strings.Join(lines, "\n")
	return in
}

// tools are the first shownTools tools of what led to the goal, or else of what is
// suggested.
func (f *Found) tools() []string {
	var names []string
	for i := range f.Sequence {
		names = append(names, text.OneLine(f.Sequence[i].Tool))
	}
	if len(names) == 0 {
		for _, name := range f.Strategy.Tools {
			names = append(names, text.OneLine(name))
		}
	}
	return names[:min(len(names), shownTools)]
}

// number has one decimal, where there is one.
func number(n float64) string { return strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64) }

func blank(s string) bool { return strings.TrimSpace(s) == "" }
