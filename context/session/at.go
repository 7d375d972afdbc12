package session

import "github.com/loom-bridge/loom-bridge/memory/kv"

// At returns a log that reads from view, such as a snapshot of the engine, so that what
// it reads belongs together, and that writes as l does. What it writes it does not see.
// Once the snapshot is too old, reading is kv.ErrTooOld.
func (l *Log) At(view kv.Reader) *Log {
	at := *l
	at.engine = view
	return &at
}
