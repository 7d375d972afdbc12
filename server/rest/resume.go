package rest

import (
	"encoding/base64"
	"encoding/json"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// resumption lets a stream of events go on behind the last one that a client has seen.
type resumption interface {
	// resume changes a request to begin behind the event with this id; empty: from the start.
	resume(request proto.Message, last string) error
	// place is the id of a message, empty for none. What was seen already is skipped.
	place(message proto.Message) (id string, skip bool)
}

// unresumed is a stream whose messages have no ids.
type unresumed struct{}

func (unresumed) resume(proto.Message, string) error { return nil }
func (unresumed) place(proto.Message) (string, bool) { return "", false }

// newResumption is how the stream of a call is resumed.
func newResumption(method string) resumption {
	switch method {
	case loombridgev1.EventService_Subscribe_FullMethodName:
		return &topicsSeen{}
	case loombridgev1.MemoryService_WatchRecords_FullMethodName:
		return recordsSeen{}
	}
	return unresumed{}
}

// recordsSeen is a stream of changes of a memory, each of which has a position.
type recordsSeen struct{}

func (recordsSeen) resume(request proto.Message, last string) error {
	if last != "" {
		request.(*loombridgev1.WatchRecordsRequest).After = last
	}
	return nil
}

func (recordsSeen) place(message proto.Message) (string, bool) {
	return message.(*loombridgev1.WatchRecordsResponse).GetPosition(), false
}

// maxTopicsSeen bounds the topics in an id. Events of further topics may come again.
const maxTopicsSeen = 64

// topicsSeen is where a subscription stands: its events have a sequence for each topic.
type topicsSeen struct {
	// Since is when the subscription began, from which patterns are resumed.
	Since time.Time `json:"since"`
	// Seen are the sequences of the last events, by topic.
	Seen map[string]int64 `json:"seen,omitempty"`
}

func (t *topicsSeen) resume(request proto.Message, last string) error {
	t.Seen = map[string]int64{}
	if last == "" {
		return nil
	}
	text, err := base64.RawURLEncoding.DecodeString(last)
	if err != nil || json.Unmarshal(text, t) != nil || len(t.Seen) > maxTopicsSeen {
		return validate.Refuse("Last-Event-ID", "is no id of this stream; leave it out")
	}
	if t.Seen == nil {
		t.Seen = map[string]int64{}
	}
	for _, topic := range request.(*loombridgev1.SubscribeRequest).GetTopics() {
		sequence, seen := t.Seen[topic.GetTopic()]
		switch {
		case seen:
			topic.AfterSequence, topic.Since = &sequence, nil
		case topic.AfterSequence == nil && !t.Since.IsZero():
			topic.Since = timestamppb.New(t.Since)
		}
	}
	return nil
}

func (t *topicsSeen) place(message proto.Message) (string, bool) {
	switch m := message.(*loombridgev1.SubscribeResponse); {
	case m.GetReady() != nil:
		if t.Since.IsZero() {
			t.Since = m.GetReady().GetServerTime().AsTime()
		}
		for _, p := range m.GetReady().GetPositions() {
			t.see(p.GetTopic(), p.GetAfterSequence())
		}
	case m.GetEvent().GetSequence() > 0:
		topic, sequence := m.GetEvent().GetTopic(), m.GetEvent().GetSequence()
		if sequence <= t.Seen[topic] {
			return "", true
		}
		t.see(topic, sequence)
	}
	text, err := json.Marshal(t)
	if err != nil {
		return "", false // a map of numbers can be written
	}
	return base64.RawURLEncoding.EncodeToString(text), false
}

func (t *topicsSeen) see(topic string, sequence int64) {
	if _, seen := t.Seen[topic]; seen || len(t.Seen) < maxTopicsSeen {
		t.Seen[topic] = sequence
	}
}
