package egress

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// parts gives a text in parts of some lengths.
type parts struct {
	text  string
	sizes []byte
}

func (p *parts) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	n := 1
	if len(p.sizes) > 0 {
		n, p.sizes = int(p.sizes[0])%7+1, p.sizes[1:]
	}
	n = copy(b, p.text[:min(n, len(p.text))])
	p.text = p.text[n:]
	return n, nil
}

func (p *parts) Close() error { return nil }

// However an answer comes in parts, its secrets are gone and its length and all else stay.
func FuzzMasker(f *testing.F) {
	f.Add("xxsecretvaluesecretvalue", []byte{1, 2, 3})
	f.Add("secretvalu", []byte{9})
	f.Add("secretsecretvalueother-secret", []byte{})
	f.Fuzz(func(t *testing.T, text string, sizes []byte) {
		patterns := [][]byte{[]byte("other-secret"), []byte("secretvalue")}
		got, err := io.ReadAll(newMasker(&parts{text, sizes}, patterns))
		want := []byte(text)
		mask(want, patterns)
		if err != nil || !bytes.Equal(got, want) || len(got) != len(text) || bytes.Contains(got, patterns[0]) || bytes.Contains(got, patterns[1]) {
			t.Errorf("%q in parts %v gave %q, %v", text, sizes, got, err)
		}
	})
}

// Long answers go through in one piece.
func TestMaskerLong(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for text.Len() < 1<<20 {
		text.WriteString([]string{"secretvalue", "secret", "value", "x", "secretvalu"}[r.IntN(5)])
	}
	patterns := [][]byte{[]byte("secretvalue")}
	got, err := io.ReadAll(newMasker(io.NopCloser(strings.NewReader(text.String())), patterns))
	want := []byte(text.String())
	mask(want, patterns)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes came as %d, %v", len(want), len(got), err)
	}
}
