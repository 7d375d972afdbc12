package views

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loom-bridge/loom-bridge/context/text"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/approvals"
)

// Screen sequences of a terminal.
const (
	openScreen  = "\x1b[?1049h\x1b[?25l" // a separate screen, without a cursor
	closeScreen = "\x1b[?25h\x1b[?1049l"
	beginFrame  = "\x1b[H"
	endLine     = "\x1b[K\n"
	endFrame    = "\x1b[J"
)

// leastEvery bounds how often the screen is drawn.
const leastEvery = 200 * time.Millisecond

// pipedRows is how many calls are listed where there is no terminal.
const pipedRows = 20

// Top is the command that shows what a server does, live on a terminal.
func Top(o Options) *cobra.Command {
	v := &view{Options: o}
	var every time.Duration
	command := v.command("top", "Show live what a server does", "top\ntop --every 5s", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		if every < leastEvery {
			return v.Refuse("every", every.String(), fmt.Sprintf("is less than %s", leastEvery))
		}
		return v.top(ctx, every)
	})
	command.Long = "Show how a server is and the newest calls of tools, again and again until it is interrupted.\nInto a file or a pipe, and with --json, it is shown once."
	command.Flags().StringVar(&v.agent, "agent", approvals.DefaultAgent, "`id` of who asks; the calls of agents that its credential may act for are shown")
	command.Flags().DurationVar(&every, "every", 2*time.Second, "the `time` between two looks")
	return command
}

func (v *view) top(ctx context.Context, every time.Duration) (err error) {
	_, _, live := v.terminal()
	if v.json || !live {
		_, err := v.frame(ctx, v.Out, nil, v.width(), pipedRows)
		return err
	}
	if _, err := io.WriteString(v.Out, openScreen); err != nil {
		return err
	}
	defer func() { _, _ = io.WriteString(v.Out, closeScreen) }()
	tick := time.NewTicker(every)
	defer tick.Stop()
	var before *sample
	for {
		width, height, _ := v.terminal()
		height = max(height, 1)
		var frame bytes.Buffer
		if before, err = v.frame(ctx, &frame, before, width, height); err != nil && ctx.Err() == nil {
			return err
		}
		lines := strings.SplitN(frame.String(), "\n", height)
		lines[len(lines)-1], _, _ = strings.Cut(lines[len(lines)-1], "\n") // what has no room
		if _, err := io.WriteString(v.Out, beginFrame+strings.Join(lines, endLine)+endFrame); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// sample is how many calls there were at a moment.
type sample struct {
	time  time.Time
	calls int64
}

// frame writes how the server is, and its newest calls. Rates are those since the frame before.
func (v *view) frame(ctx context.Context, to io.Writer, before *sample, width, height int) (*sample, error) {
	s, err := v.admin().GetStatus(ctx, &loombridgev1.GetStatusRequest{})
	if err != nil {
		return before, err
	}
	if v.json {
		return nil, v.write(s)
	}
	calls, err := v.tools().ListAudit(ctx, &loombridgev1.ListAuditRequest{AgentId: v.agent, PageSize: int32(min(max(height, 1), 1000))})
	if err != nil {
		return before, err
	}
	now := &sample{time: time.Now()}
	var outcomes []string
	for _, outcome := range slices.Sorted(maps.Keys(s.GetToolCalls())) {
		now.calls += s.GetToolCalls()[outcome]
		outcomes = append(outcomes, fmt.Sprint(outcome, " ", s.GetToolCalls()[outcome]))
	}
	rate := ""
	if before != nil {
		rate = fmt.Sprintf(" (%.1f a second)", float64(now.calls-before.calls)/now.time.Sub(before.time).Seconds())
	}
	store := "well"
	if problem := s.GetStore().GetProblem(); problem != "" {
		store = "takes no writes: " + problem
	}
	if damage := s.GetStore().GetDamage(); len(damage) > 0 {
		store += "; damaged: " + strings.Join(damage, ", ")
	}
	backup := "none made"
	if b := s.GetBackups(); b.GetLast() != nil {
		backup = at(b.GetLast().GetCreateTime())
	}
	for _, line := range []string{
		fmt.Sprintf("loom-bridge-server %s  up %s", s.GetVersion(), now.time.Sub(s.GetStartTime().AsTime()).Round(time.Second)),
		fmt.Sprintf("store    %s  durability %s  last backup %s", store, s.GetDurability(), backup),
		fmt.Sprintf("sandbox  %s", cmp.Or(s.GetSandbox().GetTier(), "none")),
		fmt.Sprintf("calls    %d%s  %s", now.calls, rate, strings.Join(outcomes, ", ")),
		"",
	} {
		if line = text.VisibleLine(line); width > 0 {
			line = cut(line, width)
		}
		if _, err := fmt.Fprintln(to, line); err != nil {
			return now, err
		}
	}
	t := newTable("no tool was called yet", "TIME", "AGENT", "SESSION", "TOOL", "OUTCOME", ">TOOK", "ARGUMENTS")
	for _, r := range calls.GetRecords() {
		outcome := strings.ToLower(strings.TrimPrefix(r.GetOutcome().String(), "AUDIT_OUTCOME_"))
		t.add(r.GetCreateTime().AsTime().Local().Format(time.TimeOnly), r.GetAgentId(), r.GetSessionId(), r.GetTool(), strings.TrimSpace(outcome+" "+r.GetCode()),
			r.GetDuration().AsDuration().Round(time.Millisecond), r.GetArgumentsJson())
	}
	return now, t.write(to, width)
}
