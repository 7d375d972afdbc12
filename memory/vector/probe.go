package vector

import (
	"math"
	"math/bits"
)

// probe is a query made ready for one block: the rotated query minus the centre,
// in steps of a sixteenth of its range, as four planes of bits.
type probe struct {
	planes []uint64 // four words for each word of a code
	low    float32  // what step zero stands for
	step   float32
	sum    float32 // of the query minus the centre
	base   float32 // query·centre
	sigma  float32 // standard deviation of the estimates
	// distance is the square of that from the centre to the query.
	distance float32
}

const (
	planes = 4
	steps  = 1<<planes - 1
)

// aim makes p ready for a block. The rotated query has the length one.
func (p *probe) aim(b *packedVectors, rotated []float32) {
	p.base = product(rotated, b.centre)
	p.distance = max(0, 1-2*p.base+b.square)
	p.sigma = b.sigma * float32(math.Sqrt(float64(p.distance)))
	low, high := float32(math.Inf(1)), float32(math.Inf(-1))
	p.sum = 0
	for j, x := range rotated {
		y := x - b.centre[j]
		p.sum += y
		low, high = min(low, y), max(high, y)
	}
	p.low, p.step = low, (high-low)/steps
	p.slice(b, rotated)
}

// slice fills the planes.
func (p *probe) slice(b *packedVectors, rotated []float32) {
	if len(p.planes) != planes*b.words {
		p.planes = make([]uint64, planes*b.words)
	}
	clear(p.planes)
	if !(p.step > 0) {
		return
	}
	for j, x := range rotated {
		n := uint64((x-b.centre[j]-p.low)/p.step + 0.5)
		word, bit := p.planes[j/64*planes:][:planes], j%64
		for plane := range word {
			word[plane] |= n >> plane & 1 << bit
		}
	}
}

// estimate returns about the cosine of the query and vector i of the block.
func (p *probe) estimate(b *packedVectors, i int) float32 {
	return p.weigh(b, i, count(b.codes[i*b.words:(i+1)*b.words], p.planes))
}

// weigh converts the sum of the steps at the set bits of vector i to an estimate. Each bit
// stands for +1 or -1, and Σ±y = 2·Σ(y where the bit is set) - Σy.
func (p *probe) weigh(b *packedVectors, i, weight int) float32 {
	set := p.low*float32(b.ones[i]) + p.step*float32(weight)
	return p.base + b.offsets[i] + b.factors[i]*(2*set-p.sum)
}

// estimates writes the estimates of all vectors of the block to dst, which has
// room for them.
func (p *probe) estimates(b *packedVectors, dst []float32) {
	if b.words == usualWords {
		p.usualEstimates(b, dst)
		return
	}
	for i := range b.ordinals {
		dst[i] = p.estimate(b, i)
	}
}

// count returns the sum of the steps that stand at the bits of the code. This
// loop is where a search spends its time: the four planes are counted side by
// side.
func count(code, sliced []uint64) int {
	var n0, n1, n2, n3 int
	for len(code) > 0 && len(sliced) >= planes {
		word := code[0]
		n0 += bits.OnesCount64(word & sliced[0])
		n1 += bits.OnesCount64(word & sliced[1])
		n2 += bits.OnesCount64(word & sliced[2])
		n3 += bits.OnesCount64(word & sliced[3])
		code, sliced = code[1:], sliced[planes:]
	}
	return n0 + 2*n1 + 4*n2 + 8*n3
}

// usualWords is how many words the code of a vector of 384 numbers has, the
// commonest length of small models.
const usualWords = 6

// usualEstimates is estimates without a loop over the words, which takes half of
// its time.
func (p *probe) usualEstimates(b *packedVectors, dst []float32) {
	s := (*[planes * usualWords]uint64)(p.planes)
	codes := b.codes
	for i := range b.ordinals {
		c := (*[usualWords]uint64)(codes)
		codes = codes[usualWords:]
		n0 := bits.OnesCount64(c[0]&s[0]) + bits.OnesCount64(c[1]&s[4]) + bits.OnesCount64(c[2]&s[8]) +
			bits.OnesCount64(c[3]&s[12]) + bits.OnesCount64(c[4]&s[16]) + bits.OnesCount64(c[5]&s[20])
		n1 := bits.OnesCount64(c[0]&s[1]) + bits.OnesCount64(c[1]&s[5]) + bits.OnesCount64(c[2]&s[9]) +
			bits.OnesCount64(c[3]&s[13]) + bits.OnesCount64(c[4]&s[17]) + bits.OnesCount64(c[5]&s[21])
		n2 := bits.OnesCount64(c[0]&s[2]) + bits.OnesCount64(c[1]&s[6]) + bits.OnesCount64(c[2]&s[10]) +
			bits.OnesCount64(c[3]&s[14]) + bits.OnesCount64(c[4]&s[18]) + bits.OnesCount64(c[5]&s[22])
		n3 := bits.OnesCount64(c[0]&s[3]) + bits.OnesCount64(c[1]&s[7]) + bits.OnesCount64(c[2]&s[11]) +
			bits.OnesCount64(c[3]&s[15]) + bits.OnesCount64(c[4]&s[19]) + bits.OnesCount64(c[5]&s[23])
		dst[i] = p.weigh(b, i, n0+2*n1+4*n2+8*n3)
	}
}
