package builtin

import "golang.org/x/sys/cpu"

var wide = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// products multiplies two rows with four: out[i] is the first of w with row i of x,
// out[4+i] the second. Rows begin a stride apart and have n numbers, a multiple of 8.
func products(w []float32, wStride int, x []float32, xStride, n int, out *[2 * group]float32) {
	if !wide {
		plainProducts(w, wStride, x, xStride, n, out)
		return
	}
	_, _ = w[wStride+n-1], x[(group-1)*xStride+n-1]
	wideProducts(&w[0], wStride, &x[0], xStride, n, out)
}

// wideProducts is products with AVX2 and FMA.
//
//go:noescape
func wideProducts(w *float32, wStride int, x *float32, xStride, n int, out *[2 * group]float32)
