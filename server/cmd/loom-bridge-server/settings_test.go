package main

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// shown is the prompt of a session that says nothing of how it is made.
func shown(f *figures) string {
	text, _ := f.history(nil)
	return text
}

// under is the prompt under a preset, taken literally.
func under(f *figures, preset string) string {
	text, _ := f.history(&loombridgev1.HistorySettings{Preset: preset, Literal: new(true)})
	return text
}

// compressed is what CompressResult makes of a result.
func compressed(f *figures, tool, content string) string {
	f.tb.Helper()
	got, err := f.context.CompressResult(f.tb.Context(), &loombridgev1.CompressResultRequest{AgentId: f.agent, SessionId: "s", ToolName: tool, Content: content})
	must(f.tb, err)
	return got.GetContent()
}

// tiny records n short calls.
func tiny(f *figures, n int) {
	f.tb.Helper()
	for i := range n {
		f.record("fs:stat", "", map[string]any{"path": fmt.Sprint("f", i)}, map[string]any{"size": i})
	}
}

// Each setting of histories, of presets, of how results are kept and of
// CompressResult makes a started server behave otherwise than one without it.
//
// K01, K06, K07, K08, K11, K12, K15, K38, K50, K51, K54
func TestSettingsOfPrompts(t *testing.T) {
	read := func(f *figures, bytes int) string {
		return f.record("fs:read_file", "", map[string]any{"path": "a.txt"}, map[string]any{"content": strings.Repeat("x", bytes)})
	}
	search := func(f *figures) string {
		return f.record("web:search", "", map[string]any{"query": "q"}, map[string]any{"results": found("few", 3)})
	}
	lines := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "line %03d of a file that has many of them\n", i)
		}
		return b.String()
	}
	plain := MustFigures(t)
	for _, tt := range []struct {
		flag string
		// tells whether the server does what the flag asks for.
		does func(f *figures) bool
	}{
		{"--history-policy=append_only", func(f *figures) bool {
			f.work(6)
			f.work(1)
			return !strings.Contains(shown(f), "unchanged")
		}},
		{"--history-preset=reduction", func(f *figures) bool { tiny(f, 1); return strings.Contains(shown(f), "Step 1:\nAction: ") }},
		{"--history-literal", func(f *figures) bool {
			tiny(f, 6)
			text, _ := f.history(&loombridgev1.HistorySettings{Preset: "reduction"})
			return strings.HasPrefix(text, "Earlier steps:\n")
		}},
		{"--compaction-trigger-steps=2", func(f *figures) bool { tiny(f, 4); return strings.HasPrefix(under(f, "design"), "Previous steps:\n") }},
		{"--compaction-trigger-tokens=20", func(f *figures) bool { tiny(f, 5); return strings.HasPrefix(under(f, "design"), "Previous steps:\n") }},
		{"--compaction-keep-recent=1", func(f *figures) bool { tiny(f, 6); return strings.Count(under(f, "design"), "  • ") == 5 }},
		{"--compaction-max-compact=1", func(f *figures) bool {
			f.work(8)
			return strings.Contains(under(f, "research"), "... (3 earlier steps omitted)")
		}},
		{"--compaction-budget-fallback=trim", func(f *figures) bool {
			tiny(f, 80)
			return strings.HasPrefix(under(f, "reduction"), "Earlier steps:\n• (")
		}},
		{"--templates-set=reduction", func(f *figures) bool {
			f.record("system:shell", "", map[string]any{"command": "ls"}, map[string]any{"stdout": "", "exit_code": 0})
			tiny(f, 6)
			return strings.Contains(under(f, "design"), "Ran `ls` (exit 0)")
		}},
		{"--errors-protect-last=1", func(f *figures) bool {
			for i := range 3 {
				f.fail("db:query", fmt.Sprint("no table ", i))
			}
			tiny(f, 80)
			return strings.Count(under(f, "reduction"), "✗ db:query failed") == 1
		}},
		{"--offload-preset=size_or_lines", func(f *figures) bool { return !strings.Contains(read(f, 2000), "Saved to") }},
		{"--observation-style=design", func(f *figures) bool { return read(f, 10) == "Read file (10 bytes)" }},
		{"--reference-style=short", func(f *figures) bool { return !strings.Contains(read(f, 2000), "Use fs:read_file") }},
		{"--outputs-naming=step_id", func(f *figures) bool { return strings.Contains(read(f, 2000), "outputs/step_001.txt") }},
		{"--read-inline-recent=false", func(f *figures) bool { read(f, 2000); return !strings.Contains(under(f, "reduction"), "xxx") }},
		{"--search-inline-small", func(f *figures) bool { return !strings.Contains(search(f), "Saved to") }},
		{"--write-store-content=false", func(f *figures) bool {
			f.record("fs:write_file", "", map[string]any{"path": "a", "content": "WRITTEN"}, map[string]any{"bytes_written": 7})
			blobs, err := f.context.ListBlobs(f.tb.Context(), &loombridgev1.ListBlobsRequest{AgentId: f.agent})
			must(f.tb, err)
			return len(blobs.GetBlobs()) == 0
		}},
		{"--errors-observation-chars=5", func(f *figures) bool {
			got := f.record("system:shell", "", map[string]any{"command": "make"}, map[string]any{"stderr": "0123456789", "exit_code": 1})
			return strings.HasSuffix(got, "\n…56789")
		}},
		{"--tool-result-max-tokens=50", func(f *figures) bool {
			f.record("fs:read_file", "", map[string]any{"path": "a.txt"}, map[string]any{"content": lines(40)})
			return strings.Contains(shown(f), "chars omitted")
		}},
		{"--compress-threshold-chars=100", func(f *figures) bool { return strings.HasPrefix(compressed(f, "my.tool", lines(30)), "[COMPRESSED:") }},
		{"--search-preview-top-n=2", func(f *figures) bool { return strings.Contains(compressed(f, "web:search", searchOf(40)), "Top 2:") }},
		{"--search-preview-chars=400", func(f *figures) bool { return utf8.RuneCountInString(compressed(f, "web:search", searchOf(40))) <= 400 }},
		{"--compress-file-lines=3", func(f *figures) bool { return strings.Count(compressed(f, "fs:read_file", lines(60)), "\nline ") == 3 }},
		{"--compress-file-chars=200", func(f *figures) bool { return utf8.RuneCountInString(compressed(f, "fs:read_file", lines(60))) <= 200 }},
		{"--compress-exec-lines=4", func(f *figures) bool { return strings.Count(compressed(f, "system:shell", lines(60)), "\nline ") == 4 }},
		{"--compress-exec-chars=300", func(f *figures) bool { return utf8.RuneCountInString(compressed(f, "system:shell", lines(60))) <= 300 }},
	} {
		t.Run(strings.TrimPrefix(tt.flag, "--"), func(t *testing.T) {
			t.Parallel()
			if tt.does(plain.as(t, tt.flag[2:])) {
				t.Error("a server without the flag does the same")
			}
			if !tt.does(MustFigures(t, tt.flag)) {
				t.Error("a server with the flag does not")
			}
		})
	}
}

// searchOf is the JSON of n hits.
func searchOf(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"title":"Title %d","url":"https://example.org/%d","snippet":"%s"}`, i, i, strings.Repeat("words ", 30))
	}
	return "[" + strings.TrimPrefix(b.String(), ",") + "]"
}
