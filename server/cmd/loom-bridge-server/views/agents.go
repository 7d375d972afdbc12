package views

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Agents is the command that lists agents with what they have.
func Agents(o Options) *cobra.Command {
	v := &view{Options: o}
	var prefix string
	command := v.command("agents", "List agents with their memories and sessions", "agents\nagents --prefix researcher-", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		t := newTable("no agent has anything stored", "=AGENT", ">RECORDS", ">SESSIONS", "LAST")
		var failed error
		err := pages(v, t, func(size int32, token string) (*loombridgev1.ListScopesResponse, error) {
			return v.admin().ListScopes(ctx, &loombridgev1.ListScopesRequest{
				Kind: loombridgev1.ScopeKind_SCOPE_KIND_AGENT, Prefix: prefix, PageSize: size, PageToken: token,
			})
		}, (*loombridgev1.ListScopesResponse).GetScopes, func(s *loombridgev1.MemoryScope) []any {
			row := []any{s.GetOwner().GetAgentId(), s.GetRecords(), "", ""}
			if v.json || failed != nil {
				return row
			}
			row[2], row[3], failed = v.activity(ctx, s.GetOwner().GetAgentId())
			if status.Code(failed) == codes.PermissionDenied { // it may administer whom it may not act for
				failed = nil
			}
			return row
		})
		return errors.Join(failed, err)
	})
	command.Flags().StringVar(&prefix, "prefix", "", "what the ids begin with, as `text`")
	return v.listing(command, 50, maxListed)
}

// maxCounted of an agent's sessions are counted.
const maxCounted = 1000

// activity is how many sessions an agent has, and when it was last active.
func (v *view) activity(ctx context.Context, agent string) (sessions, last string, err error) {
	got, err := v.sessions().ListSessions(ctx, &loombridgev1.ListSessionsRequest{AgentId: agent, IncludeClosed: true, PageSize: maxCounted})
	if err != nil {
		return "", "", err
	}
	sessions = fmt.Sprint(len(got.GetSessions()))
	if got.GetNextPageToken() != "" {
		sessions += "+"
	}
	for _, s := range got.GetSessions() {
		last = max(last, at(s.GetUpdateTime()))
	}
	return sessions, last, nil
}

// position is where a subscription to a topic begins.
func position(topic string, since time.Duration) *loombridgev1.TopicPosition {
	p := &loombridgev1.TopicPosition{Topic: topic}
	if since > 0 {
		p.Since = timestamppb.New(time.Now().Add(-since))
	}
	return p
}

// Events is the command of events.
func Events(o Options) *cobra.Command {
	v := &view{Options: o}
	var since time.Duration
	tail := v.command("tail [TOPIC]...", "Show events as they come, until it is interrupted", "events tail --agent a1\nevents tail --agent a1 'market.*' --since 1h", cobra.MaximumNArgs(64), func(ctx context.Context, topics []string) error {
		ask := &loombridgev1.SubscribeRequest{AgentId: v.agent}
		if len(topics) == 0 {
			topics = []string{"**"}
		}
		for _, topic := range topics {
			ask.Topics = append(ask.Topics, position(topic, since))
		}
		stream, err := loombridgev1.NewEventServiceClient(v.conn).Subscribe(ctx, ask)
		for err == nil {
			var got *loombridgev1.SubscribeResponse
			if got, err = stream.Recv(); err == nil {
				err = v.event(got)
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		return err
	})
	tail.Long = "Show events as they come. In a TOPIC * is one word and ** the rest; without any all are shown."
	tail.Flags().DurationVar(&since, "since", 0, "begin with what is this `old`, such as 1h; default: only what comes from now on")
	return group("events", "Show events", v.asAgent(tail))
}

func (v *view) event(got *loombridgev1.SubscribeResponse) error {
	if n := got.GetDroppedVolatile(); n > 0 {
		_, _ = fmt.Fprintf(v.Console, "%d events came too fast and are left out\n", n)
	}
	e := got.GetEvent()
	if e == nil {
		return nil
	}
	payload := e.GetPayloadJson()
	if n := len(e.GetPayloadBytes()); n > 0 {
		payload = fmt.Sprintf("%d bytes", n)
	}
	return v.answer(e, "%s  %s  %d  %s  %s", e.GetCreateTime().AsTime().Local().Format(time.TimeOnly), e.GetTopic(), e.GetSequence(), e.GetSource(), payload)
}
