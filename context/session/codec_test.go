package session

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func seedEntries() []Entry {
	at := time.UnixMicro(1700000000000001).UTC()
	return []Entry{
		{Time: at, Message: &Message{Role: User, Content: "hello", Name: "ann"}},
		{Time: at, Message: &Message{Role: Assistant, ToolCalls: []ToolCall{{ID: "c", Name: "n", Arguments: "{}"}}}},
		{Time: at, Message: &Message{Role: Tool, BlocksJSON: []byte("[]"), ToolCallID: "c", Pinned: true}},
		{Time: at, Message: &Message{Role: User, Content: "seen", Observation: true}},
		{Time: at, Message: &Message{Role: Developer, Content: "rules", ExtraJSON: []byte(`{"a":1}`)}},
		{Time: at, Message: &Message{Role: Assistant, ToolCalls: []ToolCall{{ID: "a", Name: "b", Extra: `{"index":0}`}}}},
		{Time: at, Step: &step.Step{Number: 3, ToolName: "x", MinimalArgs: []byte("{}"), Time: at}},
	}
}

func TestEntriesComeBack(t *testing.T) {
	for _, e := range seedEntries() {
		got, err := decodeEntry(appendEntry(nil, e))
		if err != nil {
			t.Errorf("%+v: %v", e, err)
			continue
		}
		if diff := cmp.Diff(e.Message, got.Message, cmp.Transformer("string", func(b []byte) string { return string(b) })); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// FuzzDecodeEntry: garbage never panics, and what decodes encodes to what
// decodes to the same.
func FuzzDecodeEntry(f *testing.F) {
	for _, e := range seedEntries() {
		f.Add(appendEntry(nil, e))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		e, err := decodeEntry(value)
		if err != nil {
			return
		}
		if (e.Message == nil) == (e.Step == nil) {
			t.Fatalf("%x became %+v", value, e)
		}
		again, err := decodeEntry(appendEntry(nil, e))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, again, cmp.Transformer("string", func(b []byte) string { return string(b) })); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzDecodeIntent(f *testing.F) {
	key := []byte("t\x00yintents#7\x00iaalice\x00\x01id")
	f.Add(key, encodeIntent(Intent{Tool: "x", MinimalArgs: []byte("{}"), Digest: [32]byte{1}, Time: time.UnixMicro(5)}))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		in, err := readIntent(kv.Pair{Key: key, Value: value})
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		again, err := readIntent(kv.Pair{Key: key, Value: encodeIntent(in)})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(in, again, cmp.Transformer("string", func(b []byte) string { return string(b) })); diff != "" {
			t.Fatal(diff)
		}
	})
}

// FuzzSmallValues: the little values of the log, none of which may panic.
func FuzzSmallValues(f *testing.F) {
	f.Add(encodeCounter(7))
	f.Add(encodePlace("s", 300))
	f.Add(encodePositions([]uint64{1, 2, 300}))
	f.Fuzz(func(t *testing.T, value []byte) {
		if last, err := decodeCounter(value); err == nil {
			if again, err := decodeCounter(encodeCounter(last)); err != nil || again != last {
				t.Fatalf("counter %d became %d, %v", last, again, err)
			}
		}
		if session, position, err := decodePlace(value); err == nil {
			s, p, err := decodePlace(encodePlace(session, position))
			if err != nil || s != session || p != position {
				t.Fatalf("place %q %d became %q %d, %v", session, position, s, p, err)
			}
		}
		_, _ = decodePositions(value)
	})
}
