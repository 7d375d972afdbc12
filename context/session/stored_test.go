package session

import (
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestStored(t *testing.T) {
	type place struct {
		session  string
		position uint64
	}
	storedtest.Check(t, storedtest.Format[uint64]{Message: &storev1.Counter{}, Encode: encodeCounter, Decode: decodeCounter})
	storedtest.Check(t, storedtest.Format[head]{Message: &storev1.SessionHead{}, Encode: encodeHead, Decode: decodeHead})
	storedtest.Check(t, storedtest.Format[place]{
		Message: &storev1.Place{},
		Encode:  func(p place) []byte { return encodePlace(p.session, p.position) },
		Decode: func(value []byte) (p place, err error) {
			p.session, p.position, err = decodePlace(value)
			return p, err
		},
	})
	storedtest.Check(t, storedtest.Format[[]uint64]{Message: &storev1.MessagesAnswer{}, Encode: encodePositions, Decode: decodePositions})
	storedtest.Check(t, storedtest.Format[Undone]{Message: &storev1.UndoAnswer{}, Encode: encodeUndone, Decode: decodeUndone})
	storedtest.Check(t, storedtest.Format[Message]{
		Message: &storev1.Message{},
		Rich:    func(m *Message) { m.Role = Developer },
		Encode:  func(m Message) []byte { return EncodeMessage(&m) },
		Decode: func(value []byte) (Message, error) {
			m, err := DecodeMessage(value)
			if err != nil {
				return Message{}, err
			}
			return *m, nil
		},
	})
	storedtest.Check(t, storedtest.Format[Entry]{
		Message: &storev1.LogEntry{},
		Rich:    func(e *Entry) { e.Step = nil },
		Apart:   []string{"LogEntry.position", "LogEntry.step"},
		Encode: func(e Entry) []byte {
			if e.Message == nil {
				e.Message = &Message{}
			}
			return appendEntry(nil, e)
		},
		Decode: decodeEntry,
	})
	storedtest.Check(t, storedtest.Format[Task]{
		Message: &storev1.Task{},
		Encode:  func(t Task) []byte { return appendTask(nil, &t) },
		Decode: func(value []byte) (Task, error) {
			task, _, err := decodeTask(wire.Marshal(&storev1.LogEntry{Kind: kindTask, Body: value}))
			return task, err
		},
	})
	storedtest.Check(t, storedtest.Format[Tally]{
		Message: &storev1.Tally{},
		Rich:    func(t *Tally) { t.Second, t.Third = 4, 5 },
		Encode:  encodeTally,
		Decode:  decodeTally,
	})
	storedtest.Check(t, storedtest.Format[foldState]{Message: &storev1.FoldState{}, Encode: encodeState, Decode: decodeState})
	storedtest.Check(t, storedtest.Format[journalEntry]{
		Message: &storev1.JournalEntry{},
		Rich:    func(e *journalEntry) { e.kind = kindUndo },
		Apart:   []string{"Mark.preset"},
		Encode:  encodeJournalEntry,
		Decode:  decodeJournalEntry,
	})
	storedtest.Check(t, storedtest.Format[Config]{
		Message: &storev1.SessionSettings{},
		Rich:    func(c *Config) { c.Prompt = &settings.Prompt{Layout: settings.ReAct} },
		Apart:   []string{"SessionSettings.time"},
		Encode:  encodeConfig,
		Decode:  decodeConfig,
	})
	storedtest.Check(t, storedtest.Format[tokens.Anchor]{Message: &storev1.Anchor{}, Encode: encodeAnchor, Decode: decodeAnchor})
	storedtest.Check(t, storedtest.Format[Intent]{
		Message: &storev1.Intent{},
		Encode:  encodeIntent,
		Decode: func(value []byte) (Intent, error) {
			scope := kv.AgentScope("t", "a")
			return readIntent(kv.Pair{Key: intentKey(intents.Part(scope), scope, "id"), Value: value})
		},
	})
}

func TestStoredTask(t *testing.T) {
	type written struct {
		task Task
		time time.Time
	}
	storedtest.Check(t, storedtest.Format[written]{
		Name:    "OfTask",
		Message: &storev1.LogEntry{},
		Encode:  func(w written) []byte { return encodeTask(w.task, w.time) },
		Decode: func(value []byte) (w written, err error) {
			w.task, w.time, err = decodeTask(value)
			return w, err
		},
	})
}
