// Package approvals is the command line of the people who approve calls: it lists, watches
// and answers waiting calls at a server, and revokes remembered approvals.
package approvals

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/context/text"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// DefaultAgent is who answers unless a flag names another one. An agent's own calls are never
// its to approve, so no agent should have this name.
const DefaultAgent = "operator"

// listTime is how long the server is silent until list has got all calls that wait already.
const listTime = 300 * time.Millisecond

// Options are what the commands work with. All are required.
type Options struct {
	// Dial connects to the server; ctx then has what its calls carry.
	Dial func(ctx context.Context) (context.Context, *grpc.ClientConn, error)
	In   io.Reader
	Out  io.Writer
}

// decisions are the answers by their names on the command line.
var decisions = map[string]loombridgev1.ApprovalDecision{
	"deny":    loombridgev1.ApprovalDecision_APPROVAL_DECISION_DENY,
	"no":      loombridgev1.ApprovalDecision_APPROVAL_DECISION_DENY,
	"n":       loombridgev1.ApprovalDecision_APPROVAL_DECISION_DENY,
	"yes":     loombridgev1.ApprovalDecision_APPROVAL_DECISION_ONCE,
	"y":       loombridgev1.ApprovalDecision_APPROVAL_DECISION_ONCE,
	"once":    loombridgev1.ApprovalDecision_APPROVAL_DECISION_ONCE,
	"session": loombridgev1.ApprovalDecision_APPROVAL_DECISION_SESSION,
	"agent":   loombridgev1.ApprovalDecision_APPROVAL_DECISION_AGENT,
	"always":  loombridgev1.ApprovalDecision_APPROVAL_DECISION_ALWAYS,
}

// desk is one run of a command.
type desk struct {
	Options
	agent string
	json  bool
	tools loombridgev1.ToolServiceClient
}

// Command is the command with its sub-commands.
func Command(o Options) *cobra.Command {
	d := &desk{Options: o}
	command := &cobra.Command{Use: "approvals", Short: "Answer calls of agents that wait for a person", Args: cobra.NoArgs}
	command.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	command.PersistentFlags().StringVar(&d.agent, "agent", DefaultAgent, "`id` of who answers; the credential must be for it, and say approves")
	command.PersistentFlags().BoolVar(&d.json, "json", false, "write lines of JSON")
	var scope, note string
	approve := d.sub("approve ID", "Let a call that waits go on", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		decision, ok := decisions[scope]
		if !ok || decision == decisions["deny"] {
			return fmt.Errorf("--for %q is not once, session, agent or always", scope)
		}
		return d.decide(ctx, args[0], decision, note)
	})
	approve.Flags().StringVar(&scope, "for", "once", "`what` it is for: once, session, agent, or always, which is all agents")
	deny := d.sub("deny ID", "Deny a call that waits", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		return d.decide(ctx, args[0], decisions["deny"], note)
	})
	deny.Flags().StringVar(&note, "note", "", "`why`, on one line: the model reads it, and the audit keeps it")
	approve.Flags().StringVar(&note, "note", "", "`why`, on one line, for the audit")
	var answer bool
	watch := d.sub("watch", "Show calls that wait as they come, until it is interrupted", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		return d.watch(ctx, answer)
	})
	watch.Flags().BoolVar(&answer, "answer", false, "ask for an answer to each on the terminal: y, n, or another word that it names")
	command.AddCommand(
		d.sub("list", "List calls that wait, and answers that are remembered", cobra.NoArgs, d.list),
		watch, approve, deny,
		d.sub("revoke ID", "Take a remembered answer back", cobra.ExactArgs(1), d.revoke),
	)
	return command
}

// sub is a sub-command that talks to the server.
func (d *desk) sub(use, short string, args cobra.PositionalArgs, run func(ctx context.Context, args []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args, RunE: func(cmd *cobra.Command, given []string) error {
		ctx, conn, err := d.Dial(cmd.Context())
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		d.tools = loombridgev1.NewToolServiceClient(conn)
		return run(ctx, given)
	}}
}

