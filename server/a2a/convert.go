package a2a

import (
	"bytes"
	"cmp"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/bridge/a2a"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	a2av1 "github.com/loom-bridge/loom-bridge/proto/gen/lf/a2a/v1"
)

// stateOf is a state of package bridge/a2a as the protocol has it.
func stateOf(state string) a2av1.TaskState {
	switch state {
	case a2a.Submitted:
		return a2av1.TaskState_TASK_STATE_SUBMITTED
	case a2a.InputRequired:
		return a2av1.TaskState_TASK_STATE_INPUT_REQUIRED
	case a2a.AuthRequired:
		return a2av1.TaskState_TASK_STATE_AUTH_REQUIRED
	case a2a.Completed, a2a.Answer:
		return a2av1.TaskState_TASK_STATE_COMPLETED
	case a2a.Failed:
		return a2av1.TaskState_TASK_STATE_FAILED
	case a2a.Rejected:
		return a2av1.TaskState_TASK_STATE_REJECTED
	case a2a.Canceled:
		return a2av1.TaskState_TASK_STATE_CANCELED
	}
	return a2av1.TaskState_TASK_STATE_WORKING
}

// taskOf is a task with at most so many messages of its history; nil means all.
func taskOf(t *a2a.Task, history *int32) *a2av1.Task {
	out := &a2av1.Task{Id: t.ID, ContextId: t.Context, Status: &a2av1.TaskStatus{}}
	for i := range t.Events {
		e := &t.Events[i]
		if e.Type == a2a.Artifact {
			addArtifact(out, artifactOf(t, e))
			continue
		}
		if said := out.GetStatus().GetMessage(); said != nil {
			out.History = append(out.GetHistory(), said)
			out.Status.Message = nil
		}
		switch m := messageOf(t, e); {
		case m == nil:
		case e.Type == a2a.Message:
			out.History = append(out.GetHistory(), m)
		default:
			out.Status.Message = m
		}
	}
	out.Status.State, out.Status.Timestamp = stateOf(t.State), timestamppb.New(t.Updated)
	if history != nil {
		all := out.GetHistory()
		out.History = all[max(0, len(all)-max(0, int(*history))):]
	}
	return out
}

// addArtifact adds an artifact, or a part of one that is there, as the agent said.
func addArtifact(to *a2av1.Task, u *a2av1.TaskArtifactUpdateEvent) {
	added := u.GetArtifact()
	for i, there := range to.GetArtifacts() {
		if there.GetArtifactId() != added.GetArtifactId() {
			continue
		}
		if u.GetAppend() {
			there.Parts = append(there.GetParts(), added.GetParts()...)
		} else {
			to.Artifacts[i] = added
		}
		return
	}
	to.Artifacts = append(to.GetArtifacts(), added)
}

// updateOf is an event of the agent as a stream has it; nil for a message of the giver. The event
// was the last that the task took.
func updateOf(t *a2a.Task, e *events.Event) *a2av1.StreamResponse {
	switch e.Type {
	case a2a.Message:
		return nil
	case a2a.Artifact:
		return &a2av1.StreamResponse{Payload: &a2av1.StreamResponse_ArtifactUpdate{ArtifactUpdate: artifactOf(t, e)}}
	}
	return &a2av1.StreamResponse{Payload: &a2av1.StreamResponse_StatusUpdate{StatusUpdate: &a2av1.TaskStatusUpdateEvent{
		TaskId: t.ID, ContextId: t.Context,
		Status: &a2av1.TaskStatus{State: stateOf(e.Type), Message: messageOf(t, e), Timestamp: timestamppb.New(e.Time)},
	}}}
}

// messageOf is what an event says; nil for nothing.
func messageOf(t *a2a.Task, e *events.Event) *a2av1.Message {
	m := &a2av1.Message{}
	if !readParts(e, m, func() int { return len(m.GetParts()) }) {
		if m.Parts = partsOf(e); m.Parts == nil {
			return nil
		}
	}
	m.MessageId, m.Role = cmp.Or(m.GetMessageId(), e.ID), a2av1.Role_ROLE_AGENT
	m.TaskId, m.ContextId = t.ID, t.Context
	if e.Type == a2a.Message {
		m.Role = a2av1.Role_ROLE_USER
	}
	return m
}

// answerOf is an event that answers a message without a task.
func answerOf(t *a2a.Task, e *events.Event) *a2av1.Message {
	m := messageOf(t, e)
	if m == nil {
		m = &a2av1.Message{MessageId: e.ID, ContextId: t.Context, Role: a2av1.Role_ROLE_AGENT, Parts: []*a2av1.Part{textPart("")}}
	}
	m.TaskId = ""
	return m
}

// artifactOf is an event with a part of the result.
func artifactOf(t *a2a.Task, e *events.Event) *a2av1.TaskArtifactUpdateEvent {
	artifact, update := &a2av1.Artifact{}, &a2av1.TaskArtifactUpdateEvent{}
	if !readParts(e, artifact, func() int { return len(artifact.GetParts()) }) {
		artifact.Parts = partsOf(e)
	} else if lenient().Unmarshal(e.Payload, update) != nil {
		update = &a2av1.TaskArtifactUpdateEvent{}
	}
	artifact.ArtifactId = cmp.Or(artifact.GetArtifactId(), e.ID)
	return &a2av1.TaskArtifactUpdateEvent{
		TaskId: t.ID, ContextId: t.Context, Artifact: artifact, Append: update.GetAppend(), LastChunk: update.GetLastChunk(),
	}
}

func lenient() protojson.UnmarshalOptions { return protojson.UnmarshalOptions{DiscardUnknown: true} }

// readParts reads a payload that is an object with parts, as the protocol writes them.
func readParts(e *events.Event, into proto.Message, parts func() int) bool {
	if e.PayloadKind != events.JSON || !bytes.HasPrefix(bytes.TrimSpace(e.Payload), []byte("{")) {
		return false
	}
	if lenient().Unmarshal(e.Payload, into) == nil && parts() > 0 {
		return true
	}
	proto.Reset(into)
	return false
}

// partsOf is any other payload: a text, bytes, or data; nil for null.
func partsOf(e *events.Event) []*a2av1.Part {
	if e.PayloadKind != events.JSON {
		return []*a2av1.Part{{Content: &a2av1.Part_Raw{Raw: e.Payload}}}
	}
	value := &structpb.Value{}
	if protojson.Unmarshal(e.Payload, value) != nil {
		return []*a2av1.Part{textPart(string(e.Payload))} // such as a number too large for a protobuf
	}
	switch v := value.GetKind().(type) {
	case *structpb.Value_NullValue:
		return nil
	case *structpb.Value_StringValue:
		return []*a2av1.Part{textPart(v.StringValue)}
	case *structpb.Value_StructValue:
		if why := v.StructValue.GetFields()[a2a.HeaderError].GetStringValue(); e.Type == a2a.Failed && why != "" {
			return []*a2av1.Part{textPart(why)}
		}
	}
	return []*a2av1.Part{{Content: &a2av1.Part_Data{Data: value}}}
}

func textPart(text string) *a2av1.Part {
	return &a2av1.Part{Content: &a2av1.Part_Text{Text: text}}
}
