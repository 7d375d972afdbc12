package mcp

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loom-bridge/loom-bridge/context/text"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// progressEvery is how often progress of a running tool is sent to a host.
	progressEvery = time.Second
	// maxSchemas is how many tools tool_list describes with the schemas of their
	// arguments: one that knows what it looks for gets them, a look around stays cheap.
	maxSchemas = 5
	// maxListedTools bounds one answer of tool_list.
	maxListedTools = 200
	// maxListedDescription bounds the bytes of a description among many.
	maxListedDescription = 400
)

func nativeTools() []tool {
	return []tool{
		{
			name:        "tool_list",
			description: "List the tools that tool_run runs: files, shell, web, and those of attached agents. Five or fewer come with the schema of their arguments.",
			properties:  `"match":{"type":"string","description":"words in name or description, such as fs:read_file; default all"}`,
			reads:       true, call: taking(listTools), arguments: listArguments{},
		},
		{
			name:        "tool_run",
			description: "Run one of the tools of tool_list, confined and recorded as a step. It may wait for a person's approval.",
			properties: `"name":{"type":"string"},"arguments":{"type":"object"},"timeout_seconds":{"type":"number","description":"default 30, at most 600"},` +
				sessionProperty,
			required: []string{"name"}, destroys: true, open: true, call: taking(runTool), arguments: runArguments{},
		},
	}
}

type listArguments struct {
	Match string `json:"match"`
}

// listedTool is a tool of the bridge as models read it.
type listedTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Approval    bool            `json:"needs_approval,omitempty"`
	Agent       string          `json:"agent,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
}

func listTools(c toolCall, a listArguments) (any, error) {
	found, err := c.s.matching(c.caller, strings.Fields(strings.ToLower(a.Match)))
	if err != nil {
		return nil, err
	}
	out := struct {
		Tools []listedTool `json:"tools"`
		More  int          `json:"more,omitempty"`
	}{Tools: make([]listedTool, 0, min(len(found), maxListedTools))}
	for _, d := range found[:min(len(found), maxListedTools)] {
		t := listedTool{Name: d.GetName(), Description: d.GetDescription(), Approval: d.GetRequiresApproval(), Agent: d.GetAgentId()}
		if len(found) > maxSchemas {
			t.Description = text.Cut(t.Description, maxListedDescription, "… (match its name for all)")
		} else {
			t.Schema = json.RawMessage(d.GetParametersSchemaJson())
		}
		out.Tools = append(out.Tools, t)
	}
	out.More = len(found) - len(out.Tools)
	return out, nil
}

// matching are the tools that a caller may run whose name or description has all words,
// by name.
func (s *Server) matching(who caller, words []string) ([]*loombridgev1.ToolDescriptor, error) {
	var found []*loombridgev1.ToolDescriptor
	request := &loombridgev1.ListToolsRequest{AgentId: who.agent, Levels: []int32{1, 2, 3}}
	for {
		page, err := s.tools.ListTools(who.ctx, request)
		if err != nil {
			return nil, err
		}
		for _, d := range page.GetTools() {
			about := strings.ToLower(d.GetName() + " " + d.GetDescription())
			if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(about, word) }) {
				found = append(found, d)
			}
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			break
		}
	}
	slices.SortFunc(found, func(a, b *loombridgev1.ToolDescriptor) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return found, nil
}

type runArguments struct {
	Name           string          `json:"name"`
	Arguments      json.RawMessage `json:"arguments"`
	TimeoutSeconds *float64        `json:"timeout_seconds"`
	Session        string          `json:"session"`
}

// defaultToolTime is how long a tool may run by default; the native API has the
// same.
const defaultToolTime = 30 * time.Second

func runTool(c toolCall, a runArguments) (any, error) {
	request := &loombridgev1.ToolRequest{
		AgentId: c.agent, SessionId: cmp.Or(a.Session, c.session), Name: a.Name,
		CallId: "mcp-" + rand.Text(), // a call that the model got wrong is a step, too
	}
	if len(a.Arguments) > 0 {
		request.ArgumentsForm = &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: string(a.Arguments)}
	}
	longest := defaultToolTime
	if a.TimeoutSeconds != nil {
		longest = seconds(*a.TimeoutSeconds)
		request.Timeout = durationpb.New(longest)
	}
	done := c.progress(longest)
	answer, err := c.s.bridge.Tool(c.ctx, request)
	done()
	if err != nil {
		return nil, err
	}
	return toolResult(answer), nil
}

// progress reports to the host, if it has asked, that the call runs: at once, and then once a
// second, in seconds of the longest that it may take. The returned function ends it, and
// returns after the last word.
func (c toolCall) progress(longest time.Duration) (done func()) {
	token := c.request.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	began := time.Now()
	report := func() {
		spent := time.Since(began)
		_ = c.request.Session.NotifyProgress(c.ctx, &sdk.ProgressNotificationParams{
			ProgressToken: token, Progress: spent.Seconds(), Total: longest.Seconds(),
			Message: fmt.Sprintf("running for %d s", int(spent.Seconds())),
		})
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		report()
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				report()
			case <-stop:
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}

// toolResult is what a tool gave: its output, or its one line where the output was put
// aside.
func toolResult(answer *loombridgev1.ToolResponse) *sdk.CallToolResult {
	if !answer.GetSuccess() {
		code := strings.TrimPrefix(answer.GetErrorCode().String(), "TOOL_ERROR_CODE_")
		return failed(code + ": " + answer.GetErrorMessage())
	}
	var said string
	switch {
	case answer.GetOutputTruncated() || answer.GetOutputBytes() != nil:
		said = forHosts(answer.GetObservation())
	case json.Unmarshal([]byte(answer.GetOutputJson()), &said) != nil:
		said = answer.GetOutputJson()
	}
	result := textResult(cutResult(said, answer))
	result.Meta = sdk.Meta{"loom/step": answer.GetStep().GetId()}
	return result
}

const (
	// maxResultHead and maxResultTail bound what a model reads of a result at once: some
	// 6,000 tokens, where hosts refuse 25,000 and warn from 10,000 on.
	maxResultHead = 16 << 10
	maxResultTail = 8 << 10
)

// cutResult is the beginning and the end of a long text, and how to read the rest.
func cutResult(given string, answer *loombridgev1.ToolResponse) string {
	if len(given) <= maxResultHead+maxResultTail {
		return given
	}
	name := cmp.Or(answer.GetOutputBlob().GetPath(), answer.GetStep().GetId())
	head, tail := text.Head(given, maxResultHead), text.Tail(given, maxResultTail)
	rest := fmt.Sprintf("blob_read %q has all of it", name)
	if name == "" {
		rest = "it was not kept: run the tool again for less"
	}
	return fmt.Sprintf("%s\n[… %d of %d bytes are left out here; %s …]\n%s", head, len(given)-len(head)-len(tail), len(given), rest, tail)
}
