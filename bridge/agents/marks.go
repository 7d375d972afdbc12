package agents

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Limits of a gap: what exceeds them is dropped, the oldest first.
const (
	// MaxGapTopics bounds the topics that a gap remembers.
	MaxGapTopics = 512
	// MaxGapTopicBytes bounds the name of one; a longer one is not remembered. No
	// durable topic has one.
	MaxGapTopicBytes = 256
	// MaxGapIDs bounds the event ids that a gap remembers.
	MaxGapIDs = 256
	// MaxGapIDBytes bounds one of them; a longer one is not remembered.
	MaxGapIDBytes = 256
)

// marks says what a stream has been sent so far. It grows to twice its limits before it
// is cut, so that the cost of a mark does not depend on their number.
type marks struct {
	since  time.Time
	topics map[string]topicMark
	ids    []string // the newest last
	clock  uint64
}

type topicMark struct{ sequence, at uint64 }

// sent notes one event, and reports whether the marks must be stored. They need not be for
// an id alone, because the sequence says what was sent.
func (m *marks) sent(topic string, sequence uint64, id string) bool {
	m.remember(id)
	return m.reached(topic, sequence)
}

func (m *marks) remember(id string) {
	if id == "" || len(id) > MaxGapIDBytes {
		return
	}
	if len(m.ids) >= 2*MaxGapIDs {
		m.ids = append(m.ids[:0], lastOf(m.ids)...)
	}
	m.ids = append(m.ids, id)
}

func (m *marks) reached(topic string, sequence uint64) bool {
	before, known := m.topics[topic]
	if topic == "" || len(topic) > MaxGapTopicBytes || known && before.sequence >= sequence {
		return false
	}
	if !known && len(m.topics) >= 2*MaxGapTopics {
		m.topics = m.newest()
	}
	if m.topics == nil {
		m.topics = make(map[string]topicMark)
	}
	m.clock++
	m.topics[topic] = topicMark{sequence, m.clock}
	return true
}

// replace takes over a whole gap; it reports whether that is worth storing.
func (m *marks) replace(g Gap) bool {
	same := g.Since.Equal(m.since) &&
		maps.EqualFunc(g.Delivered, m.topics, func(sequence uint64, t topicMark) bool { return sequence == t.sequence })
	if same {
		m.ids = nil
	} else {
		*m = marks{since: g.Since}
	}
	for _, id := range lastOf(g.RecentIDs) {
		m.remember(id)
	}
	for topic, sequence := range g.Delivered {
		m.reached(topic, sequence)
	}
	return !same
}

// gap returns a copy of the marks within their limits.
func (m *marks) gap() Gap {
	g := m.places()
	g.RecentIDs = slices.Clone(lastOf(m.ids))
	return g
}

// places is gap without the ids.
func (m *marks) places() Gap {
	g := Gap{Since: m.since}
	for topic, mark := range m.newest() {
		if g.Delivered == nil {
			g.Delivered = make(map[string]uint64)
		}
		g.Delivered[topic] = mark.sequence
	}
	return g
}

// newest returns the topics that were reached last, as many as may be kept.
func (m *marks) newest() map[string]topicMark {
	if len(m.topics) <= MaxGapTopics {
		return m.topics
	}
	names := slices.SortedFunc(maps.Keys(m.topics), func(a, b string) int {
		return cmp.Compare(m.topics[b].at, m.topics[a].at)
	})
	kept := make(map[string]topicMark, MaxGapTopics)
	for _, name := range names[:MaxGapTopics] {
		kept[name] = m.topics[name]
	}
	return kept
}

func lastOf(ids []string) []string { return ids[max(0, len(ids)-MaxGapIDs):] }
