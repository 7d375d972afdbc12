package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

func sessionEffects() []effect {
	return []effect{
		{
			setting: "session-idle-ttl", args: []string{"--session-idle-ttl", "1ms"},
			see: func(s *stand) func() string {
				s.read("s", "a.txt", 10)
				return func() string {
					got, err := s.contexts().ListSessions(s.ctx, &loombridgev1.ListSessionsRequest{AgentId: s.agent})
					must(s.tb, err)
					return fmt.Sprint(len(got.GetSessions()))
				}
			},
			with: "0", without: "1", after: 20 * time.Millisecond,
		},
		{
			setting: "session-end-after", args: []string{"--session-end-after", "1ms"}, both: []string{"--blob-ttl", "read=1ms"},
			see: func(s *stand) func() string {
				s.read("s", "a.txt", 2000)
				return func() string {
					_, err := s.contexts().CollectGarbage(s.ctx, &loombridgev1.CollectGarbageRequest{AgentId: s.agent})
					must(s.tb, err)
					return s.blobs()
				}
			},
			with: "0", without: "1", after: 20 * time.Millisecond,
		},
	}
}

// shortTerm are the results and the important tasks of an agent, as "results L2".
func (s *stand) shortTerm(session string) string {
	s.tb.Helper()
	got, err := s.contexts().ListBlobs(s.ctx, &loombridgev1.ListBlobsRequest{AgentId: s.agent, SessionId: session})
	must(s.tb, err)
	return fmt.Sprint(len(got.GetBlobs()), " ", strings.Count(s.toolIn(session, "query_l2_memory", "{}"), "WORK"))
}

// Short-term memory outlives the server unless the preset of a session says otherwise: then its offloaded results, L2 and L3 are gone when the next one starts. The
// log stays, and what was promoted, archived, marked or is named by a record or by a session
// that keeps its own.
//
// K23, F03, X01
func TestShortTermMemoryEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want map[string]string // by the preset of a session
	}{
		{nil, map[string]string{"": "4 1", "design": "3 0", "reduction": "4 1", "task_context": "4 1", "three_phase": "4 1"}},
		{[]string{"--history-preset=design"}, map[string]string{"": "3 0", "design": "3 0", "three_phase": "4 1"}},
	} {
		s := &stand{tb: t, ctx: t.Context(), dir: t.TempDir(), agent: "a", model: MustModel(t), site: MustSite(t)}
		s.start(tt.args)
		gone := make(map[string]*loombridgev1.BlobInfo)
		bytes := 2000 // of each result others: equal ones are one
		for preset := range tt.want {
			id := "of " + preset
			bytes += 4
			if preset != "" {
				_, err := s.contexts().ConfigureSession(s.ctx, &loombridgev1.ConfigureSessionRequest{AgentId: s.agent, SessionId: id, History: &loombridgev1.HistorySettings{Preset: preset}})
				must(t, err)
			}
			gone[preset] = s.read(id, "gone", bytes).GetOutputBlob()
			promoted := s.read(id, "promoted", bytes+1).GetOutputBlob()
			_, err := s.contexts().UpdateBlob(s.ctx, &loombridgev1.UpdateBlobRequest{AgentId: s.agent, Name: promoted.GetRef(), Tier: loombridgev1.BlobTier_BLOB_TIER_LONG_TERM})
			must(t, err)
			archived := s.read(id, "archived", bytes+2).GetOutputBlob()
			_, err = s.contexts().UpdateBlob(s.ctx, &loombridgev1.UpdateBlobRequest{Archive: true, AgentId: s.agent, Name: archived.GetRef(), Category: "reports"})
			must(t, err)
			named := s.read(id, "named", bytes+3).GetOutputBlob()
			_, err = s.bridge().MemorySave(s.ctx, &loombridgev1.MemorySaveRequest{AgentId: s.agent, Text: "The report is in " + named.GetPath()})
			must(t, err)
			_, err = s.bridge().Emit(s.ctx, &loombridgev1.EmitRequest{AgentId: s.agent, Topic: "execute", SessionId: id, PayloadForm: &loombridgev1.EmitRequest_PayloadJson{
				PayloadJson: `{"content":"WORK","importance":0.9}`,
			}})
			must(t, err)
			if got := s.shortTerm(id); got != "4 1" {
				t.Errorf("%v, preset %q: before, %s", tt.args, preset, got)
			}
		}
		must(t, s.Stop())
		s.start(tt.args)
		for preset, want := range tt.want {
			id := "of " + preset
			if got := s.shortTerm(id); got != want {
				t.Errorf("%v, preset %q: after, %s, want %s", tt.args, preset, got, want)
			}
			stream, err := s.contexts().ReadBlob(s.ctx, &loombridgev1.ReadBlobRequest{AgentId: s.agent, Name: gone[preset].GetPath()})
			must(t, err)
			if _, err = stream.Recv(); ended(err) != map[bool]string{true: "OK", false: "BLOB_COLLECTED"}[want == "4 1"] {
				t.Errorf("%v, preset %q: the result reads %v", tt.args, preset, err)
			}
			steps, err := s.contexts().ListSteps(s.ctx, &loombridgev1.ListStepsRequest{AgentId: s.agent, SessionId: id})
			must(t, err)
			if len(steps.GetSteps()) < 4 {
				t.Errorf("%v, preset %q: %d steps are left", tt.args, preset, len(steps.GetSteps()))
			}
		}
		must(t, s.Stop())
	}
}
