package events

// Queued returns the bytes that are taken of Options.MaxQueuedBytes.
func (b *Bus) Queued() int64 { return b.queued.Held() }
