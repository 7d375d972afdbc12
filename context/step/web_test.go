package step_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/step"
)

// hits are n results of a search.
func hits(n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = map[string]any{
			"title": fmt.Sprintf("Title %d", i), "url": fmt.Sprintf("https://example.org/%d", i), "snippet": "what it says",
		}
	}
	return list
}

func searched(output map[string]any) step.Call {
	return step.Call{
		Tool: "web:search", Args: map[string]any{"query": "go generics", "count": json.Number("8")},
		Result: step.Result{Output: output},
	}
}

// A13, A02: only the query stays, and the results go into a blob, all of them.
func TestReduceWebSearch(t *testing.T) {
	tests := []struct {
		name   string
		output map[string]any
		want   string
	}{
		{"results", map[string]any{"results": hits(8), "count": json.Number("99")}, "Found 8 results for 'go generics'"},
		{"a count alone", map[string]any{"count": json.Number("7"), "text": strings.Repeat("x", 200)}, "Found 7 results for 'go generics'"},
		{"neither", map[string]any{"text": strings.Repeat("x", 200)}, "Found 0 results for 'go generics'"},
		{"nothing", nil, "Found 0 results for 'go generics'"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := reduce(nil, searched(tt.output))
			if got.Observation != tt.want || string(got.MinimalArgs) != `{"query":"go generics"}` {
				t.Errorf("%q, %s", got.Observation, got.MinimalArgs)
			}
			if got.Offload != (tt.output != nil) {
				t.Fatalf("offload %t", got.Offload)
			}
			if got.Offload && (got.OffloadKind != "search" || got.OffloadExt != "json" || string(got.OffloadBytes) != plain(tt.output)) {
				t.Errorf("%s.%s: %s", got.OffloadKind, got.OffloadExt, got.OffloadBytes)
			}
			hidden := reduce(&step.Options{HideOffloaded: true}, searched(tt.output))
			if strings.Contains(fmt.Sprint(hidden.Observation, hidden.Inline), "example.org") {
				t.Errorf("details of a hidden result: %q", hidden.Inline)
			}
		})
	}
	if got := reduce(&step.Options{Style: step.ObservationDesign}, searched(map[string]any{"results": hits(8)})); got.Observation != "Found 8 results" {
		t.Errorf("design: %q", got.Observation)
	}
}

// D04: where a whole result is no longer than what would stand for it, it stays.
func TestNothingIsOffloadedThatIsShorterThanItsStub(t *testing.T) {
	got := reduce(&step.Options{HideOffloaded: true}, searched(map[string]any{"results": []any{}}))
	if got.Offload || got.Inline != `{"results": []}` {
		t.Errorf("offload %t, inline %q", got.Offload, got.Inline)
	}
}

// Small results may stay, by a table of one's own.
func TestSmallSearchesMayStay(t *testing.T) {
	opts := withRules(t, "[tools.\"web:search\"]\nfrom_items = 6\nfrom_bytes = 1024")
	opts.HideOffloaded = true
	for n, offload := range map[int]bool{5: false, 6: true} {
		got := reduce(opts, searched(map[string]any{"results": hits(n)}))
		if got.Offload != offload || (got.Inline == "") != offload {
			t.Errorf("%d results: offload %t, inline %q", n, got.Offload, got.Inline)
		}
	}
	large := []any{strings.Repeat("x", 1024)}
	if got := reduce(opts, searched(map[string]any{"results": large})); !got.Offload {
		t.Error("one large result stays")
	}
}

// A14: one line of address, status and size; the page itself goes into a blob.
func TestReducePage(t *testing.T) {
	visit := func(url string, text string) step.Call {
		return step.Call{
			Tool: "browser:navigate", Args: map[string]any{"url": url, "wait": true},
			Result: step.Result{Output: map[string]any{
				"status": json.Number("200"), "title": "A page", "text": text, "links": []any{"https://example.org/a"},
			}},
		}
	}
	text := strings.Repeat("a line of text\n", 51200/15) + strings.Repeat("x", 51200%15)
	got := reduce(nil, visit("https://example.org/b?c=d#e", text))
	if want := "Visited example.org/b?c=d#e (status=200, 50KB text)"; got.Observation != want {
		t.Errorf("got %q, want %q", got.Observation, want)
	}
	if string(got.MinimalArgs) != `{"url":"https://example.org/b?c=d#e"}` {
		t.Errorf("minimal arguments %s", got.MinimalArgs)
	}
	if figure(t, got.Metadata, "status") != 200.0 || figure(t, got.Metadata, "size") != 51200.0 {
		t.Errorf("metadata %s", got.Metadata)
	}
	var page map[string]any
	if err := json.Unmarshal(got.OffloadBytes, &page); err != nil || page["text"] != text || page["links"] == nil {
		t.Errorf("the blob does not have text and links: %v", err)
	}
	if got.OffloadKind != "page" || got.OffloadExt != "json" {
		t.Errorf("%s.%s", got.OffloadKind, got.OffloadExt)
	}
	short := strings.Repeat("short text", 10)
	small := reduce(nil, visit("example.org", short))
	if small.Observation != "Visited example.org (status=200, 100 bytes text)" || !small.Offload {
		t.Errorf("%q, offload %t", small.Observation, small.Offload)
	}
	if want := "{\"status\": 200, \"title\": \"A page\"}\n" + short + "\nlinks: [\"https://example.org/a\"]"; small.Inline != want {
		t.Errorf("inline %q, want %q", small.Inline, want)
	}
}

