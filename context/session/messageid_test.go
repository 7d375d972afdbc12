package session_test

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/context/session"
)

func TestMessageIDs(t *testing.T) {
	for position, id := range map[uint64]string{1: "message_001", 17: "message_017", 999: "message_999", 1000: "message_1000", 1<<64 - 1: "message_18446744073709551615"} {
		if got := session.MessageID(position); got != id {
			t.Errorf("%d: got %s, want %s", position, got, id)
		}
		if got, ok := session.ParseMessageID(id); !ok || got != position {
			t.Errorf("%s: got %d, %v", id, got, ok)
		}
	}
	for _, id := range []string{
		"", "message_", "message_1", "message_0001", "message_000", "message_-01", "message_+01", "message_1e3", "message_00x",
		"message_18446744073709551616", "Message_001", "step_001", " message_001", "message_001 ", "message_001\x00",
	} {
		if got, ok := session.ParseMessageID(id); ok {
			t.Errorf("%q is position %d", id, got)
		}
	}
}
