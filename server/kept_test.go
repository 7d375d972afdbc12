package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// A write is one line. What was written comes back by its step's id and stands in no
// prompt; a file that somebody changed since says so when it is read.
//
// A11
func TestWhatWasWritten(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, agent)
	content := strings.Repeat("what was written\n", 100)
	step := c.call("fs:write_file", object(t, map[string]any{"path": "a.txt", "content": content})).GetStep()
	written := c.step(step.GetId())
	if written.GetObservation() != fmt.Sprintf("Wrote a.txt (%d bytes)", len(content)) || written.GetMinimalArgsJson() != `{"path":"a.txt"}` || written.GetOutcomeRef() != "" {
		t.Errorf("step %v", written)
	}
	if got := c.read(step.GetId()); got != content {
		t.Errorf("%s holds %.100q", step.GetId(), got)
	}
	for _, preset := range allPresets() {
		if text := shownIn(c.prompt(literally(preset))); strings.Contains(text, "what was written") || !strings.Contains(text, "a.txt") {
			t.Errorf("%q: the prompt is\n%s", preset, text)
		}
	}
	changed := func() any {
		t.Helper()
		return c.step(c.call("fs:read_file", `{"path":"./a.txt"}`).GetStep().GetId()).GetMetadata().AsMap()["changed_since_write"]
	}
	if got := changed(); got == true {
		t.Error("an unchanged file is changed")
	}
	MustWrite(t, s, "a.txt", content+"more")
	if got := changed(); got != true {
		t.Errorf("a changed file: %v", got)
	}
	MustWrite(t, s, "a.txt", content)
	if got := changed(); got == true {
		t.Error("a file that was changed back is changed")
	}
}

// What an agent promoted for a while stays a week from then at least, also when it was
// to go earlier; a higher tier is never lowered.
//
// P14
func TestPromotedForAWhile(t *testing.T) {
	s := servertest.Start(t, nil)
	const week = 7 * 24 * time.Hour
	promote := func(name string, tier loombridgev1.BlobTier) *loombridgev1.BlobInfo {
		t.Helper()
		got, err := s.Context.UpdateBlob(t.Context(), &loombridgev1.UpdateBlobRequest{AgentId: agent, Name: name, Tier: tier})
		must(t, err)
		return got
	}
	made := MustOffload(t, s, "s", textAbout("a week"))
	s.Clock.Advance(23 * time.Hour)
	kept := promote(made.GetPath(), loombridgev1.BlobTier_BLOB_TIER_SHORT_TERM)
	if kept.GetPath() != "persistent/"+agent+"/tool/tool_001.txt" || !kept.GetExpireTime().AsTime().Equal(s.Clock.Now().Add(week)) {
		t.Errorf("promoted: %v", kept)
	}
	for _, name := range []string{kept.GetPath(), made.GetPath(), "step_001", made.GetRef()} {
		if got := as(t, s, agent).read(name); got != textAbout("a week") {
			t.Errorf("%s: %.100q", name, got)
		}
	}
	forever := promote(made.GetPath(), loombridgev1.BlobTier_BLOB_TIER_LONG_TERM)
	if forever.GetExpireTime() != nil || forever.GetTier() != loombridgev1.BlobTier_BLOB_TIER_LONG_TERM {
		t.Errorf("for ever: %v", forever)
	}
	if lowered := promote(made.GetPath(), loombridgev1.BlobTier_BLOB_TIER_SHORT_TERM); lowered.GetTier() != loombridgev1.BlobTier_BLOB_TIER_LONG_TERM || lowered.GetExpireTime() != nil {
		t.Errorf("lowered: %v", lowered)
	}
}

