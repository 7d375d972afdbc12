package main

import (
	"fmt"
	"slices"
	"strings"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// prompt is what a model is shown of a session, with a preset whose boundary moves
// with every step, or with what the server does by itself when that is empty.
func (s *stand) prompt(session, preset string) *loombridgev1.AssembleResponse {
	s.tb.Helper()
	request := &loombridgev1.AssembleRequest{AgentId: s.agent, SessionId: session, WithoutTools: true}
	if preset != "" {
		request.History = &loombridgev1.HistorySettings{Preset: preset, Literal: new(bool)}
		*request.History.Literal = true
	}
	got, err := s.contexts().Assemble(s.ctx, request)
	must(s.tb, err)
	return got
}

// shownText is all text of a prompt.
func shownText(p *loombridgev1.AssembleResponse) string {
	var text strings.Builder
	for _, m := range p.GetMessages() {
		text.WriteString(m.GetContent() + "\n")
	}
	return text.String()
}

// reads are steps that read files f0.txt, f1.txt and so on, of so many bytes each;
// a prompt is shown with the preset, and what counts in it is returned.
func reads(steps, bytes int, preset string, count func(text string) string) func(s *stand) func() string {
	return func(s *stand) func() string {
		for i := range steps {
			s.read("s", fmt.Sprintf("f%d.txt", i), bytes)
		}
		return once(count(shownText(s.prompt("s", preset))))
	}
}

// has tells whether a text has a part.
func has(part string) func(text string) string {
	return func(text string) string { return fmt.Sprint(strings.Contains(text, part)) }
}

// olderLines counts the lines of steps that are not shown in full.
func olderLines(text string) string { return fmt.Sprint(strings.Count(text, "• ")) }

func historyEffects() []effect {
	policy := func(s *stand) func() string {
		s.read("s", "a.txt", 10)
		return once(s.prompt("s", "").GetReceipt().GetPolicy())
	}
	return []effect{
		{
			setting: "models", args: []string{"--models", "$DIR/models.toml"},
			files: map[string]string{"models.toml": "[models.tiny]\ncounter = \"openai\"\nencoding = \"o200k_base\"\nexact = true\nwindow = 1000\n"},
			see: func(s *stand) func() string {
				got, err := s.contexts().CountTokens(s.ctx, &loombridgev1.CountTokensRequest{AgentId: "a", Model: "tiny", Text: "hello"})
				must(s.tb, err)
				return once(got.GetCount().GetCertainty().String())
			},
			with: loombridgev1.TokenCertainty_TOKEN_CERTAINTY_EXACT.String(), without: loombridgev1.TokenCertainty_TOKEN_CERTAINTY_ESTIMATED.String(),
		},
		{setting: "history-policy", args: []string{"--history-policy", "append_only"}, see: policy, with: "append_only", without: "ledger"},
		{setting: "history-preset", args: []string{"--history-preset", "debug"}, see: policy, with: "debug", without: "ledger"},
		{
			setting: "history-literal", args: []string{"--history-literal"},
			see: func(s *stand) func() string {
				reads(6, 10, "", olderLines)(s)
				got, err := s.contexts().Assemble(s.ctx, &loombridgev1.AssembleRequest{
					AgentId: s.agent, SessionId: "s", WithoutTools: true, History: &loombridgev1.HistorySettings{Preset: "reduction"},
				})
				must(s.tb, err)
				return once(has("Earlier steps:")(shownText(got)))
			},
			with: "true", without: "false",
		},
		{
			setting: "compaction-trigger-steps", args: []string{"--compaction-trigger-steps", "4"},
			see: reads(5, 10, "reduction", olderLines), with: "2", without: "0",
		},
		{
			setting: "compaction-trigger-tokens", args: []string{"--compaction-trigger-tokens", "10"},
			see: reads(5, 10, "reduction", olderLines), with: "2", without: "0",
		},
		{
			setting: "compaction-keep-recent", args: []string{"--compaction-keep-recent", "1"},
			see: reads(8, 10, "reduction", olderLines), with: "7", without: "5",
		},
		{
			setting: "compaction-max-compact", args: []string{"--compaction-max-compact", "2"},
			see: reads(30, 10, "debug", has("f15.txt")), with: "false", without: "true",
		},
		{
			setting: "compaction-budget-fallback", args: []string{"--compaction-budget-fallback", "trim"},
			see: reads(120, 10, "reduction", has("f115.txt")), with: "true", without: "false",
		},
		{
			setting: "templates-set", args: []string{"--templates-set", "reduction"},
			see: func(s *stand) func() string {
				s.record("s", "fs:write_file", `{"path":"a.txt","content":"x"}`, `{"bytes_written":1}`)
				return reads(7, 10, "design", has("Wrote a.txt (1 bytes)"))(s)
			},
			with: "false", without: "true",
		},
		{
			setting: "errors-protect-last", args: []string{"--errors-protect-last", "1"}, both: []string{"--compaction-budget-fallback", "trim"},
			see: failures, with: "1", without: "10",
		},
	}
}

// failures counts the lines of failures that a preset never leaves out: of thirty
// at the beginning of a long session, where lines are trimmed.
func failures(s *stand) func() string {
	for i := range 30 {
		request := recordOf("a", "s", "fs:read_file", fmt.Sprintf(`{"path":"bad%d.txt"}`, i), "null")
		request.Success, request.OutputForm, request.ErrorMessage = false, nil, fmt.Sprintf("E%d: no such file", i)
		_, err := s.contexts().RecordStep(s.ctx, request)
		must(s.tb, err)
	}
	for i := range 120 {
		s.read("s", fmt.Sprintf("f%d.txt", i), 10)
	}
	return once(fmt.Sprint(strings.Count(shownText(s.prompt("s", "reduction")), "no such file")))
}

func resultEffects() []effect {
	observed := func(tool, args, output string) func(s *stand) func() string {
		return func(s *stand) func() string { return once(s.record("", tool, args, output).GetObservation()) }
	}
	offloaded := func(bytes int) func(s *stand) func() string {
		return func(s *stand) func() string {
			return once(fmt.Sprint(s.read("", "a.txt", bytes).GetOutputBlob() != nil))
		}
	}
	long := fmt.Sprintf(`{"path":"a.txt","content":%q}`, strings.Repeat("x", 2000))
	const file = `{"path":"a.txt"}`
	return []effect{
		{
			setting: "rules", args: []string{"--rules", "$DIR/rules.toml"},
			files: map[string]string{"rules.toml": "[tools.\"my:counter\"]\nargs = [\"of\"]\nobservation = \"Counted {of}\"\n"},
			see:   observed("my:counter", `{"of":"sheep"}`, `"ok"`), with: "Counted sheep", without: "my:counter → ok",
		},
		{setting: "offload-preset", args: []string{"--offload-preset", "compressor"}, see: offloaded(1400), with: "false", without: "true"},
		{
			setting: "observation-style", args: []string{"--observation-style", "design"},
			see: observed("fs:read_file", file, `{"path":"a.txt","content":"x"}`), with: "Read file (1 bytes)", without: "Read a.txt (1 bytes, text)",
		},
		{
			setting: "reference-style", args: []string{"--reference-style", "short"}, see: observed("fs:read_file", file, long),
			with:    "Read a.txt (2000 bytes, text). Saved to workspace/outputs/read_001.txt",
			without: "Read a.txt (2000 bytes, text). Saved to workspace/outputs/read_001.txt\nUse fs:read_file to retrieve if needed.",
		},
		{
			setting: "reference-style", args: []string{"--reference-style", "long"}, both: []string{"--read-inline-recent=false"},
			see: reads(1, 2000, "reduction", has("Use fs:read_file to retrieve if needed.")), with: "true", without: "false",
		},
		{
			setting: "outputs-naming", args: []string{"--outputs-naming", "step_id"},
			see:  func(s *stand) func() string { return once(s.read("", "a.txt", 2000).GetOutputBlob().GetPath()) },
			with: "workspace/outputs/step_001.txt", without: "workspace/outputs/read_001.txt",
		},
		{
			setting: "read-inline-recent", args: []string{"--read-inline-recent=false"},
			see: reads(1, 2000, "reduction", has("xxxxx")), with: "false", without: "true",
		},
		{
			setting: "search-inline-small", args: []string{"--search-inline-small"},
			see: func(s *stand) func() string {
				hits := fmt.Sprintf(`{"results":[{"title":%[1]q},{"title":%[1]q},{"title":%[1]q}]}`, strings.Repeat("t", 200))
				return once(fmt.Sprint(s.record("", "web:search", `{"query":"q"}`, hits).GetOutputBlob() != nil))
			},
			with: "false", without: "true",
		},
		{
			setting: "write-store-content", args: []string{"--write-store-content=false"},
			see: func(s *stand) func() string {
				args := fmt.Sprintf(`{"path":"a.txt","content":%q}`, strings.Repeat("x", 2000))
				s.record("", "fs:write_file", args, `{"bytes_written":2000}`)
				return s.blobs
			},
			with: "0", without: "1",
		},
		{
			setting: "errors-observation-chars", args: []string{"--errors-observation-chars", "20"},
			see: func(s *stand) func() string {
				output := fmt.Sprintf(`{"stdout":"","stderr":%q,"exit_code":1}`, strings.Repeat("e", 400))
				return once(fmt.Sprint(strings.Count(s.record("", "system:shell", `{"command":"make"}`, output).GetObservation(), "e") > 100))
			},
			with: "false", without: "true",
		},
		{
			setting: "tool-result-max-tokens", args: []string{"--tool-result-max-tokens", "50"},
			see: func(s *stand) func() string {
				s.record("s", "fs:read_file", file, fmt.Sprintf(`{"path":"a.txt","content":%q}`, strings.Repeat("word ", 1000)))
				return once(fmt.Sprint(s.prompt("s", "").GetTokens().GetTokens() > 500))
			},
			with: "false", without: "true",
		},
	}
}

func compressEffects() []effect {
	compressed := func(tool, kind, content string, seen func(r *loombridgev1.CompressResultResponse) string) func(s *stand) func() string {
		return func(s *stand) func() string {
			got, err := s.contexts().CompressResult(s.ctx, &loombridgev1.CompressResultRequest{
				AgentId: "a", SessionId: "s", ToolName: tool, ToolCallId: "c", ResultKind: kind, Content: content,
			})
			must(s.tb, err)
			return once(seen(got))
		}
	}
	lines := func(r *loombridgev1.CompressResultResponse) string {
		return fmt.Sprint(strings.Count(r.GetContent(), "MARK"))
	}
	short := func(r *loombridgev1.CompressResultResponse) string { return fmt.Sprint(len(r.GetContent()) < 700) }
	file := strings.Repeat("MARK a line of a file that is read\n", 200)
	wide := strings.Repeat("MARK"+strings.Repeat("x", 396)+"\n", 40)
	hit := `{"title":"MARK","url":"https://example.com","snippet":"` + strings.Repeat("words ", 60) + `"}`
	search := `{"results":[` + strings.Join(slices.Repeat([]string{hit}, 20), ",") + `]}`
	return []effect{
		{
			setting: "tool-result-max-tokens", args: []string{"--tool-result-max-tokens", "50"},
			see: compressed("my:tool", "", strings.Repeat("word ", 290), short), with: "true", without: "false",
		},
		{
			setting: "compress-threshold-chars", args: []string{"--compress-threshold-chars", "100"},
			see:  compressed("fs:read_file", "", strings.Repeat("MARK a line\n", 100), func(r *loombridgev1.CompressResultResponse) string { return fmt.Sprint(r.GetCompressed()) }),
			with: "true", without: "false",
		},
		{
			setting: "compress-adaptive", args: []string{"--compress-adaptive"},
			see: func(s *stand) func() string {
				_, err := s.contexts().Assemble(s.ctx, &loombridgev1.AssembleRequest{
					AgentId: s.agent, SessionId: "s", WithoutTools: true, System: strings.Repeat("word ", 1000), MaxTokens: 1010,
				})
				must(s.tb, err)
				return compressed("fs:read_file", "", strings.Repeat("a line\n", 150), func(r *loombridgev1.CompressResultResponse) string {
					return fmt.Sprint(r.GetCompressed())
				})(s)
			},
			with: "true", without: "false",
		},
		{setting: "search-preview-top-n", args: []string{"--search-preview-top-n", "2"}, see: compressed("web:search", "", search, lines), with: "2", without: "5"},
		{setting: "search-preview-chars", args: []string{"--search-preview-chars", "300"}, see: compressed("web:search", "", search, short), with: "true", without: "false"},
		{setting: "compress-file-lines", args: []string{"--compress-file-lines", "3"}, see: compressed("fs:read_file", "", file, lines), with: "3", without: "10"},
		{setting: "compress-file-chars", args: []string{"--compress-file-chars", "300"}, see: compressed("fs:read_file", "", wide, short), with: "true", without: "false"},
		{setting: "compress-exec-lines", args: []string{"--compress-exec-lines", "6"}, see: compressed("system:shell", "", file, lines), with: "6", without: "40"},
		{setting: "compress-exec-chars", args: []string{"--compress-exec-chars", "300"}, see: compressed("system:shell", "", wide, short), with: "true", without: "false"},
	}
}

// blobs counts the offloaded results of the agent.
func (s *stand) blobs() string {
	got, err := s.contexts().ListBlobs(s.ctx, &loombridgev1.ListBlobsRequest{AgentId: s.agent, IncludeClosed: true})
	must(s.tb, err)
	return fmt.Sprint(len(got.GetBlobs()))
}

func blobEffects() []effect {
	return []effect{
		{
			setting: "blob-ttl", args: []string{"--blob-ttl", "read=90m"},
			see: func(s *stand) func() string {
				return once(s.read("", "a.txt", 2000).GetOutputBlob().GetTtl().AsDuration().String())
			},
			with: "1h30m0s", without: "24h0m0s",
		},
		{
			setting: "blob-max-bytes", args: []string{"--blob-max-bytes", "1KiB"}, files: map[string]string{"long.txt": strings.Repeat("x", 4000)},
			see: func(s *stand) func() string {
				got, err := callTool(s.tb, s.process, "fs:read_file", `{"path":"long.txt"}`)
				must(s.tb, err)
				return once(fmt.Sprint(got.GetRecorded()))
			},
			with: "false", without: "true",
		},
		{
			setting: "max-result-bytes", args: []string{"--max-result-bytes", "1KiB"},
			see: func(s *stand) func() string {
				g := &given{form: loombridgev1.ResultForm_RESULT_FORM_BYTES, data: make([]byte, 2000)}
				_, err := g.upload(s.ctx, s.contexts(), &loombridgev1.RecordStepRequest{AgentId: s.agent, ToolName: "my:tool", Success: true})
				return once(ended(err))
			},
			with: "INVALID_REQUEST", without: "OK",
		},
	}
}
