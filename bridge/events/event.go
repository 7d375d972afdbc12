package events

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of an event.
const (
	// MaxTopicBytes bounds a topic's name.
	MaxTopicBytes = 256
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
)

// Kind is what a payload is. The numbers are part of the stored format.
type Kind uint8

// The payload kinds.
const (
	// JSON is one JSON value; the text is kept as it came.
	JSON Kind = iota
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
	// Time is when the bus took it, in UTC, to the microsecond. Emit sets it.
	Time time.Time
	// Payload is the content. An empty JSON payload is the value null.
	Payload []byte
	// PayloadKind says what the payload is. Default JSON.
	PayloadKind Kind
	// Headers are the emitter's own pairs.
	Headers map[string]string
}

// nullPayload is what an empty JSON payload means.
const nullPayload = "null"

// check returns an *InvalidError unless the event may be emitted.
func (e Event) check() error {
	if err := CheckTopic(e.Topic); err != nil {
		return err
	}
	for _, text := range []struct {
		field, value string
		limit        int
	}{
		{"event_id", e.ID, MaxIDBytes},
		{"source", e.Source, MaxSourceBytes},
		{"session_id", e.SessionID, MaxSessionBytes},
	} {
		if len(text.value) > text.limit || !utf8.ValidString(text.value) {
			return invalid(text.field, "must be UTF-8 of at most %d bytes", text.limit)
		}
	}
	if err := e.checkPayload(); err != nil {
		return err
	}
	return e.checkHeaders()
}

func (e Event) checkPayload() error {
	switch {
	case len(e.Payload) > MaxPayloadBytes:
		return invalid("payload", "is %d bytes, over the limit of %d", len(e.Payload), MaxPayloadBytes)
	case e.PayloadKind > Bytes:
		return invalid("payload", "has an unknown kind %d", e.PayloadKind)
	case e.PayloadKind == JSON && len(e.Payload) > 0 && (!json.Valid(e.Payload) || !utf8.Valid(e.Payload)):
		return invalid("payload", "is not JSON in UTF-8")
	}
	return nil
}

func (e Event) checkHeaders() error {
	if len(e.Headers) > MaxHeaders {
		return invalid("headers", "are %d, over the limit of %d", len(e.Headers), MaxHeaders)
	}
	size := 0
	for key, value := range e.Headers {
		if key == "" || !utf8.ValidString(key) || !utf8.ValidString(value) {
			return invalid("headers", "must be UTF-8 with non-empty keys")
		}
		size += len(key) + len(value)
	}
	if size > MaxHeadersBytes {
		return invalid("headers", "are %d bytes, over the limit of %d", size, MaxHeadersBytes)
	}
	return nil
}

// CheckTopic returns an *InvalidError unless topic is an exact topic: 1 to
// MaxTopicBytes of UTF-8 without control characters, words separated by dots,
// no word empty, and no `*`.
func CheckTopic(topic string) error {
	switch {
	case topic == "" || len(topic) > MaxTopicBytes:
		return invalid("topic", "must have 1 to %d bytes", MaxTopicBytes)
	case !utf8.ValidString(topic):
		return invalid("topic", "is not UTF-8")
	case strings.ContainsFunc(topic, unicode.IsControl):
		return invalid("topic", "holds a control character")
	case strings.Contains(topic, "*"):
		return invalid("topic", "holds `*`, but only exact topics are served")
	}
	for word := range strings.SplitSeq(topic, ".") {
		if word == "" {
			return invalid("topic", "has an empty word")
		}
	}
	return nil
}

// reserved tells whether a topic belongs to the bridge itself.
func reserved(topic string) bool {
	switch topic {
	case "execute", "agent.spawn", "agent.result":
		return true
	}
	return strings.HasPrefix(topic, "node.")
}