// Each thing that needs a result keeps it, long after it has expired; when nothing
// does any more, it goes, and reading it says so.
//
// P16
func TestWhatKeepsResults(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Blobs: blob.Options{CollectEvery: -1}})
	c := as(t, s, agent)
	end := func(session string) {
		t.Helper()
		_, err := s.Context.EndSession(t.Context(), &loombridgev1.EndSessionRequest{AgentId: agent, SessionId: session})
		must(t, err)
	}
	promote := func(r *loombridgev1.UpdateBlobRequest) {
		t.Helper()
		r.AgentId = agent
		_, err := s.Context.UpdateBlob(t.Context(), r)
		must(t, err)
	}
	made := map[string]*loombridgev1.BlobInfo{}
	for _, what := range []string{"nothing", "message", "record", "important", "long term", "archive"} {
		made[what] = MustOffload(t, s, "old", textAbout(what))
	}
	// A session that goes on, with a fold, and with one that was undone.
	for _, session := range []string{"folded", "undone"} {
		for i := range 12 {
			made[session+fmt.Sprint(i)] = MustOffload(t, s, session, textAbout(fmt.Sprint(session, i)))
		}
		folded, err := s.Context.CompactHistory(t.Context(), &loombridgev1.CompactHistoryRequest{AgentId: agent, SessionId: session})
		must(t, err)
		if len(folded.GetBatch().GetRefs()) == 0 {
			t.Fatalf("nothing is folded: %v", folded)
		}
	}
	_, err := s.Context.Undo(t.Context(), &loombridgev1.UndoRequest{AgentId: agent, SessionId: "undone"})
	must(t, err)
	_, err = s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: "new", Messages: []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_USER, Content: "look at " + made["message"].GetPath()},
	}})
	must(t, err)
	remembered := MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "the figures are in " + made["record"].GetRef()})
	promote(&loombridgev1.UpdateBlobRequest{Name: made["important"].GetPath(), Tier: loombridgev1.BlobTier_BLOB_TIER_SHORT_TERM, Important: true})
	promote(&loombridgev1.UpdateBlobRequest{Name: made["long term"].GetPath(), Tier: loombridgev1.BlobTier_BLOB_TIER_LONG_TERM})
	_, err = s.Context.UpdateBlob(t.Context(), &loombridgev1.UpdateBlobRequest{Archive: true, AgentId: agent, Name: made["archive"].GetPath()})
	must(t, err)

	gone := map[string]bool{}
	collect := func(when string, now ...string) {
		t.Helper()
		got := MustCollect(t, s, false)
		for _, what := range now {
			gone[what] = true
		}
		if int(got.GetDeletedCount()) != len(now) {
			t.Errorf("%s: %d are gone, want %d: %v", when, got.GetDeletedCount(), len(now), got.GetKept())
		}
		for what, b := range made {
			stream, err := s.Context.ReadBlob(t.Context(), &loombridgev1.ReadBlobRequest{AgentId: agent, Name: b.GetRef()})
			must(t, err)
			_, err = stream.Recv()
			if gone[what] {
				MustFail(t, err, codes.NotFound, "BLOB_COLLECTED")
			} else if err != nil {
				t.Errorf("%s: what %s keeps: %v", when, what, err)
			}
		}
	}
	collect("at once")
	s.Clock.Advance(6 * 24 * time.Hour) // all but what was promoted has expired
	collect("while all sessions go on")
	end("old")
	collect("when its session has ended", "nothing")
	end("new")
	_, err = s.Memory.DeleteRecords(t.Context(), &loombridgev1.DeleteRecordsRequest{AgentId: agent, Name: &loombridgev1.DeleteRecordsRequest_Id{Id: remembered.GetId()}})
	must(t, err)
	collect("without the message's session and the record", "message", "record")
	s.Clock.Advance(8 * 24 * time.Hour) // the other sessions have been idle for a week
	idle := []string{}
	for what := range made {
		if strings.HasPrefix(what, "folded") || strings.HasPrefix(what, "undone") {
			idle = append(idle, what)
		}
	}
	collect("after a week of nothing", idle...)
	s.Clock.Advance(10 * 365 * 24 * time.Hour)
	collect("after ten years")
	if got := c.read(made["archive"].GetRef()); got != textAbout("archive") {
		t.Errorf("the archived one holds %.100q", got)
	}
}
