package inject

import (
	"cmp"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/guard"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/context/working"
)

// How the lines of the goal block begin and end. strip finds them again.
const (
	goalHead     = "Current Goal: "
	progressHead = "Progress: "
	progressEnd  = " steps completed"
	nextHead     = "Next: "
	noNext       = "none"
)

// nextShare is the part of the cap that the next step may take at most, as a divisor, so
// that there is room for the goal.
const nextShare = 3

// Todo is the goal block, which ends a prompt: the goal, and with a plan how far it is and
// what comes next. Without a goal there is none. A goal that is too long for the cap ends
// in an ellipsis; it stands whole elsewhere. A cap that has no room for the block without
// a goal is passed.
func Todo(goal string, plan working.Plan, limit int, count func(string) int) Injection {
	in := Injection{
		Name: settings.Goal, Phase: Runtime, Cache: Dynamic, Priority: todoPriority, MaxTokens: limit,
		Last: true, Framed: true, Source: "goal",
	}
	if goal = text.OneLine(goal); goal == "" {
		return in
	}
	goal = guard.Inline(goal)
	rest := todoRest(plan, limit, count)
	in.Text = goalHead + goal + rest
	if limit <= 0 {
		return in
	}
	for room := limit - count(goalHead+rest); count(in.Text) > limit && room >= 0; room-- {
		short := Line(goal, room, count)
		short = cmp.Or(short, text.Ellipsis)
		in.Text = goalHead + short + rest
	}
	return in
}

// todoRest are the lines behind the goal, each behind a line feed; empty without a plan.
func todoRest(plan working.Plan, limit int, count func(string) int) string {
	if len(plan) == 0 {
		return ""
	}
	next := noNext
	if item := plan.Next(); item != nil {
		next = guard.Inline(text.OneLine(item.Text))
	}
	if limit > 0 {
		next = Line(next, limit/nextShare, count)
	}
	return fmt.Sprintf("\n%s%d/%d%s\n%s%s", progressHead, plan.Done(), len(plan), progressEnd, nextHead, next)
}
