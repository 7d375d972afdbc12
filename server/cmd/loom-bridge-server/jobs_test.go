package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// jobTold is what the tools tell of a job.
type jobTold struct {
	ID         string `json:"job_id"`
	Status     string `json:"status"`
	ExitCode   *int   `json:"exit_code"`
	Output     string `json:"output"`
	Offset     int64  `json:"offset"`
	NextOffset int64  `json:"next_offset"`
	Lost       int64  `json:"lost_bytes"`
	Printed    int64  `json:"printed_bytes"`
}

// caller calls tools as an agent in a session.
type caller struct {
	*shellWorld
	agent, session string
}

func (c caller) try(name string, args object) *loombridgev1.ToolResponse {
	c.tb.Helper()
	text, err := json.Marshal(args)
	must(c.tb, err)
	got, err := c.bridge().Tool(convert.AskText(c.tb.Context()), &loombridgev1.ToolRequest{
		AgentId: c.agent, SessionId: c.session, Name: name, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: string(text)},
	})
	if err != nil {
		return &loombridgev1.ToolResponse{ErrorMessage: err.Error()}
	}
	return got
}

func (c caller) job(name string, args object) jobTold {
	c.tb.Helper()
	got := c.try(name, args)
	var told jobTold
	if !got.GetSuccess() {
		c.tb.Fatalf("%s %v: %s", name, args, got.GetErrorMessage())
	}
	must(c.tb, json.Unmarshal([]byte(got.GetOutputJson()), &told))
	return told
}

// untilPrinted reads a job until it has printed some texts, in any order: what goes to its
// standard output and what goes to its errors come by two pipes.
func (c caller) untilPrinted(id string, texts ...string) {
	c.tb.Helper()
	var all strings.Builder
	lacks := func(text string) bool { return !strings.Contains(all.String(), text) }
	for range 100 {
		told := c.job("job:read", object{"job_id": id, "wait": 10})
		all.WriteString(told.Output)
		if !slices.ContainsFunc(texts, lacks) {
			return
		}
		if told.Status != "running" && told.Output == "" {
			break
		}
	}
	c.tb.Fatalf("the job printed %q, not all of %q", all.String(), texts)
}

// serving is a program that runs until it is stopped, with children that leave its session.
func serving(mark string) object {
	return object{"background": true, "command": "python3", "args": []string{"-u", "-c", `
import subprocess, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for i in range(2): subprocess.Popen(["sleep", "` + mark + `"], start_new_session=True)
print("serving")
time.sleep(1000)`}}
}

// A job goes on while its agent does other things; it is listed, read on and stopped, by
// the session that started it alone, and nothing of it stays.
func TestBackgroundJobs(t *testing.T) {
	t.Parallel()
	eachTier(t, func(t *testing.T, w *shellWorld) {
		mark := fmt.Sprint(33_000_000 + os.Getpid())
		mine, other, elsewhere := caller{w, "a", "s1"}, caller{w, "a", "s2"}, caller{w, "b", "s1"}
		begun := mine.job("system:shell", serving(mark))
		if begun.Status != "running" || begun.ID == "" {
			t.Fatalf("got %+v", begun)
		}
		mine.untilPrinted(begun.ID, "serving\n")
		if list := mine.try("job:list", object{}).GetOutputJson(); strings.Count(list, `"job_id"`) != 1 || !strings.Contains(list, begun.ID) {
			t.Errorf("the list is %s", list)
		}
		for _, stranger := range []caller{other, elsewhere} {
			if list := stranger.try("job:list", object{}).GetOutputJson(); !strings.HasPrefix(list, `{"jobs":[]`) {
				t.Errorf("a stranger's list is %s", list)
			}
			for _, tool := range []string{"job:read", "job:stop"} {
				if got := stranger.try(tool, object{"job_id": begun.ID}); got.GetErrorCode() != loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_NOT_FOUND {
					t.Errorf("%s gave a stranger %v", tool, got)
				}
			}
		}
		if told := mine.job("job:read", object{"job_id": begun.ID, "offset": 0}); told.Output != "serving\n" || told.NextOffset != 8 {
			t.Errorf("from the beginning: %+v", told)
		}
		if told := mine.job("job:stop", object{"job_id": begun.ID}); told.Status != "stopped" {
			t.Errorf("stopped: %+v", told)
		}
		noneLeft(t, mark)
		if told := mine.job("job:read", object{"job_id": begun.ID, "offset": 3}); told.Status != "stopped" || told.Output != "ving\n" {
			t.Errorf("after the stop: %+v", told)
		}
		short := mine.job("shell:run", object{"command": "echo out; echo err >&2; cat gone", "background": true})
		mine.untilPrinted(short.ID, "out\n", "err\n", "gone")
		for range 100 {
			if short = mine.job("job:read", object{"job_id": short.ID, "wait": 10}); short.Status != "running" {
				break
			}
		}
		if short.Status != "exited" || short.ExitCode == nil || *short.ExitCode != 1 {
			t.Errorf("it ended as %+v", short)
		}
		if got := mine.try("system:shell", object{"command": "less", "background": true, "stdin": "x"}); !strings.Contains(got.GetErrorMessage(), "stdin: can't be given") {
			t.Errorf("input gave %v", got)
		}
		if got := mine.try("system:shell", object{"command": "rm", "background": true}); !strings.Contains(got.GetErrorMessage(), "Permission denied: Command 'rm' is not allowed") {
			t.Errorf("a program that is not allowed gave %v", got)
		}
	}, "--shell-allow", "python3,echo,cat,less,sleep")
}

