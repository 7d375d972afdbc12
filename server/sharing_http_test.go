package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	protos "github.com/loom-bridge/loom-bridge/proto"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/rest"
	"github.com/loom-bridge/loom-bridge/server/web"
)

// overHTTP takes the calls of a client of gRPC over HTTP, where they have a path.
type overHTTP struct {
	base  string // empty: not yet
	ways  map[string][]map[string]any
	calls int
}

func newOverHTTP(tb testing.TB) *overHTTP {
	tb.Helper()
	var config struct {
		HTTP struct{ Rules []map[string]any }
	}
	must(tb, json.Unmarshal(protos.REST, &config))
	h := &overHTTP{ways: map[string][]map[string]any{}}
	for _, rule := range config.HTTP.Rules {
		selector := rule["selector"].(string)
		at := strings.LastIndex(selector, ".")
		method := "/" + selector[:at] + "/" + selector[at+1:]
		h.ways[method] = append(h.ways[method], rule)
		more, _ := rule["additional_bindings"].([]any)
		for _, way := range more {
			h.ways[method] = append(h.ways[method], way.(map[string]any))
		}
	}
	return h
}

// serve begins to take the calls of a server's client over HTTP.
func (h *overHTTP) serve(tb testing.TB, s *servertest.Server, o server.Options) {
	tb.Helper()
	within := s.Face.Within()
	calls, err := rest.New(within, rest.Options{})
	must(tb, err)
	face := web.New(web.Options{Server: o})
	face.Handle(rest.Prefix, web.Callers, calls)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(tb, err)
	ended := make(chan error, 1)
	go func() { ended <- face.Serve(listener) }()
	tb.Cleanup(func() {
		must(tb, face.Shutdown(context.Background()))
		must(tb, <-ended)
		_ = within.Close()
	})
	h.base = "http://" + listener.Addr().String()
}

// ask makes a call by the first way whose path the request fills.
func (h *overHTTP) ask(ctx context.Context, method string, request any) (*http.Response, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(request.(proto.Message))
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	for _, way := range h.ways[method] {
		for _, verb := range []string{"get", "post", "patch", "delete"} {
			path, ok := way[verb].(string)
			if !ok {
				continue
			}
			path = strings.Replace(path, "{session_id}", "default", 1)
			body, query := text, url.Values{}
			for name, raw := range fields {
				var one string
				if json.Unmarshal(raw, &one) != nil {
					one = string(raw)
				}
				if inside := "{" + name + "}"; strings.Contains(path, inside) {
					path = strings.Replace(path, inside, url.PathEscape(one), 1)
					continue
				}
				query.Set(name, one)
			}
			if way["body"] == nil {
				path, body = path+"?"+query.Encode(), nil
			}
			if strings.Contains(path, "{") {
				continue
			}
			r, err := http.NewRequestWithContext(ctx, strings.ToUpper(verb), h.base+path, bytes.NewReader(body))
			if err != nil {
				return nil, err
			}
			if len(body) > 0 {
				r.Header.Set("Content-Type", "application/json")
			}
			sent, _ := metadata.FromOutgoingContext(ctx)
			for _, token := range sent.Get("authorization") {
				r.Header.Add("Authorization", token)
			}
			h.calls++
			return http.DefaultClient.Do(r)
		}
	}
	return nil, fmt.Errorf("no path of %s fits %v", method, request)
}

// failure is the error of an answer that is one.
func failure(text []byte) error {
	var s spb.Status
	if err := protojson.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	return status.ErrorProto(&s)
}

func (h *overHTTP) unary(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if h.base == "" || h.ways[method] == nil {
		return next(ctx, method, request, reply, conn, opts...)
	}
	answer, err := h.ask(ctx, method, request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return err
	case answer.StatusCode != http.StatusOK:
		return failure(text)
	}
	return protojson.Unmarshal(text, reply.(proto.Message))
}

func (h *overHTTP) stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if h.base == "" || h.ways[method] == nil {
		return next(ctx, desc, conn, method, opts...)
	}
	return &lines{ctx: ctx, http: h, method: method}, nil
}

// lines is a stream of lines of JSON.
type lines struct {
	grpc.ClientStream
	ctx    context.Context
	http   *overHTTP
	method string
	answer *http.Response
	read   *bufio.Reader
}

func (l *lines) Context() context.Context { return l.ctx }
func (l *lines) CloseSend() error         { return nil }

func (l *lines) SendMsg(m any) (err error) {
	if l.answer, err = l.http.ask(l.ctx, l.method, m); err == nil {
		l.read = bufio.NewReader(l.answer.Body)
	}
	return err
}

func (l *lines) RecvMsg(m any) error {
	text, err := l.read.ReadBytes('\n')
	if l.answer.StatusCode != http.StatusOK {
		return failure(text)
	}
	if err != nil {
		return err
	}
	var line struct{ Result, Error json.RawMessage }
	if err := json.Unmarshal(text, &line); err != nil {
		return err
	}
	if line.Error != nil {
		return failure(line.Error)
	}
	return protojson.Unmarshal(line.Result, m.(proto.Message))
}

// What callers may do with memories that are shared is the same over HTTP.
//
// N13
func TestEveryMethodAsksForAccessOverHTTP(t *testing.T) {
	for name, row := range sharingTable() {
		t.Run(name, func(t *testing.T) {
			h := newOverHTTP(t)
			o := server.Options{Credentials: MustCredentials(t, tableCredentials)}
			s := servertest.Start(t, &servertest.Options{Server: o, Dial: []grpc.DialOption{grpc.WithUnaryInterceptor(h.unary), grpc.WithStreamInterceptor(h.stream)}})
			h.serve(t, s, o)
			askAll(t, s, row)
			if h.calls == 0 {
				t.Error("no call went over HTTP")
			}
		})
	}
}
