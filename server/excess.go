package server

import (
	"context"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/admission"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// excessSeparator stands between the field and the problem of a marked excess.
const excessSeparator = "\x00"

// refuseExcess makes a message one that is refused for what it holds too much of.
// Inside a stream that goes on with other messages it says which one was refused.
func refuseExcess(message proto.Message, raw []byte, excess admission.Excess) {
	if keepsStream(message, raw, "is not taken: "+excess.Field+" "+excess.Problem) {
		return
	}
	text := excess.Field + excessSeparator + excess.Problem
	request, ok := message.(*loombridgev1.AttachRequest)
	if !ok || !keepItem(request, raw, text) {
		mark(message, excessMark, text)
	}
}

// keepItem puts an item with nothing but its ref or call id, and the mark, in the
// place of one that is not to be decoded, so that the agent gets an answer. A hello
// is not worth it: there is no stream yet.
func keepItem(request *loombridgev1.AttachRequest, raw []byte, text string) bool {
	proto.Reset(request)
	items := request.ProtoReflect()
	kept := false
	for len(raw) > 0 {
		number, kind, n := protowire.ConsumeTag(raw)
		size := protowire.ConsumeFieldValue(number, kind, raw[max(n, 0):])
		if n < 0 || size < 0 {
			break
		}
		field := items.Descriptor().Fields().ByNumber(number)
		if value, ok := protowire.ConsumeBytes(raw[n:]); kind == protowire.BytesType && ok > 0 && field != nil && field.Message() != nil {
			item := items.NewField(field)
			keepName(item.Message(), value)
			setMark(item.Message(), excessMark, text)
			items.Set(field, item)
			kept = true
		}
		raw = raw[n+size:]
	}
	return kept && request.GetHello() == nil
}

// Names of the fields by which an agent knows its item again.
const (
	refField    = "ref"
	callIDField = "call_id"
)

// keepName copies the ref or call id of an encoded item into one.
func keepName(item protoreflect.Message, raw []byte) {
	ref, callID := item.Descriptor().Fields().ByName(refField), item.Descriptor().Fields().ByName(callIDField)
	for len(raw) > 0 {
		number, kind, n := protowire.ConsumeTag(raw)
		size := protowire.ConsumeFieldValue(number, kind, raw[max(n, 0):])
		if n < 0 || size < 0 {
			return
		}
		switch {
		case ref != nil && number == ref.Number() && kind == protowire.VarintType:
			value, _ := protowire.ConsumeVarint(raw[n:])
			item.Set(ref, protoreflect.ValueOfInt64(int64(value)))
		case callID != nil && number == callID.Number() && kind == protowire.BytesType:
			if value, _ := protowire.ConsumeString(raw[n:]); len(value) <= validate.MaxIDBytes && utf8.ValidString(value) {
				item.Set(callID, protoreflect.ValueOfString(value))
			}
		}
		raw = raw[n+size:]
	}
}

// refuse answers an item that was not decoded, and tells whether m is one.
func (a *attachment) refuse(ctx context.Context, m *loombridgev1.AttachRequest) (refused bool, err error) {
	switch item := m.GetItem().(type) {
	case *loombridgev1.AttachRequest_Publish:
		if err := refuseMarked(item.Publish); err != nil {
			return true, a.Publish(ctx, a.refusedPublish(ctx, item.Publish.GetRef(), err))
		}
	case *loombridgev1.AttachRequest_Subscribe:
		return a.refuseWith(ctx, item.Subscribe.GetRef(), refuseMarked(item.Subscribe))
	case *loombridgev1.AttachRequest_Unsubscribe:
		return a.refuseWith(ctx, item.Unsubscribe.GetRef(), refuseMarked(item.Unsubscribe))
	case *loombridgev1.AttachRequest_Heartbeat:
		return a.refuseWith(ctx, item.Heartbeat.GetRef(), refuseMarked(item.Heartbeat))
	case *loombridgev1.AttachRequest_ToolResult:
		if err := refuseMarked(item.ToolResult); err != nil {
			a.link.Complete(item.ToolResult.GetCallId(), agents.Failure(tools.TooLarge, "the agent's answer is too large: "+err.Error()))
			return true, nil
		}
	}
	return false, nil
}

func (a *attachment) refuseWith(ctx context.Context, ref int64, err error) (refused bool, _ error) {
	if err == nil {
		return false, nil
	}
	return true, a.Reply(ctx, a.refusal(ctx, ref, err))
}
