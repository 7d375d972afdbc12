package wire_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// What every stored value is made of never changes.
func TestBytes(t *testing.T) {
	for _, tt := range []struct {
		name string
		got  []byte
		want string
	}{
		{"uint", wire.AppendUint(nil, 1, 300), "08ac02"},
		{"uint of zero", wire.AppendUint(nil, 1, 0), ""},
		{"largest uint", wire.AppendUint(nil, 1, math.MaxUint64), "08ffffffffffffffffff01"},
		{"large field number", wire.AppendUint(nil, 1000, 1), "c03e01"},
		{"number", wire.AppendNumber(nil, 2, 300), "10ac02"},
		{"number of zero", wire.AppendNumber(nil, 2, 0), "1000"},
		{"int", wire.AppendInt(nil, 3, 1), "1802"},
		{"negative int", wire.AppendInt(nil, 3, -1), "1801"},
		{"int of zero", wire.AppendInt(nil, 3, 0), ""},
		{"time", wire.AppendTime(nil, 4, time.Unix(0, 1999)), "2002"},
		{"time before 1970", wire.AppendTime(nil, 4, time.Unix(-1, 0)), "20ff887a"},
		{"time in another zone", wire.AppendTime(nil, 4, time.Unix(0, 1000).In(time.FixedZone("", 3600))), "2002"},
		{"time of 1970", wire.AppendTime(nil, 4, time.Unix(0, 0)), "2000"},
		{"time unset", wire.AppendTime(nil, 4, time.Time{}), ""},
		{"fixed64", wire.AppendFixed64(nil, 5, 0x0102), "290201000000000000"},
		{"fixed64 of zero", wire.AppendFixed64(nil, 5, 0), "290000000000000000"},
		{"text", wire.AppendText(nil, 6, "é"), "3202c3a9"},
		{"text in bytes", wire.AppendText(nil, 6, json.RawMessage("{}")), "32027b7d"},
		{"text of nothing", wire.AppendText(nil, 6, ""), ""},
		{"item", wire.AppendItem(nil, 7, "a"), "3a0161"},
		{"item of nothing", wire.AppendItem(nil, 7, []byte(nil)), "3a00"},
		{"size", wire.AppendSize(nil, 7, 300), "3aac02"},
		{"behind what is there", wire.AppendUint([]byte{0xff}, 1, 1), "ff0801"},
	} {
		if got := hex.EncodeToString(tt.got); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	at := time.UnixMicro(-7).UTC()
	var b []byte
	b = wire.AppendUint(b, 1, 300)
	b = wire.AppendInt(b, 2, -7)
	b = wire.AppendFixed64(b, 3, 1<<40)
	b = wire.AppendText(b, 4, "text")
	b = wire.AppendItem(b, 5, []byte{})
	b = wire.AppendNumber(b, 5, 0)
	b = wire.AppendTime(b, 6, at)
	b = append(wire.AppendSize(b, 7, 2), "ab"...)
	got := collect(t, b)
	want := []wire.Field{
		{Number: 1, Value: 300},
		{Number: 2, Value: 13},
		{Number: 3, Value: 1 << 40},
		{Number: 4, Bytes: []byte("text")},
		{Number: 5, Bytes: []byte{}},
		{Number: 5},
		{Number: 6, Value: 13},
		{Number: 7, Bytes: []byte("ab")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("fields (-want +got):\n%s", diff)
	}
	if got[1].Int() != -7 {
		t.Errorf("Int: got %d, want -7", got[1].Int())
	}
	if got[6].Time() != at {
		t.Errorf("Time: got %v, want %v", got[6].Time(), at)
	}
}

func collect(tb testing.TB, message []byte) (fields []wire.Field) {
	tb.Helper()
	for f, err := range wire.Fields(message) {
		if err != nil {
			tb.Fatal(err)
		}
		fields = append(fields, f)
	}
	return fields
}

// A message may be read more than once, in part as well.
func TestLeavingTheLoop(t *testing.T) {
	fields := wire.Fields(wire.AppendUint(wire.AppendUint(nil, 1, 1), 2, 2))
	for range 2 {
		for f, err := range fields {
			if f.Number != 1 || err != nil {
				t.Errorf("got %+v, %v", f, err)
			}
			break
		}
	}
	if got := collect(t, nil); got != nil {
		t.Errorf("nothing has the fields %+v", got)
	}
}

// A later version may write any form of field there is.
func TestFormsThatNothingWrites(t *testing.T) {
	b := protowire.AppendTag(nil, 9, protowire.StartGroupType)
	b = wire.AppendText(b, 1, "within the group")
	b = protowire.AppendTag(b, 9, protowire.EndGroupType)
	b = protowire.AppendFixed32(protowire.AppendTag(b, 8, protowire.Fixed32Type), 7)
	b = wire.AppendUint(b, 1, 5)
	want := []wire.Field{{Number: 8, Value: 7}, {Number: 1, Value: 5}}
	if diff := cmp.Diff(want, collect(t, b)); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestMalformed(t *testing.T) {
	for name, message := range map[string]string{
		"number zero":         "\x00",
		"no value":            "\x08",
		"endless varint":      "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"short bytes":         "\x12\x02a",
		"size out of range":   "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"short fixed32":       "\x0d\x00\x00\x00",
		"short fixed64":       "\x09\x00",
		"group without end":   "\x0b\x08\x01",
		"end without a group": "\x0c",
		"unknown form":        "\x0e\x01",
	} {
		fields, failed := 0, 0
		for f, err := range wire.Fields(append([]byte("\x08\x01"), message...)) {
			switch {
			case err == nil:
				fields++
			case errors.Is(err, wire.ErrMalformed) && f.Number == 0:
				failed++
			default:
				t.Errorf("%s: %v", name, err)
			}
		}
		if fields != 1 || failed != 1 {
			t.Errorf("%s: %d fields and %d errors, want one of each", name, fields, failed)
		}
	}
}

// Writing into room that is there and reading cost no memory.
func TestAllocations(t *testing.T) {
	room := make([]byte, 0, 64)
	at := time.UnixMicro(5)
	sum := 0
	if n := testing.AllocsPerRun(100, func() {
		b := wire.AppendUint(room, 1, 300)
		b = wire.AppendTime(b, 2, at)
		b = wire.AppendText(b, 3, "text")
		b = wire.AppendItem(b, 4, room)
		for f, err := range wire.Fields(b) {
			if err == nil {
				sum += f.Number
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
	if sum == 0 {
		t.Error("no field was read")
	}
}

// FuzzFields: garbage never panics and stays as it is, and what is read from it
// can be written and read again.
func FuzzFields(f *testing.F) {
	f.Add([]byte{0x08, 0x01})
	f.Add([]byte{0x0b})
	f.Add([]byte{0x12, 0xff})
	f.Add(wire.AppendFixed64(wire.AppendTime(wire.AppendItem(nil, 1, "a"), 2, time.Unix(9, 0)), 3, 4))
	f.Fuzz(func(t *testing.T, message []byte) {
		before := bytes.Clone(message)
		var fields []wire.Field
		var again []byte
		for f, err := range wire.Fields(message) {
			if err != nil {
				if !errors.Is(err, wire.ErrMalformed) {
					t.Fatal(err)
				}
				break
			}
			fields = append(fields, f)
			if f.Bytes != nil {
				again = wire.AppendItem(again, f.Number, f.Bytes)
			} else {
				again = wire.AppendNumber(again, f.Number, f.Value)
			}
		}
		if !bytes.Equal(message, before) {
			t.Fatal("reading changed the message")
		}
		if diff := cmp.Diff(fields, collect(t, again)); diff != "" {
			t.Fatalf("fields (-want +got):\n%s", diff)
		}
	})
}

// FuzzRoundTrip: whatever is appended is read as it was.
func FuzzRoundTrip(f *testing.F) {
	f.Add(uint32(0), uint64(300), int64(-7), "text", int64(1))
	f.Fuzz(func(t *testing.T, number uint32, u uint64, i int64, text string, micros int64) {
		n, at := 1+int(number%uint32(protowire.MaxValidNumber)), time.UnixMicro(micros).UTC()
		if at.UnixMicro() != micros || at.IsZero() {
			return
		}
		b := wire.AppendNumber(nil, n, u)
		b = wire.AppendNumber(b, n, protowire.EncodeZigZag(i))
		b = wire.AppendItem(b, n, text)
		b = wire.AppendTime(b, n, at)
		b = wire.AppendFixed64(b, n, u)
		got := collect(t, b)
		want := []wire.Field{
			{Number: n, Value: u},
			{Number: n, Value: protowire.EncodeZigZag(i)},
			{Number: n, Bytes: []byte(text)},
			{Number: n, Value: protowire.EncodeZigZag(micros)},
			{Number: n, Value: u},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("fields (-want +got):\n%s", diff)
		}
		if got[1].Int() != i || !got[3].Time().Equal(at) {
			t.Errorf("got %d and %v, want %d and %v", got[1].Int(), got[3].Time(), i, at)
		}
	})
}
