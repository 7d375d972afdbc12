package main

import (
	"fmt"
	"strings"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// say appends messages of the user and the model in turns.
func (s *stand) say(texts ...string) {
	s.tb.Helper()
	request := &loombridgev1.AppendMessagesRequest{AgentId: s.agent, SessionId: "s"}
	for i, text := range texts {
		role := loombridgev1.Role_ROLE_USER
		if i%2 == 1 {
			role = loombridgev1.Role_ROLE_ASSISTANT
		}
		request.Messages = append(request.Messages, &loombridgev1.Message{Role: role, Content: text})
	}
	_, err := s.contexts().AppendMessages(s.ctx, request)
	must(s.tb, err)
}

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
				return once(got.GetCertainty().String())
			},
			with: loombridgev1.TokenCertainty_TOKEN_CERTAINTY_EXACT.String(), without: loombridgev1.TokenCertainty_TOKEN_CERTAINTY_ESTIMATED.String(),
		},
		{setting: "history-policy", args: []string{"--history-policy", "append_only"}, see: policy, with: "append_only", without: "ledger"},
		{setting: "history-preset", args: []string{"--history-preset", "debug"}, see: policy, with: "debug", without: "ledger"},
	}
}

func resultEffects() []effect {
	observed := func(tool, args, output string) func(s *stand) func() string {
		return func(s *stand) func() string { return once(s.record("", tool, args, output).GetObservation()) }
	}
	const file = `{"path":"a.txt"}`
	return []effect{
		{
			setting: "rules", args: []string{"--rules", "$DIR/rules.toml"},
			files: map[string]string{"rules.toml": "[tools.\"my:counter\"]\nargs = [\"of\"]\nobservation = \"Counted {of}\"\n"},
			see:   observed("my:counter", `{"of":"sheep"}`, `"ok"`), with: "Counted sheep", without: "my:counter → ok",
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
	short := func(r *loombridgev1.CompressResultResponse) string { return fmt.Sprint(len(r.GetContent()) < 700) }
	return []effect{
		{
			setting: "tool-result-max-tokens", args: []string{"--tool-result-max-tokens", "50"},
			see: compressed("my:tool", "", strings.Repeat("word ", 290), short), with: "true", without: "false",
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
