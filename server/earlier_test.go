package server_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Steps that were recorded before results were kept as they were given read as
// they did then: what was offloaded, else what was shown, else why it failed.
func TestStepsOfEarlierVersions(t *testing.T) {
	engine := memkv.New(nil)
	defer func() { must(t, engine.Close()) }()
	writer := kv.NewWriter(engine, nil)
	log, blobs := session.New(engine, writer, nil), blob.New(engine, writer, nil)
	scope := kv.AgentScope("default", agent)
	text := strings.Repeat("a line\n", 500)
	stored, err := blobs.Add(t.Context(), scope, []byte(text+"said"))
	must(t, err)
	add := func(s step.Step, offload bool) {
		t.Helper()
		must(t, writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{log.Ref(scope), blobs.Ref(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
			_, _, err := log.StageStep(ctx, tx, scope, func(number uint64) (step.Step, error) {
				s.Number, s.Time, s.ToolName = number, time.Now(), "my:tool"
				if !offload {
					return s, nil
				}
				e, err := blobs.StageNamed(ctx, tx, scope, stored, blob.Entry{StepID: s.ID(), Category: "shell"}, blob.Name{Kind: "shell", Step: number, Ext: "log"})
				s.OutcomeRef, s.OutcomePath = e.Ref, e.Path
				return s, err
			})
			return err
		}}))
	}
	add(step.Step{Inline: "shown", Metadata: json.RawMessage(`{"stderr_bytes":4,"stdout_bytes":3500}`)}, true)
	add(step.Step{Inline: `{"shown": 1}`}, false)
	add(step.Step{Error: "it broke", Outcome: step.Failed}, false)
	must(t, writer.Close())

	s := servertest.Start(t, &servertest.Options{Engine: engine})
	for name, want := range map[string]string{
		"step_001": text + "said", "step_001.txt": text + "said", "workspace/outputs/shell_001.log": text + "said",
		"step_002": `{"shown": 1}`, "step_002.txt": `{"shown": 1}`, "step_003": "it broke",
		"workspace/history/step_001.stdout": text, "workspace/history/step_001.stderr": "said",
	} {
		if got := readName(t, s, name); got != want {
			t.Errorf("%s: %.60q, want %.60q", name, got, want)
		}
	}
	if _, data := MustReadBlob(t, s, &loombridgev1.ReadBlobRequest{AgentId: agent, Name: "step_002", Form: loombridgev1.BlobForm_BLOB_FORM_ORIGINAL}); string(data) != `{"shown": 1}` {
		t.Errorf("the original is %q", data)
	}
	for _, r := range []*loombridgev1.ReadBlobRequest{
		{Name: "step_002", Form: loombridgev1.BlobForm_BLOB_FORM_MEDIA},
		{Name: "step_009", Form: loombridgev1.BlobForm_BLOB_FORM_TEXT},
		{Name: "workspace/history/step_001.pretty"},
		{Name: "workspace/history/step_001.media99"},
		{Name: "task/none"},
	} {
		r.AgentId = agent
		stream, err := s.Context.ReadBlob(t.Context(), r)
		must(t, err)
		_, err = stream.Recv()
		MustFail(t, err, codes.NotFound, "BLOB_NOT_FOUND")
	}
	if step := MustListSteps(t, s)[0]; step.GetResultForm() != loombridgev1.ResultForm_RESULT_FORM_UNSPECIFIED || step.GetInline() != "shown" {
		t.Errorf("step %v", step)
	}
}
