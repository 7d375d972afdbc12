package events

// fifo is a queue that grows with what waits in it and lets the memory go when
// nothing does. The zero value is empty.
type fifo[T any] struct {
	items []T // a ring; its length is a power of two
	head  int
	count int
}

// Sizes of a fifo's ring, in items.
const (
	smallestRing = 8
	// largestIdleRing is what an empty fifo keeps, so that a reader that keeps
	// up allocates nothing.
	largestIdleRing = 64
)

func (f *fifo[T]) len() int { return f.count }

func (f *fifo[T]) push(item T) {
	if f.count == len(f.items) {
		f.resize(max(smallestRing, 2*f.count))
	}
	f.items[(f.head+f.count)&(len(f.items)-1)] = item
	f.count++
}

func (f *fifo[T]) pop() (item T, ok bool) {
	if f.count == 0 {
		return item, false
	}
	var none T
	item, f.items[f.head] = f.items[f.head], none
	f.head = (f.head + 1) & (len(f.items) - 1)
	if f.count--; f.count == 0 && len(f.items) > largestIdleRing {
		*f = fifo[T]{}
	}
	return item, true
}

// unpop puts an item back to the front.
func (f *fifo[T]) unpop(item T) {
	if f.count == len(f.items) {
		f.resize(max(smallestRing, 2*f.count))
	}
	f.head = (f.head - 1) & (len(f.items) - 1)
	f.items[f.head] = item
	f.count++
}

func (f *fifo[T]) resize(size int) {
	items := make([]T, size)
	for i := range f.count {
		items[i] = f.items[(f.head+i)&(len(f.items)-1)]
	}
	f.items, f.head = items, 0
}

// retain takes out every item that keep refuses.
func (f *fifo[T]) retain(keep func(T) bool) {
	for range f.count {
		if item, _ := f.pop(); keep(item) {
			f.push(item)
		}
	}
}
