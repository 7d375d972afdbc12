//go:build !amd64

package builtin

// products multiplies two rows with four: out[i] is the first of w with row i of x,
// out[4+i] the second. Rows begin a stride apart and have n numbers.
func products(w []float32, wStride int, x []float32, xStride, n int, out *[2 * group]float32) {
	plainProducts(w, wStride, x, xStride, n, out)
}
