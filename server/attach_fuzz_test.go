package server_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// script writes messages so that readScript finds them again.
func script(messages ...*loombridgev1.AttachRequest) []byte {
	var raw []byte
	for _, m := range messages {
		one, err := proto.Marshal(m)
		if err != nil || len(one) > 255 {
			panic("a message of a script is short")
		}
		raw = append(append(raw, byte(len(one))), one...)
	}
	return raw
}

func readScript(raw []byte) []*loombridgev1.AttachRequest {
	var messages []*loombridgev1.AttachRequest
	for len(raw) > 0 {
		size := min(int(raw[0]), len(raw)-1)
		m := &loombridgev1.AttachRequest{}
		if proto.Unmarshal(raw[1:1+size], m) == nil {
			messages = append(messages, m)
		}
		raw = raw[1+size:]
	}
	return messages
}

// Whatever an agent sends, the stream ends soon after it has closed its side,
// and not with a fault of the server.
func FuzzAttach(f *testing.F) {
	hello := helloMessage(helloOf("x", "a", "b.*"))
	f.Add(script(hello))
	f.Add(script(hello, publishMessage(1, countPublish(1, "a", false)), publishMessage(0, countPublish(2, "b.c", true)), heartbeatMessage(3)))
	f.Add(script(hello, resultMessage(&loombridgev1.AttachToolResult{CallId: "c", Success: true}), hello))
	f.Add(script(hello,
		&loombridgev1.AttachRequest{Ref: 1, Item: &loombridgev1.AttachRequest_Subscribe{Subscribe: &loombridgev1.SubscribeRequest{Topics: topicsOf("c", "**")}}},
		&loombridgev1.AttachRequest{Ref: 2, Item: &loombridgev1.AttachRequest_Unsubscribe{Unsubscribe: &loombridgev1.AttachUnsubscribe{Topics: []string{"a", "c"}}}},
		publishMessage(-1, countPublish(1, "c", false)), &loombridgev1.AttachRequest{}))
	f.Add(script(publishMessage(1, nil), hello))
	s := servertest.Start(f, nil)
	f.Fuzz(func(t *testing.T, raw []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		stream, err := s.Bridge.Attach(ctx)
		must(t, err)
		a := &attachment{tb: t, stream: stream}
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for _, m := range readScript(raw) {
				if stream.Send(m) != nil {
					return
				}
			}
			_ = stream.CloseSend()
		}()
		switch err := a.end(); codeOf(err) {
		case codes.InvalidArgument, codes.OutOfRange: // what was sent is at fault
		default:
			if !errors.Is(err, io.EOF) {
				t.Errorf("ended with %v", err)
			}
		}
		<-sent
	})
}
