package store

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Limits of an event.
const (
	// MaxPayloadBytes bounds a payload: one value of the store.
	MaxPayloadBytes = 1 << 20
	// MaxHeaders bounds the number of headers.
	MaxHeaders = 32
	// MaxHeadersBytes bounds the keys and values of all headers together.
	MaxHeadersBytes = 8 << 10
	// MaxIDBytes bounds an event id that the caller chose.
	MaxIDBytes = 128
	// MaxSourceBytes bounds the name of the emitter: an agent's id.
	MaxSourceBytes = 256
	// MaxSessionBytes bounds a session id.
	MaxSessionBytes = 256
	// MaxTypeBytes bounds an event's type.
	MaxTypeBytes = 256
	// MaxTags bounds the number of tags.
	MaxTags = 32
	// MaxTagBytes bounds one tag.
	MaxTagBytes = 256
)

const (
	// MaxLegacyEventBytes bounds a whole event that is emitted by
	// loom.v1. It leaves room for an envelope around it: readers of
	// loom.v1 take no message of 4 MiB.
	MaxLegacyEventBytes = 4<<20 - 64<<10 - 4<<10
	// perItemBytes is the size of a header or tag in addition to its text.
	perItemBytes = 10
)

// PayloadKind is what a payload is. The numbers are part of the stored format.
type PayloadKind uint8

// The payload kinds.
const (
	// JSON is one JSON value; the text is kept as it came.
	JSON PayloadKind = iota
	// Bytes is opaque.
	Bytes
)

// Event is one thing that happened.
type Event struct {
	// ID names the event: the caller's choice, or a ULID made by Emit.
	ID string
	// Topic is where it was emitted.
	Topic string
	// Sequence is its place in the topic, from 1 without gaps; 0 when volatile.
	// Emit sets it.
	Sequence uint64
	// Source is the agent that emitted it.
	Source string
	// SessionID is the emitter's session, or empty.
	SessionID string
	// Time is when the bus took it, in UTC, to the microsecond: later than that of
	// any event that the bus took before, also when the clock was set back, and of
	// any earlier one of the topic. Emit sets it.
	Time time.Time
	// Payload is the content. An empty JSON payload is the value null.
	Payload []byte
	// PayloadKind says what the payload is. Default JSON.
	PayloadKind PayloadKind
	// Headers are the emitter's own pairs.
	Headers map[string]string
	// Type says what sort of event it is, in the emitter's words.
	Type string
	// Tags are the emitter's labels.
	Tags []string
	// Priority is the emitter's, 0 lowest.
	Priority int32
	// Confidence is the emitter's, from 0 to 1.
	Confidence float32
	// SentMillis is the emitter's own clock, in milliseconds since 1970; 0 is
	// not said.
	SentMillis int64
}

// NullPayload is what an empty JSON payload means.
const NullPayload = "null"

// Check returns an *invalid.Error unless the event may be emitted.
func (e *Event) Check() error {
	if err := pattern.CheckTopic(e.Topic); err != nil {
		return err
	}
	for _, text := range []struct {
		field, value string
		limit        int
	}{
		{"event_id", e.ID, MaxIDBytes},
		{"source", e.Source, MaxSourceBytes},
		{"session_id", e.SessionID, MaxSessionBytes},
		{"type", e.Type, MaxTypeBytes},
	} {
		if len(text.value) > text.limit || !utf8.ValidString(text.value) {
			return invalid.Field(pattern.ErrInvalid, text.field, "must be UTF-8 of at most %d bytes", text.limit)
		}
	}
	if err := e.checkTags(); err != nil {
		return err
	}
	if err := e.checkPayload(MaxPayloadBytes); err != nil {
		return err
	}
	return e.checkHeaders()
}

func (e *Event) checkTags() error {
	if len(e.Tags) > MaxTags {
		return invalid.Field(pattern.ErrInvalid, "tags", "are %d, over the limit of %d", len(e.Tags), MaxTags)
	}
	for _, tag := range e.Tags {
		if len(tag) > MaxTagBytes || !utf8.ValidString(tag) {
			return invalid.Field(pattern.ErrInvalid, "tags", "must be UTF-8 of at most %d bytes each", MaxTagBytes)
		}
	}
	return nil
}

func (e *Event) checkPayload(limit int) error {
	switch {
	case len(e.Payload) > limit:
		return invalid.Field(pattern.ErrInvalid, "payload", "is %d bytes, over the limit of %d", len(e.Payload), limit)
	case e.PayloadKind > Bytes:
		return invalid.Field(pattern.ErrInvalid, "payload", "has an unknown kind %d", e.PayloadKind)
	case e.PayloadKind == JSON && len(e.Payload) > 0 && (!json.Valid(e.Payload) || !utf8.Valid(e.Payload)):
		return invalid.Field(pattern.ErrInvalid, "payload", "is not JSON in UTF-8")
	}
	return nil
}

func (e *Event) checkHeaders() error {
	if len(e.Headers) > MaxHeaders {
		return invalid.Field(pattern.ErrInvalid, "headers", "are %d, over the limit of %d", len(e.Headers), MaxHeaders)
	}
	size := 0
	for key, value := range e.Headers {
		if key == "" || !utf8.ValidString(key) || !utf8.ValidString(value) {
			return invalid.Field(pattern.ErrInvalid, "headers", "must be UTF-8 with non-empty keys")
		}
		size += len(key) + len(value)
	}
	if size > MaxHeadersBytes {
		return invalid.Field(pattern.ErrInvalid, "headers", "are %d bytes, over the limit of %d", size, MaxHeadersBytes)
	}
	return nil
}

// CheckLegacy returns a *SizeError or an *invalid.Error unless loom.v1 may emit the
// event.
func (e *Event) CheckLegacy() error {
	if size := e.LegacySize(); size > MaxLegacyEventBytes {
		return &SizeError{Size: size, Limit: MaxLegacyEventBytes}
	}
	for _, text := range []struct{ field, value string }{
		{"topic", e.Topic}, {"id", e.ID}, {"source", e.Source}, {"session_id", e.SessionID}, {"type", e.Type},
	} {
		if !utf8.ValidString(text.value) {
			return invalid.Field(pattern.ErrInvalid, text.field, "is not UTF-8")
		}
	}
	for _, tag := range e.Tags {
		if !utf8.ValidString(tag) {
			return invalid.Field(pattern.ErrInvalid, "tags", "are not UTF-8")
		}
	}
	for key, value := range e.Headers {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return invalid.Field(pattern.ErrInvalid, "metadata", "is not UTF-8")
		}
	}
	return e.checkPayload(MaxLegacyEventBytes)
}

// LegacySize is what the event takes in a message of loom.v1.
func (e *Event) LegacySize() int {
	return e.Size() + len(e.Topic) + perItemBytes*(len(e.Headers)+len(e.Tags))
}

// Clone returns a copy that shares nothing with the event.
func (e *Event) Clone() *Event {
	own := *e
	own.Payload = bytes.Clone(e.Payload)
	own.Headers = maps.Clone(e.Headers)
	own.Tags = slices.Clone(e.Tags)
	return &own
}

// Size is what the content takes, in bytes; 0 for nil.
func (e *Event) Size() int {
	if e == nil {
		return 0
	}
	size := len(e.ID) + len(e.Source) + len(e.SessionID) + len(e.Type) + len(e.Payload)
	for key, value := range e.Headers {
		size += len(key) + len(value)
	}
	for _, tag := range e.Tags {
		size += len(tag)
	}
	return size
}
