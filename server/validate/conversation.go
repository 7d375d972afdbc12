package validate

import (
	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/context/session"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
)

// ListSessionsRequest checks what SessionService.ListSessions is asked.
func ListSessionsRequest(r *loombridgev1.ListSessionsRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.namesPage(r, page.Sessions, session.MaxSessionIDBytes)
	return c.err()
}

// ListConversationRequest checks what SessionService.ListConversation is asked.
func ListConversationRequest(r *loombridgev1.ListConversationRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	c.enum("order", r.GetOrder())
	newestFirst := r.GetOrder() == loombridgev1.ConversationOrder_CONVERSATION_ORDER_NEWEST_FIRST
	_, known := page.ParseConversationToken(r.GetPageToken(), newestFirst)
	c.page(r, session.MaxListed, known)
	c.name("task_id", r.GetTaskId(), session.MaxTaskIDBytes+len(tiers.Key("")))
	if r.GetTaskId() != "" && (r.GetOrder() != 0 || r.GetPageSize() != 0 || r.GetPageToken() != "") {
		c.add("task_id", "is of one task: it can't be given with order, page_size or page_token")
	}
	return c.err()
}
