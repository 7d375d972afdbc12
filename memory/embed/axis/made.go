package axis

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"math"
)

// made has the axes of the server's own model: making them takes hundreds of texts, for which
// the first query of a process would wait. TestMade writes it.
//
//go:embed made.bin
var made []byte

// encode returns axes as they stand in made: a digest of the space and the pairs that they were made
// of, Middle and Deviation (float64), then of each axis its middle and half (float64) and its
// direction (float32), little endian.
func (a *Axes) encode(space string) []byte {
	digest := digestOf(space)
	b := binary.LittleEndian.AppendUint64(digest[:], math.Float64bits(a.Middle))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(a.Deviation))
	for _, one := range a.all() {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(one.middle))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(one.half))
		for _, x := range one.direction {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return b
}

// madeFor returns the axes that stand in b; nil if they are of another space or of other pairs.
func madeFor(space string, b []byte) *Axes {
	const numbers = 2 * 8
	digest := digestOf(space)
	b, ok := bytes.CutPrefix(b, digest[:])
	a := &Axes{}
	each := (len(b) - numbers) / len(a.all())
	if !ok || each <= numbers {
		return nil
	}
	a.Middle, a.Deviation = math.Float64frombits(binary.LittleEndian.Uint64(b)), math.Float64frombits(binary.LittleEndian.Uint64(b[8:]))
	b = b[numbers:]
	for _, one := range a.all() {
		one.middle = math.Float64frombits(binary.LittleEndian.Uint64(b))
		one.half = math.Float64frombits(binary.LittleEndian.Uint64(b[8:]))
		one.direction = make([]float32, (each-numbers)/4)
		for i := range one.direction {
			one.direction[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[numbers+4*i:]))
		}
		b = b[each:]
	}
	return a
}

func (a *Axes) all() []*Axis { return []*Axis{&a.Change, &a.Past, &a.Turn, &a.Rule, &a.Request} }

// digestOf is of a space and all that axes are made of there.
func digestOf(space string) (digest [sha256.Size]byte) {
	h := sha256.New()
	h.Write([]byte(space))
	for _, pairs := range kinds() {
		h.Write([]byte{0})
		for _, pair := range pairs {
			h.Write([]byte(pair[0] + "\x00" + pair[1] + "\x00"))
		}
	}
	h.Sum(digest[:0])
	return digest
}
