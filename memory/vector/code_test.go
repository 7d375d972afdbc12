package vector

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func randomVector(rng *rand.Rand, dimension int) []float32 {
	v := make([]float32, dimension)
	for j := range v {
		v[j] = float32(rng.NormFloat64())
	}
	return v
}

// A turn keeps angles and lengths, and makes one number as large as another.
func TestTurn(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, dimension := range []int{1, 3, 64, 100, 384, 768, 1024, 1536, 4096} {
		a, b := unit(randomVector(rng, dimension)), unit(randomVector(rng, dimension))
		x, y := rotate(a), rotate(b)
		if got := len(x); got != paddedLength(dimension) || got%64 != 0 {
			t.Errorf("dimension %d has %d numbers when rotated", dimension, got)
		}
		if before, after := product(a, b), product(x, y); math.Abs(float64(before-after)) > 1e-4 {
			t.Errorf("dimension %d: product was %f, rotated %f", dimension, before, after)
		}
		alone := make([]float32, dimension)
		alone[0] = 1
		for j, z := range rotate(alone) {
			if math.Abs(float64(z)) > 6/math.Sqrt(float64(len(x))) {
				t.Errorf("dimension %d: number %d of a rotated axis is %f", dimension, j, z)
				break
			}
		}
	}
}

// Estimates of cosines err as much as the block says, and not to one side.
func TestEstimates(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	for _, dimension := range []int{64, 384, 1000} {
		lean := randomVector(rng, dimension)
		var ordinals []uint32
		var rotated [][]float32
		for i := range 500 {
			v := randomVector(rng, dimension)
			for j := range v {
				v[j] += lean[j]
			}
			ordinals, rotated = append(ordinals, uint32(i)), append(rotated, rotate(unit(v)))
		}
		b := newBlock(ordinals, rotated)
		var p probe
		var sum, square float64
		beyond := 0
		const queries = 20
		for q := range queries {
			p.aim(b, rotated[q*7])
			for i, v := range rotated {
				err := float64(p.estimate(b, i) - product(rotated[q*7], v))
				sum += err / float64(p.sigma)
				square += err * err / float64(p.sigma*p.sigma)
				if err < -certainty*float64(p.sigma) {
					beyond++
				}
			}
		}
		n := float64(queries * len(rotated))
		mean, deviation := sum/n, math.Sqrt(square/n)
		t.Logf("dimension %d: mean %.3f, deviation %.3f of sigma, %d of %.0f too low", dimension, mean, deviation, beyond, n)
		if math.Abs(mean) > 0.1 || deviation > 1.1 || float64(beyond) > 0.004*n {
			t.Errorf("dimension %d: errors have mean %.3f and deviation %.3f sigma, %d too low", dimension, mean, deviation, beyond)
		}
	}
}

func TestPartition(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for range 200 {
		c := make(candidates, 1+rng.IntN(60))
		for i := range c {
			c[i] = candidate{bound: float32(rng.IntN(10)), ordinal: uint32(i)}
		}
		n := rng.IntN(len(c)) + 1
		partition(c, n)
		for _, high := range c[:n] {
			for _, low := range c[n:] {
				if high.bound < low.bound {
					t.Fatalf("%v stands before %v of %v", high, low, c)
				}
			}
		}
	}
}

func TestCosine(t *testing.T) {
	tests := map[string]struct {
		stored, query []float32
		want          float64
	}{
		"same way":    {[]float32{1, 2, 3}, []float32{2, 4, 6}, 1},
		"right angle": {[]float32{1, 0}, []float32{0, 5}, 0},
		"opposite":    {[]float32{1, 2, 3, 4, 5}, []float32{-1, -2, -3, -4, -5}, -1},
		"huge":        {[]float32{3e38, 3e38, 3e38, 3e38, 3e38, 3e38}, []float32{1, 1, 1, 1, 1, 1}, 1},
		"tiny":        {[]float32{1e-44, 0}, []float32{1, 1}, math.Sqrt(0.5)},
		"zeros":       {[]float32{0, 0}, []float32{1, 1}, 0},
		"asks zeros":  {[]float32{1, 1}, []float32{0, 0}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := cosine(encodeVector(test.stored), unit(test.query)); math.Abs(got-test.want) > 1e-6 {
				t.Errorf("cosine is %v, want %v", got, test.want)
			}
		})
	}
}

