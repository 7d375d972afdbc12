package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/compress"
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

// What of a result is kept where, and what its line says, are the preset's.
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
		{1500, []string{"--history-preset=three_phase"}, "Read a (1500 bytes, text)", false, true},
		{1501, []string{"--history-preset=three_phase"}, "Read a (1501 bytes, text)", true, true},
		{9, []string{"--history-preset=design"}, "Read file (9 bytes)", false, true},
		{1024, []string{"--history-preset=design"}, "Read file (1024 bytes)", true, true},
	} {
		got := reduced(t, strings.Repeat("x", tt.bytes), tt.args...)
		if got.Observation != tt.observation || got.Offload != tt.offload || (got.Inline != "") != tt.shown {
			t.Errorf("%d bytes, %v: %q, offloaded %v, %d bytes shown", tt.bytes, tt.args, got.Observation, got.Offload, len(got.Inline))
		}
	}
}

// A file of rules is stronger than the settings.
//
// K01
func TestRulesOverSettings(t *testing.T) {
	t.Parallel()
	rules := MustFile(t, "[tools.\"fs:read_file\"]\nfrom_bytes = 10\n")
	for n, offload := range map[int]bool{9: false, 10: true} {
		if got := reduced(t, strings.Repeat("x", n), "--history-preset=design", "--rules="+rules); got.Offload != offload {
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
	want := compress.Options{ResultTokens: 3000}
	if diff := cmp.Diff(want, c.compress()); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	c, err = load(t, map[string]string{"LOOM_BRIDGE_COMPRESS_ADAPTIVE": "true"}, "--tool-result-max-tokens=2")
	if err != nil {
		t.Fatal(err)
	}
	want = compress.Options{Adaptive: true, ResultTokens: 2}
	if diff := cmp.Diff(want, c.compress()); diff != "" {
		t.Errorf("given (-want +got):\n%s", diff)
	}
}
