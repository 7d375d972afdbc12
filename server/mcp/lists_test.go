package mcp

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/loom-bridge/loom-bridge/context/tokens"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// maxListTokens is what the whole list of tools may cost a prompt.
const maxListTokens = 2000

// wire is a native API that answers every call with nothing, and keeps what it was sent.
type wire struct {
	grpc.ClientConnInterface
	sent metadata.MD
	ask  any
}

func (w *wire) Invoke(ctx context.Context, _ string, ask, _ any, _ ...grpc.CallOption) error {
	w.sent, _ = metadata.FromOutgoingContext(ctx)
	w.ask = ask
	return nil
}

// connect connects a host to a server over the wire, within the process.
func connect(t *testing.T, w *wire, opts *Options) *sdk.ClientSession {
	t.Helper()
	there, here := sdk.NewInMemoryTransports()
	go func() { _ = New(w, opts).Run(t.Context(), there) }()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// The lists cost a prompt little, come in the same order every time, and may be kept.
func TestLists(t *testing.T) {
	session := connect(t, &wire{}, nil)
	first, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(first.Tools)
	if err != nil {
		t.Fatal(err)
	}
	counter, err := tokens.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	cost, err := counter.Count("gpt-4o", string(text))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d tools cost %d tokens of o200k", len(first.Tools), cost.Tokens)
	if cost.Tokens > maxListTokens {
		t.Errorf("the list of tools costs %d tokens, at most %d", cost.Tokens, maxListTokens)
	}
	if first.TTLMs < 1000 || first.CacheScope != "public" {
		t.Errorf("it may be kept for %d ms by %s", first.TTLMs, first.CacheScope)
	}
	again, err := connect(t, &wire{}, nil).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if second, _ := json.Marshal(again.Tools); string(second) != string(text) {
		t.Error("the list comes in another order")
	}
}

// What a tool's schema offers is what the tool takes.
func TestSchemasAndArguments(t *testing.T) {
	for _, tool := range allTools() {
		var schema struct {
			Properties map[string]any
			Required   []string
		}
		if err := json.Unmarshal(tool.declared().InputSchema.(json.RawMessage), &schema); err != nil {
			t.Fatalf("%s: %v", tool.name, err)
		}
		var fields []string
		for f := range reflect.TypeOf(tool.arguments).Fields() {
			fields = append(fields, f.Tag.Get("json"))
			if _, ok := schema.Properties[f.Tag.Get("json")]; !ok {
				t.Errorf("%s takes %s, which its schema does not have", tool.name, f.Tag.Get("json"))
			}
		}
		for name := range schema.Properties {
			if !slices.Contains(fields, name) {
				t.Errorf("%s offers %s, which it does not take", tool.name, name)
			}
		}
		for _, name := range schema.Required {
			if !slices.Contains(fields, name) {
				t.Errorf("%s requires %s, which it does not take", tool.name, name)
			}
		}
	}
}

// The trace of a call goes on to the native API; what is none is left out.
func TestTraceContext(t *testing.T) {
	w := &wire{}
	session := connect(t, w, &Options{Agent: "anna", Session: "s", Token: "secret"})
	params := &sdk.CallToolParams{Name: "memory_query", Arguments: map[string]any{"query": "x"}}
	const trace = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
	params.SetMeta(map[string]any{"traceparent": trace, "tracestate": "a\nb", "baggage": strings.Repeat("x", 600)})
	if _, err := session.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	if got := w.sent.Get("traceparent"); !slices.Equal(got, []string{trace}) || len(w.sent.Get("tracestate")) > 0 || len(w.sent.Get("baggage")) > 0 {
		t.Errorf("sent %v", w.sent)
	}
	if got := w.sent.Get("authorization"); !slices.Equal(got, []string{"Bearer secret"}) {
		t.Errorf("sent %v", w.sent)
	}
	if ask := w.ask.(*loombridgev1.MemoryQueryRequest); ask.GetAgentId() != "anna" {
		t.Errorf("asked as %v", ask)
	}
}

// A panic of one call ends that call alone.
func TestPanicEndsOneCall(t *testing.T) {
	session := connect(t, &wire{}, nil)
	// The wire has no streams: reading a blob is a nil pointer.
	_, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "blob_read", Arguments: map[string]any{"name": "step_001"}})
	if err == nil || !strings.Contains(err.Error(), "internal server fault") {
		t.Errorf("err = %v", err)
	}
	if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "memory_query", Arguments: map[string]any{"query": "x"}}); err != nil {
		t.Errorf("the next call: %v", err)
	}
}
