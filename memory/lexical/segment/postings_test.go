package segment

import (
	"slices"
	"testing"
)

// Both ways of unpacking a block agree, whatever its bytes.
func FuzzFrequencies(f *testing.F) {
	for _, steps := range [][]uint32{{1}, {1, 1, 1}, {5, 127, 128, 1 << 20}, {1 << 31}} {
		ordinal, postings := uint32(9), []Posting(nil)
		for i, step := range steps {
			ordinal += step
			postings = append(postings, Posting{ordinal, PackFrequency(uint32(i*40), uint32(i%2*200))})
		}
		packed := appendPostings(nil, frequency, 9, postings)
		f.Add(packed, uint32(9))
	}
	f.Fuzz(func(t *testing.T, packed []byte, base uint32) {
		r := parser{bytes: packed}
		b := readBlock(&r, frequency, base)
		if r.bad {
			return
		}
		want, wantErr := b.Decode(nil)
		got, gotErr := b.Frequencies(nil)
		if (wantErr == nil) != (gotErr == nil) || !slices.Equal(want, got) {
			t.Errorf("%x: %v, %v; decode gives %v, %v", packed, got, gotErr, want, wantErr)
		}
	})
}
