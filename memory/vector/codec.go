package vector

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A stored vector is: format (1 byte), length (8 bytes, IEEE 754 double), then
// the numbers as they came (IEEE 754 singles), all lowest byte first.
const vectorHeader = 1 + 8

func encodeVector(v []float32) []byte {
	b := make([]byte, vectorHeader, vectorHeader+4*len(v))
	b[0] = format
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	binary.LittleEndian.PutUint64(b[1:], math.Float64bits(math.Sqrt(sum)))
	return b
}

// checkValue refuses what is no vector of that dimension.
func checkValue(b []byte, dimension int) error {
	switch {
	case len(b) > 0 && b[0] > format:
		return fmt.Errorf("%w: vector of format %d", ErrNewer, b[0])
	case len(b) != vectorHeader+4*dimension || b[0] != format:
		return fmt.Errorf("%w: vector of %d bytes in a space of dimension %d", ErrDamaged, len(b), dimension)
	}
	return nil
}

func decodeVector(b []byte, dimension int) ([]float32, error) {
	if err := checkValue(b, dimension); err != nil {
		return nil, err
	}
	v := make([]float32, dimension)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[vectorHeader+4*i:]))
	}
	return v, nil
}

func storedLength(b []byte) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(b[1:]))
}

// shortest is the length under which single precision has too few digits left.
const shortest = 1e-30

// cosine returns the cosine of a stored vector and a unit vector; zero for a
// vector without length.
func cosine(stored []byte, unit []float32) float64 {
	length := storedLength(stored)
	if length == 0 {
		return 0
	}
	sum := float64(dot(stored[vectorHeader:], unit))
	if length < shortest || math.IsInf(sum, 0) || math.IsNaN(sum) {
		sum = slowDot(stored[vectorHeader:], unit)
	}
	return max(-1, min(1, sum/length))
}

// dot multiplies four numbers at a time, in separate sums, so that the processor can
// overlap the additions.
func dot(b []byte, q []float32) float32 {
	var s0, s1, s2, s3 float32
	for len(q) >= 4 && len(b) >= 16 {
		s0 += math.Float32frombits(binary.LittleEndian.Uint32(b)) * q[0]
		s1 += math.Float32frombits(binary.LittleEndian.Uint32(b[4:])) * q[1]
		s2 += math.Float32frombits(binary.LittleEndian.Uint32(b[8:])) * q[2]
		s3 += math.Float32frombits(binary.LittleEndian.Uint32(b[12:])) * q[3]
		b, q = b[16:], q[4:]
	}
	for i, x := range q {
		s0 += math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])) * x
	}
	return s0 + s1 + s2 + s3
}

func slowDot(b []byte, q []float32) float64 {
	sum := 0.0
	for i, x := range q {
		sum += float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))) * float64(x)
	}
	return sum
}

// unit returns the vector of length one that points the same way; all zeros
// for one without length.
func unit(v []float32) []float32 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	u := make([]float32, len(v))
	if sum == 0 {
		return u
	}
	scale := 1 / math.Sqrt(sum)
	for i, x := range v {
		u[i] = float32(float64(x) * scale)
	}
	return u
}
