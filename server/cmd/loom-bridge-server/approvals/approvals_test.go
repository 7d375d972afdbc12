package approvals

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// tools notes the answers, and streams what waits with a pause between two.
type tools struct {
	loombridgev1.ToolServiceClient
	answers []string
	waiting []*loombridgev1.PendingApproval
	pause   time.Duration
}

func (c *tools) ApproveCall(_ context.Context, ask *loombridgev1.ApproveCallRequest, _ ...grpc.CallOption) (*loombridgev1.PendingApproval, error) {
	c.answers = append(c.answers, ask.GetId()+" "+strings.TrimPrefix(ask.GetDecision().String(), "APPROVAL_DECISION_")+strings.TrimSuffix(" "+ask.GetNote(), " "))
	return &loombridgev1.PendingApproval{}, nil
}

func (c *tools) ListApprovals(context.Context, *loombridgev1.ListApprovalsRequest, ...grpc.CallOption) (*loombridgev1.ListApprovalsResponse, error) {
	return &loombridgev1.ListApprovalsResponse{}, nil
}

type stream struct {
	grpc.ClientStream
	ctx context.Context
	c   *tools
}

func (c *tools) WatchApprovals(ctx context.Context, _ *loombridgev1.WatchApprovalsRequest, _ ...grpc.CallOption) (grpc.ServerStreamingClient[loombridgev1.WatchApprovalsResponse], error) {
	return &stream{ctx: ctx, c: c}, nil
}

func (s *stream) Header() (metadata.MD, error) { return nil, nil }

func (s *stream) Recv() (*loombridgev1.WatchApprovalsResponse, error) {
	if len(s.c.waiting) == 0 {
		<-s.ctx.Done()
		return nil, s.ctx.Err()
	}
	select {
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	case <-time.After(s.c.pause):
	}
	next := s.c.waiting[0]
	s.c.waiting = s.c.waiting[1:]
	return &loombridgev1.WatchApprovalsResponse{Change: &loombridgev1.WatchApprovalsResponse_Pending{Pending: next}}, nil
}

func pending(id, script string) *loombridgev1.PendingApproval {
	return &loombridgev1.PendingApproval{
		Id: id, AgentId: "a", SessionId: "s", Tool: "shell", Capability: &loombridgev1.Capability{Kind: "tool", Name: "shell"}, ArgumentsJson: "{}",
		Parts: []*loombridgev1.ApprovalPart{{Name: "script", Text: script}}, Rule: "shell",
	}
}

func shown(t *testing.T, p *loombridgev1.PendingApproval, typed string) (string, []string) {
	t.Helper()
	var out bytes.Buffer
	c := &tools{}
	d := &desk{Options: Options{Out: &out}, tools: c}
	if err := d.show(t.Context(), p, newAnswers(strings.NewReader(typed)), true); err != nil {
		t.Fatal(err)
	}
	return out.String(), c.answers
}

// TestAnswers: only a word that is one of the answers is passed on, once.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"y\n": "1 ONCE", "YES\n": "1 ONCE", "once\n": "1 ONCE", "n\n": "1 DENY", "deny\n": "1 DENY", " session \n": "1 SESSION", "agent\n": "1 AGENT",
		"always\n": "1 ALWAYS", "\n": "", "": "", "what\nyess\ny\n": "1 ONCE", "unspecified\n0\n\n": "", "y\ny\ny\n": "1 ONCE",
		"No not Today \n": "1 DENY not Today", "y please\nn\n": "1 DENY",
	} {
		if _, answers := shown(t, pending("1", "ls"), typed); strings.Join(answers, ",") != want {
			t.Errorf("%q: %q, want %q", typed, answers, want)
		}
	}
}

