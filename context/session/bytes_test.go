package session

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/context/step"
)

// The stored bytes never change: they are what memory/FORMAT.md says.
func TestStoredBytes(t *testing.T) {
	at := time.UnixMicro(1700000000000001).UTC()
	message := &Message{
		Role: Assistant, Content: "hi", BlocksJSON: []byte("[]"), Name: "ann", ToolCallID: "d",
		ToolCalls: []ToolCall{{ID: "c", Name: "n", Arguments: "{}"}, {}},
	}
	intent := Intent{
		SessionID: "s", Tool: "fs:x", CalledAs: "x", MinimalArgs: []byte("{}"), Thought: "hm",
		TurnID: "t", CallID: "c", RequestID: "r", Digest: [32]byte{1}, Time: at,
	}
	for _, tt := range []struct {
		name string
		got  []byte
		want string
	}{
		{"message", appendEntry(nil, Entry{Time: at, Message: message}), "0801" + "108280f28183898506" + "1a200803120268691a025b5d2203616e6e2a0a0a016312016e1a027b7d2a00320164"},
		{"message without a time", appendEntry(nil, Entry{Message: &Message{Role: User}}), "08011a020802"},
		{"time zero of the format", appendEntry(nil, Entry{Time: time.UnixMicro(0), Message: &Message{Role: User}}), "080110001a020802"},
		{"step", appendEntry(nil, Entry{Time: at, Step: &step.Step{Number: 300, ToolName: "x"}}), "0802108280f281838985061a0608ac021a0178"},
		{"intent", encodeIntent(intent), "0a0173" + "120466733a78" + "1a0178" + "22027b7d" + "2a02686d" + "320174" + "3a0163" + "420172" + "4a200100000000000000000000000000000000000000000000000000000000000000" + "508280f28183898506"},
		{"counter", encodeCounter(300), "08ac02"},
		{"counter at zero", encodeCounter(0), "0800"},
		{"place", encodePlace("s", 300), "0a017310ac02"},
		{"positions", encodePositions([]uint64{1, 300}), "080108ac02"},
	} {
		if got := hex.EncodeToString(tt.got); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}
