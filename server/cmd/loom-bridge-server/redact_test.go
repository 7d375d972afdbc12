package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// planted are secrets by where they were put. Each is another one, of one of the forms.
type planted map[string]string

// forms make secrets of the patterns of the built-in groups and of the test's own one.
var forms = []func(id string) string{
	func(id string) string { return "ghp_" + id + "abcdefghijklmnop" },
	func(id string) string { return "AKIA" + strings.ToUpper(id)[:12] + "AAAA" },
	func(id string) string { return "sk-proj-" + id + "0123456789abcdef" },
	func(id string) string { return "xoxb-123456789012-" + id },
	func(id string) string { return "eyJhbGciOiJIUzI1NiJ9." + id + "aGVsbG8." + id },
	func(id string) string { return "sk_live_" + id + "1234567890" },
	func(id string) string { return id + "@mail.example.org" },
	func(id string) string { return "TCK-" + id },
}

// text makes a secret, in a text.
func (p planted) text(where string) string {
	id := fmt.Sprintf("%08x%08x", rand.Uint32(), rand.Uint32())
	secret := forms[len(p)%len(forms)](id)
	p[secret] = where
	return "it is " + secret + " here"
}

// found are the places of secrets that a store has.
func (p planted) found(t *testing.T, dir string) map[string]int {
	t.Helper()
	counts := make(map[string]int)
	seen := make(map[string]bool)
	decodeStore(t, dir, func(b []byte) {
		for secret, where := range p {
			if !seen[secret] && bytes.Contains(b, []byte(secret)) {
				seen[secret] = true
				counts[where]++
			}
		}
	})
	return counts
}

