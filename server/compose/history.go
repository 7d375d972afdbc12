package compose

import (
	"context"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// settledLog gives the sessions that say nothing the server's own settings.
type settledLog struct {
	*session.Log
	own session.Config
}

// Config is the session's, laid over the server's.
func (l settledLog) Config(ctx context.Context, scope kv.Scope, sessionID string) (session.Config, error) {
	c, err := l.Log.Config(ctx, scope, sessionID)
	return c.Over(l.own), err
}

// naming counts the results of each kind apart in sessions with a preset that
// names them so.
func (l settledLog) naming(ctx context.Context, scope kv.Scope, sessionID string) (blob.Naming, error) {
	c, err := l.Config(ctx, scope, sessionID)
	if err != nil || c.Policy != "" && c.Policy != session.PolicyPreset {
		return 0, err
	}
	if p, _ := history.Named(c.Preset); p.NumberKinds {
		return blob.NamingKindSeq, nil
	}
	return 0, nil
}

// reference is how answers refer to blobs: as the session's preset does, or else as
// the options say.
func (l settledLog) reference(o Options) func(ctx context.Context, scope kv.Scope, sessionID string) step.ReferenceStyle {
	return func(ctx context.Context, scope kv.Scope, sessionID string) step.ReferenceStyle {
		c, err := l.Config(ctx, scope, sessionID)
		if err != nil || c.Policy != "" && c.Policy != session.PolicyPreset {
			return o.Reference
		}
		if p, ok := o.Presets(c.Preset); ok {
			return p.Reference
		}
		return o.Reference
	}
}

// presets are those of the options, with the lines that the rules give.
func (o Options) presets() func(name string) (history.Preset, bool) {
	own := o.Reduction.Rules.Templates()
	return func(name string) (history.Preset, bool) {
		p, ok := o.Presets(name)
		if p.Templates.Empty() {
			p.Templates = step.DesignTemplates()
		}
		p.Templates = own.Over(p.Templates)
		return p, ok
	}
}

// tellingAssembler tells of the batches of folds that it stores.
type tellingAssembler struct {
	*assemble.Assembler
	herald herald
}

// Assemble is the assembler's.
func (a tellingAssembler) Assemble(ctx context.Context, r assemble.Request) (assemble.Prompt, error) {
	prompt, err := a.Assembler.Assemble(ctx, r)
	if err == nil && !r.DryRun {
		a.herald.folded(ctx, r.Scope, r.SessionID, prompt.Receipt.Batch)
	}
	return prompt, err
}

// Compact is the assembler's.
func (a tellingAssembler) Compact(ctx context.Context, r assemble.CompactRequest) (assemble.Compaction, error) {
	compaction, err := a.Assembler.Compact(ctx, r)
	if err == nil && !r.DryRun {
		a.herald.folded(ctx, r.Scope, r.SessionID, compaction.Batch)
	}
	return compaction, err
}
