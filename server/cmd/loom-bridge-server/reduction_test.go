package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// reduced is what becomes of a read with the settings of a command line.
func reduced(tb testing.TB, text string, args ...string) step.Reduced {
	tb.Helper()
	c, err := load(tb, nil, args...)
	if err != nil {
		tb.Fatal(err)
	}
	opts, err := c.reduction()
	if err != nil {
		tb.Fatal(err)
	}
	return step.NewReducer(&opts).Reduce(step.Call{
		Tool: step.ToolReadFile, Args: map[string]any{"path": "a"},
		Result: step.Result{
			Output: map[string]any{"path": "a", "content": text}, BodyKey: "content", BodyText: text, BodySize: int64(len(text)),
		},
	})
}

// What of a result is kept where, and what its line says, are settings.
//
// K01, K06
func TestReductionSettings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		bytes       int
		args        []string
		observation string
		offload     bool
		shown       bool
	}{
		{1024, nil, "Read a (1024 bytes, text)", false, true},
		{1025, nil, "Read a (1025 bytes, text)", true, true},
		{1000, []string{"--offload-preset=design"}, "Read a (1000 bytes, text)", true, true},
		{1500, []string{"--offload-preset=compressor"}, "Read a (1500 bytes, text)", false, true},
		{1501, []string{"--offload-preset=compressor"}, "Read a (1501 bytes, text)", true, true},
		{2047, []string{"--offload-preset=size_or_lines"}, "Read a (2047 bytes, text)", false, true},
		{2048, []string{"--offload-preset=size_or_lines"}, "Read a (2048 bytes, text)", true, true},
		{9, []string{"--observation-style=design"}, "Read file (9 bytes)", false, true},
		{9, []string{"--history-preset=design"}, "Read file (9 bytes)", false, true},
		{9, []string{"--history-preset=design", "--observation-style=reduction"}, "Read a (9 bytes, text)", false, true},
		{1024, []string{"--history-preset=design"}, "Read file (1024 bytes)", true, true},
		{1025, []string{"--read-inline-recent=false"}, "Read a (1025 bytes, text)", true, true}, // presets alone hide it
	} {
		got := reduced(t, strings.Repeat("x", tt.bytes), tt.args...)
		if got.Observation != tt.observation || got.Offload != tt.offload || (got.Inline != "") != tt.shown {
			t.Errorf("%d bytes, %v: %q, offloaded %v, %d bytes shown", tt.bytes, tt.args, got.Observation, got.Offload, len(got.Inline))
		}
	}
	lines := strings.Repeat("line\n", 50)
	if got := reduced(t, lines, "--offload-preset=size_or_lines").Inline; strings.Count(got, "line\n")+strings.Count(got, "line") < 20 || len(got) >= len(lines) {
		t.Errorf("a preview is\n%s", got)
	}
}

// A file of rules is stronger than the settings.
//
// K01
func TestRulesOverSettings(t *testing.T) {
	t.Parallel()
	rules := MustFile(t, "[tools.\"fs:read_file\"]\nfrom_bytes = 10\n")
	for n, offload := range map[int]bool{9: false, 10: true} {
		if got := reduced(t, strings.Repeat("x", n), "--offload-preset=design", "--rules="+rules); got.Offload != offload {
			t.Errorf("%d bytes: offloaded %v", n, got.Offload)
		}
	}
}

