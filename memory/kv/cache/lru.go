package cache

// LRU is a map whose least recently used entries are dropped when it exceeds its
// limit. It is not safe for concurrent use. Make one with NewLRU.
type LRU[K comparable, V any] struct {
	limit   int
	weight  int
	entries map[K]*node[K, V]
	// ends is the sentinel of a ring: ends.next is the most recently used entry,
	// ends.previous the least recently used one.
	ends node[K, V]
}

type node[K comparable, V any] struct {
	key            K
	value          V
	weight         int
	previous, next *node[K, V]
}

// NewLRU returns an empty LRU with that limit.
func NewLRU[K comparable, V any](limit int) *LRU[K, V] {
	l := &LRU[K, V]{limit: limit, entries: make(map[K]*node[K, V])}
	l.ends.next, l.ends.previous = &l.ends, &l.ends
	return l
}

// Get returns the value of a key, which is then the most recently used.
func (l *LRU[K, V]) Get(key K) (value V, ok bool) {
	e := l.entries[key]
	if e == nil {
		return value, false
	}
	if l.ends.next != e {
		e.unlink()
		l.pushFront(e)
	}
	return e.value, true
}

// Put stores a value in place of the one that the key had and makes it the most
// recently used. The weight must not be negative. A value heavier than the limit
// is not stored, and the key has none then.
func (l *LRU[K, V]) Put(key K, value V, weight int) {
	e := l.entries[key]
	switch {
	case weight > l.limit:
		l.Delete(key)
		return
	case e == nil:
		e = &node[K, V]{key: key}
		l.entries[key] = e
	default:
		e.unlink()
	}
	l.pushFront(e)
	l.weight += weight - e.weight
	e.value, e.weight = value, weight
	for l.weight > l.limit {
		l.Delete(l.ends.previous.key)
	}
}

// Delete drops the entry of a key, if there is one.
func (l *LRU[K, V]) Delete(key K) {
	if e := l.entries[key]; e != nil {
		e.unlink()
		delete(l.entries, key)
		l.weight -= e.weight
	}
}

// DeleteFunc drops the entries of the keys that match.
func (l *LRU[K, V]) DeleteFunc(match func(K) bool) {
	for key := range l.entries {
		if match(key) {
			l.Delete(key)
		}
	}
}

// Oldest returns the least recently used entry; ok is false when there is none.
func (l *LRU[K, V]) Oldest() (key K, value V, ok bool) {
	e := l.ends.previous
	return e.key, e.value, e != &l.ends
}

// Len returns the number of entries.
func (l *LRU[K, V]) Len() int { return len(l.entries) }

// Weight returns the sum of the weights of all entries.
func (l *LRU[K, V]) Weight() int { return l.weight }

func (l *LRU[K, V]) pushFront(e *node[K, V]) {
	e.previous, e.next = &l.ends, l.ends.next
	e.previous.next, e.next.previous = e, e
}

func (e *node[K, V]) unlink() { e.previous.next, e.next.previous = e.next, e.previous }
