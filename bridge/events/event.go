package events

import "github.com/loom-bridge/loom-bridge/bridge/events/store"

// Event is one thing that happened.
type Event = store.Event

// The payload kinds.
const (
	JSON  = store.JSON
	Bytes = store.Bytes
)
