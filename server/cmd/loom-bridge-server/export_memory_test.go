package main

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// An export has what an agent remembers, with what records were before, the tasks
// and the events: an agent that only remembers is no agent without anything.
func TestExportOfMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir)
	records := loombridgev1.NewMemoryServiceClient(p.conn)
	saved := map[string]string{} // texts by id
	for i := range 30 {
		got, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{
			AgentId: "a", Text: fmt.Sprintf("fact %d\nwith a second line", i), Tags: []string{"market"}, SessionId: "s1",
			MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: fmt.Sprintf(`{"n":%d,"big":12345678901234567890}`, i)},
		})
		must(t, err)
		saved[got.GetId()] = fmt.Sprintf("fact %d\nwith a second line", i)
	}
	const odd = "../up/and ü:away"
	_, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Id: odd, Text: "first"})
	must(t, err)
	_, err = records.UpdateRecord(t.Context(), &loombridgev1.UpdateRecordRequest{
		AgentId: "a", Name: &loombridgev1.UpdateRecordRequest_Id{Id: odd}, Record: &loombridgev1.MemorySaveRequest{Text: "second"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"text"}},
	})
	must(t, err)
	saved[odd] = "second"
	_, err = p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "other", Text: "not mine"})
	must(t, err)
	emit := func(agent, topic string, request *loombridgev1.EmitRequest) {
		request.AgentId, request.Topic = agent, topic
		_, err := p.bridge().Emit(t.Context(), request)
		must(t, err)
	}
	emit("a", "desk.news", &loombridgev1.EmitRequest{PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: `{"n": 1.0}`}, SessionId: "s1"})
	emit("a", "desk.news", &loombridgev1.EmitRequest{PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: []byte{0, 255}}})
	emit("other", "agent.a.replies", &loombridgev1.EmitRequest{})
	emit("other", "desk.news", &loombridgev1.EmitRequest{})
	emit("other", "agent.ab.replies", &loombridgev1.EmitRequest{})
	must(t, p.Stop())

	out := filepath.Join(dir, "out")
	stdout, _, err := exportTo(t, filepath.Join(dir, "store"), out)
	must(t, err)
	if want := "exported 0 steps, 0 messages, 0 folds, 0 offloaded results (0 bytes), 0 tasks, 31 records, 1 earlier versions, 3 events, 0 calls, 0 snapshots of a to " + out + "\n"; stdout != want {
		t.Errorf("told %q, want %q", stdout, want)
	}
	files := filesIn(t, out)
	for _, r := range lines(t, files["records.jsonl"]) {
		id := r["id"].(string)
		if text := saved[id]; r["text"] != text || files[r["file"].(string)] != text {
			t.Errorf("%s: %v, file %q", id, r, files[r["file"].(string)])
		}
		delete(saved, id)
	}
	if len(saved) > 0 {
		t.Errorf("left out: %v", saved)
	}
	if !strings.Contains(files["records.jsonl"], `"metadata":{"n":7,"big":12345678901234567890}`) || !strings.Contains(files["records.jsonl"], `"tags":["market"]`) {
		t.Errorf("records:\n%.500s", files["records.jsonl"])
	}
	if versions := lines(t, files["versions.jsonl"]); len(versions) != 1 || versions[0]["id"] != odd || versions[0]["text"] != "first" || versions[0]["version"] != 1.0 {
		t.Errorf("versions: %v", versions)
	}
	heard := lines(t, files["events.jsonl"])
	if len(heard) != 3 || heard[0]["topic"] != "agent.a.replies" || heard[0]["source"] != "other" || heard[1]["sequence"] != 1.0 ||
		heard[2]["payload_base64"] != base64.StdEncoding.EncodeToString([]byte{0, 255}) || !strings.Contains(files["events.jsonl"], `"payload":{"n":1.0}`) {
		t.Errorf("events: %v\n%s", heard, files["events.jsonl"])
	}

	stdout, _, err = exportTo(t, filepath.Join(dir, "store"), filepath.Join(dir, "session"), "--session", "s1")
	if err != nil || !strings.Contains(stdout, "30 records, 0 earlier versions, 1 events") {
		t.Errorf("of a session: %q, %v", stdout, err)
	}
	_, _, err = exportTo(t, filepath.Join(dir, "store"), filepath.Join(dir, "nobody"), "--agent", "bot")
	if err == nil || !strings.Contains(err.Error(), `known agents: "a", "other"`) {
		t.Errorf("of nobody: %v", err)
	}
}
