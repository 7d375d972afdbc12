package events

import (
	"fmt"
	"strings"
)

// Topics that only the bridge emits on.
const (
	// StatusTopic gets one volatile event for each change of an agent's status.
	StatusTopic = "agent.status"
	// FoldedTopic gets one volatile event for each batch of folds that was stored.
	FoldedTopic = "context.folded"
)

func bridgeTopic(topic string) bool { return topic == StatusTopic || topic == FoldedTopic }

// agentPrefix begins the topics that belong to one agent.
const agentPrefix = "agent."

// mayRead tells whether a reader that may act for some agents, all if acts is nil,
// may read a topic. What begins with `agent.<id>.` is the inbox of that agent: anybody
// emits there, and only it reads. An id may hold dots: `agent.a.b.replies` is a.b's,
// any other `agent.a.b.c` that of a or of a.b.
func mayRead(acts func(agent string) bool, topic string) bool {
	if acts == nil || !strings.HasPrefix(topic, agentPrefix) {
		return true
	}
	rest := topic[len(agentPrefix):]
	if id, ok := strings.CutSuffix(rest, mailboxSuffix); ok {
		return acts(id)
	}
	owned := false
	for i := range len(rest) {
		if rest[i] != '.' {
			continue
		}
		if owned = true; acts(rest[:i]) {
			return true
		}
	}
	return !owned
}

func (s *Subscription) mayRead(topic string) bool { return mayRead(s.acts, topic) }

// OwnedTopicError names a topic that belongs to an agent for which the reader may
// not act. It is an ErrNotOwned.
type OwnedTopicError struct{ Topic string }

func (e *OwnedTopicError) Error() string {
	return fmt.Sprintf("events: topic %q belongs to an agent that the caller may not act for", e.Topic)
}

// Is makes errors.Is(err, ErrNotOwned) true.
func (e *OwnedTopicError) Is(target error) bool { return target == ErrNotOwned }

// Heard tells whether somebody listens to the topic of an event now, and wants it.
func (b *Bus) Heard(tenant string, e Event) bool {
	x := b.indexOf(tenant)
	if x == nil {
		return false
	}
	var room [4][]*selection
	return x.match(room[:0], e.Topic).some(func(sel *selection) bool { return sel.wants(&e) })
}
