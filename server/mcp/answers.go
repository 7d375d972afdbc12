package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// textResult is a result of one text.
func textResult(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// failed is the result of a call that failed: the model reads why.
func failed(text string) *sdk.CallToolResult {
	result := textResult(text)
	result.IsError = true
	return result
}

// explain is an error of the native API as a model reads it: the reason, the text, and
// what is wrong with each field.
func explain(err error) string {
	of := status.Convert(err)
	var text strings.Builder
	text.WriteString(of.Message())
	for _, detail := range of.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			prefixed := detail.GetReason() + ": " + text.String()
			text.Reset()
			text.WriteString(prefixed)
		case *errdetails.BadRequest:
			for _, v := range detail.GetFieldViolations() {
				if !strings.Contains(of.Message(), v.GetDescription()) {
					fmt.Fprintf(&text, "; %s: %s", v.GetField(), v.GetDescription())
				}
			}
		}
	}
	return text.String()
}

// plain is an error of the native API as an error of the protocol.
func plain(err error) error { return errors.New(explain(err)) }

// protoJSON is a message as one value of JSON, with the names of the .proto files.
func protoJSON(m proto.Message) (json.RawMessage, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("mcp: answer: %w", err)
	}
	// protojson mixes in blanks at random, so that texts are not compared.
	compact, err := json.Marshal(json.RawMessage(text))
	return compact, err
}

// surviving makes a panic of one call an error of that call: the protocol's library runs
// calls on its own goroutines, where it would end the process.
func (s *Server) surviving(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, request sdk.Request) (result sdk.Result, err error) {
		defer func() {
			if value := recover(); value != nil {
				s.own.Logger.Error("a call panicked", "method", method, "panic", value, "stack", string(debug.Stack()))
				result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal server fault; the server's log has the cause"}
			}
		}()
		return next(ctx, method, request)
	}
}

// loud lets warnings and errors through: the protocol's library also logs every request.
type loud struct{ slog.Handler }

func (h loud) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

func (h loud) WithAttrs(attrs []slog.Attr) slog.Handler { return loud{h.Handler.WithAttrs(attrs)} }

func (h loud) WithGroup(name string) slog.Handler { return loud{h.Handler.WithGroup(name)} }
