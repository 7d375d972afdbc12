package evidence_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/evidence"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/sets"
)

// testServer is a test's server as the bench asks it.
type testServer struct {
	loombridgev1.BridgeServiceClient
	loombridgev1.MemoryServiceClient
}

func (testServer) Remove() {}

func (s testServer) Load(ctx context.Context, agent string, records []*loombridgev1.MemorySaveRequest) error {
	for batch := range slices.Chunk(records, 100) {
		if _, err := s.BatchSave(ctx, &loombridgev1.BatchSaveRequest{AgentId: agent, Records: batch}); err != nil {
			return err
		}
	}
	return nil
}

// Nobody who asks for a fact that changed is told what it used to be, where the records say
// what replaces what; and the newest names what it replaced.
func TestNewestWins(t *testing.T) {
	const people = 20
	facts := sets.Facts(people * 20)
	for _, telling := range evidence.Tellings() {
		t.Run(telling.Name, func(t *testing.T) {
			s := servertest.Start(t, nil)
			server := testServer{s.Bridge, s.Memory}
			if err := telling.Save(t.Context(), server, "a", facts); err != nil {
				t.Fatal(err)
			}
			found, err := evidence.Newest(t.Context(), server, "a", facts)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", found)
			if strings.Contains(telling.Name, "form") {
				if found.Stale > len(facts)/50 || found.Before > 0 || found.Missing > len(facts)/50 || found.First < len(facts)*19/20 {
					t.Errorf("found %+v", found)
				}
				return
			}
			if found.Stale > 0 || found.Missing > len(facts)/10 || found.Named < len(facts)-found.Missing {
				t.Errorf("found %+v", found)
			}
		})
	}
}