func FuzzBlock(f *testing.F) {
	rng := rand.New(rand.NewPCG(4, 1))
	centre, codes := newBlock([]uint32{7, 9}, [][]float32{rotate(unit(randomVector(rng, 8))), rotate(unit(randomVector(rng, 8)))}).encode()
	f.Add(centre, codes)
	f.Add([]byte{1}, []byte{1, 0})
	f.Fuzz(func(t *testing.T, centre, codes []byte) {
		b, err := decodeCentre(centre, 8)
		if err == nil {
			err = b.decodeCodes(codes)
		}
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
				t.Fatalf("error is %v", err)
			}
			return
		}
		if c, d := b.encode(); string(d) != string(codes) && codes[0] == 1 || len(c) != len(centre) {
			t.Fatalf("%x, %x came back as %x, %x", centre, codes, c, d)
		}
		var p probe
		p.aim(b, rotate(unit([]float32{1, 2, 3, 4, 5, 6, 7, 8})))
		for i := range b.ordinals {
			p.estimate(b, i)
		}
	})
}

func FuzzHead(f *testing.F) {
	f.Add((&head{stamp: 5, last: 9, packed: 3, vectors: 7, garbage: 2, lastBlock: 4, changes: 8}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, again head
		if err := h.decode(b); err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
				t.Fatalf("error is %v", err)
			}
			return
		}
		if err := again.decode(h.encode()); err != nil || again.encode() == nil || string(again.encode()) != string(h.encode()) {
			t.Fatalf("%+v came back as %+v, %v", h, again, err)
		}
	})
}

func FuzzDirectory(f *testing.F) {
	f.Add(directory{last: 3, spaces: []entry{{1, "a/b", 384, false, ""}, {3, "c", 8, true, "agent"}}}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := decodeDirectory(b)
		if err != nil {
			return
		}
		again, err := decodeDirectory(d.encode())
		if err != nil || !cmp.Equal(d, again, cmp.AllowUnexported(directory{}, entry{})) {
			t.Fatalf("%+v came back as %+v, %v", d, again, err)
		}
	})
}

func FuzzList(f *testing.F) {
	f.Add(encodeList([]blockInfo{{1, 2048, false, true}, {7, 12, true, false}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		blocks, err := decodeList(b)
		if err != nil {
			return
		}
		again, err := decodeList(encodeList(blocks))
		if err != nil || !cmp.Equal(blocks, again, cmp.AllowUnexported(blockInfo{})) {
			t.Fatalf("%+v came back as %+v, %v", blocks, again, err)
		}
	})
}

func FuzzVector(f *testing.F) {
	f.Add(encodeVector([]float32{1, -2, 0.5}))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := decodeVector(b, 3)
		if err != nil || math.IsNaN(float64(v[0]+v[1]+v[2])) {
			return
		}
		if got := encodeVector(v); string(got[vectorHeader:]) != string(b[vectorHeader:]) {
			t.Fatalf("%x came back as %x", b, got)
		}
	})
}

func benchBlock(n int) (*packedVectors, []float32) {
	rng := rand.New(rand.NewPCG(1, 1))
	var ordinals []uint32
	var rotated [][]float32
	for i := range n {
		v := make([]float32, 384)
		for j := range v {
			v[j] = float32(rng.NormFloat64())
		}
		ordinals, rotated = append(ordinals, uint32(i)), append(rotated, rotate(unit(v)))
	}
	return newBlock(ordinals, rotated), rotated[0]
}

func BenchmarkScanBlock(b *testing.B) {
	block, q := benchBlock(2048)
	var p probe
	p.aim(block, q)
	b.Run("aim", func(b *testing.B) {
		for b.Loop() {
			p.aim(block, q)
		}
	})
	b.Run("estimate", func(b *testing.B) {
		var sum float32
		for b.Loop() {
			for i := range block.ordinals {
				sum += p.estimate(block, i)
			}
		}
	})
	b.Run("scan", func(b *testing.B) {
		s := &search{room: new(searching)}
		for b.Loop() {
			l := newShortlist(4096, 150, &leaders{size: 10}, s.room.kept)
			s.scanBlock(block, &p, 4*p.sigma, l)
			s.room.kept = l.kept[:0]
		}
	})
	b.Run("turn", func(b *testing.B) {
		for b.Loop() {
			rotate(q)
		}
	})
}
