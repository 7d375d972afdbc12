package assemble

import (
	"cmp"
	"context"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/assemble/layout"
	"github.com/loom-bridge/loom-bridge/context/settings"
)

// arrange lays out everything that is not history.
func (t *task) arrange(ctx context.Context) error {
	all, err := t.injections(ctx)
	if err != nil {
		return err
	}
	t.arranged = inject.Arrange(all, inject.Options{Count: t.count, Total: t.prompt.Limits.Total})
	t.frame = layout.New(t.table, &t.arranged, t.r.Goal, t.prompt.Position)
	return t.err
}

// injections are the sections of the prompt but for the history, in the order of
// registration.
func (t *task) injections(context.Context) ([]inject.Injection, error) {
	all := []inject.Injection{{
		Name: settings.System, Phase: inject.System, Cache: inject.Stable, Priority: 100,
		MaxTokens: t.prompt.Cap(settings.System), Text: t.r.System, Whole: true,
	}}
	all = append(all, t.callers()...)
	return append(all, t.goal()...), nil
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

// goal is the section that ends a prompt of a layout with a goal block.
func (t *task) goal() []inject.Injection {
	if t.table.Goal != layout.GoalBlock || t.r.Goal == "" || t.prompt.Excludes(settings.Goal) {
		return nil
	}
	return []inject.Injection{{
		Name: settings.Goal, Phase: inject.Runtime, Cache: inject.Dynamic, Last: true, Framed: true, Text: "Current Goal: " + t.r.Goal,
		MaxTokens: t.prompt.Cap(settings.Goal),
	}}
}
