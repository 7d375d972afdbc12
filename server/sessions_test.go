package server_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

// sessionsOf lists the agent's sessions as "id" or "id closed".
func sessionsOf(tb testing.TB, s *servertest.Server, closed bool) string {
	tb.Helper()
	got, err := s.Context.ListSessions(tb.Context(), &loombridgev1.ListSessionsRequest{AgentId: agent, IncludeClosed: closed})
	must(tb, err)
	all := []string{}
	for _, one := range got.GetSessions() {
		id := one.GetSessionId()
		if one.GetClosed() {
			id += " closed"
		}
		all = append(all, id)
	}
	return fmt.Sprint(all)
}

// A session in which nothing was recorded for an hour is closed: listings leave out it and
// what it has offloaded, whoever names it reads all of it, and the next thing that is
// recorded opens it again. What is archived or in long-term memory stays listed.
//
// F03, K22
func TestIdleSessionsClose(t *testing.T) {
	for limit, set := range map[time.Duration]time.Duration{time.Hour: 0, 10 * time.Second: 10 * time.Second} {
		s := servertest.Start(t, &servertest.Options{Domain: compose.Options{CloseSessions: set}})
		result := MustOffload(t, s, "s", textAbout("pumps"))
		kept := MustOffload(t, s, "s", textAbout("valves"))
		_, err := s.Context.UpdateBlob(t.Context(), &loombridgev1.UpdateBlobRequest{AgentId: agent, Name: kept.GetPath(), Tier: loombridgev1.BlobTier_BLOB_TIER_LONG_TERM})
		must(t, err)
		listed := func(r *loombridgev1.ListBlobsRequest) int { return len(MustList(t, s, r)) }
		check := func(when string, sessions string, blobs int) {
			t.Helper()
			if got := sessionsOf(t, s, false); got != sessions {
				t.Errorf("%v %s: %s, want %s", limit, when, got, sessions)
			}
			if got := listed(&loombridgev1.ListBlobsRequest{}); got != blobs {
				t.Errorf("%v %s: %d results, want %d", limit, when, got, blobs)
			}
			// Named, all of it is there.
			if got := listed(&loombridgev1.ListBlobsRequest{SessionId: "s"}); got != 2 {
				t.Errorf("%v %s: %d results of the session", limit, when, got)
			}
			if got := listed(&loombridgev1.ListBlobsRequest{StepId: result.GetStepId()}); got != 1 {
				t.Errorf("%v %s: %d results of the step", limit, when, got)
			}
			if got := listed(&loombridgev1.ListBlobsRequest{IncludeClosed: true}); got != 2 {
				t.Errorf("%v %s: %d results, closed or not", limit, when, got)
			}
			if _, content := MustReadBlob(t, s, &loombridgev1.ReadBlobRequest{AgentId: agent, Name: result.GetPath()}); string(content) != textAbout("pumps") {
				t.Errorf("%v %s: the result reads %d bytes", limit, when, len(content))
			}
		}
		check("at once", "[s]", 2)
		s.Clock.Advance(limit - time.Second)
		check("a second before", "[s]", 2)
		s.Clock.Advance(time.Second)
		check("in time", "[]", 1)
		s.Clock.Advance(time.Second)
		check("a second after", "[]", 1)
		if got := sessionsOf(t, s, true); got != "[s closed]" {
			t.Errorf("%v: asked for closed ones: %s", limit, got)
		}
		must(t, tell(t, s, "s"))
		check("opened again", "[s]", 2)
		s.Clock.Advance(limit - time.Second)
		_, err = s.Bridge.Emit(t.Context(), taskEvent("s", "execute", `{"parameters":{"content":"go on"}}`))
		must(t, err)
		s.Clock.Advance(time.Second)
		check("a task keeps it open", "[s]", 2)
		_, err = s.Context.EndSession(t.Context(), &loombridgev1.EndSessionRequest{AgentId: agent, SessionId: "s"})
		must(t, err)
		check("ended", "[]", 1)
	}
}

// tell says something in a session.
func tell(tb testing.TB, s *servertest.Server, session string) error {
	_, err := s.Context.AppendMessages(tb.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: session, Messages: []*loombridgev1.Message{user("Go on.")}})
	return err
}

// After seven idle days, or as long as the settings say, a session that nobody ended lets go
// of its expired results; being closed alone does not.
//
// K22, F03
func TestIdleSessionsEnd(t *testing.T) {
	for limit, set := range map[time.Duration]time.Duration{7 * 24 * time.Hour: 0, 3 * time.Hour: 3 * time.Hour} {
		s := servertest.Start(t, &servertest.Options{
			Domain: compose.Options{EndSessions: set},
			Blobs:  blob.Options{TTL: map[string]time.Duration{"tool": time.Minute}, CollectEvery: -1},
		})
		result := MustOffload(t, s, "s", textAbout("pumps"))
		for _, step := range []struct {
			wait    time.Duration
			deleted int64
		}{{limit - time.Second, 0}, {time.Second, 1}, {time.Second, 0}} {
			s.Clock.Advance(step.wait)
			if got := MustCollect(t, s, false); got.GetDeletedCount() != step.deleted {
				t.Errorf("%v, after %v more: %d results went, want %d", limit, step.wait, got.GetDeletedCount(), step.deleted)
			}
		}
		MustFail(t, readError(t, s, result.GetPath()), codes.NotFound, "BLOB_COLLECTED")
	}
}