// TestNothingUnseen: a call that is longer than a screen can be denied before all of it was
// shown, but not approved.
func TestNothingUnseen(t *testing.T) {
	t.Parallel()
	var script strings.Builder
	for i := range 200 {
		fmt.Fprintf(&script, "line %d\n", i)
	}
	long := pending("1", script.String())
	for _, word := range []string{"y", "yes", "once", "session", "agent", "always", "x"} {
		if out, answers := shown(t, long, word+"\n"+word+"\n"); len(answers) > 0 || strings.Contains(out, "line 199") {
			t.Errorf("%q approves what was not shown: %q", word, answers)
		}
	}
	if _, answers := shown(t, long, "n\n"); len(answers) != 1 || answers[0] != "1 DENY" {
		t.Errorf("%q", answers)
	}
	out, answers := shown(t, long, strings.Repeat("\n", 5)+"y\n")
	if len(answers) != 1 || answers[0] != "1 ONCE" || !strings.Contains(out, "line 199") {
		t.Errorf("%q after\n%s", answers, out)
	}
	for i := range 200 {
		if n := strings.Count(out, fmt.Sprintf("| line %d\n", i)); n != 1 {
			t.Fatalf("line %d is shown %d times", i, n)
		}
	}
}

// TestQuestions: nothing that a call holds reaches the terminal as more than visible letters,
// and no row is wider than a screen shows.
func TestQuestions(t *testing.T) {
	t.Parallel()
	p := pending("1", "echo \x1b[2J\r\u202ehidden\n"+strings.Repeat("ü", 1000)+"\nlast")
	p.Capability.Name, p.ArgumentsJson, p.Rule = "x\x1b]0;t\a", "{\"a\":\"\x00\u2066\"}", "r\x7f\r"
	p.AlsoAllows = []string{"rm\x08\x08ls"}
	rows := question(p)
	all := strings.Join(rows, "\n")
	for _, bad := range []string{"\x1b", "\r", "\a", "\x00", "\x7f", "\x08", "\u202e", "\u2066"} {
		if strings.Contains(all, bad) {
			t.Errorf("%q reaches the terminal", bad)
		}
	}
	for _, row := range rows[1:] {
		if n := len([]rune(row)); n > rowLetters {
			t.Errorf("a row of %d letters", n)
		}
	}
	if strings.Count(all, "ü") != 1000 || !strings.Contains(all, "| last") {
		t.Error("something is not shown")
	}
	for kind, want := range map[string]string{"host": "to reach h by shell", "read": "to read h by shell", "write": "to write h by shell", "tool": "to use the tool h"} {
		p.Capability = &loombridgev1.Capability{Kind: kind, Name: "h"}
		if got := question(p)[0]; !strings.Contains(got, want) {
			t.Errorf("%s: %s", kind, got)
		}
	}
}

func FuzzWrapped(f *testing.F) {
	f.Add("")
	f.Add(strings.Repeat("ü", 500))
	f.Add("\xff\xfe" + strings.Repeat("x", 300))
	f.Fuzz(func(t *testing.T, line string) {
		rows := wrapped(line)
		whole := rows[0]
		for _, row := range rows[1:] {
			whole += strings.TrimPrefix(row, "  + ")
		}
		if whole != line {
			t.Errorf("%q is shown as %q", line, rows)
		}
	})
}

// TestList: all calls that wait are listed, however long each takes to come, and then the
// command ends.
func TestList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &tools{pause: listTime / 2}
		for i := range 9 {
			c.waiting = append(c.waiting, pending(fmt.Sprintf("id-%d", i), "ls"))
		}
		var out bytes.Buffer
		d := &desk{Options: Options{Out: &out}, tools: c}
		if err := d.list(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for i := range 9 {
			if !strings.Contains(out.String(), fmt.Sprintf("id-%d ", i)) {
				t.Errorf("call %d is not listed", i)
			}
		}
	})
}

func TestFor(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"deny", "no", "n", "", "all"} {
		c := Command(Options{
			Dial: func(ctx context.Context) (context.Context, *grpc.ClientConn, error) {
				conn, err := grpc.NewClient("passthrough:///none", grpc.WithTransportCredentials(insecure.NewCredentials()))
				return ctx, conn, err
			}, Out: io.Discard,
		})
		c.SetArgs([]string{"approve", "1", "--for", scope})
		c.SilenceErrors, c.SilenceUsage = true, true
		if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "--for") {
			t.Errorf("%q: %v", scope, err)
		}
	}
}
