package convert

import (
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/loom-bridge/loom-bridge/bridge/messages"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// SentMessage is the message that a request sends.
func SentMessage(r *loombridgev1.SendMessageRequest) (messages.Message, error) {
	in := r.GetMessage()
	m := messages.Message{
		TaskID: in.GetTaskId(), Source: r.GetAgentId(), Target: in.GetTargetAgentId(), Node: in.GetTargetNodeId(), Content: in.GetContent(),
		Role: messages.Role(in.GetContextRole()), Priority: messages.DefaultPriority, TTL: spanOf(in.GetTtl()),
		ParentTaskID: in.GetParentTaskId(), SessionID: in.GetSessionId(),
	}
	if in.Priority != nil {
		m.Priority = in.GetPriority()
	}
	if in.GetMetadata() == nil {
		return m, nil
	}
	var err error
	m.Metadata, err = jsonOf("message.metadata", structpb.NewStructValue(in.GetMetadata()))
	return m, err
}

// SendMessageResponse says that a message is kept.
func SendMessageResponse(m *messages.Message) *loombridgev1.SendMessageResponse {
	out := &loombridgev1.SendMessageResponse{TaskId: m.TaskID}
	if m.Verbose() {
		out.Warning = fmt.Sprintf("content has over %d characters; say less, and put the rest where the target can read it", messages.ConciseChars)
	}
	return out
}

// DirectMessage converts a message.
func DirectMessage(m messages.Message) *loombridgev1.DirectMessage {
	out := &loombridgev1.DirectMessage{
		TaskId: m.TaskID, SourceAgentId: m.Source, TargetAgentId: m.Target, TargetNodeId: m.Node, Content: m.Content,
		ContextRole: string(m.Role), Priority: &m.Priority, Ttl: spanTo(m.TTL), ParentTaskId: m.ParentTaskID, SessionId: m.SessionID,
		CreateTime: Timestamp(m.Time),
	}
	if metadata, err := structOf(m.Metadata); err == nil { // it was checked when it was sent
		out.Metadata = metadata
	}
	return out
}
