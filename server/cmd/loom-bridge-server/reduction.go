package main

import (
	"cmp"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// Reduction is how the results of calls are kept and shortened. Each setting that
// is not given is that of the history preset of the server, and without one the
// default that stands here.
type Reduction struct {
	// OffloadPreset says from which size a result is offloaded: reduction, design,
	// compressor or size_or_lines. Default reduction; design of the preset design.
	OffloadPreset string `koanf:"offload-preset"`
	// ObservationStyle is how much the line of a call says: reduction, or design
	// for less. Default reduction; design of the preset design.
	ObservationStyle string `koanf:"observation-style"`
	// ReferenceStyle is how a result says where the whole lies: hint, short or
	// long. Default hint; long of the preset design, short of reduction.
	ReferenceStyle string `koanf:"reference-style"`
	// OutputsNaming is how offloaded results are called: kind_step, kind_seq,
	// step_id or ref. Default kind_step; kind_seq in sessions with the presets
	// design and reduction.
	OutputsNaming string `koanf:"outputs-naming"`
	// ReadInlineRecent, true or false, says whether presets show what was read while
	// its step is in full. Default: each preset's own, which is false of design alone.
	ReadInlineRecent string `koanf:"read-inline-recent"`
	// SearchInlineSmall keeps up to five hits of a search, under 1 KB, in the prompt
	// alone. Default false.
	SearchInlineSmall bool `koanf:"search-inline-small"`
	// WriteStoreContent keeps what fs:write_file wrote. Default true.
	WriteStoreContent bool `koanf:"write-store-content"`
	// ErrorsObservationChars of what a failed command said stand in its
	// observation. Default 500.
	ErrorsObservationChars int `koanf:"errors-observation-chars"`
	// ToolResultMaxTokens bounds what a prompt shows of one result, and
	// CompressResult of one that it does not compress. Default 3000.
	ToolResultMaxTokens int `koanf:"tool-result-max-tokens"`

	// CompressThresholdChars is the length that CompressResult leaves as it is.
	// Default 1500. CompressAdaptive takes one that follows how full the window is.
	// Default false.
	CompressThresholdChars int  `koanf:"compress-threshold-chars"`
	CompressAdaptive       bool `koanf:"compress-adaptive"`
	// The sizes of its strategies; see compress.Options.
	SearchPreviewTopN  int `koanf:"search-preview-top-n"`
	SearchPreviewChars int `koanf:"search-preview-chars"`
	CompressFileLines  int `koanf:"compress-file-lines"`
	CompressFileChars  int `koanf:"compress-file-chars"`
	CompressExecLines  int `koanf:"compress-exec-lines"`
	CompressExecChars  int `koanf:"compress-exec-chars"`
}

func defaultReduction() Reduction {
	return Reduction{
		WriteStoreContent: true, ErrorsObservationChars: step.DefaultComplaintChars,
		ToolResultMaxTokens: compress.DefaultResultTokens, CompressThresholdChars: compress.DefaultThreshold,
		SearchPreviewTopN: compress.DefaultSearchItems, SearchPreviewChars: compress.DefaultSearchChars,
		CompressFileLines: compress.DefaultFileLines, CompressFileChars: compress.DefaultFileChars,
		CompressExecLines: compress.DefaultExecLines, CompressExecChars: compress.DefaultExecChars,
	}
}

func reductionFlags(f *pflag.FlagSet, d Reduction) {
	f.String("offload-preset", d.OffloadPreset, "from which size results are offloaded: reduction (default), design, compressor, size_or_lines")
	f.String("observation-style", d.ObservationStyle, "how much the line of a call says: reduction (default), design (less)")
	f.String("reference-style", d.ReferenceStyle, "how a result says where the whole lies: hint (default), short, long")
	f.String("outputs-naming", d.OutputsNaming, "how offloaded results are called: kind_step (default), kind_seq, step_id, ref")
	f.String("read-inline-recent", d.ReadInlineRecent, "whether presets show what was read while its step is in full: true, false (default the preset's own, false of design)")
	f.Lookup("read-inline-recent").NoOptDefVal = "true"
	f.Bool("search-inline-small", d.SearchInlineSmall, "keep up to five hits of a search, under 1 KB, in the prompt alone")
	f.Bool("write-store-content", d.WriteStoreContent, "keep what fs:write_file wrote")
	f.Int("errors-observation-chars", d.ErrorsObservationChars, "characters of what a failed command said in its observation")
	f.Int("tool-result-max-tokens", d.ToolResultMaxTokens, "most that a prompt shows of one result")
	f.Int("compress-threshold-chars", d.CompressThresholdChars, "longest result that CompressResult leaves as it is")
	f.Bool("compress-adaptive", d.CompressAdaptive, "let that follow how full the budget was with the session's last prompt")
	f.Int("search-preview-top-n", d.SearchPreviewTopN, "hits of a search that CompressResult shows")
	f.Int("search-preview-chars", d.SearchPreviewChars, "most that it shows of a search")
	f.Int("compress-file-lines", d.CompressFileLines, "lines of a file that it shows")
	f.Int("compress-file-chars", d.CompressFileChars, "most that it shows of a file")
	f.Int("compress-exec-lines", d.CompressExecLines, "lines of a command's output that it shows")
	f.Int("compress-exec-chars", d.CompressExecChars, "most that it shows of a command's output")
}

// byPreset fills in what the server's history preset says of settings that were
// not given.
func (c Config) byPreset() Reduction {
	r := c.Reduction
	switch c.HistoryPreset {
	case "design":
		r.fill("design", "design", "long")
	case "reduction":
		r.fill("reduction", "reduction", "short")
	}
	r.fill("reduction", "reduction", "hint")
	return r
}

func (r *Reduction) fill(offload, observation, reference string) {
	r.OffloadPreset = cmp.Or(r.OffloadPreset, offload)
	r.ObservationStyle = cmp.Or(r.ObservationStyle, observation)
	r.ReferenceStyle = cmp.Or(r.ReferenceStyle, reference)
}

// checkReduction checks the settings of results.
func (c Config) checkReduction() error {
	r := c.byPreset()
	if _, err := step.BuiltinRules().WithOffload(r.OffloadPreset); err != nil {
		return &ConfigError{"offload-preset", r.OffloadPreset, "is not reduction, design, compressor or size_or_lines"}
	}
	if _, ok := observationStyles()[r.ObservationStyle]; !ok {
		return &ConfigError{"observation-style", r.ObservationStyle, "is not reduction or design"}
	}
	if _, ok := referenceStyles()[r.ReferenceStyle]; !ok {
		return &ConfigError{"reference-style", r.ReferenceStyle, "is not hint, short or long"}
	}
	if _, ok := blob.ParseNaming(r.OutputsNaming); !ok && r.OutputsNaming != "" {
		return &ConfigError{"outputs-naming", r.OutputsNaming, "is not kind_step, kind_seq, step_id or ref"}
	}
	if _, err := strconv.ParseBool(r.ReadInlineRecent); err != nil && r.ReadInlineRecent != "" {
		return &ConfigError{"read-inline-recent", r.ReadInlineRecent, "is not true or false"}
	}
	for _, number := range []struct {
		field string
		value int
	}{
		{"errors-observation-chars", r.ErrorsObservationChars},
		{"tool-result-max-tokens", r.ToolResultMaxTokens},
		{"compress-threshold-chars", r.CompressThresholdChars},
		{"search-preview-top-n", r.SearchPreviewTopN},
		{"search-preview-chars", r.SearchPreviewChars},
		{"compress-file-lines", r.CompressFileLines},
		{"compress-file-chars", r.CompressFileChars},
		{"compress-exec-lines", r.CompressExecLines},
		{"compress-exec-chars", r.CompressExecChars},
	} {
		if number.value <= 0 || number.value > maxReduction {
			return &ConfigError{number.field, number.value, fmt.Sprintf("must be from 1 to %d", maxReduction)}
		}
	}
	return nil
}

// maxReduction is as much as the largest windows hold.
const maxReduction = 1_000_000

func observationStyles() map[string]step.ObservationStyle {
	return map[string]step.ObservationStyle{"reduction": step.ObservationFull, "design": step.ObservationDesign}
}

func referenceStyles() map[string]step.ReferenceStyle {
	return map[string]step.ReferenceStyle{"hint": step.ReferenceHint, "short": step.ReferenceShort, "long": step.ReferenceLong}
}

// reduction is how calls become steps, as configured. The file of rules is
// stronger than the settings.
func (c Config) reduction() (step.Options, error) {
	r := c.byPreset()
	rules, err := step.BuiltinRules().WithOffload(r.OffloadPreset)
	if err == nil && r.SearchInlineSmall {
		rules, err = rules.With([]byte("[tools.\"" + step.ToolSearchWeb + "\"]\nfrom_items = 6\nfrom_bytes = 1024\n"))
	}
	if err == nil {
		rules, err = loadRules(c.Rules, rules)
	}
	if err != nil {
		return step.Options{}, err
	}
	o := step.Options{Rules: rules, Style: observationStyles()[r.ObservationStyle], ComplaintChars: r.ErrorsObservationChars}
	if r.OffloadPreset == step.OffloadSizeOrLines {
		o.PreviewLines = step.OffloadPreviewLines
	}
	return o, nil
}

// compress is how CompressResult shortens, as configured.
func (c Config) compress() compress.Options {
	r := c.Reduction
	return compress.Options{
		Threshold: r.CompressThresholdChars, Adaptive: r.CompressAdaptive, ResultTokens: r.ToolResultMaxTokens,
		SearchItems: r.SearchPreviewTopN, SearchChars: r.SearchPreviewChars,
		FileLines: r.CompressFileLines, FileChars: r.CompressFileChars,
		ExecLines: r.CompressExecLines, ExecChars: r.CompressExecChars,
	}
}

// loadRules reads the user's rules over those there are; without a file these
// stand alone.
func loadRules(path string, under step.Rules) (step.Rules, error) {
	if path == "" {
		return under, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return step.Rules{}, &ConfigError{"rules", path, err.Error()}
	}
	rules, err := under.With(text)
	if err != nil {
		return step.Rules{}, &ConfigError{"rules", path, err.Error()}
	}
	return rules, nil
}
