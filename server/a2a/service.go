package a2a

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/loom-bridge/loom-bridge/bridge/a2a"
	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	a2av1 "github.com/loom-bridge/loom-bridge/proto/gen/lf/a2a/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/unread"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

const (
	// protocolVersion is the version that is served, and versionKey the metadata by which a
	// client names its own.
	protocolVersion = "1.0"
	versionKey      = "a2a-version"
	// anyGiver gives the tasks of callers that may act for every agent and name none.
	anyGiver = "a2a"
	// maxWait bounds how long SendMessage waits; then the task is answered as it is.
	maxWait = 10 * time.Minute
	// firstWord is how long a stream waits for the agent's first word, which may be an answer
	// without a task, before it begins with the task.
	firstWord = time.Second
	// The sizes of a page of tasks.
	defaultPage, maxPage = 50, 100
	// maxContextBytes bounds the name of a context: it is a session.
	maxContextBytes = 256
)

// Bus takes events in and hands them out. *events.Bus is one.
type Bus interface {
	Emit(ctx context.Context, tenant string, e events.Event, opts events.EmitOptions) (events.Event, error)
	Subscribe(ctx context.Context, tenant string, selections []events.Subscribed, opts *events.SubscribeOptions) (*events.Subscription, error)
}

// Deps are what the service works with; they stay the caller's.
type Deps struct {
	Tasks  *a2a.Tasks
	Events Bus
	Agents *agents.Directory
	// Authenticated says that callers need a credential, which cards then say.
	Authenticated bool
	// MaxSendBytes bounds an answer.
	MaxSendBytes int
}

// Register puts the service on a gRPC server, before it serves.
func Register(r grpc.ServiceRegistrar, d Deps) { a2av1.RegisterA2AServiceServer(r, &service{Deps: d}) }

type service struct {
	a2av1.UnimplementedA2AServiceServer
	Deps
}

// checkVersion refuses a client that speaks another version. One that names none is taken.
func checkVersion(ctx context.Context) error {
	for _, version := range metadata.ValueFromIncomingContext(ctx, versionKey) {
		if version != "" && version != protocolVersion && !strings.HasPrefix(version, protocolVersion+".") {
			return failed(codes.FailedPrecondition, "VERSION_NOT_SUPPORTED", "version "+validate.Printable(version)+" is not served; "+protocolVersion+" is")
		}
	}
	return nil
}

// call is who calls, and for which agent.
type call struct {
	id            auth.Identity
	tenant, agent string
}

func (s *service) call(ctx context.Context, named string) (call, error) {
	if err := checkVersion(ctx); err != nil {
		return call{}, err
	}
	id, ok := auth.Of(ctx)
	if !ok {
		return call{}, auth.ErrUnauthenticated
	}
	agent, err := s.agentOf(id.Tenant(), named)
	return call{id, id.Tenant(), agent}, err
}

// giver is the agent in whose name the caller gives tasks.
func (c call) giver(ctx context.Context) (string, error) {
	if named := metadata.ValueFromIncomingContext(ctx, auth.AgentKey); len(named) > 0 && named[0] != "" {
		if !c.id.Owns(named[0]) {
			return "", fmt.Errorf("%w: %q", auth.ErrAgentNotOwned, validate.Printable(named[0]))
		}
		return named[0], nil
	}
	if own, ok := c.id.Named(); ok {
		return own, nil
	}
	if !c.id.Owns(anyGiver) {
		return "", validate.Refuse(auth.AgentKey, "is required in the metadata: the credential names no agent in full")
	}
	return anyGiver, nil
}

// task is a task that the caller may see.
func (s *service) task(ctx context.Context, c call, id string) (*a2a.Task, error) {
	task, err := s.Tasks.Get(ctx, c.tenant, c.agent, id)
	if err == nil && !c.sees(task) {
		err = a2a.ErrNotFound
	}
	return task, ofTask(id, err)
}

func (c call) sees(t *a2a.Task) bool { return c.id.Owns(t.Giver) || c.id.Owns(t.Agent) }