// N10: plain bytes of what was read and written, sizes for people elsewhere.
func TestSizesInText(t *testing.T) {
	page := func(n int) step.Call {
		return step.Call{
			Tool: "browser:navigate", Args: map[string]any{"url": "https://a.b"},
			Result: step.Result{Output: map[string]any{"status": 200, "text": strings.Repeat("x", n)}},
		}
	}
	write := step.Call{Tool: "fs:write_file", Args: map[string]any{"path": "a", "content": strings.Repeat("x", 51200)}}
	for want, call := range map[string]step.Call{
		"Read a (1523 bytes, text)":           readCall("a", strings.Repeat("x", 1523)),
		"Wrote a (51200 bytes)":               write,
		"Visited a.b (status=200, 50KB text)": page(51200),
		"Visited a.b (status=200, 5KB text)":  page(5120),
	} {
		if got := reduce(nil, call).Observation; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	read := reduce(nil, readCall("a", strings.Repeat("x", 51200)))
	s := step.Step{Number: 1, ToolName: "fs:read_file", MinimalArgs: read.MinimalArgs, Metadata: read.Metadata}
	if got := step.DesignTemplates().Compact(s).Summary; got != "Read a (50KB)" {
		t.Errorf("compact: %q", got)
	}
}

// A17
func TestReduceWeather(t *testing.T) {
	got := reduce(nil, step.Call{
		Tool: "weather:get", Args: map[string]any{"location": "Oslo", "units": "metric"},
		Result: step.Result{Output: map[string]any{"temperature": 3, "condition": "rain"}},
	})
	if string(got.MinimalArgs) != `{"location":"Oslo"}` || got.Observation != `weather:get → {"condition": "rain", "temperature": 3}` {
		t.Errorf("%s, %q", got.MinimalArgs, got.Observation)
	}
	s := step.Step{Number: 1, ToolName: "weather:get", MinimalArgs: got.MinimalArgs, Metadata: got.Metadata}
	if line := step.DesignTemplates().Compact(s).Summary; line != "Checked weather for Oslo" {
		t.Errorf("compact: %q", line)
	}
}

// Other tools have compact lines of their own, too.
func TestCompactLines(t *testing.T) {
	for want, call := range map[string]step.Call{
		"Searched 'go generics' → 2 results": searched(map[string]any{"results": hits(2)}),
		"Visited example.org/x":              {Tool: "browser:navigate", Args: map[string]any{"url": "https://example.org/x"}},
		"Ran `git log --oneline` → exit 0":   shell("git log --oneline", "", "", 0),
		`web:search({})`:                     {Tool: "web:search"},
		"Ran `git x` → exit 1":               shell("git x", "", "no such thing", 1),
	} {
		r := reduce(nil, call)
		s := step.Step{Number: 1, ToolName: call.Tool, MinimalArgs: r.MinimalArgs, Metadata: r.Metadata, Outcome: r.Outcome, Error: r.Error}
		if got := step.DesignTemplates().Compact(s).Summary; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A07: what of each tool stays, and what of it goes into a blob.
func TestWhatStaysAndWhatGoes(t *testing.T) {
	secret := strings.Repeat("the content itself ", 60)
	tests := []struct {
		call   step.Call
		args   string
		stays  []string
		kept   string // argument
		inBlob bool
	}{
		{readCall("a.txt", secret), `{"path":"a.txt"}`, []string{"size", "sha256", "type"}, "", true},
		{step.Call{
			Tool: "fs:write_file", Args: map[string]any{"path": "a.txt", "content": secret},
			Result: step.Result{Output: map[string]any{"bytes_written": 3}},
		}, `{"path":"a.txt"}`, []string{"bytes", "size", "sha256"}, "content", false},
		{searched(map[string]any{"results": []any{secret}}), `{"query":"go generics"}`, []string{"count"}, "", true},
		{step.Call{
			Tool: "browser:navigate", Args: map[string]any{"url": "https://a.b/"},
			Result: step.Result{Output: map[string]any{"status": 200, "text": secret, "html": "<p>" + secret}},
		}, `{"url":"https://a.b/"}`, []string{"status"}, "", true},
		{shell("cat a", secret, secret, 0), `{"command":"cat a"}`, []string{"exit_code"}, "", true},
	}
	for _, tt := range tests {
		t.Run(tt.call.Tool, func(t *testing.T) {
			got := reduce(&step.Options{HideOffloaded: true}, tt.call)
			if string(got.MinimalArgs) != tt.args || got.KeepArg != tt.kept || got.Offload != tt.inBlob {
				t.Errorf("arguments %s, keep %q, offload %t", got.MinimalArgs, got.KeepArg, got.Offload)
			}
			for _, name := range tt.stays {
				if figure(t, got.Metadata, name) == nil {
					t.Errorf("no %s in %s", name, got.Metadata)
				}
			}
			stays := fmt.Sprint(string(got.MinimalArgs), got.Observation, got.Inline, got.Evidence, string(got.Metadata))
			if strings.Contains(stays, "the content itself") {
				t.Errorf("the content stays: %.200s", stays)
			}
			if inBlob := strings.Contains(string(got.OffloadBytes), "the content itself") || tt.call.Result.BodyKey != ""; inBlob != tt.inBlob {
				t.Errorf("in the blob: %t", inBlob)
			}
		})
	}
}
