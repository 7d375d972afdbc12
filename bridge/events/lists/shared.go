package lists

import (
	"slices"
	"sync/atomic"
)

// Shared is a list that is read while it changes. Adding, removing and handing
// the list out cost the same however many there are: a list that was handed out is
// copied once, when the next one leaves. The zero value is empty. Whoever adds or
// removes holds a lock against all others; handing out needs one against those.
type Shared[T Member] struct {
	items []T
	// handed says that somebody may be reading items.
	handed atomic.Bool
}

// Member is what a Shared lists. It keeps its own place there.
type Member interface {
	comparable
	// Seat is where the list keeps the place of the item.
	Seat() *int
}

// Len is how many items there are.
func (l *Shared[T]) Len() int { return len(l.items) }

// Lend hands the list out. It never changes.
func (l *Shared[T]) Lend() []T {
	if len(l.items) > 0 && !l.handed.Load() {
		l.handed.Store(true)
	}
	return l.items
}

// Add appends an item behind the ones already handed out.
func (l *Shared[T]) Add(item T) {
	*item.Seat() = len(l.items)
	l.items = append(l.items, item)
}

// Remove removes an added item; the last one takes its place.
func (l *Shared[T]) Remove(item T) {
	if l.handed.Load() {
		l.items = slices.Clone(l.items)
		l.handed.Store(false)
	}
	i, last := *item.Seat(), len(l.items)-1
	l.items[i] = l.items[last]
	*l.items[i].Seat() = i
	var none T
	l.items[last] = none
	l.items = l.items[:last]
}
