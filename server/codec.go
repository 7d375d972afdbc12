package server

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/admission"
	"github.com/loom-bridge/loom-bridge/server/loomv1"
	"github.com/loom-bridge/loom-bridge/server/unread"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// codec is gRPC's protobuf codec, except that a message that can't be accepted
// does not end the call inside gRPC, as Internal and past every interceptor.
// The message arrives empty with a mark instead, and the chain refuses it with
// a typed error (see refuseMarked). What a message holds is counted before it is
// decoded.
//
// It writes large messages into buffers of about their size. gRPC's own pool has
// none between 32 KiB and 1 MiB, and clears the whole of one before it is written:
// for a prompt that takes as long as to write it.
type codec struct {
	encoding.CodecV2
	maxReceiveBytes int
	large           mem.BufferPool
	counter         *admission.Counter
}

// Messages of more than pooledBytes are written into buffers of the codec's own;
// maxPooledBytes is the size of the largest that is kept.
const (
	pooledBytes    = 32 << 10
	maxPooledBytes = 4 * mib
)

func newCodec(limits Limits) codec {
	var sizes []int
	for size := 2 * pooledBytes; size <= maxPooledBytes; size *= 2 {
		sizes = append(sizes, size)
	}
	return codec{encoding.GetCodecV2(protocodec.Name), limits.MaxReceiveBytes, mem.NewTieredBufferPool(sizes...), newCounter()}
}

// marshalMessage is Marshal for what is no frame.
func (c codec) marshalMessage(v any) (mem.BufferSlice, error) {
	message, ok := v.(proto.Message)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	size := proto.Size(message)
	if size <= pooledBytes {
		return c.CodecV2.Marshal(v)
	}
	buffer, err := c.marshalInto(c.large, size, message)
	if err != nil {
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(buffer, c.large)}, nil
}

// marshalInto writes a message, whose size was just taken, into a buffer of the pool.
func (c codec) marshalInto(pool mem.BufferPool, size int, message proto.Message) (*[]byte, error) {
	buffer := pool.Get(size)
	// Size has kept the sizes within the message, which is not changed here.
	if _, err := (proto.MarshalOptions{UseCachedSize: true}).MarshalAppend((*buffer)[:0], message); err != nil {
		pool.Put(buffer)
		return nil, fmt.Errorf("server: marshal: %w", err)
	}
	return buffer, nil
}

// marshalAnswer is Marshal for what has a place while it waits for its reader.
func (c codec) marshalAnswer(a *unread.Delivery) (mem.BufferSlice, error) {
	switch m := a.Message.(type) {
	case *frame:
		if len(m.tail) > len(m.head) {
			return mem.BufferSlice{mem.SliceBuffer(m.head), a.Buffer(&m.tail, nil)}, nil
		}
		return mem.BufferSlice{a.Buffer(&m.head, nil), mem.SliceBuffer(m.tail)}, nil
	case proto.Message:
		pool, size := c.large, proto.Size(m)
		if size <= pooledBytes {
			pool = mem.DefaultBufferPool()
		}
		buffer, err := c.marshalInto(pool, size, m)
		if err != nil {
			a.Leave()
			return nil, err
		}
		a.Message = nil // the transport keeps the answer while it waits for its reader
		return mem.BufferSlice{a.Buffer(buffer, pool)}, nil
	}
	a.Leave()
	return nil, fmt.Errorf("server: %T is not a protobuf message", a.Message)
}

// receiveSlack is how much more than MaxReceiveBytes the transport itself lets
// through, so that a message somewhat too large gets a reason too.
const receiveSlack = 4 * mib

// Marks of a refused message, as fields of the highest numbers there are. A
// client that sends one itself is refused, which harms no other client.
const (
	undecodableMark = protowire.MaxValidNumber - iota
	oversizeMark
	excessMark
)

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	message, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("server: %T is not a protobuf message", v)
	}
	if size := data.Len(); size > c.maxReceiveBytes {
		if !keepsStream(message, data.Materialize(), loomv1.TooLarge(size, c.maxReceiveBytes)) {
			mark(message, oversizeMark, fmt.Sprintf("message of %d bytes exceeds %d", size, c.maxReceiveBytes))
		}
		return nil
	}
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	raw, d := buffer.ReadOnlyData(), message.ProtoReflect().Descriptor()
	if excess, found := c.counter.Check(d, raw); found {
		refuseExcess(message, raw, excess)
		return nil
	}
	if err := proto.Unmarshal(raw, message); err != nil {
		field, _ := badText(d, raw, maxTextDepth)
		mark(message, undecodableMark, field)
	}
	return nil
}

// keepsStream puts something small in the place of a message that is not to be
// decoded, where that need not end its stream: an agent of loom.v1 gets an answer, and
// goes on.
func keepsStream(message proto.Message, raw []byte, problem string) bool {
	event, ok := message.(*loomv1pb.ClientEvent)
	if !ok {
		return false
	}
	small := loomv1.Oversized(raw, problem)
	if small == nil {
		return false
	}
	proto.Reset(event)
	event.Msg = small.GetMsg()
	return true
}

// maxTextDepth bounds how deep badText looks, in messages within messages:
// clients send at most 100. A request of 4 MiB can nest a million deep, which
// would take a gigabyte of stack and, written out as a path, an hour.
const maxTextDepth = 100

