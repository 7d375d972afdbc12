package main

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// echoesOf are forms in which whoever has a token may print it, or a part of it.
func echoesOf(token string) []string {
	escaped, percent, entities := "", "", ""
	for _, c := range []byte(token) {
		escaped += fmt.Sprintf(`\u%04x`, c)
		percent += fmt.Sprintf("%%%02x", c)
		entities += fmt.Sprintf("&#x%x;", c)
	}
	list := []string{
		token, token[:len(token)/2], token[len(token)/2:], escaped, strings.ReplaceAll(token, "/", `\/`), percent, entities, url.QueryEscape(token),
		hex.EncodeToString([]byte(token)), strings.ToUpper(token),
	}
	for before := range 3 {
		text := []byte(strings.Repeat("u", before) + ":" + token + "#")
		list = append(list, base64.StdEncoding.EncodeToString(text), base64.RawURLEncoding.EncodeToString(text))
	}
	return list
}

// heart is the middle of an echo: at its ends, letters of what stands around it may be left. It
// has eight letters, which nothing else has by chance.
func heart(echo string) string {
	ends := min(4, (len(echo)-8)/2)
	return echo[ends : len(echo)-ends]
}

// What programs were given as a secret comes back from no tool, in no form: not in a result, an
// error, a step, a blob, the pieces of what a job prints, the state of a server or the log.
//
// Y46
func TestEchoedSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const token = "S3cr-7t/alpha+Z9q.x4"
	env := map[string]string{"SERVICE_KEY": "Bearer " + token, "NODE_ENV": "production"}
	echoes := echoesOf(token)
	short := strings.Join(echoes, "\n") + "\nof production\n"
	must(t, os.WriteFile(filepath.Join(dir, "echo.txt"), []byte(short), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "long.txt"), []byte(strings.Repeat("a line of a log\n", 5000)+short), 0o644))
	p := MustServe(t, dir, object{"one": guest(t, dir, "good", env), "dead": guest(t, dir, "dead", env)})
	p.waitFor(t, "one:read")
	clean := func(where, text string) {
		t.Helper()
		for i, echo := range echoes {
			if strings.Contains(text, heart(echo)) {
				t.Errorf("%s has echo %d, %s", where, i, echo)
			}
		}
	}
	call := func(tool string, args object) *loombridgev1.ToolResponse {
		t.Helper()
		text, err := json.Marshal(args)
		must(t, err)
		got, err := p.bridge().Tool(convert.AskText(t.Context()), &loombridgev1.ToolRequest{
			AgentId: "a", SessionId: "s", Name: tool, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: string(text)},
		})
		must(t, err)
		clean(tool, got.String())
		return got
	}
	for _, file := range []string{"echo.txt", "long.txt"} {
		for tool, args := range map[string]object{
			"one:read": {"Path": file}, "fs:read_file": {"path": file}, "shell:run": {"command": "cat " + file}, "system:shell": {"command": "sh", "args": []string{"-c", "cat " + file + " >&2; exit 3"}},
		} {
			got := call(tool, args)
			if whole := got.String(); file == "echo.txt" && (!strings.Contains(whole, "********") || !strings.Contains(whole, "of production")) {
				t.Errorf("%s: %s", tool, whole)
			}
		}
	}
	var job struct {
		ID     string `json:"job_id"`
		Status string
		Output string
	}
	must(t, json.Unmarshal([]byte(call("system:shell", object{"background": true, "command": "cat", "args": []string{"echo.txt"}}).GetOutputJson()), &job))
	var printed strings.Builder
	for i := 0; i < 400; i++ {
		job.Output = ""
		must(t, json.Unmarshal([]byte(call("job:read", object{"job_id": job.ID, "limit": 5, "wait": 10}).GetOutputJson()), &job))
		if printed.WriteString(job.Output); job.Output == "" && job.Status != "running" {
			break
		}
	}
	if clean("the job", printed.String()); !strings.Contains(printed.String(), "of production") {
		t.Errorf("the job printed %q", printed.String())
	}
	steps, err := p.context().ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: "a", SessionId: "s"})
	must(t, err)
	clean("the steps", steps.String())
	// What the caller ran itself.
	quoted, err := json.Marshal(short)
	must(t, err)
	recorded, err := p.context().RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
		AgentId: "a", SessionId: "s", ToolName: "own:tool", Success: true, OutputForm: &loombridgev1.RecordStepRequest_OutputJson{OutputJson: string(quoted)},
	})
	must(t, err)
	clean("a recorded step", recorded.String())
	blobs, err := p.context().ListBlobs(t.Context(), &loombridgev1.ListBlobsRequest{AgentId: "a", SessionId: "s"})
	must(t, err)
	if len(blobs.GetBlobs()) == 0 {
		t.Error("nothing was offloaded")
	}
	eventually(t, waitTime, func() error {
		servers, err := p.toolService().ListMcpServers(t.Context(), &loombridgev1.ListMcpServersRequest{})
		must(t, err)
		clean("the servers", servers.String())
		if !strings.Contains(servers.String(), "given Bearer ****") {
			return fmt.Errorf("%v", servers)
		}
		return nil
	})
	clean("the log", p.Log.String())
	must(t, p.Stop())
	decodeStore(t, filepath.Join(dir, "store"), func(b []byte) { clean("the store", string(b)) })
}

// A person sees all of a call but the value of a secret, whose name stands there, and what they
// say yes to runs with the value.
func TestApprovalNamesSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const token = `d3pl"oy-token/77`
	file := filepath.Join(dir, "loom.toml")
	must(t, os.WriteFile(file, []byte("[profile.ship]\nextends = \"builtin:work\"\nenvironment = { DEPLOY_TOKEN = '"+token+"' }\n[[bind]]\nprofile = \"ship\"\napproval = \"always\"\n"), 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "work"), 0o755))
	p := MustRunIn(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "store"), "--workspace", filepath.Join(dir, "work"), "--config", file)
	watch := MustWatch(t, p)
	args, err := json.Marshal(object{"path": "a.txt", "content": "before " + token + " behind, and only " + token[:9]})
	must(t, err)
	answered := make(chan *loombridgev1.ToolResponse, 1)
	go func() {
		answer, _ := p.bridge().Tool(context.WithoutCancel(t.Context()), &loombridgev1.ToolRequest{
			AgentId: "a", Name: "fs:write_file", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: string(args)},
		})
		answered <- answer
	}()
	pending := MustPending(t, watch)
	shown := pending.GetArgumentsJson() + fmt.Sprint(pending.GetParts())
	if strings.Contains(shown, "oy-token/77") || !strings.Contains(pending.GetArgumentsJson(), `before <secret DEPLOY_TOKEN> behind, and only d3pl\"oy-t`) {
		t.Errorf("shown is %s", shown)
	}
	must(t, p.answer(t, pending.GetId(), sayOnce))
	if answer := <-answered; !answer.GetSuccess() {
		t.Fatal(answer.GetErrorMessage())
	}
	written, err := os.ReadFile(filepath.Join(dir, "work", "a.txt"))
	if err != nil || !strings.HasPrefix(string(written), "before "+token+" behind") {
		t.Errorf("written is %q, %v", written, err)
	}
}