// SendMessage gives a task to an agent, or says more to one, and waits until the agent has
// answered, if the request does not say otherwise. The task is durable before it waits.
func (s *service) SendMessage(ctx context.Context, r *a2av1.SendMessageRequest) (*a2av1.SendMessageResponse, error) {
	c, task, err := s.send(ctx, r)
	if err != nil {
		return nil, err
	}
	if !r.GetConfiguration().GetReturnImmediately() {
		if err := s.await(ctx, c, task); err != nil {
			return nil, err
		}
		if last := &task.Events[len(task.Events)-1]; last.Type == a2a.Answer {
			return &a2av1.SendMessageResponse{Payload: &a2av1.SendMessageResponse_Message{Message: answerOf(task, last)}}, nil
		}
	}
	return &a2av1.SendMessageResponse{Payload: &a2av1.SendMessageResponse_Task{Task: taskOf(task, historyOf(r))}}, nil
}

// historyOf is how many messages of the history are asked for; nil for all.
func historyOf(r *a2av1.SendMessageRequest) *int32 {
	if r.GetConfiguration() == nil {
		return nil
	}
	return r.GetConfiguration().HistoryLength
}

// await waits for the end of the turn.
func (s *service) await(ctx context.Context, c call, task *a2a.Task) error {
	defer share.Pause(ctx)()
	limited, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	from, err := s.subscribe(limited, c, task)
	if err != nil {
		return err
	}
	defer from.Close()
	for !a2a.Closes(task.State) {
		d, err := from.Next(limited)
		if err != nil && ctx.Err() == nil && limited.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		task.Take(&d.Event)
	}
	return nil
}

// subscribe reads what comes behind the last event of a task.
func (s *service) subscribe(ctx context.Context, c call, task *a2a.Task) (*events.Subscription, error) {
	topic, err := pattern.Parse(a2a.Topic(task.Agent, task.ID))
	if err != nil {
		return nil, err
	}
	opts := &events.SubscribeOptions{}
	if slot := unread.SlotOf(ctx); slot != nil {
		opts.Room = slot
	}
	return s.Events.Subscribe(ctx, c.tenant, []events.Subscribed{{Pattern: topic, After: new(task.Last)}}, opts)
}

// send stores a message, and returns the task as it was then.
func (s *service) send(ctx context.Context, r *a2av1.SendMessageRequest) (call, *a2a.Task, error) {
	c, err := s.call(ctx, r.GetTenant())
	if err != nil {
		return c, nil, err
	}
	m := r.GetMessage()
	if err := checkMessage(m); err != nil {
		return c, nil, err
	}
	if r.GetConfiguration().GetTaskPushNotificationConfig() != nil {
		return c, nil, noPush()
	}
	giver, err := c.giver(ctx)
	if err != nil {
		return c, nil, err
	}
	if m.GetTaskId() != "" {
		var there *a2a.Task
		if there, err = s.continued(ctx, c, m); err == nil {
			giver, m.ContextId = there.Giver, there.Context
		}
	} else {
		m.TaskId = ulid.Make().String()
		if m.GetContextId() == "" {
			m.ContextId = ulid.Make().String()
		}
	}
	if err == nil {
		err = s.reachable(c, m)
	}
	if err != nil {
		return c, nil, err
	}
	id := m.GetTaskId()
	payload, err := protojson.Marshal(m)
	if err != nil {
		return c, nil, validate.Refuse("message", "can't be written as JSON")
	}
	topic := a2a.Topic(c.agent, id)
	sent, err := s.Events.Emit(ctx, c.tenant, events.Event{
		Topic: topic, Type: a2a.Message, Source: giver, SessionID: m.GetContextId(), Payload: payload,
		Headers: map[string]string{"reply_to": topic},
	}, events.EmitOptions{Owns: c.id.Owns})
	if err != nil {
		return c, nil, ofTask(id, err)
	}
	task, err := s.Tasks.Get(ctx, c.tenant, c.agent, id)
	if err != nil {
		return c, nil, ofTask(id, err)
	}
	return c, task.At(sent.Sequence), nil
}

func checkMessage(m *a2av1.Message) error {
	switch {
	case m == nil:
		return validate.Refuse("message", "is required")
	case m.GetMessageId() == "":
		return validate.Refuse("message.message_id", "is required")
	case m.GetRole() != a2av1.Role_ROLE_USER:
		return validate.Refuse("message.role", "must be ROLE_USER")
	case len(m.GetParts()) == 0:
		return validate.Refuse("message.parts", "is required")
	case len(m.GetContextId()) > maxContextBytes:
		return validate.Refuse("message.context_id", fmt.Sprintf("must have at most %d bytes", maxContextBytes))
	}
	for i, part := range m.GetParts() {
		if part.GetContent() == nil {
			return validate.Refuse(fmt.Sprintf("message.parts[%d]", i), "is empty")
		}
	}
	return nil
}

