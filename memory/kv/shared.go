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
	// Fence guards the commits of this process, except Unfenced ones: each one fails with
	// ErrFenced unless the key of System has the value when it is made. It replaces the
	// previous fence; a nil key removes it.
	Fence(key, value []byte)
}
