package assemble

import (
	"cmp"
	"context"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/assemble/layout"
	"github.com/loom-bridge/loom-bridge/context/assemble/record"
	"github.com/loom-bridge/loom-bridge/context/instruct"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/context/working"
)

// prepare finds and lays out everything that is not history.
func (t *task) prepare(ctx context.Context) error {
	t.working = t.moment.Working
	if err := t.windowState(); err != nil {
		return err
	}
	t.r.Goal = cmp.Or(t.r.Goal, t.working.Goal)
	if err := t.gather(ctx); err != nil {
		return err
	}
	if err := t.takeUp(ctx); err != nil {
		return err
	}
	t.skillTools = t.skillsTools()
	if err := t.findServed(ctx); err != nil {
		return err
	}
	t.ownTools = t.r.Tools
	t.r.Tools = t.offered()
	t.textTools()
	var err error
	if t.tools, err = t.a.toolset(t.r); err != nil {
		return err
	}
	if err := t.leaveParent(ctx); err != nil {
		return err
	}
	t.figures = working.Figures{Errors: t.moment.End.Errors(), Depth: t.a.depthOf(ctx, t.r.Scope)}
	t.arrange()
	return t.tally.Err
}

// gather finds what stands elsewhere.
func (t *task) gather(ctx context.Context) (err error) {
	if t.a.gatherer == nil {
		return nil
	}
	t.gathered, err = t.a.gatherer.Gather(ctx, &gather.Ask{
		Scope: t.r.Scope, SessionID: t.r.SessionID, Goal: t.r.Goal, Newest: t.moment.End.Newest, Before: t.moment.End.Before, Answer: t.moment.End.Answer, Layout: t.table.Name,
		Settings: t.prompt, View: t.moment.View, Now: t.a.clock(), Count: t.tally.Text, DryRun: t.r.DryRun, KeepOnWrite: t.rules.Preset.KeepOnWrite,
	})
	for _, s := range t.gathered.Skills {
		if !slices.ContainsFunc(t.prompt.Skills, func(own settings.Skill) bool { return own.Name == s.Name }) {
			t.prompt.Skills = append(slices.Clip(t.prompt.Skills), s)
		}
	}
	return err
}

// arrange lays out what was found.
func (t *task) arrange() {
	t.prepared = inject.Prepare(inject.Inputs{
		Injections: t.injections(), Goal: t.r.Goal, Plan: t.plan(), Failures: t.moment.End.Failures(),
		Session: t.r.SessionID, Turn: cmp.Or(t.r.TurnID, t.moment.End.Turn()),
		Settings: t.prompt,
		Runtime:  t.table.Goal == layout.GoalBlock, Count: t.tally.Text, Beside: t.tools.Count.Tokens,
	})
	t.frame = layout.New(t.table, &t.prepared, t.r.Goal)
	if t.fork != nil {
		t.frame.Fork(t.fork.Messages)
	}
}

// leaveParent takes over what a fork's prompts begin with, and its parent's tools.
func (t *task) leaveParent(ctx context.Context) error {
	if t.a.forked == nil {
		return nil
	}
	stored, err := t.a.forked(ctx, t.r.Scope, t.r.SessionID)
	if err != nil || stored == nil {
		return err
	}
	if t.fork, err = record.DecodeFork(stored); err != nil {
		return err
	}
	if t.fork.Format == t.r.Format && !t.r.WithoutTools {
		t.tools, err = t.a.forkToolset(t.fork, t.r.Model)
	}
	return err
}

// injections are the sections that do not vary, in the order of registration.
func (t *task) injections() []inject.Injection {
	all := []inject.Injection{inject.SystemRole(t.r.System, t.prompt.Cap(settings.System))}
	if t.prompt.Rendering == settings.AsText {
		limit := t.prompt.Cap(settings.ToolList)
		all = append(all, inject.Tools(t.text, limit), inject.OtherTools(t.others, limit))
	}
	if !t.prompt.Excludes(settings.SkillTexts) {
		all = append(all, t.skills())
	}
	if !t.prompt.Excludes(settings.FewShots) {
		all = append(all, inject.FewShot(t.prompt.FewShot, t.table.ExamplesAsText, t.prompt.Cap(settings.FewShots)))
	}
	if t.showsWorking() {
		shown := t.working
		shown.Goal = t.r.Goal
		all = append(all, inject.Working(shown.Text(t.figures, t.table.Name == settings.Partitioned, t.tally.Text)))
	}
	all = append(all, t.gathered.Injections...)
	all = append(all, t.taken()...)
	return t.trim(append(all, t.callers()...))
}