// continued is the task that a message goes on with.
func (s *service) continued(ctx context.Context, c call, m *a2av1.Message) (*a2a.Task, error) {
	task, err := s.task(ctx, c, m.GetTaskId())
	switch {
	case err != nil:
		return nil, err
	case !c.id.Owns(task.Giver): // the agent sees the task, and says what it has to say on its topic
		return nil, fmt.Errorf("%w: %q gave the task", auth.ErrAgentNotOwned, validate.Printable(task.Giver))
	case a2a.Ends(task.State):
		return nil, ofTask(task.ID, a2a.ErrClosed)
	case m.GetContextId() != "" && m.GetContextId() != task.Context:
		return nil, validate.Refuse("message.context_id", "is not that of the task")
	}
	return task, nil
}

// reachable refuses a message to an agent that does not serve tasks, and one of a media type that
// it does not take. An agent that lost its stream a moment ago may come back.
func (s *service) reachable(c call, m *a2av1.Message) error {
	agent, ok := s.Agents.Get(c.tenant, c.agent)
	if ok = ok && serves(agent); !ok && !s.Agents.Awaits(c.tenant, a2a.Topic(c.agent, m.GetTaskId())) {
		return validate.Refuse("tenant", "names no agent that serves tasks: "+validate.Printable(c.agent))
	}
	for _, part := range m.GetParts() {
		if ok && !takes(agent, part.GetMediaType()) {
			return failed(codes.InvalidArgument, "CONTENT_TYPE_NOT_SUPPORTED",
				validate.Printable(part.GetMediaType())+" is none of the agent's input modes, which its card lists")
		}
	}
	return nil
}

// responses is a stream of what happens to a task.
type responses = grpc.ServerStreamingServer[a2av1.StreamResponse]

// SendStreamingMessage is SendMessage with all that the agent says as it comes, until the turn
// has ended.
func (s *service) SendStreamingMessage(r *a2av1.SendMessageRequest, stream responses) error {
	c, task, err := s.send(stream.Context(), r)
	if err != nil {
		return err
	}
	begin := func() error { return sendTask(stream, task, historyOf(r)) }
	return s.follow(c, task, stream, begin, a2a.Closes)
}

// SubscribeToTask streams what happens to a task, until it has ended.
func (s *service) SubscribeToTask(r *a2av1.SubscribeToTaskRequest, stream responses) error {
	c, err := s.call(stream.Context(), r.GetTenant())
	if err != nil {
		return err
	}
	task, err := s.task(stream.Context(), c, r.GetId())
	if err != nil {
		return err
	}
	if a2a.Ends(task.State) {
		return ofTask(task.ID, a2a.ErrClosed)
	}
	if err := sendTask(stream, task, nil); err != nil {
		return err
	}
	return s.follow(c, task, stream, nil, a2a.Ends)
}

func sendTask(stream responses, task *a2a.Task, history *int32) error {
	return stream.Send(&a2av1.StreamResponse{Payload: &a2av1.StreamResponse_Task{Task: taskOf(task, history)}})
}

// follow streams the next events of a task until a state is over. Where begin is given it sends
// the task before the first of them, unless that is an answer without a task.
func (s *service) follow(c call, task *a2a.Task, stream responses, begin func() error, over func(state string) bool) error {
	ctx := stream.Context()
	from, err := s.subscribe(ctx, c, task)
	if err != nil {
		return err
	}
	defer from.Close()
	patient, cancel := context.WithTimeout(ctx, firstWord)
	defer cancel()
	for {
		waiting := ctx
		if begin != nil {
			waiting = patient
		}
		d, err := from.Next(waiting)
		silent := err != nil && begin != nil && ctx.Err() == nil && patient.Err() != nil
		if err != nil && !silent {
			return err
		}
		e := &d.Event
		if begin != nil && !silent && e.Type == a2a.Answer && task.Take(e) {
			return stream.Send(&a2av1.StreamResponse{Payload: &a2av1.StreamResponse_Message{Message: answerOf(task, e)}})
		}
		if begin != nil {
			if err := begin(); err != nil {
				return err
			}
			begin = nil
		}
		if silent || !task.Take(e) {
			continue
		}
		if update := updateOf(task, e); update != nil {
			if err := stream.Send(update); err != nil {
				return err
			}
		}
		if over(task.State) {
			return nil
		}
	}
}
