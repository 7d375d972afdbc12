package store

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestStored(t *testing.T) {
	storedtest.Check(t, storedtest.Format[storedEvent]{
		Message: &storev1.Event{},
		Apart:   []string{"Event.apart", "Event.parts", "Event.bytes"},
		Encode:  func(e storedEvent) []byte { return appendRequest(encodeEvent(e.Event, true), e.requestID) },
		Decode:  decodeEvent,
	})
	storedtest.Check(t, storedtest.Format[Record]{Message: &storev1.Topic{}, Encode: encodeTopic, Decode: decodeTopic})
	storedtest.Check(t, storedtest.Format[Event]{
		Message: &storev1.EmitAnswer{},
		Encode:  encodeAnswer,
		Decode: func(value []byte) (e Event, err error) {
			err = decodeAnswer(value, &e)
			return e, err
		},
	})
}