// say writes a message as JSON, or as a line.
func (d *desk) say(m proto.Message, line string) error {
	if d.json {
		text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
		if err != nil {
			return err
		}
		line = string(text)
	}
	_, err := fmt.Fprintln(d.Out, line)
	return err
}

// question is a call that waits, as a person reads it: who asks for what, then all that will
// run, line by line.
func question(p *loombridgev1.PendingApproval) []string {
	c := p.GetCapability()
	what := "to use the tool " + c.GetName()
	switch c.GetKind() {
	case "host":
		what = "to reach " + c.GetName() + " by " + p.GetTool()
	case "read", "write":
		what = "to " + c.GetKind() + " " + c.GetName() + " by " + p.GetTool()
	}
	lines := []string{
		fmt.Sprintf("%s  agent %q, session %q, asks %s  until %s", p.GetId(), p.GetAgentId(), p.GetSessionId(), what,
			p.GetExpireTime().AsTime().Local().Format(time.TimeOnly)),
		"  arguments: " + p.GetArgumentsJson(),
	}
	for _, part := range p.GetParts() {
		lines = append(lines, fmt.Sprintf("  %s (%d bytes, SHA-256 %s):", part.GetName(), part.GetBytes(), part.GetSha256()))
		for line := range strings.Lines(part.GetText()) {
			lines = append(lines, "  | "+strings.TrimSuffix(line, "\n"))
		}
	}
	lines = append(lines, "  all of it: SHA-256 "+p.GetDigest(),
		"  session, agent or always would also allow, for this session, this agent or all agents:",
		"  "+p.GetRule()+", such as")
	for _, example := range p.GetAlsoAllows() {
		lines = append(lines, "  - "+example)
	}
	rows := []string{text.VisibleLine(lines[0])}
	for _, line := range lines[1:] {
		rows = append(rows, wrapped(text.VisibleLine(line))...)
	}
	return rows
}

// rowLetters is how long a row is; what is longer goes on in the next one, behind a +.
const rowLetters = 120

func wrapped(line string) (rows []string) {
	for rest, more := line, true; more; {
		var row string
		if row, more = text.HeadChars(rest, rowLetters); more {
			rest = "  + " + rest[len(row):]
		}
		rows = append(rows, row)
	}
	return rows
}

// pageLines is how much a person is shown before they are asked to go on: about a screen.
const pageLines = 40

// screens is how many lines of a terminal a line takes.
func screens(line string) int { return 1 + len(line)/80 }

func (d *desk) open(ctx context.Context) (grpc.ServerStreamingClient[loombridgev1.WatchApprovalsResponse], error) {
	return d.tools.WatchApprovals(ctx, &loombridgev1.WatchApprovalsRequest{AgentId: d.agent})
}

// watch shows what comes, and asks about each when it is to.
func (d *desk) watch(ctx context.Context, answer bool) error {
	stream, err := d.open(ctx)
	if err != nil {
		return err
	}
	answers := newAnswers(d.In)
	for {
		change, err := stream.Recv()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		p := change.GetPending()
		if p == nil {
			continue
		}
		if err := d.show(ctx, p, answers, answer); err != nil {
			return err
		}
	}
}

// show shows a call that waits and, when it is to, asks about it. What is longer than a screen
// is shown by pages, so that no person agrees to what they have not seen.
func (d *desk) show(ctx context.Context, p *loombridgev1.PendingApproval, answers *answers, answer bool) error {
	lines := question(p)
	if d.json || !answer {
		if err := d.say(p, strings.Join(lines, "\n")); err != nil || !answer {
			return err
		}
		return d.ask(ctx, answers, p.GetId())
	}
	room := pageLines
	for i, line := range lines {
		if room -= screens(line); room < 0 && i > 0 {
			room = pageLines - screens(line)
			decided, err := d.page(ctx, answers, p.GetId(), len(lines)-i)
			if err != nil || decided {
				return err
			}
		}
		if _, err := fmt.Fprintln(d.Out, line); err != nil {
			return err
		}
	}
	return d.ask(ctx, answers, p.GetId())
}

