package record

import (
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestStored(t *testing.T) {
	storedtest.Check(t, storedtest.Format[Record]{
		Message: &storev1.Record{},
		Rich:    func(r *Record) { r.Embedding, r.SlidingTTL = nil, time.Minute },
		Apart:   []string{"Record.vector"},
		Encode:  Encode,
		Decode:  Decode,
	})
	answer := func(value []byte) (Record, error) { return Record{}.WithAnswer(value) }
	storedtest.Check(t, storedtest.Format[Record]{
		Message: &storev1.RecordAnswer{},
		Apart:   []string{"RecordAnswer.superseded_by", "RecordAnswer.superseded_time", "RecordAnswer.records"},
		Encode:  func(r Record) []byte { return EncodeRepeated(r, .75) },
		Decode:  answer,
	})
}

func TestStoredChangeAnswer(t *testing.T) {
	storedtest.Check(t, storedtest.Format[Record]{
		Name:    "OfChange",
		Message: &storev1.RecordAnswer{},
		Apart: []string{
			"RecordAnswer.create_time", "RecordAnswer.records", "RecordAnswer.repeats", "RecordAnswer.similarity", "RecordAnswer.review",
		},
		Encode: EncodeChangeAnswer,
		Decode: func(value []byte) (Record, error) { return Record{}.WithAnswer(value) },
	})
}
