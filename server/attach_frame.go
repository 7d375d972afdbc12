package server

import (
	"log/slog"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/unread"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// frame is an already encoded message. Streams carry mostly events and answers to
// publishes; encoding them field by field takes two allocations each, and all receivers
// share a large payload.
type frame struct {
	head []byte
	tail []byte // continues head; may belong to others
}

func (f *frame) size() int { return len(f.head) + len(f.tail) }

// Marshal passes frames through.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if a, ok := v.(*unread.Delivery); ok {
		return c.marshalAnswer(a)
	}
	f, ok := v.(*frame)
	switch {
	case !ok:
		return c.marshalMessage(v)
	case len(f.tail) == 0:
		return mem.BufferSlice{mem.SliceBuffer(f.head)}, nil
	}
	return mem.BufferSlice{mem.SliceBuffer(f.head), mem.SliceBuffer(f.tail)}, nil
}

// Numbers of the fields that are written here; a test reads them back with the
// generated code.
const (
	responseEvent   = 2 // AttachResponse.event, SubscribeResponse.event
	responseDropped = 3 // AttachResponse.dropped, SubscribeResponse.dropped_volatile
	responseAnswer  = 4 // AttachResponse.answer

	answerRef     = 1
	answerEmitted = 3

	emittedID       = 1
	emittedSequence = 2
	emittedTime     = 3

	eventID           = 1
	eventTopic        = 2
	eventSequence     = 3
	eventSource       = 4
	eventSession      = 5
	eventTime         = 6
	eventPayload      = 7
	eventPayloadJSON  = 8
	eventPayloadBytes = 9
	eventHeaders      = 10
	eventType         = 11
	eventTags         = 12

	mapKey   = 1
	mapValue = 2

	timeSeconds = 1
	timeNanos   = 2
)

const (
	// sharePayload is from which size on a payload is not copied into its
	// frame: copying less is cheaper than a second buffer.
	sharePayload = 4 * kib
	// keepScratch bounds what a stream keeps to write its next frame into.
	keepScratch = 16 * kib
	// envelopeBytes is enough for the tags and lengths around an event.
	envelopeBytes = 32
)

// framer makes the frames of one stream. It is for one goroutine.
type framer struct {
	asText  bool
	limit   int // of a frame's bytes; 0 for none
	log     *slog.Logger
	scratch []byte
	out     frame
}

// event is an AttachResponse with an event, and just so a SubscribeResponse. The frame is
// good until the next one.
func (w *framer) event(d events.Delivery) *frame {
	body, tail := w.body(d.Event)
	b := make([]byte, 0, envelopeBytes+len(body))
	// Before the event, so that the payload stays last.
	b = appendNumber(b, responseDropped, d.Dropped)
	b = appendHeader(b, responseEvent, len(body)+len(tail))
	return w.frame(append(b, body...), tail)
}

// emitted is an AttachResponse that answers a publish. The frame is good until
// the next one.
func (w *framer) emitted(a streamAnswer) *frame {
	b := appendText(w.scratch[:0], emittedID, a.id)
	b = appendNumber(b, emittedSequence, int64(a.sequence))
	b = appendTime(b, emittedTime, a.time)
	w.keep(b)
	size := sizeNumber(answerRef, a.ref) + protowire.SizeTag(answerEmitted) + protowire.SizeBytes(len(b))
	out := make([]byte, 0, envelopeBytes+len(b))
	out = appendHeader(out, responseAnswer, size)
	out = appendNumber(out, answerRef, a.ref)
	out = appendHeader(out, answerEmitted, len(b))
	return w.frame(append(out, b...), nil)
}

// fits reports whether clients take the last frame, which holds e. An event that
// they do not is to be left out: it would end the stream, and again whenever
// its reader comes back.
func (w *framer) fits(e events.Event) bool {
	if w.limit == 0 || w.out.size() <= w.limit {
		return true
	}
	w.log.Warn("event too large to send", "topic", validate.Printable(e.Topic), "sequence", e.Sequence, "bytes", w.out.size())
	return false
}

func (w *framer) frame(head, tail []byte) *frame {
	w.out = frame{head, tail}
	return &w.out
}

// keep remembers the scratch, unless it has grown large.
func (w *framer) keep(b []byte) {
	w.scratch = nil
	if cap(b) <= keepScratch {
		w.scratch = b
	}
}

// body writes an Event with its payload last: a large one apart, as tail.
func (w *framer) body(e events.Event) (body, tail []byte) {
	b := appendText(w.scratch[:0], eventID, e.ID)
	b = appendText(b, eventTopic, e.Topic)
	b = appendNumber(b, eventSequence, int64(e.Sequence))
	b = appendText(b, eventSource, e.Source)
	b = appendText(b, eventSession, e.SessionID)
	b = appendTime(b, eventTime, e.Time)
	for key, value := range e.Headers {
		b = appendPair(b, eventHeaders, key, value)
	}
	b = appendText(b, eventType, e.Type)
	for _, tag := range e.Tags {
		b = protowire.AppendString(protowire.AppendTag(b, eventTags, protowire.BytesType), tag)
	}
	b, tail = appendPayload(b, e, w.asText)
	w.keep(b)
	return b, tail
}

// appendPayload falls back to text for JSON that a Value would blow up beyond
// what clients take: one event must not end a stream, again and again.
func appendPayload(b []byte, e events.Event, asText bool) (body, tail []byte) {
	number := protowire.Number(eventPayloadJSON)
	if e.PayloadKind == events.Bytes {
		number = eventPayloadBytes
	} else if value, ok := convert.PleasantValue(e.Payload, asText); ok {
		if encoded, err := proto.Marshal(value); err == nil {
			return protowire.AppendBytes(protowire.AppendTag(b, eventPayload, protowire.BytesType), encoded), nil
		}
	}
	b = appendHeader(b, number, len(e.Payload))
	if len(e.Payload) >= sharePayload {
		return b, e.Payload
	}
	return append(b, e.Payload...), nil
}

// appendHeader begins a field of so many bytes.
func appendHeader(b []byte, number protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.BytesType), uint64(size))
}

// appendText leaves out what is empty, as proto3 does.
func appendText(b []byte, number protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), s)
}

func appendNumber(b []byte, number protowire.Number, n int64) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(n))
}

func sizeNumber(number protowire.Number, n int64) int {
	if n == 0 {
		return 0
	}
	return protowire.SizeTag(number) + protowire.SizeVarint(uint64(n))
}

func appendTime(b []byte, number protowire.Number, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	seconds, nanos := t.Unix(), int64(t.Nanosecond())
	b = appendHeader(b, number, sizeNumber(timeSeconds, seconds)+sizeNumber(timeNanos, nanos))
	return appendNumber(appendNumber(b, timeSeconds, seconds), timeNanos, nanos)
}

func appendPair(b []byte, number protowire.Number, key, value string) []byte {
	size := protowire.SizeTag(mapKey) + protowire.SizeBytes(len(key)) + protowire.SizeTag(mapValue) + protowire.SizeBytes(len(value))
	b = appendHeader(b, number, size)
	b = protowire.AppendString(protowire.AppendTag(b, mapKey, protowire.BytesType), key)
	return protowire.AppendString(protowire.AppendTag(b, mapValue, protowire.BytesType), value)
}
