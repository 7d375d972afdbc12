package record

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func fullRecord() Record {
	at := time.Date(1969, 12, 31, 23, 59, 59, 999999000, time.UTC)
	return Record{
		ID: "id", Text: "text", Key: "key", Kind: "kind", SessionID: "session", Author: "author",
		EventTime: time.Unix(0, 0).UTC(), CreateTime: at, ExpireTime: at.AddDate(8000, 0, 0),
		Metadata: json.RawMessage(`{"a": 1}`), Tags: []string{"a", "b"}, Importance: 0.1,
		Supersedes: "old", SupersededBy: "new", DerivedFrom: []string{"x", "y"},
		Origin: OriginWeb, Tier: 4, EmbeddingSpace: "space", Document: Document{Ordinal: 1<<32 - 1, Place: 9, Marked: true},
		Version: 300, UpdateTime: at, Pinned: true, Archived: true, SlidingTTL: 1500 * time.Millisecond,
		SupersededTime: time.UnixMicro(1).UTC(),
	}
}

func TestRecordRoundTrip(t *testing.T) {
	want := fullRecord()
	got, err := Decode(Encode(want))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	at := time.UnixMicro(7).UTC()
	got, err = Decode(AppendSuperseded(Encode(want), "newer", at))
	if err != nil || got.SupersededBy != "newer" || !got.SupersededTime.Equal(at) {
		t.Errorf("superseded by %q at %v, %v", got.SupersededBy, got.SupersededTime, err)
	}
}

// TestVectorInsideRecord: the vectors of records that an older version wrote are
// read where they are, and written nowhere else by the record.
func TestVectorInsideRecord(t *testing.T) {
	want := fullRecord()
	want.Embedding = []float32{1.5, -2}
	got, err := Decode(EncodeWhole(want))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if !bytes.Equal(Encode(want), Encode(fullRecord())) {
		t.Error("the record holds its vector")
	}
}

func TestRecordOfLaterFormatIsRefused(t *testing.T) {
	later := append(Encode(fullRecord()), 8, recordFormat+1)
	if _, err := Decode(later); !errors.Is(err, ErrNewer) {
		t.Errorf("got %v", err)
	}
	// A field that is not known is none of its business.
	grown := append(Encode(fullRecord()), 0xfa, 0x3f, 1, 'x')
	if _, err := Decode(grown); err != nil {
		t.Errorf("unknown field: %v", err)
	}
}

// TestRecordBytes holds the format: these bytes were written once, and every
// later version must read them.
func TestRecordBytes(t *testing.T) {
	stored := "\x08\x01\x10\x07\x1a\x01a\x22\x05apple\x32\x04fact" +
		"\x51\x00\x40\x5e\x43\x62\x10\x05\x00\x71\x00\x00\x00\x00\x00\x00\xe0\x3f\x90\x01\x02\x98\x01\x04"
	want := Record{
		ID: "a", Text: "apple", Kind: "fact", Importance: 0.5, Origin: OriginAgent, Tier: LongTerm, Version: 1,
		CreateTime: time.UnixMicro(0x0005106243_5e4000).UTC(), Document: Document{Ordinal: 7},
	}
	got, err := Decode([]byte(stored))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if again := Encode(want); string(again) != stored {
		t.Errorf("written as %q, want %q", again, stored)
	}
}

// TestAllFieldsBytes holds the form of every field, and of a kept answer.
func TestAllFieldsBytes(t *testing.T) {
	for _, tt := range []struct {
		name string
		got  []byte
		want string
	}{
		{"record", Encode(fullRecord()), "0801" + "10ffffffff0f" + "1a026964" + "220474657874" + "2a036b6579" + "32046b696e64" + "3a0773657373696f6e" + "4206617574686f72" + "490000000000000000" + "51ffffffffffffffff" + "59ff7f3b910be78003" + "62087b2261223a20317d" + "6a0161" + "6a0162" + "719a9999999999b93f" + "7a036f6c64" + "8201036e6577" + "8a010178" + "8a010179" + "900104" + "980104" + "aa01057370616365" +
			"b001ac02" + "b901ffffffffffffffff" + "c00101" + "c80101" + "d001e0c65b" + "d9010100000000000000" + "e00101" + "e80109"},
		{"vector", EncodeWhole(Record{Embedding: []float32{1.5, -2}}), "0801710000000000000000" + "a201080000c03f000000c0"},
		{"change", EncodeChangeAnswer(fullRecord()), "0a02696419ff7f3b910be7800320ac022a036e6577310100000000000000"},
		{"nothing", Encode(Record{Tags: []string{""}}), "08016a00710000000000000000"},
		{"answer", EncodeAnswer(fullRecord()), "0a02696411ffffffffffffffff19ff7f3b910be78003"},
	} {
		if got := hex.EncodeToString(tt.got); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(Encode(fullRecord()))
	f.Add([]byte{8, 1, 0x1a, 1, 'x'})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Decode(b)
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
				t.Fatal(err)
			}
			return
		}
		if math.IsNaN(r.Importance) {
			return
		}
		again := Encode(r)
		r2, err := Decode(again)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(Encode(r2), again) {
			t.Fatalf("not the same again: %+v, %+v", r, r2)
		}
	})
}

func TestCanonicalNumber(t *testing.T) {
	for want, spellings := range map[string][]string{
		"0":                      {"0", "-0", "0.00", "0e5", "-0.0E-7"},
		"1e0":                    {"1", "1.0", "10e-1", "0.1e1", "1E+0"},
		"-25e-1":                 {"-2.5", "-2.50", "-25e-1"},
		"1e2":                    {"100", "1e2", "100.0"},
		"9007199254740993e0":     {"9007199254740993", "9007199254740993.0"},
		"1e99999999999999999999": {"1e99999999999999999999", "10e99999999999999999998"},
	} {
		for _, text := range spellings {
			if got := CanonicalNumber(text); got != want {
				t.Errorf("%s: got %s, want %s", text, got, want)
			}
		}
	}
}

func FuzzMetadata(f *testing.F) {
	f.Add([]byte(`{"a":{"b":[1,{"c":true}]},"d":"x","e":-1.5e3,"f":null}`))
	f.Add([]byte(`{"a":1}{"b":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		terms, err := MetadataTerms(b)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		if len(b) > 0 && !json.Valid(b) {
			t.Fatalf("took %q", b)
		}
		for _, term := range terms {
			if term == "" || term[0] == 0xff {
				t.Fatalf("term %q", term)
			}
		}
	})
}
