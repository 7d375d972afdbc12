package rest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/server/web"
)

// refusalTime is how long the first message of a stream is awaited before the request is
// accepted: what is refused at all is refused within it, with the code of HTTP for it.
const refusalTime = 250 * time.Millisecond

// received is what a stream gives next.
type received struct {
	message proto.Message
	err     error
}

// stream answers with the messages of a stream, as they come.
func (h *Handler) stream(ctx context.Context, w http.ResponseWriter, r *http.Request, b binding, request proto.Message) {
	ctx, cancel := context.WithCancel(ctx)
	out := &output{resumption: unresumed{}, w: w, control: http.NewResponseController(w), stall: h.opts.StallTimeout}
	if strings.Contains(r.Header.Get("Accept"), eventStream) {
		out.resumption, out.events = newResumption(b.method), true
		if err := out.resume(request, r.Header.Get("Last-Event-ID")); err != nil {
			cancel()
			web.RefuseError(w, r, err)
			return
		}
	}
	messages := make(chan received)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.receive(ctx, b, request, messages)
	}()
	defer func() { cancel(); <-ended }()
	out.copy(ctx, messages, h.opts.Heartbeat)
}

// receive makes the call, and hands over what it gives until it or ctx ends.
func (h *Handler) receive(ctx context.Context, b binding, request proto.Message, messages chan<- received) {
	hand := func(m proto.Message, err error) bool {
		select {
		case messages <- received{m, err}:
			return err == nil
		case <-ctx.Done():
			return false
		}
	}
	stream, err := h.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, b.method)
	if err == nil {
		if err = stream.SendMsg(request); err == nil || errors.Is(err, io.EOF) { // receiving has the reason
			err = stream.CloseSend()
		}
	}
	for err == nil {
		message := b.out.New().Interface()
		if err = stream.RecvMsg(message); err == nil && !hand(message, nil) {
			return
		}
	}
	hand(nil, err)
}

// eventStream is the media type of server-sent events.
const eventStream = "text/event-stream"

// output writes a stream in one of its two forms.
type output struct {
	resumption
	w       http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
	events  bool
	begun   bool
}

// copy writes what comes until the stream ends or the client takes nothing any more.
func (o *output) copy(ctx context.Context, messages <-chan received, heartbeat time.Duration) {
	timer := time.NewTimer(refusalTime)
	defer timer.Stop()
	for {
		select {
		case next := <-messages:
			if next.err == nil {
				if o.message(next.message) != nil {
					return
				}
				continue
			}
			o.end(ctx, next.err)
			return
		case <-timer.C:
			timer.Reset(heartbeat)
			if o.quiet() != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// begin sends the header, once.
func (o *output) begin() {
	if o.begun {
		return
	}
	o.begun = true
	media := "application/x-ndjson"
	if o.events {
		media = eventStream
	}
	o.w.Header().Set("Content-Type", media)
	o.w.Header().Set("X-Accel-Buffering", "no") // proxies pass each message on at once
	o.w.WriteHeader(http.StatusOK)
}

func (o *output) message(m proto.Message) error {
	id, skip := o.place(m)
	if skip {
		return nil
	}
	body, err := protojson.Marshal(m)
	if err != nil {
		return err
	}
	o.begin()
	if !o.events {
		return o.write([]byte(`{"result":`), body, []byte("}\n"))
	}
	var line []byte
	if id != "" {
		line = []byte("id: " + id + "\n")
	}
	return o.write(line, []byte("data: "), body, []byte("\n\n"))
}

// end says how the stream ended: with the code of HTTP if nothing was sent yet.
func (o *output) end(ctx context.Context, err error) {
	if errors.Is(err, io.EOF) {
		o.begin()
		return
	}
	s := web.Status(ctx, err)
	if !o.begun {
		web.Fail(o.w, s)
		return
	}
	body, err := protojson.Marshal(s.Proto())
	if err != nil {
		return
	}
	if o.events {
		_ = o.write([]byte("event: error\ndata: "), body, []byte("\n\n"))
		return
	}
	_ = o.write([]byte(`{"error":`), body, []byte("}\n"))
}

// quiet shows that the stream stands, though there is nothing to say.
func (o *output) quiet() error {
	o.begin()
	if o.events {
		return o.write([]byte(":\n\n"))
	}
	return o.write()
}

func (o *output) write(parts ...[]byte) error {
	_ = o.control.SetWriteDeadline(time.Now().Add(o.stall)) // every connection of net/http can
	if _, err := o.w.Write(bytes.Join(parts, nil)); err != nil {
		return err
	}
	return o.control.Flush()
}
