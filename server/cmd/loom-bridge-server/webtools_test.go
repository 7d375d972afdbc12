package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/native/web"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// asking is a server whose tools ask a site, and nothing else; forecast is where there the
// weather is.
func asking(t *testing.T, env map[string]string, forecast string, args ...string) (*process, *fakeSite) {
	t.Helper()
	site, dir := MustSite(t), t.TempDir()
	all := append([]string{
		"--addr", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "store"), "--workspace", dir, "--search-url", "$WEB/brave", "--web-hosts", "site.test=$HOST,*",
	}, args...)
	replace := strings.NewReplacer("$WEB", site.URL, "$HOST", site.host())
	for i := range all {
		all[i] = replace.Replace(all[i])
	}
	vars := map[string]string{}
	for name, value := range env {
		vars[name] = replace.Replace(value)
	}
	p, err := tryRunWith(t, environment{vars: vars}, func(c *Config) {
		c.Web.Weather = web.Weather{GeocodeURL: site.URL + "/geo", ForecastURL: site.URL + forecast}
	}, all...)
	must(t, err)
	return p, site
}

// What loom.v1 says of web:search, weather:get and llm:generate: arguments, results and
// errors to the letter, with the names of its own variables.
func TestConformance31Web(t *testing.T) {
	t.Parallel()
	p, site := asking(t, map[string]string{"BRAVE_API_KEY": "k", "VLLM_BASE_URL": "$WEB/v1", "VLLM_MODEL": "m", "VLLM_API_KEY": "v", "VLLM_TEMPERATURE": "0.5", "REQUEST_TIMEOUT_MS": "9000"}, "/forecast")
	const ok, failed, missing, invalid = loomv1pb.ToolStatus_TOOL_OK, loomv1pb.ToolStatus_TOOL_ERROR, loomv1pb.ToolStatus_TOOL_NOT_FOUND, loomv1pb.ToolStatus_TOOL_INVALID_ARGUMENTS
	one := `{"snippet":"a & b","title":"brave about x","url":"https://result.example/brave"}`
	two := `{"snippet":null,"title":"second about x","url":"https://result.example/second"}`
	for _, c := range []struct {
		tool, args string
		status     loomv1pb.ToolStatus
		want       string // the output, or the message
	}{
		{"web:search", `{"query":"x"}`, ok, `{"count":2,"query":"x","results":[` + one + "," + two + `]}`},
		{"web:search", `{"query":"x","limit":1}`, ok, `{"count":1,"query":"x","results":[` + one + `]}`},
		{"web:search", `{"query":"x","max_results":1}`, ok, `{"count":1,"query":"x","results":[` + one + `]}`},
		{"web-search", `{"query":"x","count":1}`, ok, `{"count":1,"query":"x","results":[` + one + `]}`},
		{"web:search", `{}`, invalid, "Invalid arguments: "},
		{"weather:get", `{"location":"Tôkyō & more"}`, ok, `{"conditions":"Rain","humidity":60,"location":"Tokyo, Japan","temperature":21.5,"units":"metric","wind_speed":7.2}`},
		{"weather:get", `{"location":"Nowhere"}`, missing, "Tool not found: Location not found: Nowhere"},
		{"weather:get", `{}`, invalid, "Invalid arguments: "},
		{"llm:generate", `{"input":"hello"}`, ok, `{"model":"m","provider":"responses","text":"said","usage":{"input_tokens":3}}`},
		{"llm:generate", `{}`, invalid, "Invalid arguments: "},
		{"web:fetch", `{"url":"http://site.test/page","method":"GET","headers":{"X-A":"b"}}`, ok, `"title":"A page"`},
		{"web:fetch", `{"url":"ftp://site.test/page"}`, invalid, "Invalid arguments: url: is not one of http or https"},
		{"web:fetch", `{"url":"http://169.254.169.254/latest/meta-data/"}`, failed, "Permission denied: no connection to 169.254.169.254:80"},
		{"web:fetch", `{"url":"http://1.1.1.1:8080/"}`, failed, "Permission denied: no connection to 1.1.1.1:8080"},
		{"web:fetch", `{"url":"http://site.test/to?https://1.1.1.1:22/"}`, failed, "Permission denied: no connection to 1.1.1.1:22"},
		{"web:fetch", `{"url":"http://site.test/to?http://127.0.0.1:1/"}`, failed, "Permission denied: no connection to 127.0.0.1:1"},
	} {
		got, err := loomv1pb.NewBridgeClient(p.conn).ForwardToolCall(t.Context(), &loomv1pb.ToolCall{Id: "1", Name: c.tool, Arguments: c.args})
		must(t, err)
		text := got.GetOutput()
		if c.status != ok {
			text = got.GetError().GetMessage()
		}
		if got.GetStatus() != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s %s gave %v %s\nwant %v %s", c.tool, c.args, got.GetStatus(), text, c.status, c.want)
		}
	}
	if a := site.last(); a.header.Get("X-A") != "b" && a.path != "/to" {
		t.Errorf("the page was asked for with %v", a)
	}
	for _, a := range site.asked {
		switch a.path {
		case "/brave":
			if a.header.Get("X-Subscription-Token") != "k" || !strings.Contains(a.query, "q=x") {
				t.Errorf("brave got %v", a)
			}
		case "/v1/responses":
			if a.header.Get("Authorization") != "Bearer v" || a.body["temperature"] != 0.5 || a.body["max_output_tokens"] != 512.0 {
				t.Errorf("the model got %v", a)
			}
		}
	}
}

