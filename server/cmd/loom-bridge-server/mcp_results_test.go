package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	pixels "image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// arrived and cancelled count the calls that reached a server in this process to wait, and those
// that it was told to end.
var arrived, cancelled atomic.Int64

// picture is a PNG of some pixels.
func picture(width, height int) []byte {
	var out bytes.Buffer
	_ = png.Encode(&out, pixels.NewGray(pixels.Rect(0, 0, width, height)))
	return out.Bytes()
}

// addRich adds tools with all sorts of results, resources and prompts.
func addRich(s *sdk.Server) {
	anything := json.RawMessage(`{"type":"object"}`)
	size := int64(1234)
	for name, result := range map[string]*sdk.CallToolResult{
		"draw": {Content: []sdk.Content{&sdk.TextContent{Text: "a picture"}, &sdk.ImageContent{Data: picture(40, 30), MIMEType: "image/png"}}},
		"sing": {Content: []sdk.Content{&sdk.AudioContent{Data: bytes.Repeat([]byte("la"), 500), MIMEType: "audio/wav"}}},
		"embed": {Content: []sdk.Content{
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a.bin", MIMEType: "application/zip", Blob: bytes.Repeat([]byte{1, 2, 3}, 300)}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a.txt", Text: "what a.txt says"}},
		}},
		"link":   {Content: []sdk.Content{&sdk.ResourceLink{URI: "file:///big.log", Name: "big.log", MIMEType: "text/plain", Size: &size}}},
		"rows":   {Content: []sdk.Content{&sdk.TextContent{Text: "2 rows"}}, StructuredContent: map[string]any{"rows": []int{1, 900719925474099}}},
		"broken": {Content: []sdk.Content{&sdk.TextContent{Text: "no ink"}, &sdk.ImageContent{Data: picture(4, 3), MIMEType: "image/png"}}, IsError: true},
	} {
		s.AddTool(&sdk.Tool{Name: name, InputSchema: anything}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return result, nil })
	}
	s.AddTool(&sdk.Tool{Name: "work", InputSchema: anything}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i := range 3 {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3, Message: fmt.Sprint("part ", i+1)})
			time.Sleep(150 * time.Millisecond)
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "worked"}}}, nil
	})
	s.AddTool(&sdk.Tool{Name: "wait", InputSchema: anything}, func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		arrived.Add(1)
		<-ctx.Done()
		cancelled.Add(1)
		return nil, ctx.Err()
	})
	s.AddResource(&sdk.Resource{URI: "note://one", Name: "one", MIMEType: "text/plain"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "note://one", MIMEType: "text/plain", Text: "what note one says"}}}, nil
	})
	s.AddPrompt(&sdk.Prompt{Name: "greet", Arguments: []*sdk.PromptArgument{{Name: "whom", Required: true}}}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "Greet " + r.Params.Arguments["whom"]}}}}, nil
	})
}

// use calls a tool as agents of the native API do.
func (p *process) use(tb testing.TB, name, arguments string) *loombridgev1.ToolResponse {
	tb.Helper()
	got, err := p.bridge().Tool(convert.AskText(tb.Context()), &loombridgev1.ToolRequest{
		AgentId: "a", Name: name, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: arguments}, CallId: "call-" + name,
	})
	must(tb, err)
	return got
}

// richVersions are the transports and versions that TestMCPResults goes through.
func richVersions(t *testing.T, dir string) map[string]object {
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return newMCPServer("rich") }, nil)
	there := httptest.NewServer(handler)
	t.Cleanup(there.Close)
	servers := map[string]object{"io-none": guest(t, dir, "rich", nil)}
	for _, version := range []string{"2024-11-05", "2025-11-25", "2026-07-28"} {
		program := guest(t, dir, "rich", nil)
		program["protocol_version"] = version
		servers["io-"+version] = program
		servers["http-"+version] = object{"url": there.URL, "protocol_version": version}
	}
	return servers
}

