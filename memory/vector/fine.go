package vector

import (
	"encoding/binary"
	"fmt"
	"math"
)

const (
	// fineSteps is how many steps the largest number of a difference is cut
	// into, on either side of zero.
	fineSteps = 127
	// fineZero is what stands for zero in a code.
	fineZero = 128
	// fineCertainty is how many standard deviations a cosine may lie away from
	// its fine estimate and still be found.
	fineCertainty = 5
	// fineNoise is what the sums of an estimate may lose for being of single
	// precision.
	fineNoise = 2e-6
	// maxFineStep is more than a step can be: a vector differs from its centre by
	// two at most, as neither is longer than one.
	maxFineStep = 2.1 / fineSteps
)

// fineMargin is how many steps a cosine may lie away from its estimate. Cutting
// numbers into steps errs evenly up to half a step, and the product with a vector
// of length one errs as one number does.
var fineMargin = float32(fineCertainty / math.Sqrt(12))

// fineCodes are the second code of a block's vectors: of each one all the
// numbers of its rotated difference from the centre, in steps, a byte for each.
// Estimates from them err by a hundredth of what those from signs err, and take
// ten times as long.
type fineCodes struct {
	length int       // of each code
	steps  []float32 // what one step of a vector is worth
	codes  []byte
}

func newFineCodes(vectors, length int) *fineCodes {
	return &fineCodes{length, make([]float32, vectors), make([]byte, vectors*length)}
}

// fineBytes is what the stored fine code of a vector takes.
func fineBytes(dimension int) int { return 4 + paddedLength(dimension) }

// bytes is about what the codes take in memory.
func (f *fineCodes) bytes() int {
	const fixed = 120
	return fixed + 4*len(f.steps) + len(f.codes)
}

func (f *fineCodes) code(i int) []byte { return f.codes[i*f.length : (i+1)*f.length] }

// pack writes the code of vector i, which differs from the centre by r.
func (f *fineCodes) pack(i int, r []float32) {
	step := largest(r) / fineSteps
	f.steps[i] = step
	code := f.code(i)
	for j, x := range r {
		code[j] = fineZero
		if step > 0 {
			code[j] += byte(int(math.Round(float64(x / step))))
		}
	}
}

func largest(v []float32) float32 {
	most := float32(0)
	for _, x := range v {
		most = max(most, x, -x)
	}
	return most
}

func (f *fineCodes) encode() []byte {
	b := binary.AppendUvarint(make([]byte, 0, 16+f.bytes()), format)
	b = binary.AppendUvarint(b, uint64(len(f.steps)))
	b = appendSingles(b, f.steps)
	return append(b, f.codes...)
}

// decodeFineCodes reads the stored fine codes of a block of that many vectors.
// It keeps the bytes. Damage that neither the length nor a step shows makes
// estimates wrong, never the exact cosines.
func decodeFineCodes(stored []byte, dimension, vectors int) (*fineCodes, error) {
	rest, err := cutFormat("fine codes of a block", stored)
	if err != nil {
		return nil, err
	}
	count, n := binary.Uvarint(rest)
	if n <= 0 || count != uint64(vectors) || len(rest)-n != vectors*fineBytes(dimension) {
		return nil, fmt.Errorf("%w: fine codes of %d bytes for %d vectors", ErrDamaged, len(stored), vectors)
	}
	f := &fineCodes{paddedLength(dimension), singles(rest[n:], vectors), rest[n+4*vectors:]}
	for _, step := range f.steps {
		if !(step >= 0 && step <= maxFineStep) {
			return nil, fmt.Errorf("%w: fine code in steps of %v", ErrDamaged, step)
		}
	}
	return f, nil
}

// stepCounts is what the bytes of a code stand for. Looking them up takes half
// the time of making numbers of them.
var stepCounts = func() (counts [256]float32) {
	for b := range counts {
		counts[b] = float32(b - fineZero)
	}
	return counts
}()

// estimate returns about the cosine of vector i and the rotated query, whose
// product with the centre is base, and how far it may be away.
func (f *fineCodes) estimate(i int, base float32, rotated []float32) (cosine, margin float32) {
	step := f.steps[i]
	return base + step*steppedProduct(f.code(i), rotated), fineMargin*step + fineNoise
}

// steppedProduct returns the scalar product of a code and a vector of its length,
// which is a multiple of eight.
func steppedProduct(code []byte, v []float32) float32 {
	var s0, s1, s2, s3 float32
	for len(code) >= 8 && len(v) >= 8 {
		s0 += stepCounts[code[0]] * v[0]
		s1 += stepCounts[code[1]] * v[1]
		s2 += stepCounts[code[2]] * v[2]
		s3 += stepCounts[code[3]] * v[3]
		s0 += stepCounts[code[4]] * v[4]
		s1 += stepCounts[code[5]] * v[5]
		s2 += stepCounts[code[6]] * v[6]
		s3 += stepCounts[code[7]] * v[7]
		code, v = code[8:], v[8:]
	}
	return s0 + s1 + s2 + s3
}
