package events

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/loom-bridge/loom-bridge/bridge/share"
)

// index finds the selections of one tenant that match a topic. What it costs
// grows with the words of the topic and with what matches, not with how many
// selections there are.
type index struct {
	users int // the tenant's subscriptions; guarded by the bus
	// queued counts the volatile events that wait for them; nil for an index that
	// is not of a tenant.
	queued *share.Meter

	// patterns is the number of the latest change that added a selection of
	// several topics; 0 when there never was one.
	patterns atomic.Uint64

	mu    sync.RWMutex // guards the fields below
	exact rosters
	// prefixes has the legacy patterns by what their topics begin with. Each ends
	// with a dot, so that few places of a topic have to be looked at.
	prefixes rosters
	root     node
	texts    map[string]int // how many selections have this pattern
}

// rosters are lists of selections by a text; none is empty.
type rosters map[string]*roster[*selection]

func (all rosters) add(text string, sel *selection) {
	list := all[text]
	if list == nil {
		list = &roster[*selection]{}
		all[text] = list
	}
	list.add(sel)
}

func (all rosters) remove(text string, sel *selection) {
	list := all[text]
	if list.remove(sel); list.len() == 0 {
		delete(all, text)
	}
}

// node stands for the words of native patterns on the way to it.
type node struct {
	words map[string]*node
	any   *node               // behind a word that may be any
	here  *roster[*selection] // patterns that end here; nil for none
	rest  *roster[*selection] // patterns that any further words follow; nil for none
}

func newIndex() *index {
	return &index{exact: make(rosters), prefixes: make(rosters), texts: make(map[string]int)}
}

// groups are selections as the index keeps them. Nobody changes the slices.
type groups [][]*selection

// with appends a list that is not empty.
func (found groups) with(list *roster[*selection]) groups {
	if list == nil {
		return found
	}
	return append(found, list.lend())
}

// match appends the selections that match a topic.
func (x *index) match(found groups, topic string) groups {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.several(found.with(x.exact[topic]), topic)
}

// matchPatterns appends those among them that may match other topics too.
func (x *index) matchPatterns(found groups, topic string) groups {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.several(found, topic)
}

// several appends the selections of several topics that match.
func (x *index) several(found groups, topic string) groups {
	if len(x.prefixes) > 0 {
		found = x.prefixes.match(found, topic)
	}
	return x.root.match(found, topic, true)
}

// match appends what stands at the beginnings of a topic that end with a dot. No
// pattern has more words, or is longer, than what is looked at.
func (all rosters) match(found groups, topic string) groups {
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
func (n *node) match(found groups, topic string, words bool) groups {
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

// add puts a selection in; change is higher than that of any before.
func (x *index) add(sel *selection, change uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.texts[sel.pattern.text]++
	switch sel.pattern.kind {
	case exactPattern:
		x.exact.add(sel.pattern.text, sel)
		return
	case legacyPattern:
		x.prefixes.add(sel.pattern.prefix(), sel)
	case nativePattern:
		x.root.edit(sel.pattern.text, func(list *roster[*selection]) { list.add(sel) })
	}
	x.patterns.Store(change)
}

// remove takes a selection out that was put in.
func (x *index) remove(sel *selection) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.texts[sel.pattern.text]--; x.texts[sel.pattern.text] == 0 {
		delete(x.texts, sel.pattern.text)
	}
	switch sel.pattern.kind {
	case exactPattern:
		x.exact.remove(sel.pattern.text, sel)
	case legacyPattern:
		x.prefixes.remove(sel.pattern.prefix(), sel)
	case nativePattern:
		x.root.edit(sel.pattern.text, func(list *roster[*selection]) { list.remove(sel) })
	}
}

// count returns how many selections have exactly this pattern.
func (x *index) count(text string) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.texts[text]
}

// edit changes the list that the words of a native pattern lead to, and drops what
// is empty afterwards.
func (n *node) edit(pattern string, change func(*roster[*selection])) {
	word, rest, more := cutWord(pattern)
	switch word {
	case anyWords:
		n.rest = edited(n.rest, change)
		return
	case anyWord:
		if n.any == nil {
			n.any = &node{}
		}
		if n.any.follow(rest, more, change); n.any.empty() {
			n.any = nil
		}
		return
	}
	next := n.words[word]
	if next == nil {
		next = &node{}
	}
	next.follow(rest, more, change)
	n.setWord(word, next)
}

// follow edits what the rest of a pattern leads to, if there is more of it.
func (n *node) follow(rest string, more bool, change func(*roster[*selection])) {
	if more {
		n.edit(rest, change)
		return
	}
	n.here = edited(n.here, change)
}

// edited changes a list, which is nil when it is empty.
func edited(list *roster[*selection], change func(*roster[*selection])) *roster[*selection] {
	if list == nil {
		list = &roster[*selection]{}
	}
	if change(list); list.len() == 0 {
		return nil
	}
	return list
}

func (n *node) setWord(word string, next *node) {
	if next.empty() {
		delete(n.words, word)
		return
	}
	if n.words == nil {
		n.words = make(map[string]*node)
	}
	n.words[word] = next
}

func (n *node) empty() bool {
	return len(n.words) == 0 && n.any == nil && n.here == nil && n.rest == nil
}
