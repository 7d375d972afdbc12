package sandbox_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox/everyday"
)

// Everyday jobs work in tier N, all of them, and in tier L those that need no socket. There
// are at least 49; 40 of them work in tier L. With -short those of tier N are left to the
// doctor of the server, whose test does the same ones.
func TestEverydayJobsSoak(t *testing.T) {
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		namespaces := runner.Describe(t.Context()).Tier == sandbox.TierNamespaces
		if namespaces && testing.Short() {
			t.Skip("TestDoctorTriesJobsSoak does them")
		}
		var made, absent atomic.Int32
		t.Run("jobs", func(t *testing.T) {
			for _, j := range everyday.Jobs() {
				if j.Socket && !namespaces {
					continue
				}
				t.Run(j.Name, func(t *testing.T) {
					t.Parallel()
					err := j.Try(t.Context(), runner)
					switch {
					case errors.Is(err, everyday.ErrNoProgram):
						absent.Add(1)
						t.Skip(err)
					case err != nil:
						t.Error(err)
					}
					made.Add(1)
				})
			}
		})
		all := made.Load() + absent.Load()
		t.Logf("%d of %d jobs were done; %d are about programs that are not here", made.Load(), len(everyday.Jobs()), absent.Load())
		if least := int32(40); all < least || namespaces && all < 49 {
			t.Errorf("only %d jobs work", made.Load())
		}
	})
}
