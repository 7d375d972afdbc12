package pattern

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/loom-bridge/loom-bridge/bridge/events/lists"
)

// Index finds the items whose patterns match a topic. What it costs grows with the
// words of the topic and with what matches, not with how many items there are. All
// methods are safe for concurrent use.
type Index[T lists.Member] struct {
	// patterns is the number of the latest change that added an item of
	// several topics; 0 when there never was one.
	patterns atomic.Uint64

	mu    sync.RWMutex // guards the fields below
	exact byText[T]
	// prefixes has the legacy patterns by what their topics begin with. Each ends
	// with a dot, so that few places of a topic have to be looked at.
	prefixes byText[T]
	root     node[T]
	texts    map[string]int // how many items have this pattern
}

// byText are lists of items by a text; none is empty.
type byText[T lists.Member] map[string]*lists.Shared[T]

func (all byText[T]) add(text string, item T) {
	list := all[text]
	if list == nil {
		list = &lists.Shared[T]{}
		all[text] = list
	}
	list.Add(item)
}

func (all byText[T]) remove(text string, item T) {
	list := all[text]
	if list.Remove(item); list.Len() == 0 {
		delete(all, text)
	}
}

// node stands for the words of native patterns on the way to it.
type node[T lists.Member] struct {
	words map[string]*node[T]
	any   *node[T]         // behind a word that may be any
	here  *lists.Shared[T] // patterns that end here; nil for none
	rest  *lists.Shared[T] // patterns that any further words follow; nil for none
}

// NewIndex returns an empty index.
func NewIndex[T lists.Member]() *Index[T] {
	return &Index[T]{exact: make(byText[T]), prefixes: make(byText[T]), texts: make(map[string]int)}
}

// Groups are items as the index keeps them, each once. Nobody changes the slices.
type Groups[T lists.Member] [][]T

// with appends a list that is not empty.
func (found Groups[T]) with(list *lists.Shared[T]) Groups[T] {
	if list == nil {
		return found
	}
	return append(found, list.Lend())
}

// Match appends the items that match a topic.
func (x *Index[T]) Match(found Groups[T], topic string) Groups[T] {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.several(found.with(x.exact[topic]), topic)
}

// MatchPatterns appends those among them that may match other topics too.
func (x *Index[T]) MatchPatterns(found Groups[T], topic string) Groups[T] {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.several(found, topic)
}

// several appends the items of several topics that match.
func (x *Index[T]) several(found Groups[T], topic string) Groups[T] {
	if len(x.prefixes) > 0 {
		found = x.prefixes.match(found, topic)
	}
	return x.root.match(found, topic, true)
}

// match appends the entries at the prefixes of a topic that end with a dot. Longer
// prefixes, or ones with more words than any pattern, are skipped.
func (all byText[T]) match(found Groups[T], topic string) Groups[T] {
	topic = topic[:min(len(topic), maxPatternBytes)]
	end := 0
	for range maxPatternWords {
		dot := strings.IndexByte(topic[end:], '.')
		if dot < 0 {
			break
		}
		end += dot + 1
		found = found.with(all[topic[:end]])
	}
	return found
}

// match appends what stands below n for the words of topic, if there are any.
func (n *node[T]) match(found Groups[T], topic string, words bool) Groups[T] {
	if !words {
		return found.with(n.here)
	}
	found = found.with(n.rest)
	if n.words == nil && n.any == nil {
		return found
	}
	word, rest, more := cutWord(topic)
	if next := n.words[word]; next != nil {
		found = next.match(found, rest, more)
	}
	if n.any != nil {
		found = n.any.match(found, rest, more)
	}
	return found
}

// Add puts an item with a pattern in; change is higher than that of any before.
func (x *Index[T]) Add(p Pattern, item T, change uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.texts[p.text]++
	switch p.kind {
	case exactPattern:
		x.exact.add(p.text, item)
		return
	case legacyPattern:
		x.prefixes.add(p.Prefix(), item)
	case nativePattern:
		x.root.edit(p.text, func(list *lists.Shared[T]) { list.Add(item) })
	}
	x.patterns.Store(change)
}

// Remove takes an item out that was put in with a pattern.
func (x *Index[T]) Remove(p Pattern, item T) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.texts[p.text]--; x.texts[p.text] == 0 {
		delete(x.texts, p.text)
	}
	switch p.kind {
	case exactPattern:
		x.exact.remove(p.text, item)
	case legacyPattern:
		x.prefixes.remove(p.Prefix(), item)
	case nativePattern:
		x.root.edit(p.text, func(list *lists.Shared[T]) { list.Remove(item) })
	}
}

// Count returns how many items have exactly this pattern.
func (x *Index[T]) Count(text string) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.texts[text]
}

// edit changes the list that the words of a native pattern lead to, and drops what
// is empty afterwards.
func (n *node[T]) edit(pattern string, change func(*lists.Shared[T])) {
	word, rest, more := cutWord(pattern)
	switch word {
	case anyWords:
		n.rest = edited(n.rest, change)
		return
	case anyWord:
		if n.any == nil {
			n.any = &node[T]{}
		}
		if n.any.follow(rest, more, change); n.any.empty() {
			n.any = nil
		}
		return
	}
	next := n.words[word]
	if next == nil {
		next = &node[T]{}
	}
	next.follow(rest, more, change)
	n.setWord(word, next)
}

// follow edits what the rest of a pattern leads to, if there is more of it.
func (n *node[T]) follow(rest string, more bool, change func(*lists.Shared[T])) {
	if more {
		n.edit(rest, change)
		return
	}
	n.here = edited(n.here, change)
}

// edited changes a list, which is nil when it is empty.
func edited[T lists.Member](list *lists.Shared[T], change func(*lists.Shared[T])) *lists.Shared[T] {
	if list == nil {
		list = &lists.Shared[T]{}
	}
	if change(list); list.Len() == 0 {
		return nil
	}
	return list
}

func (n *node[T]) setWord(word string, next *node[T]) {
	if next.empty() {
		delete(n.words, word)
		return
	}
	if n.words == nil {
		n.words = make(map[string]*node[T])
	}
	n.words[word] = next
}

func (n *node[T]) empty() bool {
	return len(n.words) == 0 && n.any == nil && n.here == nil && n.rest == nil
}

// LastChange is the number of the latest change that added an item of several topics; 0
// when there never was one.
func (x *Index[T]) LastChange() uint64 { return x.patterns.Load() }

// Some calls test with each item until one passes, and reports whether one
// did.
func (found Groups[T]) Some(test func(T) bool) bool {
	for _, group := range found {
		for _, item := range group {
			if test(item) {
				return true
			}
		}
	}
	return false
}