// badText returns the path of the first text in a message that is not UTF-8,
// and whether there is one no deeper than depth. The library does not say.
func badText(d protoreflect.MessageDescriptor, raw []byte, depth int) (path string, found bool) {
	for len(raw) > 0 && depth > 0 {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return "", false
		}
		size := protowire.ConsumeFieldValue(number, kind, raw[n:])
		if size < 0 {
			return "", false
		}
		field := d.Fields().ByNumber(number)
		if value, ok := protowire.ConsumeBytes(raw[n:]); kind == protowire.BytesType && ok > 0 && field != nil {
			if path, found = badTextIn(field, value, depth-1); found {
				return path, true
			}
		}
		raw = raw[n+size:]
	}
	return "", false
}

func badTextIn(field protoreflect.FieldDescriptor, value []byte, depth int) (path string, found bool) {
	switch field.Kind() {
	case protoreflect.StringKind:
		return string(field.Name()), !utf8.Valid(value)
	case protoreflect.MessageKind:
		path, found = badText(field.Message(), value, depth)
		return string(field.Name()) + "." + path, found
	}
	return "", false
}

// mark empties a message but for the mark.
func mark(message proto.Message, number protowire.Number, text string) {
	proto.Reset(message)
	setMark(message.ProtoReflect(), number, text)
}

func setMark(message protoreflect.Message, number protowire.Number, text string) {
	raw := protowire.AppendTag(nil, number, protowire.BytesType)
	message.SetUnknown(protowire.AppendString(raw, text))
}

// refuseMarked returns the error of a message that the codec marked.
func refuseMarked(v any) error {
	message, ok := v.(proto.Message)
	if !ok {
		return nil
	}
	unknown := []byte(message.ProtoReflect().GetUnknown())
	for len(unknown) > 0 {
		number, kind, n := protowire.ConsumeTag(unknown)
		size := protowire.ConsumeFieldValue(number, kind, unknown[max(n, 0):])
		if n < 0 || size < 0 {
			return nil
		}
		if kind == protowire.BytesType && number >= excessMark {
			text, _ := protowire.ConsumeString(unknown[n:])
			return markedError(number, text)
		}
		unknown = unknown[n+size:]
	}
	return nil
}

func markedError(number protowire.Number, text string) error {
	switch number {
	case oversizeMark:
		return fmt.Errorf("%w: %s", ErrTooLarge, text)
	case excessMark:
		field, problem, _ := strings.Cut(text, excessSeparator)
		return validate.Refuse(field, problem)
	}
	if text == "" {
		return validate.Refuse("", "is not a protobuf message of the type that this call takes")
	}
	return validate.Refuse(text, "holds text that is not UTF-8")
}

// newCounter counts the requests of all APIs. Those of loom.v1 and of A2A have one limit for
// everything: their clients have never known any.
func newCounter() *admission.Counter {
	table, requests := validate.Counts(), append(admission.Requests("loom.v1"), admission.Requests("lf.a2a.v1")...)
	for _, field := range admission.Counted(requests...) {
		table[field.FullName()] = loomv1.MaxItems
	}
	return admission.NewCounter(table, append(requests, admission.Requests("loombridge.v1")...)...)
}

// Units of sizes.
const (
	kib = 1 << 10
	mib = 1 << 20
)

// excessSeparator stands between the field and the problem of a marked excess.
const excessSeparator = "\x00"

// refuseExcess replaces a message with a refusal for its excess. Inside a stream that goes
// on with other messages it says which one was refused.
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

// keepItem puts an item with nothing but its ref or call id, and the mark, in the place of
// an item that is not decoded, so that the agent gets an answer. It is not done for a
// hello: there is no stream yet.
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
			keepCall(item.Message(), value)
			setMark(item.Message(), excessMark, text)
			items.Set(field, item)
			kept = true
		}
		if value, ok := protowire.ConsumeVarint(raw[n:]); kind == protowire.VarintType && ok > 0 && field != nil && field.Name() == "ref" {
			request.Ref = int64(value)
		}
		raw = raw[n+size:]
	}
	return kept && request.GetHello() == nil
}

// keepCall copies the call id of an encoded item into one.
func keepCall(item protoreflect.Message, raw []byte) {
	callID := item.Descriptor().Fields().ByName("call_id")
	for len(raw) > 0 && callID != nil {
		number, kind, n := protowire.ConsumeTag(raw)
		size := protowire.ConsumeFieldValue(number, kind, raw[max(n, 0):])
		if n < 0 || size < 0 {
			return
		}
		if number == callID.Number() && kind == protowire.BytesType {
			if value, _ := protowire.ConsumeString(raw[n:]); len(value) <= validate.MaxIDBytes && utf8.ValidString(value) {
				item.Set(callID, protoreflect.ValueOfString(value))
			}
		}
		raw = raw[n+size:]
	}
}

// refuse answers an item that was not decoded, and reports whether m is one.
func (a *attachment) refuse(ctx context.Context, m *loombridgev1.AttachRequest) (refused bool, err error) {
	switch item := m.GetItem().(type) {
	case *loombridgev1.AttachRequest_Publish:
		if err := refuseMarked(item.Publish); err != nil {
			return true, a.Publish(ctx, a.refusedPublish(ctx, m.GetRef(), err))
		}
	case *loombridgev1.AttachRequest_Subscribe:
		return a.refuseWith(ctx, m.GetRef(), refuseMarked(item.Subscribe))
	case *loombridgev1.AttachRequest_Unsubscribe:
		return a.refuseWith(ctx, m.GetRef(), refuseMarked(item.Unsubscribe))
	case *loombridgev1.AttachRequest_Heartbeat:
		return a.refuseWith(ctx, m.GetRef(), refuseMarked(item.Heartbeat))
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
