package cache

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
)

// plainLRU is an LRU that does everything the slow way: the last one is the most
// recently used.
type plainLRU struct {
	limit   int
	entries []plainEntry
}

type plainEntry struct{ key, value, weight int }

func (p *plainLRU) at(key int) int {
	return slices.IndexFunc(p.entries, func(e plainEntry) bool { return e.key == key })
}

func (p *plainLRU) weight() (sum int) {
	for _, e := range p.entries {
		sum += e.weight
	}
	return sum
}

func (p *plainLRU) get(key int) (int, bool) {
	at := p.at(key)
	if at < 0 {
		return 0, false
	}
	e := p.entries[at]
	p.entries = append(slices.Delete(p.entries, at, at+1), e)
	return e.value, true
}

func (p *plainLRU) put(key, value, weight int) {
	if at := p.at(key); at >= 0 {
		p.entries = slices.Delete(p.entries, at, at+1)
	}
	if weight > p.limit {
		return
	}
	p.entries = append(p.entries, plainEntry{key, value, weight})
	for p.weight() > p.limit {
		p.entries = p.entries[1:]
	}
}

func TestLRUAgreesWithPlainOne(t *testing.T) {
	seed := chance.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 50 {
		limit := rng.IntN(40)
		plain, lru := &plainLRU{limit: limit}, NewLRU[int, int](limit)
		for i := range 500 {
			key := rng.IntN(12)
			switch rng.IntN(5) {
			case 0, 1:
				weight := rng.IntN(limit + 3)
				plain.put(key, i, weight)
				lru.Put(key, i, weight)
			case 2, 3:
				want, wantOK := plain.get(key)
				if got, ok := lru.Get(key); got != want || ok != wantOK {
					t.Fatalf("seed %d: get %d: %d, %v, want %d, %v", seed, key, got, ok, want, wantOK)
				}
			default:
				if at := plain.at(key); at >= 0 {
					plain.entries = slices.Delete(plain.entries, at, at+1)
				}
				lru.Delete(key)
			}
			if lru.Weight() != plain.weight() || lru.Len() != len(plain.entries) {
				t.Fatalf("seed %d: weight %d of %d entries, want %d of %d", seed, lru.Weight(), lru.Len(), plain.weight(), len(plain.entries))
			}
			key, value, ok := lru.Oldest()
			if ok != (len(plain.entries) > 0) || ok && (key != plain.entries[0].key || value != plain.entries[0].value) {
				t.Fatalf("seed %d: the oldest is %d: %d, %v, of %v", seed, key, value, ok, plain.entries)
			}
		}
	}
}

func TestCacheCreatesOnce(t *testing.T) {
	c := New[string, *int](10)
	created := 0 // guarded by the cache
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 100 {
				c.GetOrPut("a", 3, func() *int {
					created++
					return new(int)
				})
			}
		})
	}
	wg.Wait()
	if created != 1 || c.Len() != 1 || c.Weight() != 3 {
		t.Errorf("created %d times, %d entries of weight %d", created, c.Len(), c.Weight())
	}
	c.Put("b", nil, 8)
	if _, ok := c.Get("a"); ok {
		t.Error("an entry over the limit stays")
	}
	c.GetOrPut("c", 11, func() *int { return nil })
	if c.Len() != 1 {
		t.Error("a value heavier than the limit is stored")
	}
}

// The owner that has most gives way: one that floods the cache drives nobody else out.
func TestFairSparesOtherOwners(t *testing.T) {
	f := NewFair[string, int, int](100)
	for i := range 4 {
		f.Put("small", i, i, 10)
	}
	for i := range 1000 {
		f.Put("flood", i, i, 1+i%7)
		if f.Weight() > 100 {
			t.Fatalf("weight %d over the limit", f.Weight())
		}
	}
	for i := range 4 {
		if v, ok := f.Get("small", i); !ok || v != i {
			t.Errorf("entry %d of the small owner was driven out", i)
		}
	}
	if _, ok := f.Get("flood", 999); !ok {
		t.Error("the newest entry of the other owner is gone")
	}
	if _, ok := f.Get("nobody", 0); ok {
		t.Error("one owner has another's entry")
	}
	f.Put("huge", 1, 1, 101)
	if _, ok := f.Get("huge", 1); ok {
		t.Error("a value heavier than the limit is stored")
	}
	for i := range 10 {
		f.Put("third", i, i, 10)
	}
	if got := f.owners["small"].Weight(); got < 30 {
		t.Errorf("the small owner has %d left of its share of 33", got)
	}
}

func BenchmarkGet(b *testing.B) {
	c := New[int, int](1000)
	for i := range 1000 {
		c.Put(i, i, 1)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if _, ok := c.Get(i * 7 % 1000); !ok {
				b.Error("missing")
			}
		}
	})
}
