package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// brokenSchemas are texts that break the prompts of all who see the tool, or that
// take long to find out.
func brokenSchemas() map[string]string {
	return map[string]string{
		"no JSON":          `{"type": `,
		"no object":        `["object"]`,
		"of no object":     `{"type": "string"}`,
		"no such type":     `{"type": "objekt"}`,
		"old required":     `{"type": "object", "properties": {"a": {"type": "string", "required": true}}}`,
		"of elsewhere":     `{"$ref": "https://example.org/schema.json"}`,
		"refers to itself": `{"properties": {"a": {"$ref": "#/$defs/none"}}}`,
		"endlessly nested": strings.Repeat(`{"not":`, 9000) + `{}` + strings.Repeat(`}`, 9000),
		"very many values": `{"allOf": [` + strings.Repeat(`{},`, 20_000) + `{}]}`,
	}
}

func offering(schema string) *loombridgev1.AttachHello {
	hello := helloOf("provider")
	hello.Tools = []*loombridgev1.ToolDescriptor{{Name: "good"}, {
		Name: "bad", ParametersSchemaJson: schema,
	}}
	return hello
}

// An agent whose tool has a broken schema is not taken, and told why at once.
func TestBrokenSchemasAreRefused(t *testing.T) {
	s := servertest.Start(t, nil)
	for name, schema := range brokenSchemas() {
		began := time.Now()
		stream, err := s.Bridge.Attach(t.Context())
		must(t, err)
		must(t, stream.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Hello{Hello: offering(schema)}}))
		_, err = stream.Recv()
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
		if fields := violated(err); len(fields) != 1 || fields[0] != "hello.tools.parameters_schema_json" {
			t.Errorf("%s: fields %q of %v", name, fields, err)
		}
		if took := time.Since(began); took > time.Minute/2 {
			t.Errorf("%s took %v", name, took)
		}
	}
	for name, schema := range map[string]string{
		"usual":       `{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}`,
		"lookahead":   `{"type": "object", "properties": {"a": {"type": "string", "pattern": "^(?!x).*$"}}}`,
		"definitions": `{"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "integer"}}}`,
		"of any":      `{}`,
	} {
		stream, err := s.Bridge.Attach(t.Context())
		must(t, err)
		must(t, stream.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Hello{Hello: offering(schema)}}))
		if first, err := stream.Recv(); err != nil || first.GetReady() == nil {
			t.Errorf("%s: %v, %v", name, first, err)
		}
	}
}

// A tool whose schema refers to itself many times is called, and stands in prompts, as any other
// one: neither takes the server more time or room for it.
func TestSchemasOfThemselves(t *testing.T) {
	s, _ := MustStartAttached(t, servertest.Options{})
	refs := strings.TrimSuffix(strings.Repeat(`{"$ref":"#/$defs/d"},`, 50), ",")
	hello := helloOf("provider")
	for name, schema := range map[string]string{
		"alternatives": `{"properties":{"x":{"$ref":"#/$defs/d"}},"$defs":{"d":{"anyOf":[` + refs + `]}}}`,
		"parts":        `{"properties":{"x":{"$ref":"#/$defs/d"}},"$defs":{"d":{"items":{"$ref":"#/$defs/d"},"allOf":[` + refs + `]}}}`,
		"filter":       `{"properties":{"x":{"$ref":"#/$defs/d"}},"$defs":{"d":{"properties":{"a":{"$ref":"#/$defs/d"},"b":{"$ref":"#/$defs/d"},"c":{"$ref":"#/$defs/d"}}}}}`,
	} {
		hello.Tools = append(hello.Tools, &loombridgev1.ToolDescriptor{Name: name, ParametersSchemaJson: schema})
	}
	a := MustAttach(t, t.Context(), s.Bridge, hello)
	go func() {
		for {
			m, err := a.stream.Recv()
			if err != nil {
				return
			}
			if call := m.GetToolCall(); call != nil {
				a.send(resultMessage(&loombridgev1.AttachToolResult{CallId: call.GetCallId(), Success: true}))
			}
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, tool := range hello.GetTools() {
		for _, x := range []string{`"5"`, strings.Repeat("[", 40) + `"5"` + strings.Repeat("]", 40)} {
			answer, err := s.Bridge.Tool(ctx, &loombridgev1.ToolRequest{AgentId: agent, Name: tool.GetName(), ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"x":` + x + `}`}})
			must(t, err)
			if !answer.GetSuccess() {
				t.Errorf("%s: %v", tool.GetName(), answer)
			}
		}
	}
	prompt, err := s.Context.Assemble(ctx, &loombridgev1.AssembleRequest{
		AgentId: agent, Model: "gemini-3-pro", MaxTokens: 1_000_000, Format: loombridgev1.PromptFormat_PROMPT_FORMAT_GEMINI, Tools: hello.GetTools(),
	})
	must(t, err)
	if n := proto.Size(prompt); n < 1000 || n > 1<<20 {
		t.Errorf("it is %d bytes", n)
	}
}

// An agent of loom.v1 is taken with whatever it gives, as ever; its tool takes any
// object then, in the prompts of all, and the log says so.
func TestBrokenSchemasOfLoom(t *testing.T) {
	var log lockedBuffer
	s := servertest.Start(t, &servertest.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	register := &loomv1pb.AgentRegisterRequest{AgentId: "old"}
	wanted := map[string]bool{"good": true}
	register.Tools = append(register.Tools, &loomv1pb.ToolDescriptor{Name: "good", ParametersSchema: `{"type":"object","properties":{}}`})
	for _, schema := range brokenSchemas() {
		name := fmt.Sprintf("bad%d", len(register.GetTools()))
		register.Tools = append(register.Tools, &loomv1pb.ToolDescriptor{Name: name, ParametersSchema: schema})
		wanted[name] = true
	}
	answer, err := s.LoomBridge.RegisterAgent(t.Context(), register)
	must(t, err)
	if !answer.GetSuccess() || answer.GetErrorMessage() != "" {
		t.Fatalf("the agent is refused: %v", answer)
	}
	stream, err := s.LoomBridge.EventStream(t.Context())
	must(t, err)
	must(t, stream.Send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Ack{Ack: &loomv1pb.Ack{MessageId: "old"}}}))
	_, err = stream.Header()
	must(t, err)
	list, err := s.Tools.ListTools(convert.AskText(t.Context()), &loombridgev1.ListToolsRequest{AgentId: "a"})
	must(t, err)
	for _, tool := range list.GetTools() {
		if !wanted[tool.GetName()] {
			continue
		}
		delete(wanted, tool.GetName())
		want := `{"type":"object"}`
		if tool.GetName() == "good" {
			want = `{"type":"object","properties":{}}`
		}
		if tool.GetParametersSchemaJson() != want {
			t.Errorf("%s takes %.200s", tool.GetName(), tool.GetParametersSchemaJson())
		}
	}
	if len(wanted) > 0 {
		t.Errorf("not listed: %v", wanted)
	}
	if !strings.Contains(log.String(), "broken schemas") || !strings.Contains(log.String(), "tools=9") {
		t.Errorf("log: %.500s", log.String())
	}
}
