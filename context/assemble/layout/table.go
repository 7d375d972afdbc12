package layout

import "github.com/loom-bridge/loom-bridge/context/settings"

// Table is a layout. All of them begin with a system message of everything in the
// system phase, and end with a message of the user.
type Table struct {
	// Name is what settings call it.
	Name settings.Layout
	// TasksFirst puts recent tasks, events and direct messages before the history;
	// otherwise they stand behind it, where new ones cost no cached byte.
	TasksFirst bool
	// ContextLast puts the user context behind the history instead of before it.
	ContextLast bool
	// TakesQuery lets the last message begin with the newest message of the user.
	TakesQuery bool
	// Goal says how the last message states the goal.
	Goal GoalForm
	// Position is where the runtime sections stand in the last message unless settings
	// say otherwise.
	Position settings.Position
	// Rule stands between the newest message of the user and the runtime sections.
	Rule string
	// Varies lets the form of a turn say what the Rule is.
	Varies bool
	// ExamplesAsText puts the examples into the system message.
	ExamplesAsText bool
	// JoinsSteps makes one message of neighbours that are steps as text, and puts the goal
	// behind the last ones.
	JoinsSteps bool
}

// GoalForm is how the last message states the goal.
type GoalForm uint8

// The forms.
const (
	// GoalBlock: the block of the section `goal` ends the prompt. A goal too long for it
	// stands whole where the newest message of the user does.
	GoalBlock GoalForm = iota
	// GoalLine: a last line `Goal: {goal}`.
	GoalLine
	// GoalTask: the goal is the current task, and the whole last text.
	GoalTask
)

// rule stands between the newest message and the runtime sections.
const rule = "\n\n---\n\n"

// blank stands between texts of one message.
const blank = "\n\n"

var tables = map[settings.Layout]Table{
	settings.ThreePhase: {
		Name: settings.ThreePhase, TakesQuery: true, Goal: GoalBlock, Position: settings.Append, Rule: rule, Varies: true,
	},
	settings.TaskContext: {
		Name: settings.TaskContext, TasksFirst: true, ContextLast: true, TakesQuery: true, Goal: GoalTask,
		Position: settings.Prepend, Rule: rule,
	},
	settings.Partitioned: {
		Name: settings.Partitioned, TakesQuery: true, Goal: GoalTask, Position: settings.Prepend, Rule: rule,
	},
	settings.ReAct: {
		Name: settings.ReAct, TakesQuery: true, Goal: GoalLine, Position: settings.Append, Rule: blank,
		ExamplesAsText: true, JoinsSteps: true,
	},
}

// Named returns the layout of a name; for an unknown or empty name, the layout of three
// phases.
func Named(name settings.Layout) Table {
	if t, ok := tables[name]; ok {
		return t
	}
	return tables[settings.ThreePhase]
}
