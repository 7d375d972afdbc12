package assemble

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Snapshots is an engine that can be read as of one moment.
type Snapshots interface {
	kv.Reader
	Snapshot(ctx context.Context, refs ...kv.Ref) (kv.Snapshot, error)
}

// moment is what one prompt is read from: a snapshot, so that its parts belong together,
// or the engine itself where a snapshot would be too old before the prompt is done.
type moment struct {
	log  Log
	view kv.Reader
	// sequence is that of the agent's log; 0 where there is no snapshot.
	sequence uint64
	close    func()
}

// now opens the present moment. live reads from the engine itself.
func (a *Assembler) now(ctx context.Context, scope kv.Scope, live bool) (moment, error) {
	log, ok := a.log.(*session.Log)
	if a.engine == nil || !ok || live {
		return moment{log: a.log, view: a.engine, close: func() {}}, nil
	}
	view, err := a.engine.Snapshot(ctx, log.Ref(scope))
	if err != nil {
		return moment{}, fmt.Errorf("assemble: open a snapshot: %w", err)
	}
	return moment{
		log: log.At(view), view: view, sequence: view.Sequences()[0],
		close: func() { _ = view.Close() }, // nothing was written to it
	}, nil
}

// renew reads on from the present moment, because the task itself wrote to the log.
func (t *task) renew(ctx context.Context) error {
	m, err := t.a.now(ctx, t.r.Scope, t.live)
	if err != nil {
		return err
	}
	t.moment.close()
	t.moment = m
	return nil
}
