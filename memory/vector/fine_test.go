package vector

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Estimates from fine codes lie within the margin that they name.
func TestFineEstimates(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	for _, dimension := range []int{1, 64, 384, 1000} {
		lean := randomVector(rng, dimension)
		var rotated [][]float32
		for range 300 {
			v := randomVector(rng, dimension)
			for j := range v {
				v[j] += lean[j]
			}
			rotated = append(rotated, rotate(unit(v)))
		}
		b := newBlock(make([]uint32, len(rotated)), rotated)
		worst, most := 0.0, float32(0)
		for _, q := range rotated[:20] {
			base := product(q, b.centre)
			for i, v := range rotated {
				estimate, margin := b.fine.estimate(i, base, q)
				worst = max(worst, math.Abs(float64(estimate-product(q, v)))/float64(margin))
				most = max(most, margin)
			}
		}
		t.Logf("dimension %d: errors reach %.2f of the margins, which reach %.5f", dimension, worst, most)
		if worst > 1.05 {
			t.Errorf("dimension %d: an error is %.2f of its margin", dimension, worst)
		}
		if dimension >= 384 && most > 0.003 {
			t.Errorf("dimension %d: a margin is %f", dimension, most)
		}
	}
}

// A vector that is its block's centre, as one alone is, has no difference.
func TestFineCodeOfOne(t *testing.T) {
	v := rotate(unit([]float32{3, 4}))
	b := newBlock([]uint32{1}, [][]float32{v})
	if got, margin := b.fine.estimate(0, product(v, b.centre), v); math.Abs(float64(got)-1) > 1e-6 || margin > 1e-5 {
		t.Errorf("estimate is %f give or take %f, want 1", got, margin)
	}
}

func FuzzFineCodes(f *testing.F) {
	rng := rand.New(rand.NewPCG(6, 1))
	b := newBlock([]uint32{7, 9}, [][]float32{rotate(unit(randomVector(rng, 8))), rotate(unit(randomVector(rng, 8)))})
	f.Add(b.fine.encode())
	f.Add([]byte{1, 2})
	query := rotate(unit([]float32{1, 2, 3, 4, 5, 6, 7, 8}))
	f.Fuzz(func(t *testing.T, stored []byte) {
		fine, err := decodeFineCodes(stored, 8, 2)
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
				t.Fatalf("error is %v", err)
			}
			return
		}
		again, err := decodeFineCodes(fine.encode(), 8, 2)
		if err != nil || !cmp.Equal(fine, again, cmp.AllowUnexported(fineCodes{})) {
			t.Fatalf("%x came back as %x, %v", stored, again.encode(), err)
		}
		for i := range 2 {
			if x, _ := fine.estimate(i, 0, query); math.Abs(float64(x)) > 8*maxFineStep*fineZero {
				t.Fatalf("estimate is %f", x)
			}
		}
	})
}

func BenchmarkFineEstimate(b *testing.B) {
	block, q := benchBlock(2048)
	var sum float32
	for i := 0; b.Loop(); i = (i + 3) % 2048 {
		x, _ := block.fine.estimate(i, 0.5, q)
		sum += x
	}
}
