package events

import (
	"bytes"
	"encoding/hex"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// The stored bytes never change: they are what memory/FORMAT.md says.
func TestStoredBytes(t *testing.T) {
	e := Event{
		ID: "id", Source: "src", SessionID: "ses", Time: time.UnixMicro(1).UTC(),
		PayloadKind: Bytes, Payload: []byte("pay"), Headers: map[string]string{"b": "2", "a": "1"},
	}
	for _, tt := range []struct {
		name string
		got  []byte
		want string
	}{
		{"event", encodeEvent(e, true), "0a026964" + "1203737263" + "1a03736573" + "2002" + "2801" + "3203706179" + "3a060a0161120131" + "3a060a0162120132"},
		{"event without payload", encodeEvent(e, false), "0a026964" + "1203737263" + "1a03736573" + "2002" + "2801" + "4001" + "3a060a0161120131" + "3a060a0162120132"},
		{"event of nothing", encodeEvent(Event{}, true), "20ffffddf2dfffdfdc01"},
		{"time zero of the format", encodeEvent(Event{Time: time.UnixMicro(0)}, true), ""},
		{"topic", encodeTopic(300), "08ac02"},
		{"answer", encodeAnswer(Event{ID: "id", Sequence: 7, Time: e.Time}), "0a026964" + "1007" + "1802"},
		{"event key", sequenceKey(topicRef("t", "x").Scope, eventTag, 258), "7400" + "747800" + "65" + "0000000000000102"},
		{"payload key", sequenceKey(topicRef("t", "x").Scope, payloadTag, 1), "7400" + "747800" + "70" + "0000000000000001"},
		{"topic key", topicKey(topicRef("t", "x").Scope), "7400" + "747800" + "6d"},
	} {
		if got := hex.EncodeToString(tt.got); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// A later version may add fields; this one passes over them.
func TestUnknownFieldsAreSkipped(t *testing.T) {
	e := Event{ID: "id", Time: time.UnixMicro(5).UTC(), Payload: []byte("1")}
	b := encodeEvent(e, true)
	b = protowire.AppendVarint(protowire.AppendTag(b, 99, protowire.VarintType), 7)
	b = protowire.AppendFixed64(protowire.AppendTag(b, 100, protowire.Fixed64Type), 7)
	b = protowire.AppendString(protowire.AppendTag(b, 101, protowire.BytesType), "x")
	got, elsewhere, err := decodeEvent(b)
	if diff := cmp.Diff(e, got); err != nil || elsewhere || diff != "" {
		t.Errorf("%v, elsewhere %v:\n%s", err, elsewhere, diff)
	}
}

// The largest event there may be fits its values.
func TestLargestEventFits(t *testing.T) {
	e := Event{Payload: make([]byte, MaxPayloadBytes), Headers: map[string]string{"k": string(make([]byte, MaxHeadersBytes-1))}}
	for _, field := range []struct {
		text *string
		size int
	}{{&e.ID, MaxIDBytes}, {&e.Source, MaxSourceBytes}, {&e.SessionID, MaxSessionBytes}} {
		*field.text = string(make([]byte, field.size))
	}
	if n := len(encodeEvent(e, false)); n > kv.MaxValueBytes {
		t.Errorf("the event takes %d bytes", n)
	}
	if len(e.Payload) > kv.MaxValueBytes {
		t.Errorf("the payload takes %d bytes", len(e.Payload))
	}
}

func FuzzEventRoundTrip(f *testing.F) {
	f.Add("id", "source", "session", int64(1), []byte("{}"), uint8(0), "key", "value")
	f.Add("", "", "", int64(0), []byte(nil), uint8(1), "", "")
	f.Fuzz(func(t *testing.T, id, source, session string, micros int64, payload []byte, kind uint8, key, value string) {
		e := Event{ID: id, Source: source, SessionID: session, Payload: payload, PayloadKind: Kind(kind)}
		if micros != 0 { // the zero of the format is the zero time
			e.Time = time.UnixMicro(micros).UTC()
		}
		if key != "" {
			e.Headers = map[string]string{key: value}
		}
		for _, withPayload := range []bool{true, false} {
			got, elsewhere, err := decodeEvent(encodeEvent(e, withPayload))
			want := e
			if !withPayload {
				want.Payload = nil
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || elsewhere == withPayload || diff != "" {
				t.Errorf("%v, elsewhere %v:\n%s", err, elsewhere, diff)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(encodeEvent(Event{ID: "id", Payload: []byte("x"), Headers: map[string]string{"a": "b"}}, true))
	f.Add(encodeAnswer(Event{ID: "id", Sequence: 1, Time: time.UnixMicro(9)}))
	f.Add(encodeTopic(1 << 60))
	f.Add([]byte{0x3a, 0x05, 0x0a})
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		if e, elsewhere, err := decodeEvent(b); err == nil {
			if _, _, err := decodeEvent(encodeEvent(e, !elsewhere)); err != nil {
				t.Errorf("encoded again it can't be read: %v", err)
			}
		}
		var e Event
		_ = decodeAnswer(b, &e)
		_, _ = decodeTopic(b)
		_, _ = sequenceOf(b)
		if !bytes.Equal(b, before) {
			t.Error("decoding changed its input")
		}
	})
}
