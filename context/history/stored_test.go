package history

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestStored(t *testing.T) {
	storedtest.Check(t, storedtest.Format[Fold]{
		Message: &storev1.Fold{},
		Rich: func(f *Fold) {
			f.Spans, f.Digest, f.Level = []Span{{3, 4}, {7, 9}}, "\x0a\x01a", 2
		},
		Encode: func(f Fold) []byte { return AppendFold(nil, f) },
		Decode: DecodeFold,
	})
	storedtest.Check(t, storedtest.Format[*digest]{
		Message: &storev1.Digest{},
		Encode: func(d *digest) []byte {
			if d == nil {
				d = newDigest()
			}
			return d.encode()
		},
		Decode: decodeDigest,
	})
}
