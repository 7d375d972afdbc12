package loomv1

import (
	"cmp"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/topics"
)

// Keys of an event's metadata. A bare key is what the bridge writes; loom-py
// writes the ones that begin with "loom." and reads them first. The trace triple
// (trace_id, span_id, trace_flags) is the sender's alone.
const (
	keyThreadID      = "thread_id"
	keyCorrelationID = "correlation_id"
	keySender        = "sender"
	keyReplyTo       = "reply_to"
	keyTTL           = "ttl"
	keyHop           = "hop"
	keyTime          = "ts"
	keyTTLMillis     = "ttl_ms"
	// ownPrefix begins the keys that loom-py writes.
	ownPrefix = "loom."
	// keyTopic holds the concrete topic; the topic of a delivery is the pattern
	// that was subscribed.
	keyTopic = ownPrefix + "topic"
)

// inEnvelope reports whether a key is one that the bridge may write.
func inEnvelope(key string) bool {
	switch strings.TrimPrefix(key, ownPrefix) {
	case keyThreadID, keyCorrelationID, keySender, keyReplyTo, keyTTL, keyHop, keyTime, keyTTLMillis, "topic":
		return true
	}
	return false
}

// Values of the envelope where the sender gave none.
const (
	defaultTTL = "16" // hops left
	defaultHop = "0"  // hops made
)

// stamp returns the metadata that an event is delivered with: the sender's own,
// and where it left a bare key of the envelope out, the value that follows from
// the rest. The metadata passed in stays as it is.
//
// With loom.sender, the event can be answered at the sender's mailbox, and only
// there does loom-py wait for answers. Its correlation id is then that of the
// event, which is what the sender waits for; the sender itself must not see it,
// see echo.
func stamp(metadata map[string]string, topic, id string, now time.Time) map[string]string {
	m := make(map[string]string, len(metadata)+8)
	for key, value := range metadata {
		m[key] = value
	}
	sender, correlation := m[ownPrefix+keySender], cmp.Or(m[keyThreadID], id)
	fill(m, keyThreadID, id)
	if thread := m[keyThreadID]; sender == "" {
		fill(m, keyCorrelationID, thread)
		fill(m, keyReplyTo, "thread."+thread+".reply")
	} else {
		fill(m, keyCorrelationID, correlation)
		fill(m, keyReplyTo, topics.Mailbox(sender))
	}
	if m[keySender] == "" {
		m[keySender] = sender // loom-py does not distinguish an empty sender from a missing one
	}
	stampNumbers(m, now)
	m[keyTopic] = topic
	return m
}

// fill gives a bare key without a value that of its loom. key, else fallback.
func fill(m map[string]string, key, fallback string) {
	if m[key] == "" {
		m[key] = cmp.Or(m[ownPrefix+key], fallback)
	}
}

// echo returns the metadata of an event for its own sender, without a correlation
// id that the sender did not give: one that hears its own request would take it
// for the answer. For anybody else it returns the metadata as it is.
func echo(m map[string]string, id, recipient string) map[string]string {
	correlation := m[keyCorrelationID]
	given := m[ownPrefix+keyCorrelationID] != "" || correlation != id && correlation != m[keyThreadID]
	if recipient == "" || m[ownPrefix+keySender] != recipient || given {
		return m
	}
	m = maps.Clone(m)
	delete(m, keyCorrelationID)
	return m
}

// stampNumbers makes every numeric field of the envelope a valid number: loom-py's receiver
// ends its stream on an invalid time to live, so one sender could cut off all its
// listeners.
func stampNumbers(m map[string]string, now time.Time) {
	setUnlessNumber(m, keyTTL, defaultTTL)
	setUnlessNumber(m, keyHop, defaultHop)
	setUnlessNumber(m, keyTime, strconv.FormatInt(now.UnixMilli(), 10))
	for _, key := range [...]string{keyTTLMillis, ownPrefix + keyTTLMillis} {
		if value, ok := m[key]; ok && !isNumber(value) {
			delete(m, key)
		}
	}
}

// isStamped reports whether metadata has all that stamp always writes.
func isStamped(m map[string]string) bool {
	for _, key := range [...]string{keyTopic, keyThreadID, keyReplyTo, keyTTL, keyHop, keyTime} {
		if m[key] == "" {
			return false
		}
	}
	return true
}

// numbersStand reports whether stampNumbers would change nothing.
func numbersStand(m map[string]string) bool {
	for _, key := range [...]string{keyTTLMillis, ownPrefix + keyTTLMillis} {
		if value, ok := m[key]; ok && !isNumber(value) {
			return false
		}
	}
	return isNumber(m[keyTTL]) && isNumber(m[keyHop]) && isNumber(m[keyTime])
}

func setUnlessNumber(m map[string]string, key, value string) {
	if !isNumber(m[key]) {
		m[key] = value
	}
}

func isNumber(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil
}
