package assemble

import (
	"context"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/assemble/rehydrate"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
)

// takeUp finds the lines of folded results that the prompt takes up.
func (t *task) takeUp(ctx context.Context) error {
	if t.rules.Policy != session.PolicyLedger || t.prompt.Excludes(settings.Rehydrated) {
		return nil
	}
	lines, err := t.moment.TakenUp(ctx, t.a.finder, t.r.Goal)
	t.back = rehydrate.Section(lines, t.prompt.Cap(settings.Rehydrated), t.tally.Text)
	return err
}

// taken is the section of what came back.
func (t *task) taken() []inject.Injection {
	if t.back.Text == "" {
		return nil
	}
	return []inject.Injection{t.back}
}
