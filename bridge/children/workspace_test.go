package children

import (
	"fmt"
	"os"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// However many agents have a folder of their own, few stay open, and opening one reads
// nothing of the others. A folder that a call still holds stays usable.
//
// C02, K52
func TestFoldersStayBounded(t *testing.T) {
	engine := kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
	base, err := hand.OpenFolders(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWorkspaces(base, NewStore(engine, nil), &WorkspaceOptions{Own: true})
	defer func() { _ = w.Close() }()
	open := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(files)
	}
	before := open()
	root := func(i int) *os.Root {
		r, err := w.Root(kv.AgentScope(tenant, fmt.Sprint("a", i)))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	held := root(0)
	engine.Replan(kvtest.FailurePlan{})
	const agents = 5 * keptRoots
	for i := 1; i < agents; i++ {
		root(i)
	}
	if _, reads := engine.Calls(); reads != 0 {
		t.Errorf("%d folders took %d reads of the store", agents, reads)
	}
	if n := len(w.roots); n != keptRoots {
		t.Errorf("%d folders are kept, of at most %d", n, keptRoots)
	}
	if n := open() - before; n > 3*keptRoots {
		t.Errorf("%d descriptors are open", n)
	}
	if err := held.WriteFile("note", []byte("mine"), 0o600); err != nil {
		t.Error(err)
	}
	if got, err := root(0).ReadFile("note"); err != nil || string(got) != "mine" {
		t.Errorf("opened again: %q, %v", got, err)
	}
}
