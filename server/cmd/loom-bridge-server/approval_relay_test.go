package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// A call of an agent's tool needs the same approval by loom.v1 as by the native API: a person is
// shown what goes out, and nothing goes out before they say yes.
func TestApprovalOfRelayedCalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "loom.toml")
	must(t, os.WriteFile(file, []byte("[[bind]]\ntool = \"deploy\"\napproval = \"always\"\n"), 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "work"), 0o755))
	p := MustRunIn(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "store"), "--workspace", filepath.Join(dir, "work"), "--config", file)
	provider := p.attach(t.Context(), t, "provider", nil, "deploy", "look")
	asked := make(chan *loombridgev1.AttachToolCall, 8)
	go func() {
		for {
			m, err := provider.Recv()
			if err != nil {
				return
			}
			if call := m.GetToolCall(); call != nil {
				asked <- call
				_ = provider.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_ToolResult{ToolResult: &loombridgev1.AttachToolResult{
					CallId: call.GetCallId(), Success: true, OutputForm: &loombridgev1.AttachToolResult_OutputJson{OutputJson: `"done"`},
				}}})
			}
		}
	}()
	forward := func(tool, arguments string) <-chan *loomv1pb.ToolResult {
		answered := make(chan *loomv1pb.ToolResult, 1)
		go func() {
			got, err := loomv1pb.NewBridgeClient(p.conn).ForwardToolCall(context.WithoutCancel(t.Context()), &loomv1pb.ToolCall{Id: "1", Name: tool, Arguments: arguments, TimeoutMs: 60_000})
			if err != nil {
				t.Error(err)
			}
			answered <- got
		}()
		return answered
	}
	if got := <-forward("look", `{}`); got.GetStatus() != loomv1pb.ToolStatus_TOOL_OK {
		t.Errorf("what nobody is asked about: %v", got)
	}
	<-asked
	if got := <-forward("deploy", `{}`); !strings.Contains(got.GetError().GetMessage(), "Permission denied") {
		t.Errorf("nobody watches: %v", got)
	}
	watch := MustWatch(t, p)
	for decision, ran := range map[loombridgev1.ApprovalDecision]bool{sayNo: false, sayOnce: true} {
		const sent = `{"to": "here", "to":"there"}`
		waits := forward("deploy", sent)
		pending := MustPending(t, watch)
		shown := ""
		for _, part := range pending.GetParts() {
			shown += part.GetText()
		}
		if pending.GetCapability().GetName() != "deploy" || !strings.Contains(shown, sent) {
			t.Errorf("asked for %v", pending)
		}
		if len(asked) > 0 {
			t.Error("it ran before anybody said yes")
		}
		must(t, p.answer(t, pending.GetId(), decision))
		if got := <-waits; (got.GetStatus() == loomv1pb.ToolStatus_TOOL_OK) != ran || (len(asked) > 0) != ran {
			t.Errorf("%v: %v, %d calls", decision, got, len(asked))
		}
		if ran {
			<-asked
		}
	}
}
