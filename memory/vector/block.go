package vector

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// Sizes of a block.
const (
	// maxBlockVectors bounds a block: its fixed cost in a search is that of some
	// hundred vectors, and it is read and written as a whole.
	maxBlockVectors = 2048
	// maxBlockBytes bounds its fine codes, the largest part, where vectors are
	// long: a value may have little more.
	maxBlockBytes = 1000 << 10
	// entryBytes is the size of a vector's entry in a block without its bits.
	entryBytes = 4 + 4 + 4
)

// packedBytes is what a vector of that dimension takes in all parts of a block.
func packedBytes(dimension int) int {
	return paddedLength(dimension)/8 + entryBytes + fineBytes(dimension)
}

// packedVectors is vectors packed for scanning. With u a vector rotated and of length
// one, and c the block's centre, it keeps of r = u - c the signs, r·c, and the
// factor that makes an estimate of r·y from the signs for any y: |r|² / Σ|rj|.
// The estimate is that of RaBitQ (Gao and Long 2024).
type packedVectors struct {
	words    int // of 64 bits, of each code
	centre   []float32
	square   float32 // centre·centre
	sigma    float32 // largest standard deviation of an estimate of r·y, for |y| = 1
	ordinals []uint32
	offsets  []float32 // r·c
	factors  []float32
	codes    []uint64
	ones     []uint16   // bits set in each code; not stored
	fine     *fineCodes // only of a new block
}

// bytes is about what a block takes in memory.
func (b *packedVectors) bytes() int {
	const fixed = 200
	return fixed + 4*len(b.centre) + len(b.ordinals)*(entryBytes+2+8*b.words)
}

// newBlock packs rotated unit vectors. It needs at least one.
func newBlock(ordinals []uint32, rotated [][]float32) *packedVectors {
	b := &packedVectors{
		words:    len(rotated[0]) / 64,
		ordinals: ordinals,
		offsets:  make([]float32, len(rotated)),
		factors:  make([]float32, len(rotated)),
	}
	b.centre = mean(rotated)
	b.square = product(b.centre, b.centre)
	b.codes = make([]uint64, len(rotated)*b.words)
	b.fine = newFineCodes(len(rotated), len(b.centre))
	r := make([]float32, len(b.centre))
	for i, u := range rotated {
		for j, x := range u {
			r[j] = x - b.centre[j]
		}
		sigma := b.pack(i, r)
		b.sigma = max(b.sigma, sigma)
		b.fine.pack(i, r)
	}
	b.countOnes()
	return b
}

func (b *packedVectors) countOnes() {
	b.ones = make([]uint16, len(b.ordinals))
	for i := range b.ones {
		for _, word := range b.codes[i*b.words : (i+1)*b.words] {
			b.ones[i] += uint16(bits.OnesCount64(word))
		}
	}
}

// pack writes the code of vector i, which differs from the centre by r, and
// returns the standard deviation of its estimates.
func (b *packedVectors) pack(i int, r []float32) float32 {
	code := b.codes[i*b.words : (i+1)*b.words]
	var sum, square float64
	for j, x := range r {
		if x > 0 {
			code[j/64] |= 1 << (j % 64)
		}
		sum += math.Abs(float64(x))
		square += float64(x) * float64(x)
	}
	b.offsets[i] = product(r, b.centre)
	if sum == 0 {
		return 0
	}
	b.factors[i] = float32(square / sum)
	// fit is the cosine of r and its signs.
	n := float64(len(r))
	fit := sum / math.Sqrt(square*n)
	return float32(math.Sqrt(square*max(0, 1-fit*fit)/(n-1)) / fit)
}

func mean(vectors [][]float32) []float32 {
	sums := make([]float64, len(vectors[0]))
	for _, v := range vectors {
		for j, x := range v {
			sums[j] += float64(x)
		}
	}
	centre := make([]float32, len(sums))
	for j, sum := range sums {
		centre[j] = float32(sum / float64(len(vectors)))
	}
	return centre
}

// product returns the scalar product of two vectors of the same length.
func product(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	for len(a) >= 4 && len(b) >= 4 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	for i, x := range a {
		s0 += x * b[i]
	}
	return s0 + s1 + s2 + s3
}

// encode returns the first two stored parts of a block: the centre, which chooses
// the block, and the codes. The fine codes are the third.
func (b *packedVectors) encode() (centre, codes []byte) {
	centre = binary.AppendUvarint(nil, format)
	centre = appendSingles(centre, []float32{b.sigma})
	centre = appendSingles(centre, b.centre)
	codes = binary.AppendUvarint(make([]byte, 0, 16+b.bytes()), format)
	codes = binary.AppendUvarint(codes, uint64(len(b.ordinals)))
	for _, o := range b.ordinals {
		codes = binary.LittleEndian.AppendUint32(codes, o)
	}
	codes = appendSingles(codes, b.offsets)
	codes = appendSingles(codes, b.factors)
	for _, word := range b.codes {
		codes = binary.LittleEndian.AppendUint64(codes, word)
	}
	return centre, codes
}

func appendSingles(dst []byte, numbers []float32) []byte {
	for _, x := range numbers {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
	}
	return dst
}

// cutFormat reads the format that a piece begins with.
func cutFormat(what string, b []byte) ([]byte, error) {
	version, n := binary.Uvarint(b)
	if n <= 0 {
		return nil, fmt.Errorf("%w: %s without format", ErrDamaged, what)
	}
	return b[n:], checkFormat(what, version)
}

// decodeCentre reads the stored centre of a block of that dimension.
func decodeCentre(stored []byte, dimension int) (*packedVectors, error) {
	rest, err := cutFormat("centre of a block", stored)
	if err != nil {
		return nil, err
	}
	length := paddedLength(dimension)
	if len(rest) != 4*(1+length) {
		return nil, fmt.Errorf("%w: centre of %d bytes", ErrDamaged, len(stored))
	}
	b := &packedVectors{words: length / 64, sigma: singles(rest, 1)[0], centre: singles(rest[4:], length)}
	b.square = product(b.centre, b.centre)
	return b, nil
}

// decodeCodes reads the stored codes into a block with its centre. Each number
// in it is as good as any: damage that the length does not show makes estimates
// wrong, never the exact cosines.
func (b *packedVectors) decodeCodes(stored []byte) error {
	rest, err := cutFormat("block", stored)
	if err != nil {
		return err
	}
	count, n := binary.Uvarint(rest)
	if n <= 0 || count == 0 || count > maxBlockVectors || len(rest)-n != int(count)*(entryBytes+8*b.words) {
		return fmt.Errorf("%w: block of %d bytes", ErrDamaged, len(stored))
	}
	rest = rest[n:]
	b.ordinals = make([]uint32, count)
	for i := range b.ordinals {
		b.ordinals[i] = binary.LittleEndian.Uint32(rest[4*i:])
	}
	rest = rest[4*count:]
	b.offsets = singles(rest, int(count))
	b.factors = singles(rest[4*count:], int(count))
	rest = rest[8*count:]
	b.codes = make([]uint64, int(count)*b.words)
	for i := range b.codes {
		b.codes[i] = binary.LittleEndian.Uint64(rest[8*i:])
	}
	b.countOnes()
	return nil
}

func singles(b []byte, n int) []float32 {
	numbers := make([]float32, n)
	for i := range numbers {
		numbers[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return numbers
}
