package loomv1

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
)

func encoded(tb testing.TB, messages ...proto.Message) []byte {
	tb.Helper()
	var raw []byte
	for _, m := range messages {
		b, err := proto.Marshal(m)
		if err != nil {
			tb.Fatal(err)
		}
		raw = append(raw, b...)
	}
	return raw
}

func TestOversized(t *testing.T) {
	publish := &loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Publish{Publish: &loomv1pb.Publish{Topic: "t"}}}
	result := &loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_ToolResult{ToolResult: &loomv1pb.ToolResult{Output: "x", Id: "call"}}}
	long := &loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_ToolResult{ToolResult: &loomv1pb.ToolResult{Id: strings.Repeat("x", 2000)}}}
	ping := &loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Ping{Ping: &loomv1pb.HeartbeatRequest{TimestampMs: 1}}}
	for name, tt := range map[string]struct {
		raw      []byte
		event    string
		id, text string
	}{
		"publish":            {encoded(t, publish), "event of 5 bytes exceeds the limit of 3", "", ""},
		"result":             {encoded(t, result), "", "call", "Execution failed: result of 11 bytes exceeds the limit of 3"},
		"both, the last one": {encoded(t, result, publish), "event of 16 bytes exceeds the limit of 3", "", ""},
		"an id of any size":  {encoded(t, long), "", "", "Execution failed: result of 2006 bytes exceeds the limit of 3"},
		"ping":               {encoded(t, ping), "", "", ""},
		"nothing":            {nil, "", "", ""},
		"garbage":            {append(encoded(t, publish), 0xff), "", "", ""},
	} {
		got := Oversized(tt.raw, TooLarge(len(tt.raw), 3))
		if (got == nil) != (tt.event == "" && tt.text == "") {
			t.Errorf("%s: got %v", name, got)
		}
		if refused := oversizeOf(got.GetPublish()); (refused == nil) != (tt.event == "") || refused != nil && refused.message != tt.event {
			t.Errorf("%s: got %v", name, refused)
		}
		if r := got.GetToolResult(); r.GetId() != tt.id || r.GetError().GetMessage() != tt.text {
			t.Errorf("%s: got %v", name, r)
		}
	}
}

func FuzzOversized(f *testing.F) {
	f.Add([]byte{0x0a, 0x00})
	f.Add([]byte{0x22, 0x03, 0x0a, 0x01, 'x'})
	f.Fuzz(func(t *testing.T, raw []byte) {
		event := &loomv1pb.ClientEvent{}
		got := Oversized(raw, TooLarge(len(raw), 3))
		if proto.Unmarshal(raw, event) != nil || got == nil {
			return
		}
		if (event.GetToolResult() != nil) != (got.GetToolResult() != nil) || (event.GetPublish() != nil) != (got.GetPublish() != nil) {
			t.Errorf("got %v of %v", got, event)
		}
	})
}
