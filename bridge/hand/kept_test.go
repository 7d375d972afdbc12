package hand

import (
	"encoding/hex"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/blob"
)

// The stored bytes never change: they are what memory/FORMAT.md says.
func TestKeptBytes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		number uint64
		answer Answer
		want   string
	}{
		{"full", 300, Answer{Output: []byte(`{}`), Truncated: true, Blob: &blob.Entry{Path: "p"}}, "08ac0212027b7d1801220170"},
		{"bare", 0, Answer{}, "0800"},
		{"empty but there", 1, Answer{Output: []byte{}, Blob: &blob.Entry{}}, "080112002200"},
	} {
		if got := hex.EncodeToString(encodeKept(tt.number, tt.answer)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestKeptAnswersSkipUnknownFields(t *testing.T) {
	value := append(encodeKept(7, Answer{Output: []byte(`{}`), Truncated: true, Blob: &blob.Entry{Path: "p"}}), 0x7a, 1, 'x', 0x80, 0x01, 5)
	number, got, err := decodeKept(value)
	want := Answer{Output: []byte(`{}`), Truncated: true, Blob: &blob.Entry{Path: "p"}}
	if diff := cmp.Diff(want, got); diff != "" || number != 7 || err != nil {
		t.Errorf("number %d, error %v (-want +got):\n%s", number, err, diff)
	}
}

func FuzzDecodeKept(f *testing.F) {
	f.Add(encodeKept(1, Answer{}))
	f.Add(encodeKept(1<<40, Answer{Output: []byte(`{"a":1}`), Truncated: true, Blob: &blob.Entry{Path: "workspace/outputs/x"}}))
	f.Add([]byte{0x12, 0xff})
	f.Fuzz(func(t *testing.T, value []byte) {
		number, answer, err := decodeKept(value)
		if err != nil {
			return
		}
		number2, answer2, err := decodeKept(encodeKept(number, answer))
		if diff := cmp.Diff(answer, answer2); err != nil || number != number2 || diff != "" {
			t.Fatalf("round trip: %d and %d, %v (-want +got):\n%s", number, number2, err, diff)
		}
	})
}

func FuzzTextFit(f *testing.F) {
	f.Add([]byte("plain"), 3)
	f.Add([]byte("\x00\"\\\u2028é\xff"), 9)
	f.Fuzz(func(t *testing.T, text []byte, limit int) {
		limit = max(limit, 0)
		fit := textFit(text, limit)
		if fit < 0 || fit > len(text) {
			t.Fatalf("%d of %d bytes", fit, len(text))
		}
		encoded, err := compact(string(text[:fit]))
		// Bytes that are no UTF-8 become longer; outputs with such bytes are not
		// shown.
		if valid := utf8.Valid(text); err != nil || valid && len(encoded)-2 > limit && !hasInvalid(text[:fit]) {
			t.Fatalf("%q needs %d bytes of %d, %v", text[:fit], len(encoded)-2, limit, err)
		}
	})
}

func hasInvalid(text []byte) bool {
	for _, r := range string(text) {
		if r == '\uFFFD' {
			return true
		}
	}
	return false
}