// plantSecrets sends secrets by every way in that stores texts, and counts those that
// answers say were redacted.
func plantSecrets(t *testing.T, p *process, dir string) (all planted, told int32) {
	t.Helper()
	all, ctx := make(planted), t.Context()
	s := &stand{tb: t, process: p, ctx: ctx, agent: "a"}
	add := func(counts map[string]int32) {
		for _, n := range counts {
			told += n
		}
	}
	for i := range sized(1, 2) * len(forms) {
		metadata, err := structpb.NewStruct(map[string]any{"deep": map[string]any{"er": []any{all.text("metadata")}}, all.text("metadata names"): 1})
		must(t, err)
		saved, err := p.bridge().MemorySave(ctx, &loombridgev1.MemorySaveRequest{
			AgentId: "a", Text: all.text("texts"), MetadataForm: &loombridgev1.MemorySaveRequest_Metadata{Metadata: metadata},
			Tags: []string{all.text("tags")}, Author: all.text("authors"), RequestId: fmt.Sprintf("save-%d", i),
		})
		must(t, err)
		add(saved.GetRedacted())
		replaced, err := p.bridge().MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Key: "k", Replace: true, Text: all.text("replaced")})
		must(t, err)
		add(replaced.GetRedacted())
		batch, err := p.memory().BatchSave(ctx, &loombridgev1.BatchSaveRequest{AgentId: "a", Records: []*loombridgev1.MemorySaveRequest{{Text: all.text("batches")}}})
		must(t, err)
		add(batch.GetSaved()[0].GetRedacted())
		_, err = p.memory().UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{
			AgentId: "a", Name: &loombridgev1.UpdateRecordRequest_Id{Id: saved.GetId()}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"text"}},
			Record: &loombridgev1.MemorySaveRequest{Text: all.text("updates")},
		})
		must(t, err)
		importing, err := p.transfer().Import(ctx)
		must(t, err)
		line := fmt.Sprintf(`{"id":"import-%d","text":%q,"author":%q,"tags":[%q],"metadata":{"n":%q},"create_time":"2026-01-02T03:04:05Z","version":1,"kind":"fact","origin":"agent","tier":4,"importance":0.5}`,
			i, all.text("imports"), all.text("imported authors"), all.text("imported tags"), all.text("imported metadata"))
		must(t, importing.Send(&loombridgev1.ImportRequest{AgentId: "a", Lines: []string{line}}))
		_, err = importing.CloseAndRecv()
		must(t, err)

		s.say(all.text("messages"), all.text("messages"))
		quoted, err := json.Marshal(all.text("results") + strings.Repeat(" line after line", 200) + all.text("results"))
		must(t, err)
		args, err := json.Marshal(map[string]string{"path": "p", "note": all.text("arguments")})
		must(t, err)
		recorded, err := p.context().RecordStep(ctx, &loombridgev1.RecordStepRequest{
			AgentId: "a", SessionId: "s", ToolName: "own:tool", Success: true, Thought: all.text("thoughts"), RequestId: fmt.Sprintf("step-%d", i),
			ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: string(args)},
			OutputForm:    &loombridgev1.RecordStepRequest_OutputJson{OutputJson: fmt.Sprintf(`{"content":%s}`, quoted)},
			Task:          &loombridgev1.Task{Action: "x", Result: all.text("tasks"), Importance: ptr(0.9)},
		})
		must(t, err)
		add(recorded.GetRedacted())
		failed, err := p.context().RecordStep(ctx, &loombridgev1.RecordStepRequest{
			AgentId: "a", SessionId: "s", ToolName: "own:tool", ErrorMessage: all.text("errors"),
			OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: all.text("results of text")},
		})
		must(t, err)
		add(failed.GetRedacted())
		add(upload(t, p, all))

		for _, form := range []*loombridgev1.EmitRequest{
			{PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: fmt.Sprintf(`{"x":%q}`, all.text("events"))}},
			{PayloadForm: &loombridgev1.EmitRequest_Payload{Payload: structpb.NewStringValue(all.text("events"))}},
			{PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: []byte(all.text("events"))}, Headers: map[string]string{"h": all.text("headers")}},
		} {
			form.AgentId, form.Topic = "a", "news"
			_, err := p.bridge().Emit(ctx, form)
			must(t, err)
		}
		_, err = loomv1pb.NewEventBusClient(p.conn).Publish(ctx, &loomv1pb.PublishRequest{
			Topic: "news", Event: &loomv1pb.Event{Id: fmt.Sprint("e", i), Source: "a", Type: "t", Payload: []byte(all.text("loom.v1 events"))},
		})
		must(t, err)
		_, err = p.events().SendMessage(ctx, &loombridgev1.SendMessageRequest{AgentId: "a", Message: &loombridgev1.DirectMessage{TargetAgentId: "b", Content: all.text("direct messages")}})
		must(t, err)
		goal := all.text("working states")
		_, err = p.context().UpdateWorking(ctx, &loombridgev1.UpdateWorkingRequest{AgentId: "a", SessionId: fmt.Sprint("w", i), Goal: &goal, AddQuestions: []string{all.text("working states")}})
		must(t, err)
		_, err = p.context().ConfigureSession(ctx, &loombridgev1.ConfigureSessionRequest{
			AgentId: "a", SessionId: "s", Prompt: &loombridgev1.PromptSettings{System: all.text("settings"), AgentsMd: all.text("settings")},
		})
		must(t, err)
		_, err = p.context().Assemble(ctx, &loombridgev1.AssembleRequest{AgentId: "a", SessionId: "s", Goal: all.text("prompts"), System: all.text("prompts"), TurnId: fmt.Sprint(i)})
		must(t, err)
		_, err = p.context().CompressResult(ctx, &loombridgev1.CompressResultRequest{
			AgentId: "a", SessionId: "s", ToolName: "own:tool", Content: strings.Repeat("line after line\n", 500) + all.text("compressed results"),
		})
		must(t, err)
		if i == 0 {
			_, err = p.context().SpawnAgent(ctx, &loombridgev1.SpawnAgentRequest{AgentId: "a", SessionId: "s", ChildId: "c", Goal: all.text("goals of children"), Limits: unhurried})
			must(t, err)
		}

		file := strings.Repeat("line after line\n", i*5000+rand.IntN(4000)) + all.text("files that are read") + strings.Repeat("\nline after line", 9000)
		must(t, os.WriteFile(filepath.Join(dir, "read.txt"), []byte(file), 0o600))
		read := p.use(t, "fs:read_file", `{"path":"read.txt"}`)
		add(read.GetRedacted())
		written := all.text("files that are written")
		content, err := json.Marshal(map[string]string{"path": "written.txt", "content": written})
		must(t, err)
		add(p.use(t, "fs:write_file", string(content)).GetRedacted())
		if now := string(mustRead(t, filepath.Join(dir, "written.txt"))); now != written {
			t.Errorf("the file has %q, want %q", now, written)
		}
		content, err = json.Marshal(map[string]string{"text": all.text("memory:save")})
		must(t, err)
		add(p.use(t, "memory:save", string(content)).GetRedacted())
	}
	return all, told
}

