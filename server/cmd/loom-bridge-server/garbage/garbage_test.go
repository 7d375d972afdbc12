package garbage

import (
	"runtime"
	"testing"
)

// A busy server may hold some megabytes of garbage, whatever its heap; one at rest half of that.
func TestPercent(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		quick int
		live  uint64
		want  int
	}{
		{0, 14 * mib, restPercent},
		{busyCycles - 1, 14 * mib, restPercent},
		{busyCycles, 0, restPercent},
		{busyCycles, 1 * mib, busyPercent},
		{busyCycles, 14 * mib, 225},
		{1000, 25 * mib, 125},
		{1000, 500 * mib, restPercent},
	} {
		if got := percentFor(tt.quick, tt.live); got != tt.want {
			t.Errorf("%d soon one after the other, %d bytes: %d, want %d", tt.quick, tt.live, got, tt.want)
		}
	}
	runtime.GC()
	if live() == 0 {
		t.Error("the heap has no size")
	}
}
