package record_test

import (
	"bytes"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/record"
)

// FuzzParseLine wants no panic on garbage, and what is accepted to be what it is read as
// when it is written again.
func FuzzParseLine(f *testing.F) {
	f.Add([]byte(`{"id":"a","version":2,"text":"t <&> \u2028","key":"k","kind":"fact","create_time":"2026-01-02T03:04:05.000001Z","update_time":"2026-01-03T03:04:05Z","expire_time":"2027-01-01T00:00:00Z","sliding_ttl":"1h0m0s","metadata":{"n":12345678901234567890},"tags":["a","b"],"importance":0.1,"superseded_by":"b","superseded_time":"2026-01-04T00:00:00Z","derived_from":["c"],"origin":"web","review":"held","tier":4,"pinned":true,"embedding_space":"s","embedding":[0.1,-3e-7]}`))
	f.Add([]byte(`{"earlier":true,"id":"a","version":1,"text":"t","kind":"fact","create_time":"2026-01-02T03:04:05Z","importance":0,"origin":"user","tier":1}`))
	f.Add([]byte(`{"id":"a"}{"id":"b"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := record.ParseLine(text)
		if err != nil {
			return
		}
		first, err := l.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := record.ParseLine(first)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		second, err := again.Encode()
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s\n%s\n%v", first, second, err)
		}
		stored, err := record.Decode(record.EncodeWhole(l.Record))
		if err != nil {
			t.Fatal(err)
		}
		third, err := record.Line{Record: stored, Earlier: l.Earlier, KeyGone: l.KeyGone}.Encode()
		if err != nil || !bytes.Equal(first, third) {
			t.Errorf("stored and read\n%s\n%s\n%v", first, third, err)
		}
	})
}
