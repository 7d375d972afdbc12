package tokens

import (
	"bytes"
	"slices"
	"sort"
)

// tree finds the longest token that a text begins with. Its nodes are the
// tokens and the places where two of them part. They are numbered level by
// level, so that the children of a node stand side by side in the order of
// their first bytes.
type tree struct {
	single [256]token        // the tokens of one byte
	double [256 * 256]uint32 // the nodes that begin with two bytes; 0 where there is none
	nodes  []treeNode
	label  []byte // the first byte of a node behind the one above it
	text   []byte // of the vocabulary, where the tails are
}

// treeNode is a beginning of tokens. Its children go up to the first child of the
// next node.
type treeNode struct {
	child uint32
	token token // the token that it is, or noToken
	// tail is where the bytes of the node behind its label begin.
	tail    uint32
	tailLen uint8
}

// newTree also returns for each token the longest other one that it begins
// with, or noToken.
func newTree(v *vocabulary) (*tree, []token) {
	n := v.size() * 3 / 2
	t := &tree{label: make([]byte, 0, n), nodes: make([]treeNode, 0, n), text: v.text}
	shorter := t.grow(v, sorted(v))
	t.nodes, t.label = slices.Clone(t.nodes), slices.Clone(t.label)
	for i := range t.single {
		t.single[i] = noToken
	}
	for n := t.nodes[0].child; n < t.nodes[1].child; n++ {
		t.single[t.label[n]] = t.nodes[n].token
		for m := t.nodes[n].child; m < t.nodes[n+1].child; m++ {
			t.double[int(t.label[n])<<8|int(t.label[m])] = m
		}
	}
	return t, shorter
}

// sorted returns the tokens in the order of their bytes. Numbers sort faster
// than texts, so the first bytes of a token and its number are packed into one,
// and only tokens with the same first bytes are compared by all bytes.
func sorted(v *vocabulary) []token {
	heads := make([]uint64, v.size())
	for t := range token(v.size()) {
		var head uint64
		for i, b := range v.bytes(t)[:min(8, v.length[t])] {
			head |= uint64(b) << (56 - 8*i)
		}
		heads[t] = head>>tokenBits<<tokenBits | uint64(t)
	}
	slices.Sort(heads)
	order := make([]token, len(heads))
	for i, head := range heads {
		order[i] = token(head) & maxTokens
	}
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && heads[to]>>tokenBits == heads[from]>>tokenBits {
			to++
		}
		slices.SortFunc(order[from:to], func(a, b token) int { return bytes.Compare(v.bytes(a), v.bytes(b)) })
		from = to
	}
	return order
}

// span is a node whose children are still to be added: the sorted tokens that
// begin with it, its length, and the longest token that it is or begins with.
type span struct {
	from, to uint32
	depth    int
	token    token
}

// grow adds the nodes from the sorted tokens.
func (t *tree) grow(v *vocabulary, order []token) (shorter []token) {
	shorter = make([]token, len(order))
	t.label, t.nodes = append(t.label, 0), append(t.nodes, treeNode{token: noToken})
	level, done := []span{{0, uint32(len(order)), 0, noToken}}, 0
	var below []span
	for len(level) > 0 {
		below = below[:0]
		for _, s := range level {
			t.nodes[done].child = uint32(len(t.nodes))
			done++
			for s.from < s.to {
				child := childSpan(v, order, s)
				s.from = child.to
				below = append(below, t.add(v, order, child, s.depth, shorter))
			}
		}
		level, below = below, level
	}
	t.label, t.nodes = append(t.label, 0), append(t.nodes, treeNode{child: uint32(done)})
	return shorter
}

// childSpan returns the first child of a span: the tokens that share their next
// byte, and how much more they share.
func childSpan(v *vocabulary, order []token, s span) span {
	first := v.bytes(order[s.from])
	s.depth, s.to = s.depth+1, s.from+1+uint32(sort.Search(int(s.to-s.from)-1, func(i int) bool {
		return v.bytes(order[int(s.from)+1+i])[s.depth] != first[s.depth]
	}))
	last := v.bytes(order[s.to-1])
	for s.depth < len(first) && s.depth < len(last) && first[s.depth] == last[s.depth] {
		s.depth++
	}
	return s
}

// add adds the node of a span, which begins with depth bytes of the node above
// it. A span that begins with the token that is its node goes on behind it.
func (t *tree) add(v *vocabulary, order []token, s span, depth int, shorter []token) span {
	first := order[s.from]
	n := treeNode{token: noToken, tail: v.start[first] + uint32(depth) + 1, tailLen: uint8(s.depth - depth - 1)}
	t.label = append(t.label, v.bytes(first)[depth])
	if int(v.length[first]) == s.depth {
		shorter[first] = s.token
		n.token, s.token = first, first
		s.from++
	}
	t.nodes = append(t.nodes, n)
	return s
}

// longest returns the longest token that text begins with; every byte is one.
func (t *tree) longest(text string) token {
	best := t.single[text[0]]
	if len(text) < 2 {
		return best
	}
	at := t.double[int(text[0])<<8|int(text[1])]
	for i := 2; at != 0; i++ {
		n := &t.nodes[at]
		if n.tailLen != 0 {
			end := i + int(n.tailLen)
			if end > len(text) || text[i:end] != string(t.text[n.tail:n.tail+uint32(n.tailLen)]) {
				break
			}
			i = end
		}
		if n.token != noToken {
			best = n.token
		}
		if i == len(text) {
			break
		}
		at = t.below(at, text[i])
	}
	return best
}

// below returns the child of a node with a byte, or 0.
func (t *tree) below(n uint32, b byte) uint32 {
	from := t.nodes[n].child
	for i, label := range t.label[from:t.nodes[n+1].child] {
		if label >= b {
			if label == b {
				return from + uint32(i)
			}
			return 0
		}
	}
	return 0
}

// find returns the token with exactly these bytes, or noToken.
func (t *tree) find(v *vocabulary, text string) token {
	if found := t.longest(text); int(v.length[found]) == len(text) {
		return found
	}
	return noToken
}
