package builtin

import (
	"math"
)

const (
	// chunks is how many scales and offsets the table's rows have: each row that of the
	// remainder of its number.
	chunks    = 17
	tableRows = chunks * 7530
	// width is how many numbers a convolution gives a piece, and features how many all give
	// together with the table's row.
	width    = 256
	features = Dimensions + 3*width
	// hidden is how wide the middle of the dense layers is.
	hidden = 320
	// epsilon keeps divisors from being zero.
	epsilon = 1e-12
	// group is how many rows are multiplied at once.
	group = 4
)

// reach of the convolutions: how many pieces each looks at, and how many of those stand
// before its own.
var reach = [3]struct{ pieces, before int }{{2, 0}, {3, 1}, {5, 2}}

// valueCount is how many numbers newNetwork reads.
const valueCount = 2*chunks + 3*(width*Dimensions+3*width) + 2*((2+3+5)*width*width+3*width) +
	2*features + Dimensions*features + Dimensions +
	2*hidden*Dimensions + hidden*hidden + 2*Dimensions*hidden + Dimensions*Dimensions

// layer is a matrix, row by row, and the bias added to its product.
type layer struct{ weights, bias []float32 }

// convolution is a branch of the network: a projection of the table's row, then two
// convolutions.
type convolution struct {
	project       layer
	gain, offset  []float32
	first, second layer
}

// network makes vectors of pieces. All numbers lie in the file.
type network struct {
	pieces       pieces
	table        []byte
	scale, low   []float32
	branches     [3]convolution
	gain, offset []float32
	output       layer
	dense        [6][]float32
}

func newNetwork(parts [partCount][]byte) *network {
	values := view[float32](parts[partValues])
	take := func(count int) []float32 {
		taken := values[:count:count]
		values = values[count:]
		return taken
	}
	n := &network{pieces: newPieces(parts), table: parts[partTable], scale: take(chunks), low: take(chunks)}
	for i := range n.branches {
		b, square := &n.branches[i], reach[i].pieces*width*width
		b.project = layer{take(width * Dimensions), take(width)}
		b.gain, b.offset = take(width), take(width)
		b.first = layer{take(square), take(width)}
		b.second = layer{take(square), take(width)}
	}
	n.gain, n.offset = take(features), take(features)
	n.output = layer{take(Dimensions * features), take(Dimensions)}
	for i, count := range [...]int{hidden * Dimensions, hidden * Dimensions, hidden * hidden, Dimensions * hidden, Dimensions * hidden, Dimensions * Dimensions} {
		n.dense[i] = take(count)
	}
	return n
}

// passage returns the vector of some pieces.
func (n *network) passage(ids []int32) []float32 {
	count := len(ids) + 2
	rows := (count + group - 1) / group * group // the last ones are computed and left out
	all := make([]float32, rows*features)
	n.look(all, beginPiece, 0)
	for i, id := range ids {
		n.look(all, id, i+1)
	}
	n.look(all, endPiece, count-1)

	projected := make([]float32, rows*3*width)
	for i, b := range n.branches {
		multiply(b.project, matrix{all, features, Dimensions}, rows, func(row, column int, value float32) {
			projected[row*3*width+i*width+column] = value
		})
	}
	for row := range count {
		x := projected[row*3*width:][:3*width]
		center(x)
		for i, b := range n.branches {
			scale(x[i*width:][:width], b.gain, b.offset)
		}
	}
	for i, b := range n.branches {
		convolve(b, i, all, projected, count, rows)
	}
	sum := make([]float32, features)
	for row := range count {
		x := all[row*features:][:features]
		center(x)
		scale(x, n.gain, n.offset)
		for i, value := range x {
			sum[i] += value
		}
	}
	return n.reduce(sum, count)
}

// look puts the row of a piece where a row of features begins.
func (n *network) look(all []float32, id int32, row int) {
	scale, low := n.scale[id%chunks], n.low[id%chunks]
	to := all[row*features:][:Dimensions]
	for i, code := range n.table[int(id)*Dimensions:][:Dimensions] {
		to[i] = float32(code)*scale + low
	}
}

// convolve runs a branch: beyond a text's ends there are zeros.
func convolve(b convolution, branch int, all, projected []float32, count, rows int) {
	r := reach[branch]
	before := make([]float32, (rows+r.pieces)*width)
	between := make([]float32, (rows+r.pieces)*width)
	for row := range count {
		copy(before[(row+r.before)*width:], projected[row*3*width+branch*width:][:width])
	}
	multiply(b.first, matrix{before, width, r.pieces * width}, rows, func(row, column int, value float32) {
		if row < count {
			at := (row+r.before)*width + column
			between[at] = max(value, 0) + before[at]
		}
	})
	multiply(b.second, matrix{between, width, r.pieces * width}, rows, func(row, column int, value float32) {
		all[row*features+Dimensions+branch*width+column] = max(value, 0) + between[(row+r.before)*width+column]
	})
}

// reduce returns the vector of a sum of features.
func (n *network) reduce(sum []float32, count int) []float32 {
	mean := apply(n.output.weights, sum)
	by := float32(1 / math.Sqrt(float64(count)))
	for i := range mean {
		mean[i] = (mean[i] + float32(count)*n.output.bias[i]) * by
	}
	a := positive(apply(n.dense[0], mean))
	b := positive(add(apply(n.dense[1], mean), apply(n.dense[2], a)))
	c := positive(apply(n.dense[3], b))
	out := add(apply(n.dense[4], b), apply(n.dense[5], c))
	for i, value := range out {
		out[i] = float32(math.Tanh(float64(value)))
	}
	normalize(out)
	return out
}

// center gives numbers the mean zero and the variance one.
func center(x []float32) {
	var sum, square float32
	for _, value := range x {
		sum += value
	}
	mean := sum / float32(len(x))
	for i, value := range x {
		x[i] = value - mean
		square += x[i] * x[i]
	}
	by := float32(1 / math.Sqrt(float64(square/float32(len(x)))+epsilon))
	for i := range x {
		x[i] *= by
	}
}

func scale(x, gain, offset []float32) {
	for i := range x {
		x[i] = x[i]*gain[i] + offset[i]
	}
}

func positive(x []float32) []float32 {
	for i, value := range x {
		x[i] = max(value, 0)
	}
	return x
}

func add(to, what []float32) []float32 {
	for i, value := range what {
		to[i] += value
	}
	return to
}