// upload records a step whose result comes in parts, with a secret on their boundary.
func upload(t *testing.T, p *process, all planted) map[string]int32 {
	t.Helper()
	stream, err := p.context().UploadStep(t.Context())
	must(t, err)
	must(t, stream.Send(&loombridgev1.UploadStepRequest{Item: &loombridgev1.UploadStepRequest_Step{Step: &loombridgev1.RecordStepRequest{
		AgentId: "a", SessionId: "s", ToolName: "own:tool", Success: true,
		OutputForm: &loombridgev1.RecordStepRequest_OutputUpload{OutputUpload: &loombridgev1.ResultUpload{Form: loombridgev1.ResultForm_RESULT_FORM_TEXT}},
	}}}))
	rest := strings.Repeat("line after line\n", 1<<12) + all.text("uploads") + strings.Repeat(" line after line", 1<<16) + all.text("uploads")
	for rest != "" {
		n := min(len(rest), 1+rand.IntN(1<<17))
		must(t, stream.Send(&loombridgev1.UploadStepRequest{Item: &loombridgev1.UploadStepRequest_Data{Data: []byte(rest[:n])}}))
		rest = rest[n:]
	}
	answer, err := stream.CloseAndRecv()
	must(t, err)
	return answer.GetRedacted()
}

func ptr[T any](v T) *T { return &v }

// With redaction no secret that comes in by any way is in any file of the store, in tools'
// answers and in prompts; what stands there says which it was, and they are counted.
// Without it all are stored.
//
// Y42, Y43
func TestRedact(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{false, true} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			dir := t.TempDir()
			config := filepath.Join(dir, "loom.toml")
			must(t, os.WriteFile(config, []byte("redact = \"off\"\n[redact-patterns]\nticket = 'TCK-[0-9a-f]{16}'\n"), 0o600))
			args := []string{"--config", config, "--metrics-addr", "127.0.0.1:0"}
			if on {
				args = append(args, "--redact", "secrets,personal,own")
			}
			p := MustRun(t, dir, args...)
			all, told := plantSecrets(t, p, dir)
			status, err := p.admin().GetStatus(t.Context(), &loombridgev1.GetStatusRequest{})
			must(t, err)
			figures := scrape(t, p.metrics(t))
			prompt, err := p.context().Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "a", SessionId: "s", MaxTokens: 100_000})
			must(t, err)
			must(t, p.Stop())
			found := all.found(t, filepath.Join(dir, "store"))
			t.Logf("planted %d; found %v; answers tell of %d, the status says %v", len(all), found, told, status.GetRedacted())
			shown := 0
			for secret := range all {
				if strings.Contains(prompt.String(), secret) {
					shown++
				}
			}
			if !on {
				if sum(found) < len(all) || told != 0 || len(status.GetRedacted()) != 0 || shown == 0 {
					t.Errorf("without redaction %d of %d were stored, %d were told, %d shown", sum(found), len(all), told, shown)
				}
				return
			}
			if sum(found) > 0 || shown > 0 {
				t.Errorf("found are %v, %d are in a prompt", found, shown)
			}
			if !strings.Contains(prompt.String(), "[redacted:") {
				t.Error("no mark stands in the prompt")
			}
			var total int64
			for name, n := range status.GetRedacted() {
				total += n
				if figure := figures[fmt.Sprintf("loom_bridge_redacted_total{pattern=%q}", name)]; int64(figure) != n {
					t.Errorf("the figure of %s is %v, the status says %d", name, figure, n)
				}
			}
			if int(total) < len(all) || told < int32(len(all)/3) || status.GetRedacted()["ticket"] == 0 {
				t.Errorf("%d were planted, %d counted, %d told", len(all), total, told)
			}
		})
	}
}

// A name that holds a secret is refused, and unknown patterns and bad expressions don't start.
//
// Y43
func TestRedactRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir, "--redact", "github_token")
	for _, request := range []*loombridgev1.MemorySaveRequest{
		{AgentId: "a", Text: "x", Key: "ghp_abcdefghijklmnopqrstuvwxyz0123456789"},
		{AgentId: "a", Text: "x", Id: "ghp_abcdefghijklmnopqrstuvwxyz0123456789"},
	} {
		if _, err := p.bridge().MemorySave(t.Context(), request); err == nil || strings.Contains(err.Error(), "ghp_") {
			t.Errorf("%v: %v", request, err)
		}
	}
	saved, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "AKIAIOSFODNN7EXAMPLE"})
	if err != nil || len(saved.GetRedacted()) != 0 {
		t.Errorf("a pattern that was not asked for: %v, %v", saved, err)
	}
	must(t, p.Stop())
	for _, text := range []string{"[redact-patterns]\nx = '['\n", "[redact-patterns]\nemail = 'x'\n", "redact = \"what\"\n", "redact-patterns = 3\n"} {
		config := filepath.Join(dir, "bad.toml")
		must(t, os.WriteFile(config, []byte(text), 0o600))
		if p, err := tryRun(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "store"), "--workspace", dir, "--redact", "own", "--config", config); err == nil {
			must(t, p.Stop())
			if !strings.HasPrefix(text, "redact =") { // the flag is stronger
				t.Errorf("%q was taken", text)
			}
		}
	}
}
