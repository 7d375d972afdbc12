package validate

import (
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
)

// SendMessageRequest checks what EventService.SendMessage is asked. What a message may
// say is checked by package messages.
func SendMessageRequest(r *loombridgev1.SendMessageRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.requiredName("target_agent_id", r.GetTargetAgentId(), kv.MaxOwnerBytes)
	c.name("target_node_id", r.GetTargetNodeId(), kv.MaxOwnerBytes)
	c.required("content", r.GetContent(), messages.MaxContentBytes)
	c.span("ttl", r.GetTtl(), time.Microsecond, messages.MaxTTL)
	c.name("parent_task_id", r.GetParentTaskId(), messages.MaxTaskIDBytes)
	c.session(r.GetSessionId())
	c.name("task_id", r.GetTaskId(), messages.MaxTaskIDBytes)
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
