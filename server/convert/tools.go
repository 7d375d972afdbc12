package convert

import (
	"encoding/json"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
)

// Descriptor describes a tool.
func Descriptor(d tools.Offer) *loombridgev1.ToolDescriptor {
	return &loombridgev1.ToolDescriptor{
		Name: d.Name, Description: d.Description, Level: Int32(d.Level),
		RequiresApproval: d.RequiresApproval, Category: d.Category, Mutates: d.Mutates, AgentId: d.AgentID, CliEquivalents: d.CLIEquivalents,
		Tokens: Int32(d.Tokens), ParametersSchemaJson: string(d.Schema),
	}
}

// ToolRequest is the call of a tool.
func ToolRequest(scope kv.Scope, r *loombridgev1.ToolRequest) (hand.Request, error) {
	args, err := eitherJSON("arguments", r.GetArgumentsJson(), r.GetArguments() != nil, structpb.NewStructValue(r.GetArguments()))
	if err != nil {
		return hand.Request{}, err
	}
	return hand.Request{
		Scope: scope, SessionID: r.GetSessionId(), Name: r.GetName(), Args: args, Timeout: spanOf(r.GetTimeout()),
		Thought: r.GetThought(), TurnID: r.GetTurnId(), CallID: r.GetCallId(), RequestID: r.GetRequestId(),
	}, nil
}

// eitherJSON returns the JSON text of a field that comes as text or as value.
func eitherJSON(field, text string, given bool, value *structpb.Value) (json.RawMessage, error) {
	if !given {
		return json.RawMessage(text), nil
	}
	return jsonOf(field, value)
}

// ToolResponse converts an answer. The call has been made and recorded, so an
// output too large to send is left out rather than refused: its blob has it. Public is
// what an error may be called outside the server.
func ToolResponse(a hand.Answer, asText bool, limit int, public func(error) string) *loombridgev1.ToolResponse {
	out := &loombridgev1.ToolResponse{
		Success: a.Success, ErrorMessage: utf8Text(a.ErrorMessage), ErrorCode: errorCodeOf(a.ErrorCode),
		OutputTruncated: a.Truncated, Observation: utf8Text(a.Observation),
		Recorded: a.Recorded, Replayed: a.Replayed, OutputCollected: a.Collected, Redacted: a.Redacted,
	}
	if a.RecordError != nil {
		out.RecordError = utf8Text(public(a.RecordError))
	}
	if a.Blob != nil {
		out.OutputBlob = BlobInfo(*a.Blob)
	}
	if a.Step != nil {
		out.Step = Step(*a.Step, a.Position, asText)
		out.Step.Inline = "" // the output says it already
	}
	setOutput(out, a.Output, asText)
	if a.Bytes != nil {
		out.OutputForm = &loombridgev1.ToolResponse_OutputBytes{
			OutputBytes: &loombridgev1.ResultBytes{Data: a.Bytes.Data, MediaType: utf8Text(a.Bytes.MediaType)},
		}
	}
	if proto.Size(out) > limit {
		out.OutputForm = nil
		out.OutputTruncated = true
	}
	return out
}

func setOutput(out *loombridgev1.ToolResponse, text json.RawMessage, asText bool) {
	if len(text) == 0 {
		return
	}
	if value, ok := PleasantValue(text, asText); ok {
		out.OutputForm = &loombridgev1.ToolResponse_Output{Output: value}
		return
	}
	out.OutputForm = &loombridgev1.ToolResponse_OutputJson{OutputJson: string(text)}
}

// errorCodeOf is that of a failure; unspecified for none.
func errorCodeOf(code tools.Code) loombridgev1.ToolErrorCode {
	of := enumOf[loombridgev1.ToolErrorCode](string(code))
	if code != "" && of == 0 {
		return loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_FAILED
	}
	return of
}

// AuditQuery is what a request asks of the audit. Its outcomes have the numbers of those in
// the protos.
func AuditQuery(r *loombridgev1.ListAuditRequest) audit.Query {
	after, _ := page.ParseAuditToken(r.GetPageToken())
	q := audit.Query{
		Agent: r.GetCallerId(), Session: r.GetSessionId(), Tool: r.GetTool(), Outcome: audit.Outcome(r.GetOutcome()),
		Limit: int(r.GetPageSize()), After: after,
	}
	if r.StartTime != nil {
		q.From = r.GetStartTime().AsTime()
	}
	if r.EndTime != nil {
		q.To = r.GetEndTime().AsTime()
	}
	return q
}

// AuditRecord converts a record of the audit.
func AuditRecord(r audit.Record) *loombridgev1.AuditRecord {
	return &loombridgev1.AuditRecord{
		Number: int64(r.Number), AgentId: utf8Text(r.Agent), SessionId: utf8Text(r.Session),
		CallId: utf8Text(r.CallID), RequestId: utf8Text(r.RequestID),
		Tool: utf8Text(r.Tool), ArgumentsJson: utf8Text(string(r.Args)),
		Profile: utf8Text(r.Profile), Approval: utf8Text(r.Approval), Outcome: loombridgev1.AuditOutcome(r.Outcome),
		Code: utf8Text(r.Code), CreateTime: Timestamp(r.Time), Duration: durationpb.New(r.Duration),
		Tier: utf8Text(r.Tier), Capability: utf8Text(r.Capability), ApprovalNote: utf8Text(r.Note),
	}
}

// ToolServer describes a server; whole says what it is, too.
func ToolServer(s mcp.Status, whole bool) *loombridgev1.McpServer {
	out := &loombridgev1.McpServer{
		Definition: &loombridgev1.McpServerDefinition{Name: s.Name}, Configured: s.Configured, State: loombridgev1.McpServerState(s.State + 1), Problem: s.Problem, //nolint:gosec // G115: of three states
		Tools: Int32(s.Tools), Tokens: Int32(s.Tokens), Changed: s.Changed,
	}
	if whole {
		out.Definition = &loombridgev1.McpServerDefinition{
			Name: s.Name, Command: s.Command, Args: s.Args, Env: s.Env, Cwd: s.Cwd, Url: s.URL, Headers: s.Headers, ProtocolVersion: s.Server.ProtocolVersion,
		}
	}
	return out
}

// ToolServerToAdd reads what a server is.
func ToolServerToAdd(d *loombridgev1.McpServerDefinition) mcp.Server {
	return mcp.Server{
		Name: d.GetName(), Command: d.GetCommand(), Args: d.GetArgs(), Env: d.GetEnv(), Cwd: d.GetCwd(), URL: d.GetUrl(), Headers: d.GetHeaders(), ProtocolVersion: d.GetProtocolVersion(),
	}
}
