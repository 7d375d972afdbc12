package native

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/jobs"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// maxJobWait bounds how long a reading waits for a job to print something.
const maxJobWait = time.Minute

// maxJobID bounds the id that an error repeats.
const maxJobID = 32

const (
	jobSchema     = `{"type":"object","properties":{"job_id":{"type":"string","minLength":1,"description":"Job to stop"}},"required":["job_id"]}`
	jobReadSchema = `{"type":"object","properties":{
"job_id":{"type":"string","minLength":1,"description":"Job to read"},
"offset":{"type":"integer","minimum":0,"description":"First byte to read of all it printed (default: where the last reading ended)"},
"limit":{"type":"integer","minimum":1,"description":"Most bytes to read (default 32768, at most 262144)"},
"wait":{"type":"number","minimum":0,"description":"Seconds to wait until it prints something or ends (default 0, at most 60)"}},
"required":["job_id"]}`
)

func (s *shell) jobTools() []tool {
	list := []tool{
		{tools.Descriptor{
			Name:        "job:list",
			Description: "List the background jobs of the session, started by system:shell or shell:run with background.",
			Schema:      json.RawMessage(`{"type":"object","properties":{}}`), CLIEquivalents: []string{"jobs"},
		}, s.listJobs, nil},
		{tools.Descriptor{
			Name:        "job:read",
			Description: "Read what a background job printed, from where the last reading ended.",
			Schema:      json.RawMessage(jobReadSchema), CLIEquivalents: []string{"tail"},
		}, s.readJob, nil},
		{tools.Descriptor{
			Name:        "job:stop",
			Description: "Stop a background job with all that it started.",
			Schema:      json.RawMessage(jobSchema), Mutates: true, CLIEquivalents: []string{"kill"},
		}, s.stopJob, nil},
	}
	for i := range list {
		list[i].Level, list[i].Category, list[i].ResultKind = tools.LevelShell, "shell", "json"
	}
	return list
}

func ownerOf(c tools.Input) jobs.JobOwner { return jobs.JobOwner{Scope: c.Scope, Session: c.SessionID} }

// startJob starts a command in the background.
func (s *shell) startJob(ctx context.Context, c tools.Input, job sandbox.Job, timeout time.Duration, done func()) (tools.Output, error) {
	tier := s.runner.Describe(ctx).Tier
	if _, ok := c.Args["stdin"].(string); ok {
		done()
		return tools.Output{Tier: tier}, refuse("stdin", "can't be given to a job in the background")
	}
	if _, asked := c.Args["timeout"]; !asked {
		timeout = 0
	}
	info, err := s.jobs.Start(jobs.Start{
		Owner: ownerOf(c), CallID: c.CallID, Profile: c.Profile.Name, Run: job, Timeout: timeout, Done: done,
	})
	if err != nil {
		return tools.Output{Tier: tier}, runFailure(job.Argv[0], err)
	}
	values := jobValues(info)
	values["hint"] = "job:read reads what it prints, job:stop ends it"
	return tools.Output{Values: values, Tier: tier}, nil
}

// jobValues describe a job in a result.
func jobValues(i jobs.Info) map[string]any {
	out := map[string]any{
		"job_id": i.ID, "command": i.Command, "status": string(i.Status), "printed_bytes": i.Printed,
		"started": i.Started.UTC().Format(time.RFC3339),
	}
	if i.Status == jobs.Running {
		return out
	}
	out["ended"] = i.Ended.UTC().Format(time.RFC3339)
	if i.Status == jobs.Exited {
		out["exit_code"] = nil
		if i.Exit >= 0 && i.Limit == "" {
			out["exit_code"] = int64(i.Exit)
		}
	}
	if len(i.Refused) > 0 {
		out["refused"] = textValues(i.Refused)
	}
	if i.Limit != "" {
		out["limit"] = i.Limit
	}
	if i.Problem != "" {
		out["problem"] = i.Problem
	}
	return out
}

func (s *shell) listJobs(_ context.Context, c tools.Input) (tools.Output, error) {
	list := []any{}
	for _, info := range s.jobs.List(ownerOf(c)) {
		list = append(list, jobValues(info))
	}
	out := map[string]any{"jobs": list}
	if len(list) == 0 {
		out["note"] = "none since " + s.jobs.Since().UTC().Format(time.RFC3339) + "; jobs of before ended with their server"
	}
	return tools.Output{Values: out}, nil
}

func (s *shell) readJob(ctx context.Context, c tools.Input) (tools.Output, error) {
	offset, ok := c.Int("offset")
	if !ok {
		offset = -1
	}
	limit, _ := c.Int("limit")
	var wait time.Duration
	if number, ok := c.Args["wait"].(json.Number); ok {
		seconds, err := number.Float64()
		if err != nil || seconds > maxJobWait.Seconds() {
			return tools.Output{}, refuse("wait", "must be at most 60 seconds")
		}
		wait = time.Duration(seconds * float64(time.Second))
	}
	part, err := s.jobs.Read(ctx, ownerOf(c), c.String("job_id", ""), offset, int(min(limit, jobs.MaxReadBytes)), wait)
	if err != nil {
		return tools.Output{}, jobFailure(err)
	}
	out := jobValues(part.Info)
	out["output"] = strings.ToValidUTF8(string(part.Data), "\uFFFD")
	out["offset"], out["next_offset"] = part.Offset, part.Offset+int64(len(part.Data))
	if lost := part.Offset - max(offset, 0); offset >= 0 && lost > 0 {
		out["lost_bytes"] = lost
	}
	return tools.Output{Values: out}, nil
}

func (s *shell) stopJob(ctx context.Context, c tools.Input) (tools.Output, error) {
	info, err := s.jobs.Stop(ctx, ownerOf(c), c.String("job_id", ""))
	if err != nil {
		return tools.Output{}, jobFailure(err)
	}
	return tools.Output{Values: jobValues(info)}, nil
}

func jobFailure(err error) error {
	if earlier, ok := errors.AsType[*jobs.EarlierError](err); ok {
		return wrapped(tools.NotFound, "Job not found: "+text.Head(earlier.ID, maxJobID)+" is none of this server, which runs since "+earlier.Since.UTC().Format(time.RFC3339)+
			"; a job ends with its server, and of what it printed is left what job:read gave, in its steps", err)
	}
	if errors.Is(err, jobs.ErrNotFound) {
		return wrapped(tools.NotFound, "Job not found: this session has none of that id; job:list lists them", err)
	}
	return err
}
