package views

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Sessions are the commands that list the sessions of an agent and show one.
func Sessions(o Options) []*cobra.Command {
	v := &view{Options: o}
	list := v.command("list", "List the sessions of an agent", "sessions list --agent a1", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		return pages(v, newTable("the agent has no sessions", "=SESSION", ">ENTRIES", "BEGAN", "LAST", "STATE"), func(size int32, token string) (*loombridgev1.ListSessionsResponse, error) {
			return v.sessions().ListSessions(ctx, &loombridgev1.ListSessionsRequest{AgentId: v.agent, PageSize: size, PageToken: token, IncludeClosed: true})
		}, (*loombridgev1.ListSessionsResponse).GetSessions, func(s *loombridgev1.SessionInfo) []any {
			state := "open"
			switch {
			case s.GetEnded():
				state = "ended"
			case s.GetClosed():
				state = "idle"
			}
			return []any{s.GetSessionId(), s.GetLastPosition(), at(s.GetBeginTime()), at(s.GetUpdateTime()), state}
		})
	})
	show := v.command("show SESSION", "Show what was said and done in a session, the newest first", "sessions show --agent a1 monday --limit 20", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		t := newTable("", "=ENTRY", "TIME", "WHO", "FOLD", "WHAT")
		t.empty = fmt.Sprintf("agent %q has said and done nothing in session %q; sessions list lists its sessions", v.agent, args[0])
		return pages(v, t, func(size int32, token string) (*loombridgev1.ListConversationResponse, error) {
			page, err := v.sessions().ListConversation(ctx, &loombridgev1.ListConversationRequest{
				AgentId: v.agent, SessionId: args[0], PageSize: size, PageToken: token, Order: loombridgev1.ConversationOrder_CONVERSATION_ORDER_NEWEST_FIRST,
			})
			if err == nil && token == "" && len(page.GetEntries()) == 0 {
				err = errors.New(t.empty)
			}
			return page, err
		}, (*loombridgev1.ListConversationResponse).GetEntries, entryRow)
	})
	for _, c := range []*cobra.Command{list, show} {
		v.listing(v.asAgent(c), 50, maxListed)
	}
	return []*cobra.Command{list, show}
}

// entryRow is an entry of a conversation as a row.
func entryRow(e *loombridgev1.ConversationEntry) []any {
	ref, who, what := "", "", ""
	switch {
	case e.GetMessage() != nil:
		m := e.GetMessage()
		ref, who, what = fmt.Sprintf("message_%03d", e.GetPosition()), roleOf(m.GetRole()), cmp.Or(m.GetContent(), m.GetBlocksJson())
		for _, call := range m.GetToolCalls() {
			what += fmt.Sprintf(" → %s %s", call.GetName(), call.GetArgumentsJson())
		}
	case e.GetStep() != nil:
		s := e.GetStep()
		ref, who, what = s.GetId(), s.GetToolName(), fmt.Sprint(s.GetMinimalArgsJson(), " → ", cmp.Or(s.GetError(), s.GetObservation()))
	case e.GetTask() != nil:
		ref, who, what = "task/"+e.GetTask().GetTaskId(), "task", e.GetTask().GetAction()
	}
	fold := ""
	if e.GetFoldBatch() > 0 {
		fold = fmt.Sprint(e.GetFoldBatch())
	}
	return []any{ref, at(e.GetCreateTime()), who, fold, what}
}
