package memkv

import (
	"bytes"
	"math/rand/v2"
)

// node is the root of an immutable treap: a search tree by key and a heap by
// weight, which random weights keep shallow. A nil node is the empty tree.
// Every change returns a new root and shares what it did not touch.
type node struct {
	key, value  []byte
	weight      uint64
	left, right *node
}

func leaf(key, value []byte) *node {
	return &node{key: key, value: value, weight: rand.Uint64()}
}

// find returns the node of key, or nil.
func (n *node) find(key []byte) *node {
	for n != nil {
		switch c := bytes.Compare(key, n.key); {
		case c == 0:
			return n
		case c < 0:
			n = n.left
		default:
			n = n.right
		}
	}
	return nil
}

// split returns the tree of the keys below key and the tree of the others.
func (n *node) split(key []byte) (below, others *node) {
	if n == nil {
		return nil, nil
	}
	half := *n
	if bytes.Compare(n.key, key) < 0 {
		half.right, others = n.right.split(key)
		return &half, others
	}
	below, half.left = n.left.split(key)
	return below, &half
}

// join unites two trees; every key of low is below every key of high.
func join(low, high *node) *node {
	switch {
	case low == nil:
		return high
	case high == nil:
		return low
	case low.weight > high.weight:
		top := *low
		top.right = join(low.right, high)
		return &top
	default:
		top := *high
		top.left = join(low, high.left)
		return &top
	}
}

func (n *node) put(key, value []byte) *node { return n.replace(key, leaf(key, value)) }

func (n *node) remove(key []byte) *node { return n.replace(key, nil) }

// replace puts with, a single node or nil, where key is or would be.
func (n *node) replace(key []byte, with *node) *node {
	below, others := n.split(key)
	_, above := others.split(next(key))
	return join(join(below, with), above)
}

// next returns the key directly behind key.
func next(key []byte) []byte {
	return append(bytes.Clone(key), 0x00)
}

// ascend calls yield for the nodes from start to end (nil: no bound) in order
// until it returns false, and reports whether it never did.
func (n *node) ascend(start, end []byte, yield func(*node) bool) bool {
	if n == nil {
		return true
	}
	behindStart := bytes.Compare(n.key, start) >= 0
	beforeEnd := end == nil || bytes.Compare(n.key, end) < 0
	if behindStart && !n.left.ascend(start, end, yield) {
		return false
	}
	if behindStart && beforeEnd && !yield(n) {
		return false
	}
	return !beforeEnd || n.right.ascend(start, end, yield)
}

// descend is ascend in the opposite order.
func (n *node) descend(start, end []byte, yield func(*node) bool) bool {
	if n == nil {
		return true
	}
	behindStart := bytes.Compare(n.key, start) >= 0
	beforeEnd := end == nil || bytes.Compare(n.key, end) < 0
	if beforeEnd && !n.right.descend(start, end, yield) {
		return false
	}
	if behindStart && beforeEnd && !yield(n) {
		return false
	}
	return !behindStart || n.left.descend(start, end, yield)
}
