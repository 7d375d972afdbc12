package machine

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox/inner"
)

// TestTiers lists the tiers that tests must find, such as `namespaces,landlock`.
const TestTiers = "LOOM_TEST_TIERS"

// Lacks ends a test of a tier that the probes did not find to work. The test is skipped where
// the kernel refuses the tier to others, too; it fails where LOOM_TEST_TIERS names the tier,
// and where the kernel has what it takes: then it is the sandbox that does not work.
func Lacks(tb testing.TB, tier string, problems []string) {
	tb.Helper()
	switch {
	case slices.Contains(strings.Split(os.Getenv(TestTiers), ","), tier):
		tb.Fatalf("%s names tier %s, which does not work: %v", TestTiers, tier, problems)
	case has(tier):
		tb.Fatalf("the kernel has what tier %s takes, and the tier does not work: %v", tier, problems)
	}
	tb.Skipf("this machine does not have the tier: %v", problems)
}

// has reports whether the kernel gives this process what a tier takes, by other means than the
// probes of the sandbox.
func has(tier string) bool {
	if tier == sandbox.TierLandlock {
		return inner.LandlockABI() > 0
	}
	// The program of util-linux; without it there is no proof of namespaces.
	return exec.Command("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "--net", "--ipc", "--uts", "true").Run() == nil
}
