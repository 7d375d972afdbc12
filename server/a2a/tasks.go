package a2a

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/loom-bridge/loom-bridge/bridge/a2a"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	a2av1 "github.com/loom-bridge/loom-bridge/proto/gen/lf/a2a/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// GetTask returns a task.
func (s *service) GetTask(ctx context.Context, r *a2av1.GetTaskRequest) (*a2av1.Task, error) {
	c, err := s.call(ctx, r.GetTenant())
	if err != nil {
		return nil, err
	}
	task, err := s.task(ctx, c, r.GetId())
	if err != nil {
		return nil, err
	}
	return taskOf(task, r.HistoryLength), nil
}

// CancelTask ends a task. The agent hears of it, if it listens, and can say nothing more to it.
func (s *service) CancelTask(ctx context.Context, r *a2av1.CancelTaskRequest) (*a2av1.Task, error) {
	c, err := s.call(ctx, r.GetTenant())
	if err != nil {
		return nil, err
	}
	task, err := s.task(ctx, c, r.GetId())
	if err == nil && !a2a.Ends(task.State) {
		by := task.Giver
		if !c.id.Owns(by) {
			by = task.Agent
		}
		_, err = s.Events.Emit(ctx, c.tenant, events.Event{
			Topic: a2a.Topic(c.agent, task.ID), Type: a2a.Canceled, Source: by, SessionID: task.Context,
		}, events.EmitOptions{Owns: c.id.Owns})
		if err == nil || errors.Is(err, a2a.ErrClosed) {
			task, err = s.task(ctx, c, r.GetId())
		}
	} else if err == nil {
		err = a2a.ErrClosed
	}
	if err == nil && task.State != a2a.Canceled {
		err = a2a.ErrClosed
	}
	if errors.Is(err, a2a.ErrClosed) {
		return nil, failed(codes.FailedPrecondition, "TASK_NOT_CANCELABLE", "task "+validate.Printable(r.GetId())+" has ended")
	}
	if err != nil {
		return nil, err
	}
	return taskOf(task, nil), nil
}

// ListTasks returns the newest tasks of an agent that the caller may see.
func (s *service) ListTasks(ctx context.Context, r *a2av1.ListTasksRequest) (*a2av1.ListTasksResponse, error) {
	c, err := s.call(ctx, r.GetTenant())
	if err != nil {
		return nil, err
	}
	size := defaultPage
	if r.PageSize != nil {
		size = int(r.GetPageSize())
	}
	after, ok := page.Given.Parse(r.GetPageToken(), len(r.GetPageToken()))
	switch {
	case size < 1 || size > maxPage:
		return nil, validate.Refuse("page_size", fmt.Sprintf("must be from 1 to %d", maxPage))
	case !ok:
		return nil, validate.Refuse("page_token", "is none of this list")
	case r.GetHistoryLength() < 0:
		return nil, validate.Refuse("history_length", "must not be negative")
	}
	all, err := s.Tasks.List(ctx, c.tenant, c.agent, func(giver string) bool { return c.id.Owns(giver) || c.id.Owns(c.agent) })
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(t *a2a.Task) bool { return !asked(r, t) })
	out := &a2av1.ListTasksResponse{TotalSize: int32(len(all)), PageSize: int32(size)} //nolint:gosec // at most MaxListed
	bytes := 0
	for i, t := range all {
		if after != "" && place(t) >= after {
			continue
		}
		whole, err := s.task(ctx, c, t.ID)
		if err != nil {
			continue // it went meanwhile
		}
		one := taskOf(whole, r.HistoryLength)
		if !r.GetIncludeArtifacts() {
			one.Artifacts = nil
		}
		if bytes += proto.Size(one); len(out.GetTasks()) == size || len(out.GetTasks()) > 0 && bytes > s.MaxSendBytes/2 {
			out.NextPageToken = page.Given.Token(place(all[i-1]))
			break
		}
		out.Tasks = append(out.GetTasks(), one)
	}
	return out, nil
}

// place is where a task stands in a list: later ones have a smaller one.
func place(t *a2a.Task) string { return fmt.Sprintf("%020d.%s", t.Updated.UnixMicro(), t.ID) }

// asked reports whether a task is one that a list is asked for.
func asked(r *a2av1.ListTasksRequest, t *a2a.Task) bool {
	return (r.GetContextId() == "" || r.GetContextId() == t.Context) &&
		(r.GetStatus() == a2av1.TaskState_TASK_STATE_UNSPECIFIED || r.GetStatus() == stateOf(t.State)) &&
		(r.GetStatusTimestampAfter() == nil || t.Updated.After(r.GetStatusTimestampAfter().AsTime()))
}

// The four calls for push notifications are refused: there are none.

func (s *service) CreateTaskPushNotificationConfig(context.Context, *a2av1.TaskPushNotificationConfig) (*a2av1.TaskPushNotificationConfig, error) {
	return nil, noPush()
}

func (s *service) GetTaskPushNotificationConfig(context.Context, *a2av1.GetTaskPushNotificationConfigRequest) (*a2av1.TaskPushNotificationConfig, error) {
	return nil, noPush()
}

func (s *service) ListTaskPushNotificationConfigs(context.Context, *a2av1.ListTaskPushNotificationConfigsRequest) (*a2av1.ListTaskPushNotificationConfigsResponse, error) {
	return nil, noPush()
}

func (s *service) DeleteTaskPushNotificationConfig(context.Context, *a2av1.DeleteTaskPushNotificationConfigRequest) (*emptypb.Empty, error) {
	return nil, noPush()
}
