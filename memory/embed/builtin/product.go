package builtin

// matrix is rows of numbers that begin a stride apart, and may overlap.
type matrix struct {
	numbers         []float32
	stride, columns int
}

// multiply gives each row of x times each row of a layer, with the bias added. Rows come
// in groups of four, and a layer has an even number.
func multiply(l layer, x matrix, rows int, give func(row, column int, value float32)) {
	var out [2 * group]float32
	n := x.columns
	for column := 0; column < len(l.bias); column += 2 {
		weights := l.weights[column*n:][:2*n]
		for row := 0; row < rows; row += group {
			products(weights, n, x.numbers[row*x.stride:][:(group-1)*x.stride+n], x.stride, n, &out)
			for i := range group {
				give(row+i, column, out[i]+l.bias[column])
				give(row+i, column+1, out[group+i]+l.bias[column+1])
			}
		}
	}
}

// apply returns a matrix of len(x) columns times a vector. Its rows come in groups of four.
func apply(weights, x []float32) []float32 {
	var out [2 * group]float32
	n := len(x)
	result := make([]float32, 0, len(weights)/n)
	for at := 0; at < len(weights); at += group * n {
		products(x, 0, weights[at:][:group*n], n, n, &out)
		result = append(result, out[:group]...)
	}
	return result
}

// plainProducts is products where there is no faster way.
func plainProducts(w []float32, wStride int, x []float32, xStride, n int, out *[2 * group]float32) {
	v, w := w[wStride:][:n], w[:n]
	a, b, c, d := x[:n], x[xStride:][:n], x[2*xStride:][:n], x[3*xStride:][:n]
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for i, p := range w {
		q := v[i]
		s0, s4 = s0+p*a[i], s4+q*a[i]
		s1, s5 = s1+p*b[i], s5+q*b[i]
		s2, s6 = s2+p*c[i], s6+q*c[i]
		s3, s7 = s3+p*d[i], s7+q*d[i]
	}
	*out = [2 * group]float32{s0, s1, s2, s3, s4, s5, s6, s7}
}
