package search

import (
	"hash/maphash"
	"sync"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// maxIndexes bounds the tenants whose index is kept between two questions.
const maxIndexes = 64

// Finder finds tools of a catalogue. It is safe for concurrent use.
type Finder struct {
	catalogue *tools.Catalogue
	seed      maphash.Seed

	mu    sync.Mutex
	known map[string]indexed // guarded by mu; by tenant
}

// indexed is the index of the tools that a tenant had.
type indexed struct {
	digest uint64
	index  *Index
}

// NewFinder returns a finder of the tools of a catalogue.
func NewFinder(c *tools.Catalogue) *Finder {
	return &Finder{catalogue: c, seed: maphash.MakeSeed(), known: map[string]indexed{}}
}

// Find returns the tools that fit a question, the best first, at most limit, and how many
// tools there are. The tool of this package is never among them.
func (f *Finder) Find(tenant, question string, limit int) (found []tools.Offer, of int) {
	all := f.catalogue.List(tenant, "")
	for i := range all {
		if all[i].Name == Name {
			all = append(all[:i:i], all[i+1:]...)
			break
		}
	}
	for _, hit := range f.index(tenant, all).Find(question, limit) {
		found = append(found, all[hit.At])
	}
	return found, len(all)
}

// index is the index of a tenant's tools, made anew when they are others.
func (f *Finder) index(tenant string, all []tools.Offer) *Index {
	var h maphash.Hash
	h.SetSeed(f.seed)
	for i := range all {
		for _, text := range []string{all[i].Name, all[i].Description, string(all[i].Schema)} {
			_, _ = h.WriteString(text)
			_ = h.WriteByte(0xff) // stands in no UTF-8
		}
	}
	digest := h.Sum64()
	f.mu.Lock()
	last, ok := f.known[tenant]
	f.mu.Unlock()
	if ok && last.digest == digest {
		return last.index
	}
	list := make([]Indexed, len(all))
	for i, o := range all {
		list[i] = Indexed{o.Name, o.Description, o.Schema}
	}
	made := indexed{digest, New(list)}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.known) >= maxIndexes {
		clear(f.known)
	}
	f.known[tenant] = made
	return made.index
}
