package frame

import (
	"cmp"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/instruct"
	"github.com/loom-bridge/loom-bridge/context/settings"
)

// injections are the sections that do not vary, in the order of registration.
func (f *Framing) injections() []inject.Injection {
	all := []inject.Injection{inject.SystemRole(f.System, f.Settings.Cap(settings.System))}
	if f.Settings.Rendering == settings.AsText {
		limit := f.Settings.Cap(settings.ToolList)
		all = append(all, inject.Tools(f.text, limit), inject.OtherTools(f.others, limit))
	}
	if !f.Settings.Excludes(settings.SkillTexts) {
		all = append(all, f.skills())
	}
	if !f.Settings.Excludes(settings.FewShots) {
		all = append(all, inject.FewShot(f.Settings.FewShot, f.Table.ExamplesAsText, f.Settings.Cap(settings.FewShots)))
	}
	if f.ShowsWorking() {
		shown := f.Working
		shown.Goal = f.Goal
		all = append(all, inject.Working(shown.Text(f.Figures, f.Table.Name == settings.Partitioned, f.Tally.Text)))
	}
	all = append(all, f.Gathered.Injections...)
	if f.Back.Text != "" {
		all = append(all, f.Back)
	}
	return trim(append(all, callers(&f.Settings)...), f.Memory, f.Tally.Text)
}

// ShowsWorking reports whether the prompt shows what the agent noted. In the layout of three
// phases goal and plan are separate sections, so it is shown only if it says more.
func (f *Framing) ShowsWorking() bool {
	switch f.Table.Name {
	case settings.Partitioned:
		return true
	case settings.ThreePhase:
		return f.Working.Noted()
	}
	return false
}

// skillsLast is the priority of skills that stand behind all that is known of the user and
// the task.
const skillsLast = 1

// skills is the section of skills. In the layout of partitions it stands behind memory.
func (f *Framing) skills() inject.Injection {
	beside := inject.MaxActiveTokens
	if _, given := f.Settings.Limits.Sections[settings.SkillTexts]; given {
		beside = 0 // who caps the section means all of it
	}
	in := inject.Skills(f.Settings.Skills, f.active(), f.Goal, f.Settings.Cap(settings.SkillTexts), beside, f.Tally.Text)
	if f.Table.Name == settings.Partitioned {
		in.Phase, in.Cache, in.Priority = inject.UserContext, inject.Session, skillsLast
	}
	return in
}

// active are the names of the active skills.
func (f *Framing) active() []string {
	var first []string
	for i := range f.Settings.Skills {
		if f.Settings.Skills[i].Active {
			first = append(first, f.Settings.Skills[i].Name)
		}
	}
	return f.Working.Skills(first)
}

// callers are the sections of the caller's.
func callers(p *settings.Prompt) []inject.Injection {
	out := make([]inject.Injection, 0, len(p.Injections))
	for i := range p.Injections {
		in := &p.Injections[i]
		limit := cmp.Or(p.Limits.Sections[in.Name], in.MaxTokens, settings.MaxInjectionTokens)
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