// Of what a job prints the newest is kept, and reading says what is lost.
func TestBackgroundJobFlood(t *testing.T) {
	eachTier(t, func(t *testing.T, w *shellWorld) {
		mine := caller{w, "a", "s"}
		begun := mine.job("system:shell", object{"background": true, "command": "python3", "args": []string{"-c", `
import sys
for i in range(100): sys.stdout.write(("%07d\n" % i) * (1 << 17))`}})
		grown := heapGrowth(t)
		var told jobTold
		for range 1000 {
			if told = mine.job("job:read", object{"job_id": begun.ID, "wait": 1, "limit": 8, "offset": 100 << 20}); told.Status != "running" {
				break
			}
		}
		if most := grown(); most > 32<<20 {
			t.Errorf("the heap grew by %d bytes for 100 MiB of output", most)
		}
		if told.Status != "exited" || told.Printed != 100<<20 {
			t.Fatalf("it ended as %+v", told)
		}
		told = mine.job("job:read", object{"job_id": begun.ID, "offset": 0, "limit": 8})
		if told.Offset != 84<<20 || told.Lost != 84<<20 || told.Output != "0000084\n" {
			t.Errorf("the oldest is %+v", told)
		}
		if told = mine.job("job:read", object{"job_id": begun.ID, "offset": 100<<20 - 8}); told.Output != "0000099\n" {
			t.Errorf("the newest is %+v", told)
		}
	})
}

// Jobs end with their session, with the server, and when it is killed.
func TestBackgroundJobsEndSoak(t *testing.T) {
	t.Parallel()
	eachTier(t, func(t *testing.T, w *shellWorld) {
		mark := fmt.Sprint(34_000_000 + os.Getpid())
		mine := caller{w, "a", "s1"}
		begun := mine.job("system:shell", serving(mark))
		mine.untilPrinted(begun.ID, "serving\n")
		_, err := contexts.New(w.conn).EndSession(t.Context(), &loombridgev1.EndSessionRequest{AgentId: "a", SessionId: "s1"})
		must(t, err)
		noneLeft(t, mark)
		if list := mine.try("job:list", object{}).GetOutputJson(); !strings.HasPrefix(list, `{"jobs":[]`) {
			t.Errorf("the list is %s", list)
		}
	})
	for _, tier := range []string{"namespaces", "landlock"} {
		for _, end := range []string{"stopped", "killed"} {
			t.Run(tier+"/"+end, func(t *testing.T) {
				dir := t.TempDir()
				c := MustStartChild(t, dir, "--data-dir="+filepath.Join(t.TempDir(), "store"), "--sandbox-tier="+tier)
				p := &process{conn: MustDial(t, c.Address)}
				w := &shellWorld{t, p, tier}
				if s := w.status().GetSandbox(); s.GetTier() != tier {
					lacks(t, tier, s.GetProblems())
				}
				mark := fmt.Sprint(35_000_000 + os.Getpid())
				mine := caller{w, "a", "s1"}
				begun := mine.job("system:shell", serving(mark))
				mine.untilPrinted(begun.ID, "serving\n")
				if end == "killed" {
					must(t, c.Process.Kill())
				} else {
					must(t, c.Process.Signal(os.Interrupt))
				}
				_ = c.Wait()
				noneLeft(t, mark)
			})
		}
	}
}

