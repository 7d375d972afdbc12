package compose

import (
	"context"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/memory"
)

// Census is how much is stored, for all tenants.
type Census struct {
	Memory memory.Totals
	Blobs  blob.Usage
	Events events.Totals
}

// Census counts what is stored. It reads a few keys of each owner and topic, so its
// time grows with their number, not with what they hold.
func (d *Domain) Census(ctx context.Context) (c Census, err error) {
	if c.Memory, err = d.Memory.Totals(ctx); err != nil {
		return Census{}, err
	}
	if c.Blobs, err = d.Blobs.Total(ctx); err != nil {
		return Census{}, err
	}
	c.Events, err = d.Events.Totals(ctx)
	return c, err
}
