package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Equal content of one agent is stored once and has a path for each step that gave
// it; that of another agent is its own.
//
// D03
func TestEqualResultsAreStoredOnce(t *testing.T) {
	text := object(t, map[string]any{"rows": strings.Repeat("a line of a result\n", 1000)})
	s := servertest.Start(t, &servertest.Options{Blobs: blob.Options{MaxOwnerBytes: int64(len(text)) + 3000}})
	c := as(t, s, agent)
	paths := []string{}
	for range 3 {
		made := c.report("my.tool", `{}`, text).GetOutputBlob()
		if made.GetRef() != hashed(text) || made.GetSize() != int64(len(text)) {
			t.Errorf("stored as %v", made)
		}
		paths = append(paths, made.GetPath())
		if got := c.read(made.GetPath()); got != text {
			t.Errorf("%s: %d bytes come back", made.GetPath(), len(got))
		}
	}
	const folder = "workspace/outputs/"
	if want := []string{folder + "tool_001.json", folder + "tool_002.json", folder + "tool_003.json"}; !slices.Equal(paths, want) {
		t.Errorf("paths %v, want %v", paths, want)
	}
	if listed := MustList(t, s, &loombridgev1.ListBlobsRequest{}); len(listed) != len(paths) {
		t.Errorf("%d entries, want one for each path", len(listed))
	}
	// There is no room for as much again, of this agent.
	_, err := s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
		AgentId: agent, ToolName: "my.tool", Success: true, OutputForm: &loombridgev1.RecordStepRequest_OutputJson{OutputJson: quoted(t, "other: "+text)},
	})
	MustFail(t, err, codes.ResourceExhausted, "BLOB_QUOTA_EXCEEDED")
	other := as(t, s, "another")
	if err := readErrorOf(t, other, hashed(text)); err == nil {
		t.Error("another agent reads what is not its own")
	}
	if other.report("my.tool", `{}`, text).GetOutputBlob().GetRef() != hashed(text) || other.read("step_001") != text {
		t.Error("the same content of another agent does not come back")
	}
}

// readErrorOf is how a caller's reading ends.
func readErrorOf(tb testing.TB, c caller, name string) error {
	tb.Helper()
	stream, err := c.Context.ReadBlob(tb.Context(), &loombridgev1.ReadBlobRequest{AgentId: c.id, Name: name})
	must(tb, err)
	_, err = stream.Recv()
	return err
}

// manyHits is the result of a search with many hits.
func manyHits(tb testing.TB, n int) string {
	tb.Helper()
	hits := make([]any, n)
	for i := range hits {
		hits[i] = map[string]any{
			"title": fmt.Sprint("Date formats, part ", i), "url": fmt.Sprintf("https://example.org/articles/%d", i), "snippet": strings.Repeat("The parser reads dates. ", 7),
		}
	}
	return object(tb, map[string]any{"results": hits})
}

// Of a long search an answer and a prompt keep a line and a path: less than a
// hundredth.
//
// D06
func TestLargeResultsAreFiles(t *testing.T) {
	c := as(t, servertest.Start(t, nil), agent)
	output := manyHits(t, 200)
	made := c.report("web:search", `{"query":"date formats"}`, output)
	path := made.GetOutputBlob().GetPath()
	prompt := shownIn(c.prompt(literally("reduction")))
	for where, text := range map[string]string{"answer": made.GetObservation(), "prompt": prompt} {
		if ratio := c.tokens(output) / c.tokens(text); ratio < 100 || !strings.Contains(text, path) || strings.Contains(text, "part 7") {
			t.Errorf("%s, %d : 1:\n%s", where, ratio, text)
		}
	}
	if got := c.read(path); got != output {
		t.Errorf("%d bytes in the file, want %d", len(got), len(output))
	}
}

