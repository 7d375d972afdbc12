package domain

import (
	"context"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/session"
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
