package session

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
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
	literal := false
	config := Config{
		Policy: PolicyPreset, Preset: "design", Literal: &literal, Prices: history.Prices{Input: 1.5, CachedInput: 2, CacheWrite: 0.75},
		ExpectedTurns: 7, ResultTokens: 300, Model: "o3", MaxTokens: 8192,
	}
	taken := &undoneChange{before: 2, entries: 3, superseded: []uint64{1, 301}, batch: 5, through: 9}
	state := foldState{
		version: 300, live: []uint64{1, 3, 5, 155}, marks: map[string]history.Mark{"b": {Seen: 2}, "a": {Older: 1, Bare: 4, Omitted: 5, Whole: 6}},
		batch: 5, through: 9, since: 11, change: 12,
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
		{"message that is pinned", appendEntry(nil, Entry{Message: &Message{Role: User, Pinned: true, Observation: true}}), "08011a060802" + "3801" + "4001"},
		{"message of a developer", appendEntry(nil, Entry{Message: &Message{Role: Developer, ExtraJSON: []byte("{}")}}), "08011a080801" + "4a027b7d" + "5001"},
		{"head", encodeHead(head{last: 300}), "08ac02"},
		{"head of an ended session", encodeHead(head{last: 300, ended: true}), "08ac02" + "1001"},
		{"settings", encodeConfig(config), "0a0670726573657412066465736967" + "6e" + "1800" + "21000000000000f83f" + "290000000000000040" + "31000000000000e83f" + "3807" + "40ac02" + "4a026f33" + "5080" + "40"},
		{"no settings", encodeConfig(Config{}), ""},
		{"anchor", encodeAnchor(tokens.Anchor{Model: "o3", ID: "p", Local: 7, Real: 300, Answer: 1}), "0a026f33" + "120170" + "1807" + "20ac02" + "2801"},
		{"journal, a fold", encodeJournalEntry(journalEntry{kind: kindFold, time: at, body: []byte("b"), change: taken}), "0801" + "108280f28183898506" + "1a0162" + "220d" + "0802" + "1003" + "1a0301ac02" + "2005" + "2809"},
		{"journal, a later fold of its batch", encodeJournalEntry(journalEntry{kind: kindFold, time: at, body: []byte("b")}), "0801" + "108280f28183898506" + "1a0162"},
		{"journal, a mark", encodeJournalEntry(journalEntry{kind: kindMark, body: encodeMark("chat", history.Mark{Older: 3, Seen: 8}), change: &undoneChange{entries: 1, mark: &history.Mark{Older: 1}}}), "0802" + "1a0a" + "0a0463686174" + "1003" + "1808" + "2206" + "1001" + "3202" + "1001"},
		{"journal, an undo", encodeJournalEntry(journalEntry{kind: kindUndo, body: encodeCounter(300)}), "0803" + "1a03" + "08ac02"},
		{"folds", encodeState(state), "0802" + "10ac02" + "1a05010202" + "9601" + "220b" + "0a0161" + "1001" + "2004" + "2805" + "3006" + "2205" + "0a0162" + "1802" + "2805" + "3009" + "380b" + "400c"},
		{"no folds", encodeState(foldState{}), "0801"},
		{"undone", encodeUndone(Undone{Batch: 3, Refs: []string{"step_001", ""}}), "0803" + "1208737465705f303031" + "1200"},
		{"positions", encodePositions([]uint64{1, 300}), "080108ac02"},
	} {
		if got := hex.EncodeToString(tt.got); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}
