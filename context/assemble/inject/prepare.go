package inject

import (
	"cmp"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject/vary"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/working"
)

// Inputs are what the injections of a prompt are made of.
type Inputs struct {
	// Injections are the constant ones: all but the plan, its progress, the failed calls
	// and the goal block.
	Injections []Injection
	// Goal and Plan are what the agent is at, Failures the calls of its session that
	// failed, in order.
	Goal     string
	Plan     working.Plan
	Failures []Failure
	// Session and Turn name the turn of the prompt.
	Session, Turn string
	// Beside is what stands in the prompt and is no injection, such as the tools: it counts
	// against the total.
	Beside int
	// Settings have the caps, the variation, and what is left out.
	Settings settings.Prompt
	// Runtime says that the prompt lists failed calls and ends with the goal block.
	Runtime bool
	// Count counts the tokens of a text. Required.
	Count func(string) int
}

// Prepared is the content of a prompt other than its history.
type Prepared struct {
	Arranged
	// Forms are the forms of the turn.
	Forms vary.Forms
	// Position says on which side of the query the runtime sections stand.
	Position settings.Position
}

// Prepare varies the form of the runtime sections, puts all injections in the order that
// a provider's cache wants, and has the goal stand last.
func Prepare(in Inputs) Prepared {
	s := &in.Settings
	forms := in.forms()
	all := make([]Injection, 0, len(in.Injections)+4)
	if !s.Excludes(settings.Plan) {
		all = append(all, Plan(in.Goal, in.Plan, forms, s.Cap(settings.Plan), in.Count))
		if in.varies() && !s.Excludes(settings.Progress) {
			all = append(all, Progress(in.Plan, forms))
		}
	}
	if in.Runtime {
		all = in.runtime(all)
	}
	all = append(all, in.Injections...)
	total := max(cmp.Or(s.Limits.Total, DefaultTotal)-in.Beside, 1)
	return Prepared{Arrange(all, Options{Count: in.Count, Total: total}), forms, s.Position}
}

// runtime adds the runtime sections of layout three_phase.
func (in *Inputs) runtime(all []Injection) []Injection {
	s := &in.Settings
	if !s.Excludes(settings.Errors) {
		all = append(all, Errors(in.Failures, shownErrors, s.Cap(settings.Errors), in.Count))
	}
	if !s.Excludes(settings.Goal) {
		all = append(all, Todo(in.Goal, in.Plan, s.Cap(settings.Goal), in.Count))
	}
	return all
}

func (in *Inputs) varies() bool {
	disabled := in.Settings.Variation.Disabled
	return disabled == nil || !*disabled
}

// forms returns the forms of the turn.
func (in *Inputs) forms() vary.Forms {
	v := &in.Settings.Variation
	switch {
	case !in.varies():
		return vary.Usual()
	case v.Level != nil:
		return vary.Choose(in.Session, in.Turn, *v.Level)
	}
	return vary.Choose(in.Session, in.Turn, vary.DefaultLevel)
}