// The jobs that run at once are bounded, and the refusal says by what.
func TestBackgroundJobsAreBounded(t *testing.T) {
	t.Parallel()
	eachTier(t, func(t *testing.T, w *shellWorld) {
		mine := caller{w, "a", "s"}
		sleep := object{"background": true, "command": "python3", "args": []string{"-c", "import time; time.sleep(1000)"}}
		first := mine.job("system:shell", sleep)
		if got := mine.try("system:shell", sleep); !strings.Contains(got.GetErrorMessage(), "background jobs") {
			t.Errorf("a second one gave %v", got)
		}
		mine.job("job:stop", object{"job_id": first.ID})
		mine.job("system:shell", sleep)
	}, "--max-jobs", "1")
}

// The end of a job has a record of its own, whatever ended it: with its exit code, its time
// and what it printed, under the call that started it.
func TestBackgroundJobsAreAudited(t *testing.T) {
	t.Parallel()
	store, workspace := filepath.Join(t.TempDir(), "store"), t.TempDir()
	p := MustRunIn(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", store, "--workspace", workspace, "--shell-allow", "echo,sleep,cat")
	mine := caller{&shellWorld{t, p, ""}, "a", "s"}
	ids := map[string]string{}
	for name, args := range map[string]object{
		"exited":      {"command": "echo out; cat gone"},
		"stopped":     {"command": "sleep 1000"},
		"timed out":   {"command": "sleep 1000", "timeout": 1},
		"with server": {"command": "echo password=swordfish && sleep 1000"},
	} {
		args["background"] = true
		ids[mine.job("shell:run", args).ID] = name
	}
	ends := func() map[string]*loombridgev1.AuditRecord {
		page, err := loombridgev1.NewToolServiceClient(p.conn).ListAudit(t.Context(), &loombridgev1.ListAuditRequest{AgentId: "a", Tool: "job:end"})
		must(t, err)
		found := map[string]*loombridgev1.AuditRecord{}
		for _, r := range page.GetRecords() {
			var told jobTold
			must(t, json.Unmarshal([]byte(r.GetArgumentsJson()), &told))
			found[ids[told.ID]] = r
		}
		return found
	}
	for id, name := range ids {
		if name == "stopped" {
			mine.job("job:stop", object{"job_id": id})
		}
	}
	var found map[string]*loombridgev1.AuditRecord
	eventually(t, waitTime, func() error {
		if found = ends(); len(found) < 3 {
			return fmt.Errorf("%d records", len(found))
		}
		return nil
	})
	exited := found["exited"]
	if exited.GetOutcome() != loombridgev1.AuditOutcome_AUDIT_OUTCOME_OK || !strings.Contains(exited.GetArgumentsJson(), `"exit_code":1`) ||
		exited.GetDuration().AsDuration() <= 0 || exited.GetSessionId() != "s" || exited.GetTier() == "" {
		t.Errorf("of one that exited: %v", exited)
	}
	for _, name := range []string{"stopped", "timed out"} {
		if r := found[name]; r.GetOutcome() != loombridgev1.AuditOutcome_AUDIT_OUTCOME_FAILED || r.GetCode() != "STOPPED" {
			t.Errorf("of one that was %s: %v", name, r)
		}
	}
	if d := found["timed out"].GetDuration().AsDuration(); d < time.Second {
		t.Errorf("it took %v", d)
	}
	must(t, p.Stop())
	listed, err := MustAudit(t, store, "list", "--tool", "job:end")
	if err != nil || strings.Count(listed, "\n") != 4 || strings.Contains(listed, "swordfish") {
		t.Errorf("after the stop: %v %s", err, listed)
	}
	if out, err := MustAudit(t, store, "verify"); err != nil {
		t.Errorf("verify: %v %s", err, out)
	}

	// The next server says what became of them.
	//
	// E09
	p = MustRunIn(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", store, "--workspace", workspace)
	mine = caller{&shellWorld{t, p, ""}, "a", "s"}
	for id := range ids {
		if got := mine.try("job:read", object{"job_id": id}); got.GetErrorCode() != loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_NOT_FOUND ||
			!strings.Contains(got.GetErrorMessage(), "Job not found: "+id+" is none of this server, which runs since ") {
			t.Errorf("a job of the server before: %s", got.GetErrorMessage())
		}
	}
	if list := mine.try("job:list", object{}).GetOutputJson(); !strings.Contains(list, "jobs of before ended with their server") {
		t.Errorf("the list is %s", list)
	}
	if got := mine.try("job:read", object{"job_id": "none"}).GetErrorMessage(); !strings.Contains(got, "has none of that id") {
		t.Errorf("an invented id: %s", got)
	}
}