// page asks whether to go on before all was shown: only to deny is possible by now.
func (d *desk) page(ctx context.Context, answers *answers, id string, left int) (decided bool, err error) {
	for {
		answers.forget()
		if _, err := fmt.Fprintf(d.Out, "%d lines more: nothing to see them, or no (n): ", left); err != nil {
			return false, err
		}
		word, why, more, err := answers.next()
		if !more {
			return true, err
		}
		switch {
		case word == "":
			return false, nil
		case decisions[word] == decisions["deny"]:
			return true, d.answer(ctx, id, word, why)
		}
	}
}

// ask reads an answer to a call; an empty line leaves it to others.
func (d *desk) ask(ctx context.Context, answers *answers, id string) error {
	for {
		answers.forget()
		if _, err := fmt.Fprint(d.Out, "yes (y, once), no (n, deny; why may stand behind it), session, agent, always, or nothing to leave it: "); err != nil {
			return err
		}
		word, why, more, err := answers.next()
		if !more {
			return err
		}
		if _, ok := decisions[word]; ok || word == "" {
			return d.answer(ctx, id, word, why)
		}
	}
}

// answer passes an answer on; a late one is no reason to stop watching.
func (d *desk) answer(ctx context.Context, id, word, why string) error {
	if word == "" {
		return nil
	}
	if err := d.decide(ctx, id, decisions[word], why); err != nil {
		fmt.Fprintln(d.Out, err)
	}
	return nil
}

func (d *desk) decide(ctx context.Context, id string, decision loombridgev1.ApprovalDecision, note string) error {
	answer, err := d.tools.ApproveCall(ctx, &loombridgev1.ApproveCallRequest{AgentId: d.agent, Id: id, Decision: decision, Note: note})
	if err != nil {
		return err
	}
	word := "approved"
	if decision == decisions["deny"] {
		word = "denied"
	}
	c := answer.GetCapability()
	return d.say(answer, fmt.Sprintf("%s: %s %s for agent %q", word, c.GetKind(), text.VisibleLine(c.GetName()), answer.GetAgentId()))
}

// list shows the waiting calls, then the remembered approvals.
func (d *desk) list(ctx context.Context, _ []string) error {
	if err := d.waiting(ctx); err != nil {
		return err
	}
	ask := &loombridgev1.ListApprovalsRequest{AgentId: d.agent}
	for {
		list, err := d.tools.ListApprovals(ctx, ask)
		if err != nil {
			return err
		}
		if err := d.remembered(list.GetApprovals()); err != nil {
			return err
		}
		if ask.PageToken = list.GetNextPageToken(); ask.PageToken == "" {
			return nil
		}
	}
}

func (d *desk) remembered(list []*loombridgev1.RememberedApproval) error {
	for _, one := range list {
		whose := "all agents"
		if one.GetAgentId() != "" {
			whose = fmt.Sprintf("agent %q", one.GetAgentId())
		}
		if one.GetSessionId() != "" {
			whose += fmt.Sprintf(", session %q", one.GetSessionId())
		}
		line := fmt.Sprintf("%s  remembered: %s %s for %s, by %s at %s", one.GetId(), one.GetCapability().GetKind(), text.VisibleLine(one.GetCapability().GetName()),
			whose, one.GetApproverId(), one.GetCreateTime().AsTime().Local().Format(time.DateTime))
		if err := d.say(one, line); err != nil {
			return err
		}
	}
	return nil
}

// waiting shows the calls that wait now. The stream sends them first, and then is silent.
func (d *desk) waiting(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := d.open(ctx)
	if err != nil {
		return err
	}
	if _, err := stream.Header(); err != nil {
		return err
	}
	silence := time.AfterFunc(listTime, cancel)
	defer silence.Stop()
	for {
		change, err := stream.Recv()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		silence.Reset(listTime)
		if p := change.GetPending(); p != nil {
			if err := d.say(p, strings.Join(question(p), "\n")); err != nil {
				return err
			}
		}
	}
}

func (d *desk) revoke(ctx context.Context, args []string) error {
	answer, err := d.tools.RevokeApproval(ctx, &loombridgev1.RevokeApprovalRequest{AgentId: d.agent, Id: args[0]})
	if err != nil {
		return err
	}
	return d.say(answer, "revoked: "+text.VisibleLine(args[0]))
}
