package views

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loom-bridge/loom-bridge/context/text"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Tools is the command of tools.
func Tools(o Options) *cobra.Command {
	v := &view{Options: o}
	list := v.command("list", "List tools", "tools list --agent a1", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		return pages(v, newTable("there are no tools", "=TOOL", ">LEVEL", "BY", "DESCRIPTION"), func(size int32, token string) (*loombridgev1.ListToolsResponse, error) {
			return v.tools().ListTools(ctx, &loombridgev1.ListToolsRequest{AgentId: v.agent, PageSize: size, PageToken: token})
		}, (*loombridgev1.ListToolsResponse).GetTools, func(d *loombridgev1.ToolDescriptor) []any {
			return []any{d.GetName(), d.GetLevel(), cmp.Or(d.GetAgentId(), "the server"), d.GetDescription()}
		})
	})
	call := v.command("call TOOL [ARGUMENTS]", "Call a tool", `tools call --agent a1 fs:read_file '{"path":"README.md"}'`, cobra.RangeArgs(1, 2), func(ctx context.Context, args []string) error {
		given := "{}"
		if len(args) > 1 {
			var err error
			if given, err = v.input(args[1:]); err != nil {
				return err
			}
		}
		got, err := v.bridge().Tool(ctx, &loombridgev1.ToolRequest{
			AgentId: v.agent, SessionId: v.session, Name: args[0], ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: given},
		})
		if err != nil {
			return err
		}
		if v.json {
			err = v.write(got)
		} else if got.GetSuccess() {
			said := output(got.GetOutputJson())
			if b := got.GetOutputBytes(); b != nil {
				said = fmt.Sprintf("%d bytes, which --json shows", len(b.GetData()))
			}
			_, err = fmt.Fprintln(v.Out, text.Visible(said))
		}
		if err == nil && !got.GetSuccess() {
			err = errors.New(text.VisibleLine(got.GetErrorMessage()))
		}
		return err
	})
	call.Long = "Call a tool as an agent, with ARGUMENTS that are a JSON object; - reads them from standard\ninput. The call is a step of the agent's session, and fails as one."
	v.listing(v.asAgent(list), 1000, maxListed)
	return group("tools", "List and call tools", list, v.inSession(call))
}

// output is the result of a call for people: text as it is, other JSON indented.
func output(result string) string {
	var said string
	if json.Unmarshal([]byte(result), &said) == nil {
		return said
	}
	return indented(result)
}

func indented(s string) string {
	var out strings.Builder
	w := json.NewEncoder(&out)
	w.SetEscapeHTML(false)
	w.SetIndent("", "  ")
	if json.Valid([]byte(s)) && w.Encode(json.RawMessage(s)) == nil {
		return strings.TrimSuffix(out.String(), "\n")
	}
	return s
}

// Jobs is the command that lists programs in the background.
func Jobs(o Options) *cobra.Command {
	v := &view{Options: o}
	command := v.command("jobs", "List programs that a session runs in the background", "jobs --agent a1 --session monday", cobra.NoArgs, v.jobs)
	command.Long = "List programs that a session runs in the background, as its steps and the audit tell of them.\nThe tools job:read and job:stop read what one prints, and stop it."
	return v.inSession(command)
}

// program is one that runs in the background, or did.
type program struct {
	ID      string `json:"job_id"`
	State   string `json:"state"`
	Began   string `json:"began"`
	Command string `json:"command"`
}

// programOf is what a text, such as the result of a step or the arguments of the audit, tells of
// a program: JSON, with or without words before it.
func programOf(told string) (p program, exit *int) {
	var found struct {
		program
		Exit *int `json:"exit_code"`
	}
	if at := strings.IndexByte(told, '{'); at >= 0 {
		_ = json.NewDecoder(strings.NewReader(told[at:])).Decode(&found) // no JSON tells of none
	}
	return found.program, found.Exit
}

// jobs lists the programs that steps began, with the ends that the audit has. One without an
// end runs, unless it began before the server did.
func (v *view) jobs(ctx context.Context, _ []string) error {
	server, err := v.admin().GetStatus(ctx, &loombridgev1.GetStatusRequest{})
	if err != nil {
		return err
	}
	ends, err := v.ends(ctx)
	if err != nil {
		return err
	}
	t := newTable("the session has run nothing in the background", "=JOB", "STATE", "BEGAN", "COMMAND")
	ask := &loombridgev1.ListStepsRequest{AgentId: v.agent, SessionId: v.session, PageSize: 1000}
	for more := true; more; more = ask.PageToken != "" {
		page, err := v.sessions().ListSteps(ctx, ask)
		if err != nil {
			return err
		}
		for _, s := range page.GetSteps() {
			p, _ := programOf(cmp.Or(s.GetInline(), s.GetObservation()))
			if p.ID == "" || !strings.Contains(s.GetToolName(), "shell") {
				continue
			}
			p.State, p.Began = "running", at(s.GetCreateTime())
			if s.GetCreateTime().AsTime().Before(server.GetStartTime().AsTime()) {
				p.State = "ended with the server"
			}
			p.State = cmp.Or(ends[p.ID], p.State)
			if t.add(p.ID, p.State, p.Began, p.Command); !v.json {
				continue
			}
			line, _ := json.Marshal(p) // of texts
			if _, err := fmt.Fprintln(v.Out, text.VisibleJSON(string(line))); err != nil {
				return err
			}
		}
		ask.PageToken = page.GetNextPageToken()
	}
	return v.print(t)
}

// ends are how the session's programs ended, by their ids.
func (v *view) ends(ctx context.Context) (map[string]string, error) {
	ends := make(map[string]string)
	ask := &loombridgev1.ListAuditRequest{AgentId: v.agent, CallerId: v.agent, SessionId: cmp.Or(v.session, "default"), Tool: "job:end", PageSize: 1000}
	for more := true; more; more = ask.PageToken != "" {
		page, err := v.tools().ListAudit(ctx, ask)
		if err != nil {
			return nil, err
		}
		for _, r := range page.GetRecords() {
			p, exit := programOf(r.GetArgumentsJson())
			ends[p.ID] = strings.ToLower(cmp.Or(r.GetCode(), "exited"))
			if exit != nil {
				ends[p.ID] = fmt.Sprint("exited ", *exit)
			}
		}
		ask.PageToken = page.GetNextPageToken()
	}
	return ends, nil
}
