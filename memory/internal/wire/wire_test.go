package wire_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/memory/internal/wire"
)

func TestRoundTrip(t *testing.T) {
	var b []byte
	b = wire.AppendUint(b, 1, 0)
	b = wire.AppendUint(b, 1, 300)
	b = wire.AppendInt(b, 2, -7)
	b = wire.AppendFixed64(b, 3, 1<<40)
	b = wire.AppendText(b, 4, "")
	b = wire.AppendText(b, 4, "text")
	b = wire.AppendItem(b, 5, []byte{})
	var got []wire.Field
	for f, err := range wire.Fields(b) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Number == 2 && f.Int() != -7 {
			t.Errorf("Int: got %d, want -7", f.Int())
		}
		got = append(got, f)
	}
	want := []wire.Field{
		{Number: 1, Value: 300},
		{Number: 2, Value: 13},
		{Number: 3, Value: 1 << 40},
		{Number: 4, Bytes: []byte("text")},
		{Number: 5, Bytes: []byte{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func FuzzFields(f *testing.F) {
	f.Add([]byte{0x08, 0x01})
	f.Add([]byte{0x0b})
	f.Add([]byte{0x12, 0xff})
	f.Fuzz(func(t *testing.T, message []byte) {
		for _, err := range wire.Fields(message) {
			if err != nil && !errors.Is(err, wire.ErrMalformed) {
				t.Fatal(err)
			}
		}
	})
}
