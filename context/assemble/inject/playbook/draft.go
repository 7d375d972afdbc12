package playbook

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// MinReward is the least reward of a session that becomes a draft.
const MinReward = 0.7

// Run is a session that is over, as far as a playbook can be made of it.
type Run struct {
	SessionID string
	// Goal is what it was about, and Reward how well it went, from -1 to 1.
	Goal   string
	Reward float64
	// TaskType is what sort of task it was; empty is any.
	TaskType string
	// Calls are its calls of tools, in order.
	Calls []Made
	// End is when it ended.
	End time.Time
}

// Made is a call that was made: what for, if that was said, and whether it did its work.
type Made struct {
	Tool, Purpose string
	Succeeded     bool
}

// DraftOf returns the entry made from a run, for review, and whether there is one: a run
// needs a reward of at least MinReward, a goal, and a successful call. Failed calls are
// left out of the sequence, and repeated calls in a row are listed once; a call is critical
// if its tool was called only once.
func DraftOf(r *Run) (Entry, bool) {
	goal := text.OneLine(r.Goal)
	if !(r.Reward >= MinReward && r.Reward <= 1) || blank(goal) {
		return Entry{}, false
	}
	e := Entry{
		Name: head(goal, MaxNameChars), Description: head(goal, MaxDescriptionChars),
		Strategy: Strategy{Execution: "sequential", MaxTurns: len(r.Calls)},
		Status:   Draft, Source: Auto, SourceSessionID: r.SessionID, CreateTime: r.End, UpdateTime: r.End,
	}
	if kind := strings.TrimSpace(r.TaskType); kind != "" && len(kind) <= MaxWordBytes {
		e.Trigger.TaskTypes = []string{kind}
	}
	succeeded, times := 0, make(map[string]int)
	for i := range r.Calls {
		c := &r.Calls[i]
		if !c.Succeeded || c.Tool == "" || len(c.Tool) > MaxWordBytes {
			continue
		}
		succeeded++
		if n := len(e.Sequence); n < MaxTools && (n == 0 || e.Sequence[n-1].Tool != c.Tool) {
			e.Sequence = append(e.Sequence, Call{Tool: c.Tool, Purpose: head(text.OneLine(c.Purpose), MaxPurposeChars)})
			times[c.Tool]++
		}
	}
	for i := range e.Sequence {
		e.Sequence[i].Critical = times[e.Sequence[i].Tool] == 1
	}
	if succeeded == 0 {
		return Entry{}, false
	}
	e.Quality = Quality{Reward: r.Reward, SuccessRate: float64(succeeded) / float64(len(r.Calls)), Turns: float64(len(r.Calls))}
	return e, e.Check() == nil
}

// head is a text of at most so many characters; of a longer one the beginning and `…`.
func head(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:most-1])) + "…"
}
