package tokens

import "sync"

// generations remembers answers up to a weight, in two maps: when the young one is
// full it becomes the old one, and entries unused since are dropped. That bounds it to
// twice its limit without keeping an order. It is safe for concurrent use.
type generations[K comparable, V any] struct {
	limit int
	weigh func(K) int // what of the limit an entry takes

	mu         sync.Mutex // guards the fields below
	weight     int        // of the young ones
	young, old map[K]V
}

func newGenerations[K comparable, V any](limit int, weigh func(K) int) *generations[K, V] {
	return &generations[K, V]{limit: limit, weigh: weigh, young: make(map[K]V), old: make(map[K]V)}
}

func (g *generations[K, V]) get(key K) (V, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if found, ok := g.young[key]; ok {
		return found, true
	}
	found, ok := g.old[key]
	if ok {
		g.add(key, found)
	}
	return found, ok
}

// put remembers an answer. The key is kept.
func (g *generations[K, V]) put(key K, found V) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.add(key, found)
}

// add needs the lock held.
func (g *generations[K, V]) add(key K, found V) {
	if g.weight >= g.limit {
		clear(g.old) // and fill it again, so that nothing is allocated
		g.young, g.old = g.old, g.young
		g.weight = 0
	}
	if _, there := g.young[key]; !there {
		g.weight += g.weigh(key)
	}
	g.young[key] = found
}
