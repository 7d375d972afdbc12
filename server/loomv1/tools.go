package loomv1

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/throttle"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
)

const (
	// defaultToolTimeout ends a call that names no timeout.
	defaultToolTimeout = 30 * time.Second
	// maxTimeoutMillis is the longest timeout that a time.Duration can hold.
	maxTimeoutMillis = math.MaxInt64 / int64(time.Millisecond)
	// callerHeader is where loom-py names the agent that calls.
	callerHeader = "x-agent-id"
	// namelessCaller is the agent for whom calls without a caller are made.
	namelessCaller = "loom"
)

// toolService lists and calls tools.
type toolService struct {
	loomv1pb.UnimplementedToolServiceServer
	toolCaller
}

// ListTools lists the callable tools: the server's own, and the tools of agents with an
// open stream.
func (s *toolService) ListTools(ctx context.Context, _ *loomv1pb.ListToolsRequest) (*loomv1pb.ListToolsResponse, error) {
	tenant, err := s.Tenant(ctx)
	if err != nil {
		return nil, err
	}
	list, err := s.list(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return sized(s.Deps, &loomv1pb.ListToolsResponse{Tools: list})
}

// Call runs a tool, as Bridge.ForwardToolCall does.
func (s *toolService) Call(ctx context.Context, call *loomv1pb.ToolCall) (*loomv1pb.ToolResult, error) {
	return s.serve(ctx, call)
}

// toolCaller runs tool calls, wherever the tool is.
type toolCaller struct{ Deps }

// list returns the tools of the server and of a tenant's connected agents, by name. It
// fails early when ctx has ended, or when the list gets too large to send.
func (c toolCaller) list(ctx context.Context, tenant string) (list []*loomv1pb.ToolDescriptor, err error) {
	size := 0
	for o := range c.Tools.All(tenant) {
		d := descriptorOf(o)
		list = append(list, d)
		if o.AgentID == "" {
			continue
		}
		size += proto.Size(d)
		switch {
		case ctx.Err() != nil:
			return nil, status.FromContextError(ctx.Err()).Err()
		case size > c.Options.MaxSendBytes:
			return nil, status.Errorf(codes.ResourceExhausted, "response of at least %d bytes exceeds the limit of %d", size, c.Options.MaxSendBytes)
		}
	}
	slices.SortFunc(list, func(a, b *loomv1pb.ToolDescriptor) int { return strings.Compare(a.GetName(), b.GetName()) })
	return list, nil
}

// descriptorOf describes a tool.
func descriptorOf(o tools.Offer) *loomv1pb.ToolDescriptor {
	d := &loomv1pb.ToolDescriptor{Name: o.Name, Description: o.Description}
	if o.AgentID == "" {
		d.ParametersSchema, d.Provider = string(o.Schema), loomv1pb.ProviderKind_PROVIDER_NATIVE
		if o.Category == tools.CategoryMCP {
			d.Provider = loomv1pb.ProviderKind_PROVIDER_MCP
		}
		return d
	}
	d.ParametersSchema, d.Provider, d.Metadata = o.Given, loomv1pb.ProviderKind_PROVIDER_GRPC, o.Metadata
	return d
}

// serve is forward for a handler.
func (c toolCaller) serve(ctx context.Context, call *loomv1pb.ToolCall) (*loomv1pb.ToolResult, error) {
	tenant, err := c.Tenant(ctx)
	if err != nil {
		return nil, err
	}
	// After that, only an id as large as a message makes the result too large.
	return sized(c.Deps, c.forward(ctx, tenant, call))
}

// forward runs a tool of the server, or else that of the agent that registered it. It
// answers within the call's timeout. A result that is too large to send becomes an error.
func (c toolCaller) forward(ctx context.Context, tenant string, call *loomv1pb.ToolCall) *loomv1pb.ToolResult {
	ctx, cancel := context.WithTimeout(ctx, timeoutOf(call))
	defer cancel()
	result := c.run(ctx, tenant, call)
	result.Id = call.GetId()
	if size, limit := proto.Size(result), c.Options.MaxSendBytes; size > limit {
		result = resultRefused(TooLarge(size, limit))
		result.Id = call.GetId()
	}
	return result
}

func timeoutOf(call *loomv1pb.ToolCall) time.Duration {
	if call.GetTimeoutMs() <= 0 {
		return defaultToolTimeout
	}
	return time.Duration(min(call.GetTimeoutMs(), maxTimeoutMillis)) * time.Millisecond
}

// run finds the tool and runs it. A tool of the server precedes an agent's tool of the
// same name. An agent's tool precedes an alias of a server's tool, because the list of
// tools has no aliases.
func (c toolCaller) run(ctx context.Context, tenant string, call *loomv1pb.ToolCall) *loomv1pb.ToolResult {
	if err := checkJSON(call.GetArguments()); err != nil {
		return invalidArguments(err.Error())
	}
	if own, ok := c.Tools.Own(call.GetName()); ok && own.Descriptor().Name == call.GetName() {
		return c.runOwn(ctx, tenant, call)
	}
	answer, err := c.relay(ctx, tenant, call)
	refusal, refused := errors.AsType[*tools.Error](err)
	switch {
	case refused:
		return failed(refusal)
	case err == nil:
		return relayed(answer)
	case errors.Is(err, throttle.ErrLimited), errors.Is(err, children.ErrEnded):
		return c.refused(ctx, call, err)
	case !errors.Is(err, agents.ErrNotFound):
		if gone, ok := errors.AsType[*agents.NotConnectedError](err); ok {
			return executionFailed("agent %s is not connected", gone.Agent)
		}
		switch {
		case errors.Is(err, share.ErrExhausted):
			return executionFailed("too many calls are waiting")
		case errors.Is(err, agents.ErrBusy):
			return executionFailed("too many calls wait for the agent")
		case errors.Is(err, agents.ErrClosed):
			return executionFailed(publicStopping)
		}
		return c.broken(ctx, call, err)
	}
	if _, ok := c.Tools.Find(tenant, call.GetName()); ok {
		return c.runOwn(ctx, tenant, call)
	}
	return notFound(call.GetName())
}

// touches is the agent whose workspace a call touches: run finds the tool in the same order.
func (c toolCaller) touches(ctx context.Context, call *loomv1pb.ToolCall) (kv.Scope, bool) {
	tenant, err := c.Tenant(ctx)
	if err != nil {
		return kv.Scope{}, false
	}
	tool, ok := c.Tools.Own(call.GetName())
	if !ok || tool.Descriptor().Name != call.GetName() {
		if _, agents := c.Agents.Lookup(tenant, call.GetName()); agents {
			return kv.Scope{}, false
		}
		tool, ok = c.Tools.Find(tenant, call.GetName())
	}
	return callerScope(tenant, call), ok && tool.Descriptor().Workspace
}

// checkJSON returns an error for text that is no JSON; empty text is valid.
func checkJSON(text string) error {
	if text == "" {
		return nil
	}
	var value json.RawMessage
	return json.Unmarshal([]byte(text), &value)
}

// runOwn runs a tool of the server. Nothing is recorded: these agents keep their
// own history.
func (c toolCaller) runOwn(ctx context.Context, tenant string, call *loomv1pb.ToolCall) *loomv1pb.ToolResult {
	answer, err := c.Hand.Run(ctx, hand.Request{
		Scope:     callerScope(tenant, call),
		Name:      call.GetName(),
		Args:      json.RawMessage(call.GetArguments()),
		Timeout:   timeoutOf(call),
		MaxOutput: c.Options.MaxSendBytes,

		ListedPrograms: true,
	})
	switch {
	case err != nil:
		return c.refused(ctx, call, err)
	case answer.Failure != nil:
		return failed(answer.Failure)
	}
	return &loomv1pb.ToolResult{Status: loomv1pb.ToolStatus_TOOL_OK, Output: string(answer.Output)}
}

// callerScope is the scope of the calling agent, or of namelessCaller if the call names
// none or an invalid one.
func callerScope(tenant string, call *loomv1pb.ToolCall) kv.Scope {
	scope := kv.AgentScope(tenant, call.GetHeaders()[callerHeader])
	if scope.Validate() != nil {
		scope.Owner = namelessCaller
	}
	return scope
}

// relay passes the call to the agent that registered the tool, under the same rules as a native
// call of it and with an audit record. A *tools.Error says that these refuse it.
func (c toolCaller) relay(ctx context.Context, tenant string, call *loomv1pb.ToolCall) (result agents.ToolResult, err error) {
	tool, ok := c.Agents.Lookup(tenant, call.GetName())
	if !ok {
		return c.pass(ctx, tenant, call) // which finds nothing, unless it was registered just now
	}
	req := hand.Request{Scope: callerScope(tenant, call), Name: call.GetName(), Args: json.RawMessage(call.GetArguments()), Timeout: timeoutOf(call)}
	if refused := c.Hand.Relay(ctx, req, tool.Descriptor(), func() hand.Relayed {
		result, err = c.pass(ctx, tenant, call)
		return hand.Relayed{Code: relayCode(result, err), Bytes: int64(len(result.Output))}
	}); refused != nil {
		return agents.ToolResult{}, refused
	}
	return result, err
}

// relayCode is why an agent's tool failed; empty after success.
func relayCode(result agents.ToolResult, err error) tools.Code {
	gone, _ := errors.AsType[*agents.NotConnectedError](err)
	switch {
	case err == nil:
		return result.Code()
	case gone != nil && gone.Sent:
		return tools.OutcomeUnknown
	case gone != nil:
		return tools.ProviderAway
	case errors.Is(err, context.DeadlineExceeded):
		return tools.Timeout
	case errors.Is(err, agents.ErrNotFound):
		return tools.NotFound
	}
	return tools.Failed
}

// pass passes the call to the agent, with the timeout as the caller wrote it.
func (c toolCaller) pass(ctx context.Context, tenant string, call *loomv1pb.ToolCall) (agents.ToolResult, error) {
	return c.Agents.Call(ctx, tenant, agents.ToolCall{
		Name:          call.GetName(),
		Arguments:     call.GetArguments(),
		CallerID:      call.GetHeaders()[callerHeader],
		CorrelationID: call.GetCorrelationId(),
		Headers:       call.GetHeaders(),
		Timeout:       relayTimeoutOf(call),
		TimeoutMillis: call.GetTimeoutMs(),
		QoS:           int32(call.GetQos()),
	})
}

// relayTimeoutOf is 0 if the caller wrote no timeout, so that the agent gets none.
func relayTimeoutOf(call *loomv1pb.ToolCall) time.Duration {
	if call.GetTimeoutMs() <= 0 {
		return 0
	}
	return timeoutOf(call)
}

// outputText is an agent's output as JSON text: bytes are a data URL.
func outputText(r agents.ToolResult) string {
	switch r.Form {
	case step.FormText:
		return string(text.CanonicalJSON(r.Output))
	case step.FormBytes:
		mediaType := cmp.Or(r.MediaType, "application/octet-stream")
		return string(text.CanonicalJSON("data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString([]byte(r.Output))))
	}
	return r.Output
}

// relayed is the result with an agent's answer, unchanged.
func relayed(r agents.ToolResult) *loomv1pb.ToolResult {
	result := &loomv1pb.ToolResult{Status: loomv1pb.ToolStatus(r.Status), Output: outputText(r)}
	if r.HasError || r.ErrorCode != "" || r.ErrorMessage != "" || len(r.Details) > 0 {
		result.Error = &loomv1pb.ToolError{Code: r.ErrorCode, Message: r.ErrorMessage, Details: r.Details}
	}
	return result
}
