package compose_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

const day = 24 * time.Hour

var researcher = kv.AgentScope(tenant, "researcher")

// clocked is a domain whose time is the test's.
type clocked struct {
	*compose.Domain
	engine kv.Engine
	now    time.Time
}

func mustOpenClocked(tb testing.TB) *clocked {
	tb.Helper()
	c := &clocked{engine: memkv.New(nil), now: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)}
	root, err := os.OpenRoot(tb.TempDir())
	must(tb, err)
	opts := &compose.Options{Now: func() time.Time { return c.now }, Blobs: blob.Options{CollectEvery: -1}}
	c.Domain, err = compose.Open(c.engine, folder{root}, opts)
	must(tb, err)
	tb.Cleanup(func() {
		must(tb, c.Close())
		must(tb, root.Close())
		must(tb, c.engine.Close())
	})
	return c
}

// mustRecord records a step with a result that is offloaded, and returns the
// result's entry.
func (c *clocked) mustRecord(tb testing.TB, sessionID, seed string) blob.Entry {
	tb.Helper()
	e, err := c.record(tb, sessionID, seed)
	must(tb, err)
	return e
}

func (c *clocked) record(tb testing.TB, sessionID, seed string) (blob.Entry, error) {
	content, err := json.Marshal(map[string]any{"content": strings.Repeat(seed+" line of a file\n", 2000)})
	must(tb, err)
	a, err := c.Hand.Record(tb.Context(), hand.Recorded{Output: step.Original{Form: step.FormJSON, Data: content}, Request: hand.Request{
		Scope: researcher, SessionID: sessionID, Name: "fs:read_file", Args: json.RawMessage(`{"path":"` + seed + `"}`),
	}})
	if err != nil {
		return blob.Entry{}, err
	}
	return c.Blobs.Lookup(tb.Context(), researcher, a.Step.OutcomePath)
}

func (c *clocked) mustSay(tb testing.TB, sessionID, text string) {
	tb.Helper()
	_, err := c.Log.AppendMessages(tb.Context(), researcher, sessionID, []session.Message{{Role: session.User, Content: text}}, "")
	must(tb, err)
}

// mustKeep collects the garbage and reports whether a blob is still there.
func (c *clocked) mustKeep(tb testing.TB, e blob.Entry) bool {
	tb.Helper()
	_, err := c.Blobs.Collect(tb.Context(), researcher, nil)
	must(tb, err)
	_, err = c.Blobs.Lookup(tb.Context(), researcher, e.Path)
	if err != nil && !errors.Is(err, blob.ErrCollected) {
		tb.Fatal(err)
	}
	return err == nil
}

// P16: a session that was ended needs nothing any more, unless something is
// recorded in it later.
func TestEndedSessionsKeepNothing(t *testing.T) {
	c := mustOpenClocked(t)
	ended, open, again := c.mustRecord(t, "ended", "a"), c.mustRecord(t, "open", "b"), c.mustRecord(t, "again", "c")
	inDefault := c.mustRecord(t, "", "d")
	for _, id := range []string{"ended", "again", ""} {
		_, err := c.Log.End(t.Context(), researcher, id)
		must(t, err)
	}
	c.mustSay(t, "again", "go on")
	if !c.mustKeep(t, ended) {
		t.Error("a result went before it expired")
	}
	c.now = c.now.Add(2 * day)
	for name, tt := range map[string]struct {
		entry blob.Entry
		want  bool
	}{"ended": {ended, false}, "open": {open, true}, "opened again": {again, true}, "the default, ended": {inDefault, false}} {
		if got := c.mustKeep(t, tt.entry); got != tt.want {
			t.Errorf("%s: kept %v, want %v", name, got, tt.want)
		}
	}
	c.now = c.now.Add(5*day - time.Minute)
	if !c.mustKeep(t, open) {
		t.Error("a result went before its session was idle for seven days")
	}
	c.now = c.now.Add(2 * time.Minute)
	if c.mustKeep(t, open) {
		t.Error("a result stays in a session that is idle for seven days")
	}
}

// P16: what a fold names stays while its session is open, whoever made it, also
// when the fold was undone.
func TestFoldsReferToBlobs(t *testing.T) {
	for _, undo := range []bool{false, true} {
		c := mustOpenClocked(t)
		own, other, unnamed := c.mustRecord(t, "s", "a"), c.mustRecord(t, "ended", "b"), c.mustRecord(t, "ended", "c")
		_, err := c.Log.End(t.Context(), researcher, "ended")
		must(t, err)
		must(t, c.Log.AppendFolds(t.Context(), researcher, "s", 0, []history.Fold{{
			Policy: history.PolicyLedger, Batch: 1, Level: history.LevelLines, Spans: []history.Span{{First: 1, Last: 1}},
			Text: "001 fs:read_file a → see " + other.Path, Refs: []string{"step_001"}, Through: 1, Seen: 1,
		}}))
		if undo {
			_, err := c.Log.Undo(t.Context(), researcher, "s", 1, "")
			must(t, err)
		}
		c.now = c.now.Add(2 * day)
		for name, tt := range map[string]struct {
			entry blob.Entry
			want  bool
		}{"folded": {own, true}, "named": {other, true}, "not named": {unnamed, false}} {
			if got := c.mustKeep(t, tt.entry); got != tt.want {
				t.Errorf("undone %v, %s: kept %v, want %v", undo, name, got, tt.want)
			}
		}
		_, err = c.Log.End(t.Context(), researcher, "s")
		must(t, err)
		if c.mustKeep(t, other) {
			t.Errorf("undone %v: a fold of an ended session keeps what it names", undo)
		}
	}
}

// What a task names stays while its session is open.
func TestTasksReferToBlobs(t *testing.T) {
	c := mustOpenClocked(t)
	c.mustSay(t, "s", "hello")
	named, unnamed := c.mustRecord(t, "ended", "a"), c.mustRecord(t, "ended", "b")
	_, err := c.Log.End(t.Context(), researcher, "ended")
	must(t, err)
	_, err = c.Log.AddTask(t.Context(), researcher, session.Task{Action: "x", SessionID: "s", Result: "see " + named.Path})
	must(t, err)
	c.now = c.now.Add(2 * day)
	if !c.mustKeep(t, named) || c.mustKeep(t, unnamed) {
		t.Error("not what the task names stays")
	}
}
