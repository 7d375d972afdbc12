package runnertest_test

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/protect"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox/runnertest"
)

// The runner of this machine, in each tier.
func TestLocal(t *testing.T) {
	for _, tier := range []string{sandbox.TierNamespaces, sandbox.TierLandlock} {
		t.Run(tier, func(t *testing.T) {
			runnertest.Run(t, func(testing.TB) sandbox.Runner { return sandbox.NewLocal(&sandbox.Options{Tier: tier}) })
		})
	}
}

// One that keeps what is protected, as servers use it.
func TestProtecting(t *testing.T) {
	runnertest.Run(t, func(testing.TB) sandbox.Runner { return protect.New(sandbox.NewLocal(nil), nil) })
}
