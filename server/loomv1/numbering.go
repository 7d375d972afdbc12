package loomv1

import (
	"crypto/sha256"
	"sync"
)

// maxNumbered bounds the topics that are counted. It is more than the mailboxes that are
// published to at a time.
const maxNumbered = 4096

// numbering counts the events of topics that are not stored. The zero value is ready for
// use; all methods are safe for concurrent use.
type numbering struct {
	mu sync.Mutex // guards the fields below
	// floor is the highest number of the topics that were dropped, so that numbers of a
	// topic that comes back still rise.
	floor  int64
	counts map[[sha256.Size]byte]int64
}

// next returns a number higher than any before it on the topic.
func (n *numbering) next(tenant, topic string) int64 {
	key := sha256.Sum256([]byte(tenant + "\x00" + topic)) // the topic may be as long as a message
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, known := n.counts[key]; !known && len(n.counts) >= maxNumbered {
		for _, count := range n.counts {
			n.floor = max(n.floor, count)
		}
		n.counts = nil
	}
	if n.counts == nil {
		n.counts = make(map[[sha256.Size]byte]int64)
	}
	n.counts[key] = max(n.counts[key], n.floor) + 1
	return n.counts[key]
}
