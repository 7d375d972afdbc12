package lexical

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// What a tail takes in memory, about.
const (
	tailDocumentBytes = 60
	tailPostingBytes  = 16
	tailTermBytes     = 100
)

// shortTail is how many documents a tail may have and still be searched one by
// one. Turning so few over costs more than a query or two, and several times
// their memory; of ten thousand small scopes each is asked now and then.
const shortTail = 32

// tail is the remembered part of a scope that is not packed: its terms turned
// over, as soon as it is not short any more. It only grows, so readers of
// several states share it, each looking at the ordinals that its own state has.
// Methods are safe for concurrent use.
type tail struct {
	after uint32 // it holds the documents behind this ordinal

	mu     sync.RWMutex                 // guards the fields below
	last   uint32                       // up to this one
	ids    []string                     // from ordinal after+1
	short  [][]byte                     // the terms of every document; nil once they are inverted
	words  map[string][]segment.Posting // by term; what is in a slice never changes
	values map[string][]segment.Posting
	bytes  int
}

func newTail(after uint32) *tail {
	return &tail{after: after, last: after, short: [][]byte{}, words: make(map[string][]segment.Posting), values: make(map[string][]segment.Posting)}
}

// terms returns the map that has terms of a field.
func (t *tail) terms(term string) map[string][]segment.Posting {
	if segment.Field(term[0]) == segment.Word {
		return t.words
	}
	return t.values
}

// add appends the next document.
func (t *tail) add(e segment.Entry) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.short != nil && len(t.short) < shortTail {
		for _, err := range e.Each() {
			if err != nil {
				return err
			}
		}
		t.short = append(t.short, e.Terms)
		t.bytes += max(e.Size, len(e.Terms))
	} else {
		if err := t.invertAll(); err != nil {
			return err
		}
		if err := t.invert(t.last+1, e); err != nil {
			return err
		}
	}
	t.ids = append(t.ids, string(e.ID))
	t.bytes += tailDocumentBytes
	t.last++
	return nil
}

// invertAll inverts all documents of a short tail.
func (t *tail) invertAll() error {
	for i, terms := range t.short {
		if err := t.invert(t.after+1+uint32(i), segment.Entry{Terms: terms}); err != nil {
			return err
		}
		t.bytes -= len(terms)
	}
	t.short = nil
	return nil
}

// invert adds a document to its terms.
func (t *tail) invert(ordinal uint32, e segment.Entry) error {
	for term, err := range e.Each() {
		if err != nil {
			return err
		}
		into := t.values
		if segment.Field(term.Term[0]) == segment.Word {
			into = t.words
		}
		list, known := into[string(term.Term)]
		if n := len(list); n > 0 && list[n-1].Ordinal >= ordinal {
			return fmt.Errorf("%w: a term comes twice in an entry", segment.ErrDamaged)
		}
		into[string(term.Term)] = append(list, segment.Posting{Ordinal: ordinal, Value: segment.PackFrequency(term.Body, term.Header)})
		t.bytes += tailPostingBytes
		if !known {
			t.bytes += tailTermBytes
		}
	}
	return nil
}

// find returns the postings of a term from first to last.
func (t *tail) find(term string, first, last uint32) []segment.Posting {
	t.mu.RLock()
	list := t.terms(term)[term]
	if len(t.short) > 0 {
		list = t.findShort(term)
	}
	t.mu.RUnlock()
	return between(list, first, last)
}

// findShort is find in all of a short tail.
func (t *tail) findShort(term string) (list []segment.Posting) {
	for i, terms := range t.short {
		if body, header, ok := (segment.Entry{Terms: terms}).Frequency(term); ok {
			list = append(list, segment.Posting{Ordinal: t.after + 1 + uint32(i), Value: segment.PackFrequency(body, header)})
		}
	}
	return list
}

// between returns the postings from first to last.
func between(list []segment.Posting, first, last uint32) []segment.Posting {
	from := sort.Search(len(list), func(i int) bool { return list[i].Ordinal >= first })
	to := from + sort.Search(len(list)-from, func(i int) bool { return list[from+i].Ordinal > last })
	return list[from:to:to]
}

// matching returns the terms that begin with prefix, in order.
func (t *tail) matching(prefix string) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var found []string
	for _, terms := range t.short {
		for term, err := range (segment.Entry{Terms: terms}).Each() {
			if err == nil && strings.HasPrefix(string(term.Term), prefix) {
				found = append(found, string(term.Term))
			}
		}
	}
	for term := range t.terms(prefix) {
		if strings.HasPrefix(term, prefix) {
			found = append(found, term)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// id returns the id of a document.
func (t *tail) id(ordinal uint32) string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.ids[ordinal-t.after-1]
}

// holds reports whether the tail has the documents from after+1 to last.
func (t *tail) holds(after, last uint32) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.after <= after && t.last >= last
}

// behind returns a tail without the documents up to that ordinal.
func (t *tail) behind(after uint32) *tail {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if after >= t.last {
		return newTail(after)
	}
	rest := newTail(after)
	rest.last, rest.ids = t.last, slices.Clone(t.ids[after-t.after:])
	rest.short = nil
	if t.short != nil {
		rest.short = slices.Clone(t.short[after-t.after:])
		for _, terms := range rest.short {
			rest.bytes += len(terms)
		}
	}
	for from, into := range map[*map[string][]segment.Posting]map[string][]segment.Posting{&t.words: rest.words, &t.values: rest.values} {
		for term, list := range maps.All(*from) {
			if list = between(list, after+1, t.last); len(list) > 0 {
				into[term] = slices.Clone(list)
				rest.bytes += tailTermBytes + tailPostingBytes*len(list)
			}
		}
	}
	rest.bytes += tailDocumentBytes * len(rest.ids)
	return rest
}

// size is about how much memory it takes.
func (t *tail) size() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.bytes
}

// entries yields the entries behind an ordinal, in order. The view must not
// change under it.
func (h scopeHead) entries(ctx context.Context, from kv.Getter, after uint32) iter.Seq2[segment.Entry, error] {
	return func(yield func(segment.Entry, error) bool) {
		if after >= h.Stats.Last {
			return
		}
		all := kv.Range{Start: h.EntryKey(after + 1), End: kv.After(h.EntryKey(h.Stats.Last))}
		n := 0
		for pair, err := range from.Scan(ctx, kv.Index, all) {
			if err != nil {
				yield(segment.Entry{}, err)
				return
			}
			e, err := segment.DecodeEntry(pair.Value)
			n++
			if !yield(e, err) || err != nil {
				return
			}
		}
		if n != int(h.Stats.Last-after) {
			yield(segment.Entry{}, fmt.Errorf("%w: %d of %d entries of the tail", segment.ErrDamaged, n, h.Stats.Last-after))
		}
	}
}