// The settings of CompressResult reach it, with the defaults of its package.
//
// K12, K15, K38, K49
func TestCompressSettings(t *testing.T) {
	t.Parallel()
	c, err := load(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := compress.Options{
		Threshold: 1500, ResultTokens: 3000, SearchItems: 5, SearchChars: 2000, FileLines: 10, FileChars: 1000, ExecLines: 50, ExecChars: 1500,
	}
	if diff := cmp.Diff(want, c.compress()); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	c, err = load(t, map[string]string{"LOOM_BRIDGE_COMPRESS_ADAPTIVE": "true"},
		"--compress-threshold-chars=1", "--tool-result-max-tokens=2", "--search-preview-top-n=3", "--search-preview-chars=4",
		"--compress-file-lines=5", "--compress-file-chars=6", "--compress-exec-lines=7", "--compress-exec-chars=8",
	)
	if err != nil {
		t.Fatal(err)
	}
	want = compress.Options{
		Threshold: 1, Adaptive: true, ResultTokens: 2, SearchItems: 3, SearchChars: 4, FileLines: 5, FileChars: 6, ExecLines: 7, ExecChars: 8,
	}
	if diff := cmp.Diff(want, c.compress()); diff != "" {
		t.Errorf("given (-want +got):\n%s", diff)
	}
}

// Few short hits may stay where they are.
//
// K12
func TestSmallSearchSetting(t *testing.T) {
	t.Parallel()
	for arg, kept := range map[string]bool{"--search-inline-small=false": false, "--search-inline-small": true} {
		for hits, small := range map[int]bool{5: true, 6: false} {
			c, err := load(t, nil, arg)
			if err != nil {
				t.Fatal(err)
			}
			opts, err := c.reduction()
			if err != nil {
				t.Fatal(err)
			}
			got := step.NewReducer(&opts).Reduce(step.Call{
				Tool: step.ToolSearchWeb, Args: map[string]any{"query": "q"},
				Result: step.Result{Output: map[string]any{"results": slices.Repeat([]any{strings.Repeat("x", 100)}, hits)}},
			})
			if got.Offload == (kept && small) || kept && small && got.Inline == "" {
				t.Errorf("%s, %d hits: offloaded %v, %d bytes shown", arg, hits, got.Offload, len(got.Inline))
			}
		}
	}
}

func TestBadReduction(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{
		"--offload-preset=all":                "--offload-preset (LOOM_BRIDGE_OFFLOAD_PRESET) \"all\": is not reduction, design, compressor or size_or_lines",
		"--observation-style=long":            "is not reduction or design",
		"--reference-style=none":              "is not hint, short or long",
		"--outputs-naming=kind":               "is not kind_step, kind_seq, step_id or ref",
		"--errors-observation-chars=0":        "must be from 1 to 1000000",
		"--compress-exec-lines=-1":            "must be from 1 to 1000000",
		"--compaction-budget-fallback=all":    "is not count or trim",
		"--templates-set=none":                "is not design or reduction",
		"--read-inline-recent=some":           "is not true or false",
		"--compaction-keep-recent=-1":         "must be from 0 to 1000000",
		"--compaction-trigger-tokens=1000001": "must be from 0 to 1000000",
	} {
		if _, err := load(t, nil, arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", arg, err, want)
		}
	}
}

// Presets are what they are unless a setting says otherwise.
//
// K07, K11, K54
func TestPresetSettings(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"design", "reduction", "chat", "research", "code", "debug"} {
		c, err := load(t, nil)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := history.Named(name)
		got, ok := c.preset(name)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(step.Templates{})); diff != "" || !ok {
			t.Errorf("%s, %v (-want +got):\n%s", name, ok, diff)
		}
		c, err = load(t, nil, "--compaction-trigger-steps=1", "--compaction-trigger-tokens=2", "--compaction-keep-recent=4", "--compaction-max-compact=6",
			"--compaction-budget-fallback=trim", "--templates-set=reduction", "--errors-protect-last=7", "--reference-style=hint",
			"--read-inline-recent="+fmt.Sprint(name == "design"))
		if err != nil {
			t.Fatal(err)
		}
		want.TriggerSteps, want.TriggerTokens, want.KeepRecent, want.GroupLines, want.ProtectLast = 1, 2, 4, 6, 7
		want.Fallback, want.Templates, want.Reference = history.FallbackTrim, step.ReductionTemplates(), step.ReferenceHint
		want.ShowReads = new(name == "design")
		got, _ = c.preset(name)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(step.Templates{})); diff != "" {
			t.Errorf("%s with settings (-want +got):\n%s", name, diff)
		}
	}
	if _, ok := (Config{}).preset("none"); ok {
		t.Error("a preset of an unknown name")
	}
}

// How results are called is a setting, and otherwise the session's preset's.
//
// K08
func TestNamingSetting(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]blob.Naming{
		"--data-dir=x": 0, "--outputs-naming=kind_step": blob.NamingKindStep, "--outputs-naming=kind_seq": blob.NamingKindSeq,
		"--outputs-naming=step_id": blob.NamingStepID, "--outputs-naming=ref": blob.NamingRef,
	} {
		c, err := load(t, nil, arg, "--history-preset=design")
		if err != nil {
			t.Fatal(err)
		}
		if got := c.blobs().Naming; got != want {
			t.Errorf("%s: %v, want %v", arg, got, want)
		}
	}
}
