package cache

import "sync"

// Fair is a Cache whose entries belong to owners, such as tenants: when it exceeds its
// limit, the owner whose entries weigh most loses the least recently used of them. So no
// owner drives out what another one has of its share. It is safe for concurrent use. Make
// one with NewFair.
type Fair[O, K comparable, V any] struct {
	limit int

	mu     sync.Mutex // guards the fields below
	owners map[O]*LRU[K, V]
	weight int
}

// NewFair returns an empty cache with that limit.
func NewFair[O, K comparable, V any](limit int) *Fair[O, K, V] {
	return &Fair[O, K, V]{limit: limit, owners: make(map[O]*LRU[K, V])}
}

// Get returns the value of an owner's key, which is then the owner's most recently used.
func (f *Fair[O, K, V]) Get(owner O, key K) (value V, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	own := f.owners[owner]
	if own == nil {
		return value, false
	}
	return own.Get(key)
}

// Put stores a value for an owner as LRU.Put does.
func (f *Fair[O, K, V]) Put(owner O, key K, value V, weight int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	own := f.owners[owner]
	if own == nil {
		own = NewLRU[K, V](f.limit)
		f.owners[owner] = own
	}
	f.weight -= own.Weight()
	own.Put(key, value, weight)
	f.weight += own.Weight()
	for f.weight > f.limit {
		f.give()
	}
	if own.Len() == 0 {
		delete(f.owners, owner)
	}
}

// DeleteFunc drops an owner's entries of the keys that match.
func (f *Fair[O, K, V]) DeleteFunc(owner O, match func(K) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(owner, match)
}

// DeleteAll drops the entries of all owners of the keys that match.
func (f *Fair[O, K, V]) DeleteAll(match func(K) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for owner := range f.owners {
		f.drop(owner, match)
	}
}

// drop is DeleteFunc with the lock held.
func (f *Fair[O, K, V]) drop(owner O, match func(K) bool) {
	own := f.owners[owner]
	if own == nil {
		return
	}
	f.weight -= own.Weight()
	own.DeleteFunc(match)
	f.weight += own.Weight()
	if own.Len() == 0 {
		delete(f.owners, owner)
	}
}

// give drops an entry of the owner whose entries weigh most.
func (f *Fair[O, K, V]) give() {
	var heaviest O
	most := -1
	for owner, own := range f.owners {
		if own.Weight() > most {
			heaviest, most = owner, own.Weight()
		}
	}
	own := f.owners[heaviest]
	key, _, _ := own.Oldest()
	own.Delete(key)
	f.weight += own.Weight() - most
	if own.Len() == 0 {
		delete(f.owners, heaviest)
	}
}

// Weight returns the sum of the weights of all entries.
func (f *Fair[O, K, V]) Weight() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.weight
}
