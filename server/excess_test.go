package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest/filling"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/loomv1"
)

// sendRaw makes a call with one message and returns how it ended.
func sendRaw(ctx context.Context, conn *grpc.ClientConn, r filling.Case) error {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, r.Path(), forceRaw())
	if err != nil {
		return err
	}
	if err := stream.SendMsg(r.Body()); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for err == nil {
		err = stream.RecvMsg(&emptypb.Empty{})
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

var index = regexp.MustCompile(`\[\d+\]`)

// violated are the fields that an error names, without their indexes.
func violated(err error) (names []string) {
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				names = append(names, index.ReplaceAllString(v.GetField(), ""))
			}
		}
	}
	return names
}

// Sizes that fill more than every limit of items, and of JSON values.
const (
	manyItems  = 256 << 10
	manyValues = 2 << 20
)

// filledMethods are the methods that are served, but for streams that go on after
// an answer.
func filledMethods() []protoreflect.MethodDescriptor {
	all := append(filling.Methods("loombridge.v1"), filling.Methods("loom.v1")...)
	return slices.DeleteFunc(all, func(m protoreflect.MethodDescriptor) bool {
		return m.Parent().FullName() == "loom.v1.Plugin" || m.FullName() == "loom.v1.Bridge.EventStream"
	})
}

// excessive are the filled requests of a method that hold too much of one field.
// Many parents may come before what they hold, and texts are bounded by their own
// sizes; of values of JSON some are enough.
func excessive(method protoreflect.MethodDescriptor) (all []filling.Case) {
	for r := range filling.Requests(method, manyItems) {
		if strings.Contains(r.Shape, "items") || strings.Contains(r.Shape, "entries") || strings.HasSuffix(r.Shape, "numbers") && !r.JSON {
			all = append(all, r)
		}
	}
	for r := range filling.Requests(method, manyValues) {
		if r.JSON && slices.Contains([]string{"nulls", "members", "nested objects", "repeated"}, r.Shape) {
			all = append(all, r)
		}
	}
	return slices.DeleteFunc(all, func(r filling.Case) bool { return r.First != nil || strings.Contains(r.Shape, " each") })
}

// Whatever is filled beyond its limit is refused with one violation, which names
// it: nothing of the rest was looked at. So it is for every field of every request,
// also of those to come.
func TestFilledRequestsAreRefused(t *testing.T) {
	s := servertest.Start(t, nil)
	n := 0
	for _, method := range filledMethods() {
		for _, r := range excessive(method) {
			n++
			err := sendRaw(t.Context(), s.Conn(), r)
			if fields := violated(err); status.Code(err) != codes.InvalidArgument || len(fields) != 1 || fields[0] != r.Field {
				t.Errorf("%s: %v, fields %q", r.Name(), err, fields)
			}
		}
	}
	if n < 100 {
		t.Errorf("%d requests show little", n)
	}
}

// At its limit a request is taken, one item more is refused.
func TestCountsAtTheirLimit(t *testing.T) {
	s := servertest.Start(t, nil)
	list := func(n int) *structpb.Value {
		l := &structpb.ListValue{}
		for range n {
			l.Values = append(l.Values, structpb.NewNullValue())
		}
		return structpb.NewListValue(l)
	}
	emit := func(n int) error {
		_, err := s.Bridge.Emit(t.Context(), &loombridgev1.EmitRequest{AgentId: "a", Topic: "t", PayloadForm: &loombridgev1.EmitRequest_Payload{Payload: list(n)}})
		return err
	}
	if err := emit(50_000); err != nil {
		t.Errorf("a payload of 50,000 values: %v", err)
	}
	if err := emit(50_001); status.Code(err) != codes.InvalidArgument || violated(err)[0] != "payload" {
		t.Errorf("a payload of 50,001 values: %v", err)
	}
	save := func(n int) error {
		_, err := s.Bridge.MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "t", Tags: strings.Split(strings.Repeat("x", n), "")})
		return err
	}
	if err := save(64); err != nil {
		t.Errorf("64 tags: %v", err)
	}
	if err := save(65); status.Code(err) != codes.InvalidArgument || violated(err)[0] != "tags" {
		t.Errorf("65 tags: %v", err)
	}
	register := func(n int) error {
		_, err := s.LoomRuntime.CreateAgent(t.Context(), &loomv1pb.AgentConfig{AgentId: "a", Capabilities: make([]string, n)})
		return err
	}
	if err := register(loomv1.MaxItems); err != nil {
		t.Errorf("%d capabilities: %v", loomv1.MaxItems, err)
	}
	if err := register(loomv1.MaxItems + 1); status.Code(err) != codes.InvalidArgument {
		t.Errorf("%d capabilities: %v", loomv1.MaxItems+1, err)
	}
}

