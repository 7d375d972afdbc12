package topics

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/a2a"
)

// Topics that only the bridge emits on.
const (
	// Status gets one volatile event for each change of an agent's status.
	Status = "agent.status"
	// Folded gets one volatile event for each batch of folds that was stored.
	Folded = "context.folded"
	// Progress gets volatile events of calls whose tool says how far it is.
	Progress = "tool.progress"
)

const (
	// execute is a task's topic, and so are those with nodePrefix but nodeMessage.
	execute      = "execute"
	nodePrefix   = "node."
	nodeMessage  = "node.message"
	nodePlanning = "node.planning"
	// agentPrefix begins the topics that belong to one agent.
	agentPrefix = "agent."
	// mailboxSuffix ends the topics of answers, which matter to one reader at one
	// moment.
	mailboxSuffix = ".replies"
)

// ErrReserved: the topic belongs to the bridge itself.
var ErrReserved = errors.New("topics: reserved topic")

// ReservedError names a topic that takes no event of the emitter's. It is an
// ErrReserved.
type ReservedError struct{ Topic string }

func (e *ReservedError) Error() string { return fmt.Sprintf("topics: topic %q is reserved", e.Topic) }

// Is makes errors.Is(err, ErrReserved) true.
func (e *ReservedError) Is(target error) bool { return target == ErrReserved }

// Mailbox is the topic of the answers to one agent.
func Mailbox(agent string) string { return agentPrefix + agent + mailboxSuffix }

// IsMailbox reports whether a topic is one for answers. Nothing that loom.v1 publishes
// there is stored: an answer that comes after its request has ended is of no use.
func IsMailbox(topic string) bool { return strings.HasSuffix(topic, mailboxSuffix) }

// isMessages reports whether a topic is that of an agent's direct messages.
func isMessages(topic string) bool {
	return isOwned(topic, messagesSuffix)
}

// Plain reports whether an event on a topic is stored and delivered, and does nothing else.
func Plain(topic string) bool {
	return !strings.HasPrefix(topic, agentPrefix) && !strings.HasPrefix(topic, nodePrefix) && topic != execute
}

// isTask reports whether an event on a topic is a task of that action.
func isTask(topic string) bool {
	return topic == execute || strings.HasPrefix(topic, nodePrefix) && topic != nodeMessage
}

// toldTo is the agent that the bridge writes to on a topic; false for any other
// topic.
func toldTo(topic string) (agent string, ok bool) {
	for _, suffix := range []string{messagesSuffix, spawnSuffix, resultsSuffix} {
		if isOwned(topic, suffix) {
			return topic[len(agentPrefix) : len(topic)-len(suffix)], true
		}
	}
	return "", false
}

// Readable reports for each topic whether an agent may read it, whose caller may act for
// some agents. What the bridge writes to an agent is read by that one alone, and a spawned
// agent reads no inbox but its own. An empty agent is no agent.
func Readable(agent string, spawned bool, actsFor func(agent string) bool) func(topic string) bool {
	if spawned {
		actsFor = func(other string) bool { return other == agent }
	}
	inbox := ReadableBy(actsFor)
	return func(topic string) bool {
		if to, ok := toldTo(topic); ok {
			return to == agent
		}
		return inbox(topic)
	}
}

// ReadableBy reports for each topic whether a reader that may act for some agents may
// read it. An id may hold dots: `agent.a.b.replies` is a.b's, any other
// `agent.a.b.c` that of a or of a.b.
func ReadableBy(actsFor func(agent string) bool) func(topic string) bool {
	return func(topic string) bool {
		rest, isAgents := strings.CutPrefix(topic, agentPrefix)
		if !isAgents {
			return true
		}
		if id, ok := strings.CutSuffix(rest, mailboxSuffix); ok {
			return actsFor(id)
		}
		owned := false
		for i := range len(rest) {
			if rest[i] != '.' {
				continue
			}
			if owned = true; actsFor(rest[:i]) {
				return true
			}
		}
		return !owned
	}
}

// IsOf reports whether a topic is named after an agent, and has nothing but what is said to it.
func IsOf(agent, topic string) bool {
	if of, _, ok := a2a.Of(topic); ok {
		return of == agent
	}
	return slices.Contains([]string{Mailbox(agent), Spawned(agent), Results(agent), Messages(agent), Interrupts(agent)}, topic)
}