// All that a server gives reaches whoever calls, in both transports and all versions: bytes
// with their type and size in the observation and to be read back, never as base64 in the
// prompt; a tool that says that it failed has failed.
func TestMCPResults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	servers := object{}
	for name, s := range richVersions(t, dir) {
		servers[name] = s
	}
	p := MustServe(t, dir, servers)
	for name := range servers {
		t.Run(name, func(t *testing.T) {
			p.waitFor(t, name+":draw")
			for _, test := range []struct{ tool, arguments, output, shows string }{
				{"draw", `{}`, `"mimeType":"image/png"`, "a picture [image image/png 40x30]"},
				{"sing", `{}`, `"mimeType":"audio/wav"`, "[audio audio/wav 1000 bytes]"},
				{"embed", `{}`, `"blob":"AQID`, "[binary application/zip 900 bytes]"},
				{"embed", `{}`, `"blob":"AQID`, "what a.txt says"},
				{"link", `{}`, `"uri":"file:///big.log"`, "[resource big.log text/plain 1234 bytes, file:///big.log]"},
				{"rows", `{}`, `"rows":[1,900719925474099]`, "2 rows"},
				{"resources/list", `{}`, `"uri":"note://one"`, "note://one"},
				{"resources/read", `{"uri":"note://one"}`, `"text":"what note one says"`, "what note one says"},
				{"prompts/list", `{}`, `"name":"greet"`, "greet"},
				{"prompts/get", `{"name":"greet","arguments":{"whom":"Ann"}}`, `Greet Ann`, "Greet Ann"},
			} {
				got := p.use(t, name+":"+test.tool, test.arguments)
				if !got.GetSuccess() || !strings.Contains(got.GetOutputJson(), test.output) {
					t.Errorf("%s gave %.300s, want %s (%s)", test.tool, got.GetOutputJson(), test.output, got.GetErrorMessage())
				}
				if shown := got.GetObservation() + got.GetStep().GetInline(); !strings.Contains(shown, test.shows) || strings.Contains(shown, "AQIDAQID") {
					t.Errorf("%s shows %.500q, want %q", test.tool, shown, test.shows)
				}
			}
			// The bytes themselves are read back by name.
			drawn := p.use(t, name+":draw", `{}`)
			read, err := contexts.New(p.conn).ReadBlob(t.Context(), &loombridgev1.ReadBlobRequest{AgentId: "a", Name: drawn.GetStep().GetId(), Form: loombridgev1.BlobForm_BLOB_FORM_MEDIA})
			must(t, err)
			var data []byte
			mediaType := ""
			for len(data) < len(picture(40, 30)) {
				part, err := read.Recv()
				must(t, err)
				data = append(data, part.GetData()...)
				mediaType += part.GetInfo().GetMediaType()
			}
			if !bytes.Equal(data, picture(40, 30)) || mediaType != "image/png" {
				t.Errorf("the image is %d bytes of %q", len(data), mediaType)
			}
			if got := p.use(t, name+":broken", `{}`); got.GetSuccess() || !strings.Contains(got.GetErrorMessage(), "no ink") {
				t.Errorf("a tool that failed: %v", got)
			}
			// To agents of loom.v1 a result is a text.
			if got := p.forward(t, name+":draw", `{}`); got.GetStatus() != loomv1pb.ToolStatus_TOOL_OK || got.GetOutput() != `"a picture\n[image]"` {
				t.Errorf("loom.v1 has %v", got)
			}
		})
	}
}

// A server that tells how far it is is heard by whoever listens, and is told when nobody
// waits any more.
func TestMCPProgressAndCancellation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	servers := object{}
	for name, s := range richVersions(t, dir) {
		servers[name] = s
	}
	p := MustServe(t, dir, servers)
	stream, err := loombridgev1.NewEventServiceClient(p.conn).Subscribe(t.Context(), &loombridgev1.SubscribeRequest{AgentId: "a", Topics: []*loombridgev1.TopicPosition{{Topic: "tool.progress"}}})
	must(t, err)
	_, err = stream.Recv() // it is ready
	must(t, err)
	done := map[string]float64{} // by tool
	for name := range servers {
		p.waitFor(t, name+":work")
		if got := p.use(t, name+":work", `{}`); !got.GetSuccess() {
			t.Errorf("%s: %v", name, got)
		}
		for heard := false; !heard; {
			got, err := stream.Recv()
			must(t, err)
			said := got.GetEvent().GetPayload().GetStructValue().AsMap()
			tool, _ := said["tool"].(string)
			n, _ := said["done"].(float64)
			// What comes too soon after the last report is left out, but never the first.
			if first := done[tool] == 0; first && n != 1 || n <= done[tool] || said["total"] != 3.0 || said["message"] != fmt.Sprint("part ", n) || said["call_id"] != "call-"+tool {
				t.Fatalf("%s: %v after %v", name, got, done)
			}
			done[tool] = n
			heard = tool == name+":work"
		}
		if !strings.HasPrefix(name, "http-") {
			continue // the server is another process
		}
		begun, before := arrived.Load(), cancelled.Load()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := p.bridge().Tool(ctx, &loombridgev1.ToolRequest{AgentId: "a", Name: name + ":wait"})
			ended <- err
		}()
		comes := func(count *atomic.Int64, before int64, what string) {
			t.Helper()
			eventually(t, waitTime, func() error {
				if count.Load() == before {
					return errors.New(what)
				}
				return nil
			})
		}
		comes(&arrived, begun, "the call has not arrived")
		cancel()
		if <-ended == nil {
			t.Errorf("%s: the call did not end", name)
		}
		comes(&cancelled, before, "the server still waits")
	}
}