// Errors of those who are asked come with status and body; without a key web:search says
// what is missing.
func TestConformance31WebErrors(t *testing.T) {
	t.Parallel()
	p, _ := asking(t, map[string]string{"VLLM_BASE_URL": "$WEB/none"}, "/none")
	for tool, want := range map[string]string{
		`web:search {"query":"x"}`:                "Execution failed: BRAVE_API_KEY not configured",
		`weather:get {"location":"Tôkyō & more"}`: `Execution failed: HTTP error 404: {"error":"nothing here"}`,
		`llm:generate {"input":"x"}`:              `Execution failed: HTTP error 404: {"error":"nothing here"}`,
	} {
		name, args, _ := strings.Cut(tool, " ")
		got, err := loomv1pb.NewBridgeClient(p.conn).ForwardToolCall(t.Context(), &loomv1pb.ToolCall{Id: "1", Name: name, Arguments: args})
		must(t, err)
		if e := got.GetError(); e.GetCode() != "EXECUTION_ERROR" || !strings.Contains(e.GetMessage(), want) {
			t.Errorf("%s gave %v, want %s", tool, got, want)
		}
	}
}

// A page is readable text with title and links, in any character set; what is no text is
// bytes of a blob.
func TestPages(t *testing.T) {
	t.Parallel()
	p, _ := asking(t, nil, "/forecast")
	call := func(name, args string) map[string]any {
		t.Helper()
		got, err := p.bridge().Tool(convert.AskText(t.Context()), &loombridgev1.ToolRequest{
			AgentId: "a", Name: name, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: args},
		})
		must(t, err)
		var values map[string]any
		if !got.GetSuccess() {
			return map[string]any{"error": got.GetErrorMessage()}
		}
		must(t, json.Unmarshal([]byte(got.GetOutputJson()), &values))
		return values
	}
	want := "# Café\n\nSome text and a link.\n\n- one\n- two"
	got := call("browser:navigate", `{"url":"http://site.test/to?/page"}`)
	if got["text"] != want || got["title"] != "A page" || got["url"] != "http://site.test/page" || got["status"] != 200.0 ||
		fmt.Sprint(got["links"]) != "[map[text:a link url:http://site.test/next]]" {
		t.Errorf("navigate gave %v", got)
	}
	if got := call("web:fetch", `{"url":"http://site.test/page","raw":true}`); !strings.Contains(fmt.Sprint(got["content"]), "<h1>Café</h1>") || got["content_type"] != "text/html" {
		t.Errorf("raw gave %v", got)
	}
	if got := call("web:fetch", `{"url":"http://site.test/nothing"}`); got["status"] != 404.0 || got["content"] != "{\"error\":\"nothing here\"}\n" {
		t.Errorf("a missing page gave %v", got)
	}
	if got := call("web:fetch", `{"url":"http://site.test/bytes"}`); got["content_type"] != "application/octet-stream" || got["binary"] != true || got["size"] != 300.0 {
		t.Errorf("bytes gave %v", got)
	}
	if got := call("web:fetch", `{"url":"http://site.test/long"}`); got["truncated"] != true {
		t.Errorf("a page of more than 8 MiB: truncated is %v", got["truncated"])
	}
	if got := call("browser:navigate", `{"url":"http://site.test/bytes"}`); !strings.Contains(fmt.Sprint(got["error"]), "use web:fetch") {
		t.Errorf("bytes as a page gave %v", got)
	}
}

// A .env file in the workspace, which agents write, does not say where requests and their
// keys go.
func TestDotenvDoesNotLead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	MustDotenv(t, dir, "VLLM_BASE_URL=http://evil.example/v1\nHTTPS_PROXY=http://evil.example\nVLLM_MODEL=m\n")
	env := environment{dir: dir}.withDotenv(dir)
	if env.get("VLLM_BASE_URL") != "" || env.get("HTTPS_PROXY") != "" || env.get("VLLM_MODEL") != "m" || len(env.ignored) != 1 {
		t.Errorf("got %+v", env)
	}
	outside := filepath.Join(dir, "work")
	must(t, os.Mkdir(outside, 0o700))
	if env := (environment{dir: outside}).withDotenv(outside); env.get("VLLM_BASE_URL") == "" {
		t.Errorf("a file outside gave %+v", env)
	}
}

// The search engine is asked through the proxy that the environment names.
func TestSearchByProxy(t *testing.T) {
	t.Parallel()
	p, _ := asking(t, map[string]string{"HTTPS_PROXY": "$WEB", "BRAVE_API_KEY": "k"}, "/forecast", "--search-url", "http://brave.test/brave")
	got, err := callTool(t, p, "web:search", `{"query":"x"}`)
	must(t, err)
	if !strings.Contains(fmt.Sprint(got), "proxied about x") {
		t.Errorf("the search gave %v", got)
	}
}

// A prompt offers web:search where it works: with a key of its engine, or with an engine that
// needs none. Where a setting names it, it is offered whatever it lacks, and says so.
func TestSearchIsOfferedWhereItWorks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env   map[string]string
		args  []string
		names []string
		want  bool
	}{
		{want: false},
		{env: map[string]string{"BRAVE_API_KEY": "k"}, want: true},
		{args: []string{"--search-engine", "searxng"}, want: true},
		{names: []string{"web:*"}, want: true},
	} {
		p, _ := asking(t, c.env, "/forecast", c.args...)
		r := &loombridgev1.AssembleRequest{AgentId: "a", Goal: "talk"}
		if c.names != nil {
			r.Settings = &loombridgev1.PromptSettings{Tools: &loombridgev1.ToolSelection{Names: c.names}}
		}
		prompt, err := p.context().Assemble(t.Context(), r)
		must(t, err)
		all := prompt.GetToolsJson()
		if got := strings.Contains(all, `"web:search"`); got != c.want || !strings.Contains(all, `"web:fetch"`) {
			t.Errorf("%v %v %v: offered %v", c.env, c.args, c.names, got)
		}
	}
}
