package assemble

import (
	"cmp"
	"context"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/assemble/layout"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// arrange lays out everything that is not history.
func (t *task) arrange(ctx context.Context) error {
	recent, err := t.recent(ctx)
	if err != nil {
		return err
	}
	t.prepared = inject.Prepare(inject.Inputs{
		Injections: t.injections(), Goal: t.r.Goal, Plan: t.working.Plan, Failures: recent.failures(),
		Session: sessionOf(t.r.SessionID), Turn: cmp.Or(t.r.TurnID, recent.turn()), Repeats: recent.repeats,
		Tokens: t.a.known.last(t.r.Scope, sessionOf(t.r.SessionID)).tokens(), Settings: t.prompt,
		Todo: t.table.Goal == layout.GoalBlock, Count: t.count,
	})
	t.frame = layout.New(t.table, &t.prepared, t.r.Goal)
	return t.err
}

// injections are the sections that do not vary, in the order of registration.
func (t *task) injections() []inject.Injection {
	all := []inject.Injection{inject.SystemRole(t.r.System, t.prompt.Cap(settings.System))}
	if t.prompt.Rendering == settings.AsText {
		all = append(all, inject.Tools(t.text, t.prompt.Cap(settings.ToolList)))
	}
	if !t.prompt.Excludes(settings.SkillTexts) {
		all = append(all, inject.Skills(t.prompt.Skills, t.active(), t.prompt.Cap(settings.SkillTexts)))
	}
	if !t.prompt.Excludes(settings.FewShots) {
		all = append(all, inject.FewShot(t.prompt.FewShot, t.table.ExamplesAsText, t.prompt.Cap(settings.FewShots)))
	}
	return append(all, t.callers()...)
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
			Priority: cmp.Or(in.Priority, inject.DefaultPriority), MaxTokens: limit, Source: "caller",
		})
	}
	return out
}

// textTools are the tools as a prompt has them that does not offer them as a parameter.
func (t *task) textTools() {
	if t.prompt.Rendering != settings.AsText {
		return
	}
	t.text = make([]tokens.Tool, len(t.r.Tools))
	for i := range t.r.Tools {
		t.text[i] = tokens.Tool{Name: t.r.Tools[i].Name, Description: t.r.Tools[i].Description, Schema: t.r.Tools[i].Schema}
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
