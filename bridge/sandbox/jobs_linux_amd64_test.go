package sandbox_test

import (
	"errors"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox/everyday"
)

// Everyday jobs work in tier N, all of them, and in tier L those that need no socket. There
// are at least 49; 40 of them work in tier L.
func TestEverydayJobs(t *testing.T) {
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		namespaces := runner.Describe(t.Context()).Tier == sandbox.TierNamespaces
		made, absent := 0, 0
		for _, j := range everyday.Jobs() {
			if j.Socket && !namespaces {
				continue
			}
			t.Run(j.Name, func(t *testing.T) {
				err := j.Try(t.Context(), runner)
				switch {
				case errors.Is(err, everyday.ErrNoProgram):
					absent++
					t.Skip(err)
				case err != nil:
					t.Error(err)
				}
				made++
			})
		}
		t.Logf("%d of %d jobs were done; %d are about programs that are not here", made, len(everyday.Jobs()), absent)
		if least := 40; made+absent < least || namespaces && made+absent < 49 {
			t.Errorf("only %d jobs work", made)
		}
	})
}
