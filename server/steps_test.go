package server_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// recorded is what Tool and RecordStep both answer.
type recorded interface {
	GetStep() *loombridgev1.Step
	GetObservation() string
	GetOutputBlob() *loombridgev1.BlobInfo
}

// A tool that the server runs and one that the caller ran leave the same: a
// reduced step in the log, the whole where the step says, and a text that leads
// there.
// A19, N03
func TestToolAndRecordStepLeaveTheSame(t *testing.T) {
	s := servertest.Start(t, nil)
	long, short := strings.Repeat("a line of a long file\n", 200), "a short file\n"
	MustWrite(t, s, "long.txt", long)
	MustWrite(t, s, "short.txt", short)
	for _, test := range []struct {
		path, content string
		offloaded     bool
	}{{"long.txt", long, true}, {"short.txt", short, false}} {
		ran := MustRead(t, s, "runs", test.path)
		told, err := s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
			AgentId: "tells", ToolName: "fs:read_file", Success: true,
			ArgumentsForm: &loombridgev1.RecordStepRequest_Arguments{Arguments: MustStruct(t, map[string]any{"path": test.path})},
			OutputForm:    &loombridgev1.RecordStepRequest_OutputJson{OutputJson: string(mustJSON(t, map[string]string{"content": test.content}))},
		})
		must(t, err)
		for agentID, answer := range map[string]recorded{"runs": ran, "tells": told} {
			checkLeft(t, s, agentID, answer, test.content, test.offloaded)
		}
		if ran.GetStep().GetObservation() != told.GetStep().GetObservation() {
			t.Errorf("%s: run %q, told %q", test.path, ran.GetStep().GetObservation(), told.GetStep().GetObservation())
		}
	}
}

// checkLeft checks what a recorded call left behind.
func checkLeft(t *testing.T, s *servertest.Server, agentID string, answer recorded, content string, offloaded bool) {
	t.Helper()
	kept, err := s.Context.GetStep(t.Context(), &loombridgev1.GetStepRequest{AgentId: agentID, StepId: answer.GetStep().GetId()})
	must(t, err)
	step := kept
	if (answer.GetStep().GetOutcomeRef() != "") != offloaded || (step.GetOutcomeRef() != "") != offloaded {
		t.Errorf("%s: step %v", agentID, step)
	}
	want := step.GetObservation()
	if offloaded {
		want += ". Saved to " + step.GetOutcomePath() + "\nUse fs:read_file to retrieve if needed."
		_, whole := MustReadBlob(t, s, &loombridgev1.ReadBlobRequest{AgentId: agentID, Name: step.GetOutcomeRef()})
		if string(whole) != content {
			t.Errorf("%s: the blob has %d bytes, want %d", agentID, len(whole), len(content))
		}
	}
	if answer.GetObservation() != want || (answer.GetOutputBlob() != nil) != offloaded {
		t.Errorf("%s: observation %q, want %q, blob %v", agentID, answer.GetObservation(), want, answer.GetOutputBlob())
	}
}

// MustDump is everything an engine holds of the log.
func MustDump(tb testing.TB, engine kv.Engine) map[string]string {
	tb.Helper()
	all := map[string]string{}
	for pair, err := range engine.Scan(tb.Context(), kv.Log, kv.Range{}) {
		must(tb, err)
		all[string(pair.Key)] = string(pair.Value)
	}
	return all
}

// The same log and settings give the same bytes, however often and by which
// presets in between; a dry run writes nothing.
// X05
func TestSameLogSameBytes(t *testing.T) {
	engine := MustEngine(t)
	s := servertest.Start(t, &servertest.Options{Engine: engine})
	w := MustWork(t, s, "s1", 32_000)
	MustSteps(t, w, 10)
	MustCompact(t, w, &loombridgev1.CompactHistoryRequest{})
	MustSteps(t, w, 2)
	others := []*loombridgev1.HistorySettings{
		{Policy: appendOnly}, {Preset: "design"}, {Preset: "design", Literal: new(true)}, {Preset: "reduction", Literal: new(true)}, {Preset: "debug"},
	}
	stored := MustDump(t, engine)
	first := map[*loombridgev1.HistorySettings]*loombridgev1.AssembleResponse{}
	times := 1000
	if testing.Short() {
		times = 200
	}
	for i := range times {
		calls := []*loombridgev1.HistorySettings{nil}
		if i%20 == 0 {
			calls = append(calls, others...)
		}
		for _, settings := range calls {
			r := w.request()
			r.DryRun, r.History, r.Format = true, settings, loombridgev1.PromptFormat_PROMPT_FORMAT_OPENAI_CHAT
			r.Settings = patient("")
			got, err := s.Context.Assemble(t.Context(), r)
			must(t, err)
			if first[settings] == nil {
				first[settings] = got
			}
			if !proto.Equal(first[settings], got) {
				t.Fatalf("%v, call %d: (-first +now):\n%s", settings, i, cmp.Diff(first[settings], got, protocmp.Transform()))
			}
		}
	}
	if diff := cmp.Diff(stored, MustDump(t, engine)); diff != "" {
		t.Errorf("dry runs wrote (-before +after):\n%s", diff)
	}
}
