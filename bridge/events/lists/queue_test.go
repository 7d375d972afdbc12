package lists

import (
	"slices"
	"testing"
)

func TestQueue(t *testing.T) {
	var q Queue[int]
	var want []int
	for i := range 3000 {
		switch {
		case i%3 != 2:
			q.Push(i)
			want = append(want, i)
		case i%101 == 2:
			odd := func(n int) bool { return n%2 == 1 }
			q.Retain(odd)
			want = slices.DeleteFunc(want, func(n int) bool { return !odd(n) })
		default:
			got, ok := q.Pop()
			if !ok || got != want[0] {
				t.Fatalf("got %d, %v, want %d", got, ok, want[0])
			}
			want = want[1:]
		}
		if q.Len() != len(want) {
			t.Fatalf("%d wait, want %d", q.Len(), len(want))
		}
	}
	for range want {
		q.Pop()
	}
	if _, ok := q.Pop(); ok || len(q.items) > largestIdleRing {
		t.Errorf("empty: %v, %d items", ok, len(q.items))
	}
}
