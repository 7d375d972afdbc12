package events

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// index finds the selections of one tenant that match a topic. What it costs
// grows with the words of the topic and with what matches, not with how many
// selections there are.
type index struct {
	users int // the tenant's subscriptions; guarded by the bus

	// patterns is the number of the latest change that added a selection of
	// several topics; 0 when there never was one.
	patterns atomic.Uint64

	mu    sync.RWMutex // guards the fields below
	exact map[string][]*selection
	root  node
	texts map[string]int // how many selections have this pattern
}

// node stands for the words on the way to it.
type node struct {
	words map[string]*node
	any   *node        // behind a word that may be any
	here  []*selection // patterns that end here
	rest  []*selection // patterns that any further words follow
}

func newIndex() *index {
	return &index{exact: make(map[string][]*selection), texts: make(map[string]int)}
}

// groups are selections as the index keeps them. Nobody changes the slices:
// adding appends behind what was handed out, removing makes new ones.
type groups [][]*selection

// match appends the selections that match a topic.
func (x *index) match(found groups, topic string) groups {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if exact := x.exact[topic]; len(exact) > 0 {
		found = append(found, exact)
	}
	return x.root.match(found, topic, true)
}

// matchPatterns appends those among them that may match other topics too.
func (x *index) matchPatterns(found groups, topic string) groups {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.root.match(found, topic, true)
}

// match appends what stands below n for the words of topic, if there are any.
func (n *node) match(found groups, topic string, words bool) groups {
	if !words {
		if len(n.here) > 0 {
			found = append(found, n.here)
		}
		return found
	}
	if len(n.rest) > 0 {
		found = append(found, n.rest)
	}
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
	if topic, ok := sel.pattern.Exact(); ok {
		x.exact[topic] = append(x.exact[topic], sel)
		return
	}
	x.root.edit(sel.pattern.steps(), func(list []*selection) []*selection { return append(list, sel) })
	x.patterns.Store(change)
}

// remove takes a selection out that was put in.
func (x *index) remove(sel *selection) {
	x.mu.Lock()
	defer x.mu.Unlock()
	without := func(list []*selection) []*selection {
		i := slices.Index(list, sel)
		return slices.Concat(list[:i], list[i+1:])
	}
	if x.texts[sel.pattern.text]--; x.texts[sel.pattern.text] == 0 {
		delete(x.texts, sel.pattern.text)
	}
	topic, ok := sel.pattern.Exact()
	if !ok {
		x.root.edit(sel.pattern.steps(), without)
		return
	}
	if x.exact[topic] = without(x.exact[topic]); len(x.exact[topic]) == 0 {
		delete(x.exact, topic)
	}
}

// count returns how many selections have exactly this pattern.
func (x *index) count(text string) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.texts[text]
}

// step is one word of a pattern.
type step struct {
	word string
	kind stepKind
}

type stepKind uint8

const (
	literalStep stepKind = iota
	anyStep
	restStep // the last one, and no word
)

// steps takes a pattern of several topics apart.
func (p Pattern) steps() []step {
	var steps []step
	text, legacy := p.text, p.kind == legacyPattern
	if legacy {
		text = strings.TrimSuffix(p.text, legacyRest)
	}
	for word := range strings.SplitSeq(text, ".") {
		switch {
		case !legacy && word == anyWord:
			steps = append(steps, step{kind: anyStep})
		case !legacy && word == anyWords:
			steps = append(steps, step{kind: restStep})
		default:
			steps = append(steps, step{word: word})
		}
	}
	if legacy {
		steps = append(steps, step{kind: restStep})
	}
	return steps
}

// edit changes the list that steps lead to, and drops nodes that are empty
// afterwards.
func (n *node) edit(steps []step, change func([]*selection) []*selection) {
	if len(steps) == 0 {
		n.here = change(n.here)
		return
	}
	switch first := steps[0]; first.kind {
	case restStep:
		n.rest = change(n.rest)
	case anyStep:
		if n.any == nil {
			n.any = &node{}
		}
		if n.any.edit(steps[1:], change); n.any.empty() {
			n.any = nil
		}
	case literalStep:
		next := n.words[first.word]
		if next == nil {
			next = &node{}
		}
		next.edit(steps[1:], change)
		n.setWord(first.word, next)
	}
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
	return len(n.words) == 0 && n.any == nil && len(n.here) == 0 && len(n.rest) == 0
}
