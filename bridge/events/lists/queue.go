package lists

// Queue is first in, first out. It grows with what waits in it and lets the memory go when
// nothing does. The zero value is empty.
type Queue[T any] struct {
	items []T // a ring; its length is a power of two
	head  int
	count int
}

// Sizes of a queue's ring, in items.
const (
	smallestRing = 8
	// largestIdleRing is what an empty queue keeps, so that a reader that keeps
	// up allocates nothing.
	largestIdleRing = 64
)

// Len is how many items wait.
func (q *Queue[T]) Len() int { return q.count }

// Push appends an item.
func (q *Queue[T]) Push(item T) {
	if q.count == len(q.items) {
		q.resize(max(smallestRing, 2*q.count))
	}
	q.items[(q.head+q.count)&(len(q.items)-1)] = item
	q.count++
}

// Pop takes the first item out; false when there is none.
func (q *Queue[T]) Pop() (item T, ok bool) {
	if q.count == 0 {
		return item, false
	}
	var none T
	item, q.items[q.head] = q.items[q.head], none
	q.head = (q.head + 1) & (len(q.items) - 1)
	if q.count--; q.count == 0 && len(q.items) > largestIdleRing {
		*q = Queue[T]{}
	}
	return item, true
}

// Unpop puts an item back to the front.
func (q *Queue[T]) Unpop(item T) {
	if q.count == len(q.items) {
		q.resize(max(smallestRing, 2*q.count))
	}
	q.head = (q.head - 1) & (len(q.items) - 1)
	q.items[q.head] = item
	q.count++
}

func (q *Queue[T]) resize(size int) {
	items := make([]T, size)
	for i := range q.count {
		items[i] = q.items[(q.head+i)&(len(q.items)-1)]
	}
	q.items, q.head = items, 0
}

// Retain takes out every item that keep refuses.
func (q *Queue[T]) Retain(keep func(T) bool) {
	for range q.count {
		if item, _ := q.Pop(); keep(item) {
			q.Push(item)
		}
	}
}
