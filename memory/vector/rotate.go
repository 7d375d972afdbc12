package vector

import "math"

// rotationRounds is how often a rotation mixes the numbers: enough that every one of them
// reaches every place, also where the length is no power of two.
const rotationRounds = 3

// rotationSeed chooses the rotation. It is part of the on-disk format.
const rotationSeed = 0x6c6f6f6d62726964

// paddedLength is how many bits the code of a vector of that dimension has.
func paddedLength(dimension int) int { return max(64, (dimension+63)/64*64) }

// rotate returns the vector, padded with zeros, after a fixed pseudo-random rotation.
// Afterwards each number says about as much as any other, which signs need: as they come,
// the numbers of a model may differ much in size, or never change their sign. Angles and
// lengths stay.
func rotate(v []float32) []float32 {
	t := make([]float32, paddedLength(len(v)))
	copy(t, v)
	power := 64
	for power*2 <= len(t) {
		power *= 2
	}
	state := uint64(rotationSeed)
	for range rotationRounds {
		flip(t, &state)
		mix(t[:power])
		if power < len(t) {
			flip(t, &state)
			mix(t[len(t)-power:])
		}
	}
	return t
}

// flip changes the sign of about half of the numbers.
func flip(t []float32, state *uint64) {
	for i := 0; i < len(t); i += 64 {
		signs := splitmix(state)
		for j := range 64 {
			if signs>>j&1 == 1 {
				t[i+j] = -t[i+j]
			}
		}
	}
}

// splitmix is the generator of that name (Steele, Lea, Flood 2014).
func splitmix(state *uint64) uint64 {
	*state += 0x9e3779b97f4a7c15
	z := *state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// mix is the Walsh-Hadamard transform, scaled to keep lengths. The number of
// values is a power of two.
func mix(t []float32) {
	for half := 1; half < len(t); half *= 2 {
		for i := 0; i < len(t); i += 2 * half {
			a, b := t[i:i+half], t[i+half:i+2*half]
			for j, x := range a {
				y := b[j]
				a[j], b[j] = x+y, x-y
			}
		}
	}
	scale := float32(1 / math.Sqrt(float64(len(t))))
	for i := range t {
		t[i] *= scale
	}
}
