package kv

import (
	"context"
	"time"
)

// Shared is an Engine that several processes write to, and that can distinguish one of them.
type Shared interface {
	Engine
	Notifier
	Monitored
	// Time returns the time of the store's own clock, which all processes have in common.
	Time(ctx context.Context) (time.Time, error)
	// Fence binds the commits of this process, except those that are Unfenced: from now on
	// each fails with ErrFenced unless the key of System has the value while it is made. It
	// replaces the fence before; a nil key takes it away.
	Fence(key, value []byte)
}
