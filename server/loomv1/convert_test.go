package loomv1

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
)

// What an agent sends reaches another one with every field as it was.
func TestEventRoundTrip(t *testing.T) {
	for name, sent := range map[string]*loomv1pb.Event{
		"everything": {
			Id: "e1", Type: "price", TimestampMs: 12, Source: "python", Metadata: map[string]string{"own": "x", "trace_id": "abc"},
			Payload: []byte{0xff, 0, '{'}, Confidence: 0.5, Tags: []string{"a", "a", ""}, Priority: 99,
		},
		"zeros stay zeros": {Id: "e2"},
		"odd numbers":      {Id: "e3", TimestampMs: -1, Confidence: -7, Priority: -1},
	} {
		t.Run(name, func(t *testing.T) {
			got := messageOf(eventOf("work.new", sent, stampTime), "")
			for key, value := range sent.GetMetadata() {
				if got.GetMetadata()[key] != value {
					t.Errorf("metadata %q is %q, want %q", key, got.GetMetadata()[key], value)
				}
			}
			ignore := protocmp.IgnoreFields(&loomv1pb.Event{}, "metadata")
			if diff := cmp.Diff(sent, got, protocmp.Transform(), ignore); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEventWithoutIDGetsOne(t *testing.T) {
	a, b := eventOf("t", &loomv1pb.Event{}, stampTime), eventOf("t", &loomv1pb.Event{}, stampTime)
	if a.ID == "" || a.ID == b.ID || a.Headers["thread_id"] != a.ID {
		t.Errorf("ids %q and %q, thread %q", a.ID, b.ID, a.Headers["thread_id"])
	}
}

// An event of the native API comes with what loom-py expects, so that an agent
// can answer it.
func TestNativeEvent(t *testing.T) {
	at := time.UnixMilli(1_772_366_400_123).UTC()
	got := messageOf(events.Event{
		ID: "n1", Topic: "work.new", Source: "researcher", Time: at, Sequence: 4,
		Payload: []byte(`{"a":1}`), Headers: map[string]string{"own": "x"},
	}, "")
	want := &loomv1pb.Event{
		Id: "n1", Type: "event", TimestampMs: at.UnixMilli(), Source: "researcher", Payload: []byte(`{"a":1}`),
		Confidence: 1, Priority: 50, Metadata: map[string]string{
			"own": "x", "loom.sender": "researcher", "sender": "researcher", "reply_to": "agent.researcher.replies",
			"thread_id": "n1", "correlation_id": "n1", "loom.topic": "work.new", "ttl": "16", "hop": "0", "ts": "1772366400123",
		},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

// What a native event says of itself is kept.
func TestNativeEventKeepsItsOwn(t *testing.T) {
	e := events.Event{
		ID: "n1", Topic: "work.new", Source: "researcher", Type: "price", SentMillis: 5, Confidence: 0.25, Priority: 7,
		Tags: []string{"a"}, Headers: map[string]string{"loom.sender": "other", "correlation_id": "q1"},
	}
	got := messageOf(e, "")
	if got.GetType() != "price" || got.GetTimestampMs() != 5 || got.GetConfidence() != 0.25 || got.GetPriority() != 7 || len(got.GetTags()) != 1 {
		t.Errorf("got %v", got)
	}
	if m := got.GetMetadata(); m["loom.sender"] != "other" || m["correlation_id"] != "q1" || m["reply_to"] != "agent.other.replies" {
		t.Errorf("metadata %v", m)
	}
	if len(e.Headers) != 2 {
		t.Errorf("the event's own headers changed: %v", e.Headers)
	}
}

// Whatever a native caller writes into the headers, no number that is none
// reaches an agent: it would end the agent's stream.
func TestCraftedStamp(t *testing.T) {
	whole := map[string]string{
		"loom.topic": "work.new", "thread_id": "t", "reply_to": "r", "ttl": "16", "hop": "0", "ts": "5", "own": "x",
	}
	for key, text := range map[string]string{
		"ttl": "soon", "ttl_ms": "5s", "loom.ttl_ms": "x", "hop": "1.5", "ts": "now",
	} {
		alone := map[string]string{"loom.topic": "work.new", key: text}
		full := maps.Clone(whole)
		full[key] = text
		for _, headers := range []map[string]string{alone, full} {
			before := maps.Clone(headers)
			e := events.Event{ID: "n1", Topic: "work.new", Source: "s", Headers: headers}
			got := messageOf(e, "").GetMetadata()
			if value, ok := got[key]; ok && !isNumber(value) {
				t.Errorf("%v: %s is %q", before, key, value)
			}
			if got["ttl"] != "16" && key != "ttl" || got["own"] != before["own"] {
				t.Errorf("%v became %v", before, got)
			}
			if diff := cmp.Diff(before, headers); diff != "" {
				t.Errorf("the event's own headers changed: %s", diff)
			}
		}
	}
}

// A topic alone makes no native event one of this API.
func TestClaimedStamp(t *testing.T) {
	e := events.Event{ID: "n1", Topic: "work.new", Source: "s", Headers: map[string]string{"loom.topic": "work.new"}}
	if got := messageOf(e, ""); got.GetType() != "event" || got.GetMetadata()["reply_to"] != "agent.s.replies" {
		t.Errorf("got %v", got)
	}
}

// A topic in the headers that is not that of the event is not believed.
func TestClaimedTopic(t *testing.T) {
	headers := map[string]string{"loom.topic": "other"}
	if got := messageOf(events.Event{Topic: "work.new", Headers: headers}, "").GetMetadata()["loom.topic"]; got != "work.new" {
		t.Errorf("topic %q", got)
	}
	if headers["loom.topic"] != "other" {
		t.Error("the event's own headers changed")
	}
}
