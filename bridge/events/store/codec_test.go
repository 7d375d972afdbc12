package store

import (
	"bytes"
	"context"
	"encoding/hex"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
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
		{"event of loom.v1", encodeEvent(Event{
			Time: time.UnixMicro(0), Type: "ty", Tags: []string{"t", ""}, Priority: -1, Confidence: 1, SentMillis: 3,
		}, true), "5a027479" + "620174" + "6200" + "6801" + "70808080fc03" + "7806"},
		{"topic", encodeTopic(Record{Last: 300, First: 1}), "08ac02"},
		{"topic that was swept", encodeTopic(Record{Last: 300, First: 3, Bytes: 5, LastTime: time.UnixMicro(2), Oldest: time.UnixMicro(1)}), "08ac02" + "1003" + "1805" + "2004" + "2802"},
		{"request id", appendRequest(nil, "r"), "82010172"},
		{"answer", encodeAnswer(Event{ID: "id", Sequence: 7, Time: e.Time}), "0a026964" + "1007" + "1802"},
		{"event key", sequenceKey(Ref("t", "x").Scope, eventTag, 258), "7400" + "747800" + "65" + "0000000000000102"},
		{"payload key", sequenceKey(Ref("t", "x").Scope, payloadTag, 1), "7400" + "747800" + "70" + "0000000000000001"},
		{"part key", partKey(Ref("t", "x").Scope, 1, 2), "7400" + "747800" + "70" + "0000000000000001" + "0002"},
		{"topic key", topicKey(Ref("t", "x").Scope), "7400" + "747800" + "6d"},
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
	got, err := decodeEvent(b)
	if diff := cmp.Diff(e, got.Event); err != nil || got.elsewhere || diff != "" {
		t.Errorf("%v, elsewhere %v:\n%s", err, got.elsewhere, diff)
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
	f.Add("id", "source", "session", int64(1), []byte("{}"), uint8(0), "key", "value", "type", "tag", int32(-5), float32(0.5), int64(9))
	f.Add("", "", "", int64(0), []byte(nil), uint8(1), "", "", "", "", int32(0), float32(0), int64(0))
	f.Fuzz(func(t *testing.T, id, source, session string, micros int64, payload []byte, kind uint8, key, value, sort, tag string, priority int32, confidence float32, sent int64) {
		e := Event{
			ID: id, Source: source, SessionID: session, Payload: payload, PayloadKind: PayloadKind(kind),
			Type: sort, Tags: []string{tag, ""}, Priority: priority, Confidence: confidence, SentMillis: sent,
		}
		if confidence != confidence { // what is not a number equals nothing
			e.Confidence = 0
		}
		if micros != 0 { // the zero of the format is the zero time
			e.Time = time.UnixMicro(micros).UTC()
		}
		if key != "" {
			e.Headers = map[string]string{key: value}
		}
		for _, withPayload := range []bool{true, false} {
			got, err := decodeEvent(encodeEvent(e, withPayload))
			want := e
			if !withPayload {
				want.Payload = nil
			}
			if diff := cmp.Diff(want, got.Event, cmpopts.EquateEmpty()); err != nil || got.elsewhere == withPayload || diff != "" {
				t.Errorf("%v, elsewhere %v:\n%s", err, got.elsewhere, diff)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(encodeEvent(Event{ID: "id", Payload: []byte("x"), Headers: map[string]string{"a": "b"}}, true))
	f.Add(encodeAnswer(Event{ID: "id", Sequence: 1, Time: time.UnixMicro(9)}))
	f.Add(encodeTopic(Record{Last: 1 << 60, First: 7, Bytes: 9, LastTime: time.UnixMicro(9)}))
	f.Add([]byte{0x3a, 0x05, 0x0a})
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		if e, err := decodeEvent(b); err == nil {
			if _, err := decodeEvent(encodeEvent(e.Event, !e.elsewhere)); err != nil {
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

// Whatever an event holds, it comes back from the keys it is written to, and
// what is counted is what is written.
func TestStagedEventsComeBack(t *testing.T) {
	engine := memkv.New(nil)
	defer func() { _ = engine.Close() }()
	writer := kv.NewWriter(engine, nil)
	ref := Ref("default", "t")
	for i, e := range []Event{
		{Payload: make([]byte, MaxPayloadBytes)},
		{Payload: make([]byte, MaxPayloadBytes), Headers: map[string]string{"k": string(make([]byte, MaxHeadersBytes))}},
		{Payload: make([]byte, MaxPayloadBytes+1)},
		{Payload: make([]byte, MaxLegacyEventBytes)},
		{Headers: map[string]string{"k": string(make([]byte, 2*MaxPayloadBytes))}, Tags: []string{string(make([]byte, MaxPayloadBytes))}},
	} {
		e.Sequence, e.Topic, e.ID, e.Time = uint64(i+1), "t", "id", time.UnixMicro(7).UTC()
		var counted, written int64
		err := writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{ref}, Stage: func(_ context.Context, tx *kv.Tx) error {
			counted = stageEvent(tx, ref.Scope, e, "request")
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		for _, tag := range []byte{eventTag, payloadTag} {
			for pair, err := range engine.Scan(t.Context(), kv.Events, kv.Prefix(sequenceKey(ref.Scope, tag, e.Sequence))) {
				if err != nil {
					t.Fatal(err)
				}
				written += int64(len(pair.Value))
			}
		}
		page, err := Page(t.Context(), engine, ref.Scope, e.Sequence, Limit{})
		if err != nil || len(page) != 1 || counted != written {
			t.Fatalf("event %d: %d of %d bytes counted, %v", i, counted, written, err)
		}
		if diff := cmp.Diff(e, page[0], cmp.Comparer(bytes.Equal)); diff != "" {
			t.Errorf("event %d differs:\n%.500s", i, diff)
		}
	}
}