// One item of an open stream that holds too much is answered by itself, and the
// stream goes on.
func TestAttachOutlivesExcess(t *testing.T) {
	s, directory := MustStartAttached(t, servertest.Options{})
	hello := helloOf("a")
	hello.Tools = []*loombridgev1.ToolDescriptor{{Name: "echo"}}
	a := MustAttach(t, t.Context(), s.Bridge, hello)
	publish := countPublish(1, "news", false)
	publish.Tags = make([]string, 33)
	a.publish(1, publish)
	a.send(&loombridgev1.AttachRequest{Ref: 2, Item: &loombridgev1.AttachRequest_Subscribe{Subscribe: &loombridgev1.SubscribeRequest{
		Topics: make([]*loombridgev1.TopicPosition, 65),
	}}})
	a.send(&loombridgev1.AttachRequest{Ref: 3, Item: &loombridgev1.AttachRequest_Unsubscribe{Unsubscribe: &loombridgev1.AttachUnsubscribe{
		Topics: make([]string, 1025),
	}}})
	for ref, field := range map[int64]string{1: "publish.tags", 2: "subscribe.topics", 3: "unsubscribe.topics"} {
		answer := a.answer(ref)
		if fields := answer.GetError().GetFields(); len(fields) != 1 || fields[field] == "" {
			t.Errorf("the answer to %d is %v", ref, answer)
		}
	}
	done := relay(t.Context(), directory, agents.ToolCall{Name: "echo", Arguments: "{}"})
	nulls := structpb.NewListValue(&structpb.ListValue{Values: make([]*structpb.Value, 50_001)})
	a.send(resultMessage(&loombridgev1.AttachToolResult{
		CallId: a.call().GetCallId(), Success: true, OutputForm: &loombridgev1.AttachToolResult_Output{Output: nulls},
	}))
	if result, err := (<-done)(); err != nil || !strings.Contains(result.ErrorMessage, "50000 JSON values") {
		t.Errorf("the call ended with %+v, %v", result, err)
	}
	a.publish(4, countPublish(2, "news", false))
	if answer := a.answer(4); answer.GetEmitted() == nil {
		t.Errorf("the stream does not go on: %v", answer)
	}
}

// The same for an agent of loom.v1.
func TestLoomStreamOutlivesExcess(t *testing.T) {
	s := servertest.Start(t, nil)
	a := MustLoomAgent(t, s, "a", "t", "do")
	event := publishOf("t", 1)
	event.GetPublish().Event.Tags = make([]string, loomv1.MaxItems+1)
	a.send(event)
	if got := a.next().GetErr(); got.GetCode() != "RESOURCE_EXHAUSTED" || !strings.Contains(got.GetMessage(), "publish.event.tags has more than 16384 items") {
		t.Errorf("the agent is told %v", got)
	}
	a.send(publishOf("t", 1))
	if got := a.next().GetDelivery().GetEvent().GetId(); got != "e" {
		t.Errorf("the stream does not go on: %q", got)
	}
}

// An error lists what is enough to correct a request, and how much more there is.
func TestViolationsAreBounded(t *testing.T) {
	s := servertest.Start(t, nil)
	many := &loombridgev1.BatchSaveRequest{AgentId: "a"}
	for range 100 {
		many.Records = append(many.Records, &loombridgev1.MemorySaveRequest{})
	}
	_, err := s.Memory.BatchSave(t.Context(), many)
	fields := violated(err)
	if len(fields) != 33 || fields[31] != "records.text" || fields[32] != "" || !strings.Contains(fmt.Sprint(status.Convert(err).Details()), "and 68 more") {
		t.Errorf("%d fields: %q of %v", len(fields), fields, status.Convert(err).Details())
	}
}