// showsWorking reports whether the prompt shows what the agent noted. In the layout of three
// phases goal and plan are separate sections, so it is shown only if it says more.
func (t *task) showsWorking() bool {
	switch t.table.Name {
	case settings.Partitioned:
		return true
	case settings.ThreePhase:
		return t.working.Noted()
	}
	return false
}

// plan returns the plan for its separate section: empty if the working state shows it.
func (t *task) plan() working.Plan {
	if t.table.Name == settings.Partitioned {
		return nil
	}
	return t.working.Plan
}

// skillsLast is the priority of skills that stand behind all that is known of the user and
// the task.
const skillsLast = 1

// skills is the section of skills. In the layout of partitions it stands behind memory.
func (t *task) skills() inject.Injection {
	beside := inject.MaxActiveTokens
	if _, given := t.prompt.Limits.Sections[settings.SkillTexts]; given {
		beside = 0 // who caps the section means all of it
	}
	in := inject.Skills(t.prompt.Skills, t.active(), t.r.Goal, t.prompt.Cap(settings.SkillTexts), beside, t.tally.Text)
	if t.table.Name == settings.Partitioned {
		in.Phase, in.Cache, in.Priority = inject.UserContext, inject.Session, skillsLast
	}
	return in
}

// active are the names of the active skills.
func (t *task) active() []string {
	var first []string
	for i := range t.prompt.Skills {
		if t.prompt.Skills[i].Active {
			first = append(first, t.prompt.Skills[i].Name)
		}
	}
	return t.working.Skills(first)
}

// callers are the sections of the caller's.
func (t *task) callers() []inject.Injection {
	out := make([]inject.Injection, 0, len(t.prompt.Injections))
	for i := range t.prompt.Injections {
		in := &t.prompt.Injections[i]
		limit := cmp.Or(t.prompt.Limits.Sections[in.Name], in.MaxTokens, settings.MaxInjectionTokens)
		out = append(out, inject.Injection{
			Name: in.Name, Phase: inject.Phase(in.Phase), Cache: inject.Cache(in.Strategy), Tag: in.Tag, Text: in.Content,
			Priority: priorityOf(in), MaxTokens: limit, Source: "caller",
			Row: instruct.Caller, Writers: instruct.Program,
		})
	}
	return out
}

func priorityOf(in *settings.Injection) int {
	if in.Priority == nil {
		return inject.DefaultPriority
	}
	return *in.Priority
}

// textTools are the tools as a prompt has them that does not offer them as a parameter.
func (t *task) textTools() {
	if t.prompt.Rendering != settings.AsText {
		return
	}
	foreign := make(map[string]bool)
	for i := range t.served {
		foreign[t.served[i].Name] = t.served[i].Foreign
	}
	for i := range t.ownTools { // which override served tools
		foreign[t.ownTools[i].Name] = false
	}
	for i := range t.r.Tools {
		tool := tokens.ToolDefinition{Name: t.r.Tools[i].Name, Description: t.r.Tools[i].Description, Schema: t.r.Tools[i].Schema}
		if foreign[tool.Name] {
			t.others = append(t.others, tool)
		} else {
			t.text = append(t.text, tool)
		}
	}
	t.r.Tools = nil
}

// skillsTools are the tools of active skills.
func (t *task) skillsTools() []string {
	var names []string
	active := t.active()
	for i := range t.prompt.Skills {
		if slices.Contains(active, t.prompt.Skills[i].Name) {
			names = append(names, t.prompt.Skills[i].Tools...)
		}
	}
	return names
}
