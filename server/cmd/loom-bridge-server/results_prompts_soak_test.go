package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// How a result is recorded.
const (
	modeStep    = "steps"          // nobody asked for it in a message
	modeCall    = "steps of calls" // a message has the call
	modeMessage = "messages"       // the call and the result are messages
	messageMost = 20 << 10         // a longer result is a step
	soakAgent   = "reader"         // whose results they are
	fileMost    = 200 << 10        // a longer result is not read by the tool
	nameStep    = "step ids"       // such as step_012
	nameOutputs = "paths"          // such as workspace/outputs/read_001.txt
	nameMessage = "message ids"    // such as message_017, or its path
)

// settings are those of the next start.
func (s *resultsSoak) settings() []string {
	presets := []string{"", "reduction", "three_phase", "task_context", "code"}
	preset := presets[s.starts%len(presets)]
	s.starts++
	if preset == "" {
		return nil
	}
	return []string{"--history-preset", preset}
}

// histories are the settings of the sessions by their names.
func histories() map[string]*loombridgev1.HistorySettings {
	all := map[string]*loombridgev1.HistorySettings{
		"ledger":      {Policy: loombridgev1.HistoryPolicy_HISTORY_POLICY_LEDGER},
		"append only": {Policy: loombridgev1.HistoryPolicy_HISTORY_POLICY_APPEND_ONLY},
	}
	for _, preset := range []string{"reduction", "chat", "research", "code", "debug"} {
		all[preset] = &loombridgev1.HistorySettings{Preset: preset}
	}
	return all
}

func (s *resultsSoak) configure(conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), soakDeadline)
	defer cancel()
	for name, h := range histories() {
		r := &loombridgev1.ConfigureSessionRequest{AgentId: soakAgent, SessionId: name, History: h}
		if _, err := contexts.New(conn).ConfigureSession(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// next is a result to record.
func (s *resultsSoak) next() *acknowledged {
	sessions := slices.Sorted(maps.Keys(histories()))
	a := &acknowledged{seed: s.random.Uint64(), session: sessions[s.random.IntN(len(sessions))]}
	a.mode = []string{modeStep, modeCall, modeMessage}[s.random.IntN(3)]
	g := made(a.seed, s.longest)
	isText := g.kind != "bytes" && utf8.Valid(g.data) && bytes.IndexByte(g.data, 0) < 0
	if a.mode == modeMessage && (!isText || len(g.data) > messageMost || len(g.data) == 0) {
		a.mode = modeCall
	}
	return a
}

// recordAs records a result, and notes the names that the answer gives. It may be
// called again for the same.
func (s *resultsSoak) recordAs(conn *grpc.ClientConn, a *acknowledged, g *given) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), soakDeadline)
	defer cancel()
	client, id := contexts.New(conn), fmt.Sprintf("%x", a.seed)
	r := &loombridgev1.RecordStepRequest{AgentId: soakAgent, SessionId: a.session, RequestId: id}
	if a.mode != modeStep {
		r.CallId = "call_" + id
		if _, err := client.AppendMessages(ctx, &loombridgev1.AppendMessagesRequest{
			AgentId: soakAgent, SessionId: a.session, RequestId: "ask_" + id,
			Messages: []*loombridgev1.Message{
				{Role: loombridgev1.Role_ROLE_USER, Content: "Go on."},
				{Role: loombridgev1.Role_ROLE_ASSISTANT, ToolCalls: []*loombridgev1.ModelToolCall{{Id: r.GetCallId(), Name: g.tool, ArgumentsJson: "{}"}}},
			},
		}); err != nil {
			return err
		}
	}
	if a.mode == modeMessage {
		said, err := client.AppendMessages(ctx, &loombridgev1.AppendMessagesRequest{
			AgentId: soakAgent, SessionId: a.session, RequestId: id,
			Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_TOOL, ToolCallId: r.GetCallId(), Content: string(g.data)}},
		})
		if err == nil {
			a.step = fmt.Sprintf("message_%03d", said.GetPositions()[0])
		}
		return err
	}
	step, err := g.record(ctx, client, r)
	if err != nil {
		return err
	}
	a.step = step.GetStep().GetId()
	if blob := step.GetOutputBlob(); blob != nil {
		a.paths = append(a.paths, blob.GetRef(), blob.GetRef()[:12], blob.GetPath(), strings.TrimPrefix(blob.GetPath(), "workspace/"))
	}
	a.paths = append(a.paths, savedTo.FindAllString(step.GetObservation()+"\n"+step.GetStep().GetInline(), -1)...)
	return nil
}

// savedTo finds the paths and ids that a prompt gives for a result.
var savedTo = regexp.MustCompile(`workspace/(?:outputs|history)/[\w.]+\w|(?:step|message)_\d{3,}(?:\.\w+)?`)

// exampleName tells how the numbers of lines become names.
const exampleName = "Full text of step 012: fs:read_file step_012"

