package events

import (
	"slices"
	"sync/atomic"
)

// roster lists those who are to be told of something. Adding, removing and handing
// the list out cost the same however many there are: a list that was handed out is
// copied once, when the next one leaves. The zero value is empty. Whoever adds or
// removes holds a lock against all others; handing out needs one against those.
type roster[T member] struct {
	items []T
	// lent says that somebody may be reading items.
	lent atomic.Bool
}

// member is what a roster lists. It keeps its own place there.
type member interface {
	comparable
	seat() *int
}

func (r *roster[T]) len() int { return len(r.items) }

// lend hands the list out. It never changes.
func (r *roster[T]) lend() []T {
	if len(r.items) > 0 && !r.lent.Load() {
		r.lent.Store(true)
	}
	return r.items
}

// add appends behind what was handed out.
func (r *roster[T]) add(item T) {
	*item.seat() = len(r.items)
	r.items = append(r.items, item)
}

// remove takes out what was added; the last one takes its place.
func (r *roster[T]) remove(item T) {
	if r.lent.Load() {
		r.items = slices.Clone(r.items)
		r.lent.Store(false)
	}
	i, last := *item.seat(), len(r.items)-1
	r.items[i] = r.items[last]
	*r.items[i].seat() = i
	var none T
	r.items[last] = none
	r.items = r.items[:last]
}
