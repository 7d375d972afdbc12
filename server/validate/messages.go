package validate

import (
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
)

// SendMessageRequest checks what EventService.SendMessage is asked. What a message may
// say is checked by package messages.
func SendMessageRequest(r *loombridgev1.SendMessageRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	m := r.GetMessage()
	c.requiredName("message.target_agent_id", m.GetTargetAgentId(), kv.MaxOwnerBytes)
	c.name("message.target_node_id", m.GetTargetNodeId(), kv.MaxOwnerBytes)
	c.required("message.content", m.GetContent(), messages.MaxContentBytes)
	c.span("message.ttl", m.GetTtl(), time.Microsecond, messages.MaxTTL)
	c.name("message.parent_task_id", m.GetParentTaskId(), messages.MaxTaskIDBytes)
	c.name("message.session_id", m.GetSessionId(), session.MaxSessionIDBytes)
	c.name("message.task_id", m.GetTaskId(), messages.MaxTaskIDBytes)
	if m.GetSourceAgentId() != "" {
		c.add("message.source_agent_id", setByServer)
	}
	if m.GetCreateTime() != nil {
		c.add("message.create_time", setByServer)
	}
	return c.err()
}

// ListMessagesRequest checks what EventService.ListMessages is asked.
func ListMessagesRequest(r *loombridgev1.ListMessagesRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	c.name("parent_task_id", r.GetParentTaskId(), messages.MaxTaskIDBytes)
	c.namesPage(r, page.Messages, messages.MaxPlaceBytes)
	return c.err()
}

// maxDeletedMessages bounds the messages of one deletion.
const maxDeletedMessages = 1000

// DeleteMessagesRequest checks what EventService.DeleteMessages is asked.
func DeleteMessagesRequest(r *loombridgev1.DeleteMessagesRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	if len(r.GetTaskIds()) == 0 {
		c.add("task_ids", "is required")
	}
	if c.count("task_ids", len(r.GetTaskIds()), maxDeletedMessages) {
		for i, id := range r.GetTaskIds() {
			c.requiredName(Item("task_ids", i), id, messages.MaxTaskIDBytes)
		}
	}
	return c.err()
}