// lineStep finds the steps of the lines of a fold: their names are told above them.
var lineStep = regexp.MustCompile(`(?m)^(\d{3,6}) \S`)

// prompt asks for a prompt and returns its text; none where nothing makes it fit.
func (s *resultsSoak) prompt(conn *grpc.ClientConn, r *loombridgev1.AssembleRequest) (string, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), soakDeadline)
	defer cancel()
	r.AgentId, r.WithoutTools = soakAgent, true
	got, err := contexts.New(conn).Assemble(ctx, r)
	if status.Code(err) == codes.FailedPrecondition {
		s.overfull++
		return "", nil
	}
	if err != nil {
		return "", err
	}
	s.prompts++
	var text strings.Builder
	text.WriteString(got.GetPromptJson())
	for _, m := range got.GetMessages() {
		text.WriteString(m.GetContent() + "\n" + m.GetBlocksJson() + "\n")
		for _, call := range m.GetToolCalls() {
			text.WriteString(call.GetArgumentsJson() + "\n")
		}
	}
	return text.String(), nil
}

// readPrompts asks for the prompts of each session under every policy, and notes the
// names that they give. A name of nothing that was recorded is a fault.
func (s *resultsSoak) readPrompts(conn *grpc.ClientConn) {
	for session := range histories() {
		known := s.known(session)
		for policy, h := range histories() {
			for i, budget := range []int32{20_000, 1_000_000} {
				r := &loombridgev1.AssembleRequest{SessionId: session, MaxTokens: budget, History: h, DryRun: policy != session}
				r.Format = loombridgev1.PromptFormat(1 + i)
				text, err := s.prompt(conn, r)
				if err != nil {
					s.t.Fatal(err)
				}
				s.named(session, known, text)
			}
		}
	}
}

// known are the results of a session by the names that the answers gave.
func (s *resultsSoak) known(session string) map[string]*acknowledged {
	known := make(map[string]*acknowledged)
	for _, a := range s.acknowledged {
		if a.session == session {
			known[a.step] = a
		}
		for _, path := range a.paths {
			if a.session == session {
				known[path] = a
			}
		}
	}
	return known
}

// named notes the names in a text.
func (s *resultsSoak) named(session string, known map[string]*acknowledged, text string) {
	if strings.ContainsAny(text, "\uFDD0\uFDD1") {
		s.wrong++
		s.t.Errorf("a prompt of session %q has a place for a name and no name", session)
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, exampleName, ""), strings.Replace(exampleName, "fs:", "fs_", 1), "")
	names := savedTo.FindAllString(text, -1)
	for _, line := range lineStep.FindAllStringSubmatch(text, -1) {
		names = append(names, "step_"+line[1])
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		a := known[name]
		bare := name
		if message, ok := strings.CutPrefix(name, "workspace/history/"); ok {
			bare = strings.TrimSuffix(message, ".txt")
		}
		if a == nil {
			a = known[bare]
		}
		if a == nil && strings.Contains(bare, "step_") {
			a = known[strings.TrimSuffix(strings.TrimSuffix(bare, ".txt"), ".json")]
		}
		if a == nil {
			s.unknown(session, name, text)
			continue
		}
		a.paths = append(a.paths, name)
		switch {
		case strings.HasPrefix(bare, "message_"):
			s.byName[nameMessage]++
		case strings.HasPrefix(name, "step_"):
			s.byName[nameStep]++
		default:
			s.byName[nameOutputs]++
		}
	}
}

// sameFile compares a text with what the tool reads by a name: that is what prompts
// tell the model to use.
func (s *resultsSoak) sameFile(conn *grpc.ClientConn, g given, a *acknowledged, name string) {
	if g.kind != "text" || len(g.data) == 0 || len(g.data) > fileMost || bytes.IndexByte(g.data, 0) >= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), soakDeadline)
	defer cancel()
	s.names++
	s.files++
	got, err := loombridgev1.NewBridgeServiceClient(conn).Tool(convert.AskText(ctx), &loombridgev1.ToolRequest{
		AgentId: soakAgent, SessionId: a.session, Name: "fs:read_file",
		ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: fmt.Sprintf(`{"path":%q}`, name)},
	})
	var out struct{ Content string }
	if err == nil {
		err = json.Unmarshal([]byte(got.GetOutputJson()), &out)
	}
	if err != nil || out.Content != string(g.data) {
		s.wrong++
		s.t.Errorf("fs:read_file of %s: %d of %d bytes, %v, %s: %.60q, want %.60q", name, len(out.Content), len(g.data), err, got.GetErrorMessage(), out.Content, g.data)
	}
}

// unknown judges a name in a prompt that is that of no result: a message may be a
// wish, or what the user said. Any other is a fault.
func (s *resultsSoak) unknown(session, name, text string) {
	if strings.Contains(name, "message_") {
		return
	}
	at := strings.Index(text, name)
	s.wrong++
	s.t.Errorf("a prompt of session %q names %s, which is the name of nothing: …%q…", session, name, text[max(0, at-200):min(len(text), at+100)])
}
