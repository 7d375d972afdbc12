package convert

import (
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/loom-bridge/loom-bridge/bridge/messages"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// SentMessage is the message that a request sends.
func SentMessage(r *loombridgev1.SendMessageRequest) (messages.Message, error) {
	m := messages.Message{
		TaskID: r.GetTaskId(), Source: r.GetAgentId(), Target: r.GetTargetAgentId(), Node: r.GetTargetNodeId(), Content: r.GetContent(),
		Role: messages.Role(r.GetContextRole()), Priority: messages.DefaultPriority, TTL: spanOf(r.GetTtl()),
		ParentTaskID: r.GetParentTaskId(), SessionID: r.GetSessionId(),
	}
	if r.Priority != nil {
		m.Priority = r.GetPriority()
	}
	if r.GetMetadata() == nil {
		return m, nil
	}
	var err error
	m.Metadata, err = jsonOf("metadata", structpb.NewStructValue(r.GetMetadata()))
	return m, err
}

// SendMessageResponse says that a message is kept.
func SendMessageResponse(m *messages.Message) *loombridgev1.SendMessageResponse {
	out := &loombridgev1.SendMessageResponse{TaskId: m.TaskID, CreateTime: Timestamp(m.Time)}
	if m.Verbose() {
		out.Warning = fmt.Sprintf("content has over %d characters; say less, and put the rest where the target can read it", messages.ConciseChars)
	}
	return out
}

// DirectMessage converts a message.
func DirectMessage(m messages.Message) *loombridgev1.DirectMessage {
	out := &loombridgev1.DirectMessage{
		TaskId: m.TaskID, SourceAgentId: m.Source, TargetAgentId: m.Target, TargetNodeId: m.Node, Content: m.Content,
		ContextRole: string(m.Role), Priority: m.Priority, Ttl: spanTo(m.TTL), ParentTaskId: m.ParentTaskID, SessionId: m.SessionID,
		CreateTime: Timestamp(m.Time),
	}
	if metadata, err := structOf(m.Metadata); err == nil { // it was checked when it was sent
		out.Metadata = metadata
	}
	return out
}
