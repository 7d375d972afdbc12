package events

import (
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

const (
	// MaxLegacyEventBytes bounds a whole event that is emitted with
	// EmitOptions.Legacy. It leaves room for an envelope around it: readers of
	// loom.v1 take no message of 4 MiB.
	MaxLegacyEventBytes = 4<<20 - 64<<10 - 4<<10
	// perItemBytes is what a header or tag costs beside its text.
	perItemBytes = 10
)

// checkLegacy returns a *SizeError or an *invalid.Error unless loom.v1 may emit the
// event.
func (e *Event) checkLegacy() error {
	if size := e.legacySize(); size > MaxLegacyEventBytes {
		return &SizeError{Size: size, Limit: MaxLegacyEventBytes}
	}
	for _, text := range []struct{ field, value string }{
		{"topic", e.Topic}, {"id", e.ID}, {"source", e.Source}, {"session_id", e.SessionID}, {"type", e.Type},
	} {
		if !utf8.ValidString(text.value) {
			return invalid.Field(ErrInvalid, text.field, "is not UTF-8")
		}
	}
	for _, tag := range e.Tags {
		if !utf8.ValidString(tag) {
			return invalid.Field(ErrInvalid, "tags", "are not UTF-8")
		}
	}
	for key, value := range e.Headers {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return invalid.Field(ErrInvalid, "metadata", "is not UTF-8")
		}
	}
	return e.checkPayload(MaxLegacyEventBytes)
}

func (e *Event) legacySize() int {
	return sizeOf(e) + len(e.Topic) + perItemBytes*(len(e.Headers)+len(e.Tags))
}
