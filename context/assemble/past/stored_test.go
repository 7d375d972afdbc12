package past

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestStored(t *testing.T) {
	storedtest.Check(t, storedtest.Format[Kept]{
		Message: &storev1.PromptRecord{},
		Encode:  func(p Kept) []byte { return encodeRecord(&p, p.Tools) },
		Decode: func(value []byte) (Kept, error) {
			p, err := decodeRecord(value)
			if err != nil {
				return Kept{}, err
			}
			return *p, nil
		},
	})
	storedtest.Check(t, storedtest.Format[[]generation]{Message: &storev1.Generations{}, Encode: encodeState, Decode: decodeState})
	storedtest.Check(t, storedtest.Format[part]{
		Message: &storev1.Recipe{},
		Apart:   []string{"Recipe.recipes"},
		Encode: func(p part) []byte {
			return wire.Marshal(&storev1.Recipe{Messages: []*storev1.RecipeMessage{partOf(&p.Message, p.text[:])}})
		},
		Decode: func(value []byte) (part, error) {
			var m storev1.Recipe
			err := read(value, &m)
			return newPart(m.Messages[0]), err
		},
	})
}
