package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// What a tool of a peer is asked to do.
const (
	doEcho  = "echo"  // answer with the arguments
	doLate  = "late"  // the same, after a moment
	doTwice = "twice" // the same, two times over
	doNever = "never" // not answer at all
	doLeave = "leave" // not answer, and cut the stream off
)

// callGrace is how long after its timeout a call may end at the latest, on a machine
// that is busy with the others.
const callGrace = time.Minute

// lateAnswer is how long the provider takes for doLate.
const lateAnswer = 20 * time.Millisecond

// toolArguments are what a peer's tool is called with.
type toolArguments struct {
	Do     string `json:"do"`
	Marker string `json:"marker"`
}

// serveTool answers a call as its arguments ask for.
func serveTool(s *peerStream, call pushed) {
	var asked toolArguments
	_ = json.Unmarshal([]byte(call.arguments), &asked) // others make other calls: they get their arguments back
	answer := func() { _ = s.reply(call.id, call.arguments) }
	switch asked.Do {
	case doNever:
	case doLeave:
		s.cancel()
	case doLate:
		time.AfterFunc(lateAnswer, answer)
	case doTwice:
		answer()
		answer()
	default:
		answer()
	}
}

// toolCall is one call of a peer's tool, in one of the two APIs.
type toolCall struct {
	loom                 bool
	caller, tool, marker string
	do                   string
	timeout              time.Duration
}

// How calls end, besides with the code of a gRPC error or of a tool's.
const (
	endAnswered = "answered"
	endServer   = "server gone"
)

// make calls the tool and returns how that ended.
func (c toolCall) make(ctx context.Context, conn *grpc.ClientConn) (end string, err error) {
	// Only the server is to end the call; this is for a server that does not.
	ctx, cancel := context.WithTimeout(ctx, c.timeout+10*callGrace)
	defer cancel()
	arguments, err := json.Marshal(toolArguments{c.do, c.marker})
	if err != nil {
		return "", err
	}
	call := c.callNative
	if c.loom {
		call = c.callLoom
	}
	output, code, err := call(ctx, conn, string(arguments))
	switch {
	case status.Code(err) == codes.Unavailable:
		return endServer, nil
	case err != nil:
		return "", err
	case code != "":
		return code, nil
	case !strings.Contains(output, c.marker):
		return "", fmt.Errorf("the answer %q is not to %s", output, arguments)
	}
	return endAnswered, nil
}

func (c toolCall) callNative(ctx context.Context, conn *grpc.ClientConn, arguments string) (output, code string, err error) {
	r, err := loombridgev1.NewBridgeServiceClient(conn).Tool(convert.AskText(ctx), &loombridgev1.ToolRequest{
		AgentId: c.caller, Name: c.tool, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: arguments},
		Timeout: durationpb.New(c.timeout),
	})
	switch {
	case status.Code(err) == codes.NotFound:
		return "", "NOT_FOUND", nil
	case err != nil || r.GetSuccess():
		return r.GetOutputJson(), "", err
	case r.GetErrorCode() == loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_UNSPECIFIED:
		return "", "", errors.New("the failure has no code: " + r.GetErrorMessage())
	}
	return "", strings.TrimPrefix(r.GetErrorCode().String(), "TOOL_ERROR_CODE_"), nil
}

func (c toolCall) callLoom(ctx context.Context, conn *grpc.ClientConn, arguments string) (output, code string, err error) {
	r, err := loomv1pb.NewBridgeClient(conn).ForwardToolCall(ctx, &loomv1pb.ToolCall{
		Id: "1", Name: c.tool, Arguments: arguments, TimeoutMs: c.timeout.Milliseconds(), // all callers use this id
		Headers: map[string]string{"x-agent-id": c.caller},
	})
	switch {
	case err != nil || r.GetStatus() == loomv1pb.ToolStatus_TOOL_OK:
		return r.GetOutput(), "", err
	case r.GetError().GetCode() == "":
		return "", "", fmt.Errorf("the failure has no code: %v", r)
	}
	return "", r.GetError().GetCode(), nil
}

// callTally counts how calls ended. Its zero value is ready.
type callTally struct {
	mu   sync.Mutex
	ends map[string]int
	over time.Duration // the most that a call took beyond its timeout
}

// run makes a call, counts it, and reports whether the server is still there. What
// may not be is an error of the test.
func (c *callTally) run(tb testing.TB, ctx context.Context, conn *grpc.ClientConn, call toolCall) bool {
	start := time.Now()
	end, err := call.make(ctx, conn)
	over := time.Since(start) - call.timeout
	if err != nil {
		tb.Errorf("call %+v: %v", call, err)
	}
	if over > callGrace {
		tb.Errorf("call %+v ended %v after its timeout: %s", call, over, end)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ends == nil {
		c.ends = map[string]int{}
	}
	c.ends[end]++
	c.over = max(c.over, over)
	return end != endServer
}

// ended is how many calls ended so.
func (c *callTally) ended(end string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ends[end]
}

func (c *callTally) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	total, parts := 0, make([]string, 0, len(c.ends))
	for end, n := range c.ends {
		total += n
		parts = append(parts, fmt.Sprintf("%d %s", n, end))
	}
	slices.Sort(parts)
	return fmt.Sprintf("%d calls (%s), at most %v after their timeout", total, strings.Join(parts, ", "), c.over)
}