// What expires when: results by their category, what was promoted later or never.
// Expired is but a mark; nothing is gone before it is collected.
//
// P15
func TestExpiryOfResults(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, agent)
	long := strings.Repeat("a line of a result\n", 100)
	start := s.Clock.Now()
	made := map[string]time.Duration{}
	for _, tt := range []struct {
		tool, output string
		ttl          time.Duration
	}{
		{"system:shell", object(t, map[string]any{"stdout": long, "exit_code": 0}), 30 * time.Minute},
		{"web:search", manyHits(t, 20), 6 * time.Hour},
		{"browser:navigate", object(t, map[string]any{"status": 200, "text": long}), 6 * time.Hour},
		{"fs:read_file", object(t, map[string]any{"content": long}), 24 * time.Hour},
		{"fs:list_dir", object(t, map[string]any{"entries": entriesOf(30)}), 24 * time.Hour},
		{"db:query", quoted(t, long), 24 * time.Hour},
	} {
		made[c.report(tt.tool, `{}`, tt.output).GetOutputBlob().GetPath()] = tt.ttl
	}
	for tier, ttl := range map[loombridgev1.BlobTier]time.Duration{
		loombridgev1.BlobTier_BLOB_TIER_SHORT_TERM: 7 * 24 * time.Hour, loombridgev1.BlobTier_BLOB_TIER_LONG_TERM: 0,
	} {
		got, err := s.Context.UpdateBlob(t.Context(), &loombridgev1.UpdateBlobRequest{
			AgentId: agent, Name: c.report("db:query", `{}`, quoted(t, long+tier.String())).GetOutputBlob().GetPath(), Tier: tier,
		})
		must(t, err)
		made[got.GetPath()] = ttl
	}
	check := func(after time.Duration) {
		t.Helper()
		s.Clock.Advance(after - s.Clock.Now().Sub(start))
		listed := MustList(t, s, &loombridgev1.ListBlobsRequest{IncludeClosed: true})
		if len(listed) != len(made) {
			t.Errorf("after %v: %d blobs, want %d", after, len(listed), len(made))
		}
		for _, b := range listed {
			ttl := made[b.GetPath()]
			if (b.GetExpireTime() != nil) != (ttl > 0) {
				t.Errorf("after %v: %s expires at %v", after, b.GetPath(), b.GetExpireTime().AsTime())
			}
			if at := b.GetExpireTime(); ttl > 0 && !at.AsTime().Equal(start.Add(ttl)) {
				t.Errorf("%s expires at %v, want after %v", b.GetPath(), at.AsTime(), ttl)
			}
		}
	}
	check(0)
	for _, ttl := range []time.Duration{30 * time.Minute, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour} {
		check(ttl - 1)
		check(ttl)
		check(ttl + 1)
	}
	check(10 * 365 * 24 * time.Hour)
	for path := range made {
		if c.read(path) == "" {
			t.Errorf("%s is empty", path)
		}
	}
}

// On a full disk the caller of a tool keeps its result and hears that it was not
// recorded; a report is refused. Neither leaves a step or a file behind, wherever
// among its commits the disk became full, and afterwards all goes on.
//
// P10
func TestFullDisk(t *testing.T) {
	content := strings.Repeat("line\n", 500_000) // three chunks, two of which are written ahead
	engine := kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
	s := servertest.Start(t, &servertest.Options{Engine: engine})
	MustWrite(t, s, "a", content)
	full := func(commit int) { engine.Replan(kvtest.FailurePlan{Commit: commit, Err: kv.ErrFull, Repeat: true}) }
	failures := 0
	for commit := 1; commit <= 4; commit++ {
		c := as(t, s, fmt.Sprint("agent", commit))
		full(commit)
		got := c.call("fs:read_file", `{"path":"a"}`)
		commits, _ := engine.Calls()
		engine.Replan(kvtest.FailurePlan{})
		if !got.GetSuccess() || !strings.Contains(got.GetOutputJson(), strings.Repeat(`line\n`, 100_000)) {
			t.Errorf("commit %d: success %v, %d bytes", commit, got.GetSuccess(), len(got.GetOutputJson()))
		}
		if failed := commits >= commit; got.GetRecorded() == failed || (got.GetRecordError() != "") != failed {
			t.Errorf("commit %d of %d failed: recorded %v, %q", commit, commits, got.GetRecorded(), got.GetRecordError())
		} else if failed {
			failures++
			if got.GetStep() != nil || got.GetOutputBlob() != nil || strings.Contains(got.GetObservation(), "Saved to") {
				t.Errorf("commit %d: the answer refers to what is not there: %v", commit, got.GetObservation())
			}
			c.checkEmpty()
		}
		if again := c.call("fs:read_file", `{"path":"a"}`); !again.GetRecorded() || c.read(again.GetOutputBlob().GetPath()) != content {
			t.Errorf("commit %d: afterwards %v", commit, again.GetRecordError())
		}
	}
	if failures < 3 {
		t.Errorf("the disk was full at %d commits", failures)
	}
	c := as(t, s, "reporter")
	full(1)
	_, err := s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
		AgentId: c.id, SessionId: "s", ToolName: "db:query", Success: true, OutputForm: &loombridgev1.RecordStepRequest_OutputJson{OutputJson: quoted(t, content[:100_000])},
	})
	engine.Replan(kvtest.FailurePlan{})
	MustFail(t, err, codes.ResourceExhausted, "STORAGE_FULL")
	c.checkEmpty()
	made := c.report("fs:read_file", `{"path":"a"}`, object(t, map[string]any{"content": content[:100_000]}))
	if id := made.GetStep().GetId(); id != "step_001" || c.read(made.GetOutputBlob().GetPath()) != content[:100_000] {
		t.Errorf("afterwards %s", id)
	}
}

// checkEmpty checks that the caller has no step and no file.
func (c caller) checkEmpty() {
	c.tb.Helper()
	steps, err := c.Context.ListSteps(c.tb.Context(), &loombridgev1.ListStepsRequest{AgentId: c.id, SessionId: "s"})
	must(c.tb, err)
	blobs, err := c.Context.ListBlobs(c.tb.Context(), &loombridgev1.ListBlobsRequest{AgentId: c.id})
	must(c.tb, err)
	if len(steps.GetSteps()) != 0 || len(blobs.GetBlobs()) != 0 {
		c.tb.Errorf("%s has %d steps and %d blobs", c.id, len(steps.GetSteps()), len(blobs.GetBlobs()))
	}
	if err := readErrorOf(c.tb, c, "step_001"); err == nil {
		c.tb.Errorf("%s: step_001 is read", c.id)
	}
}
