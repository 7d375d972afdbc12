package server

import (
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

func FuzzBadText(f *testing.F) {
	f.Add([]byte("\x0a\x03a\xffb"))
	f.Add([]byte("\x12\x05\x0a\x03a\xffb"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d := (&loombridgev1.AppendMessagesRequest{}).ProtoReflect().Descriptor()
		if path, found := badText(d, raw, maxTextDepth); found && path == "" {
			t.Errorf("found without a path in %x", raw)
		}
	})
}
