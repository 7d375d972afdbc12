package blob

import (
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestStored(t *testing.T) {
	hash := strings.Repeat("a1", 32)
	storedtest.Check(t, storedtest.Format[manifest]{
		Message: &storev1.Manifest{},
		Rich:    func(m *manifest) { m.chunks = nil },
		Apart:   []string{"Manifest.chunks"},
		Encode:  manifest.encode,
		Decode:  decodeManifest,
	})
	storedtest.Check(t, storedtest.Format[Entry]{
		Message: &storev1.BlobEntry{},
		Rich: func(e *Entry) {
			e.Ref, e.StepID, e.Aliases[0] = hash, step.ID(5), "home"
		},
		Encode: func(e Entry) []byte {
			number, _ := step.ParseID(e.StepID)
			return e.encode(refHash(e.Ref), number)
		},
		Decode: func(value []byte) (Entry, error) { return decodeEntry("home", value) },
	})
	storedtest.Check(t, storedtest.Format[Usage]{Message: &storev1.BlobUsage{}, Encode: Usage.encode, Decode: decodeUsage})
	storedtest.Check(t, storedtest.Format[time.Time]{Message: &storev1.Collected{}, Encode: encodeCollected, Decode: decodeCollected})
	storedtest.Check(t, storedtest.Format[Collected]{
		Message: &storev1.CollectionAnswer{},
		Rich:    func(d *Collected) { d.Refs = []string{hash, strings.Repeat("b2", 32)} },
		Encode:  encodeAnswer,
		Decode:  func(value []byte) (Collected, error) { return decodeAnswer(value), nil },
	})
}

func TestStoredChunks(t *testing.T) {
	storedtest.Check(t, storedtest.Format[manifest]{
		Name:    "OfChunks",
		Message: &storev1.Manifest{},
		Rich:    func(m *manifest) { m.frame, m.size = nil, ChunkBytes+1 },
		Apart:   []string{"Manifest.frame"},
		Encode:  manifest.encode,
		Decode:  decodeManifest,
	})
}
