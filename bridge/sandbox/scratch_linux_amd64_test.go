package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/internal/testkit/machine"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// The temporary files of a server that was killed are removed by the next one, those of
// one that lives are not, and nothing stays after Close.
func TestScratchOfTheDead(t *testing.T) {
	temp, work := t.TempDir(), t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	leave := func(name string, lock bool, age time.Duration) (string, *os.File) {
		place := filepath.Join(temp, "loom-scratch-"+name)
		must(os.MkdirAll(filepath.Join(place, "run-1", "closed"), 0o755))
		must(os.WriteFile(filepath.Join(place, "run-1", "closed", "f"), []byte("x"), 0o644))
		must(os.Chmod(filepath.Join(place, "run-1", "closed"), 0))
		var file *os.File
		if lock {
			var err error
			file, err = os.Create(filepath.Join(place, "lock"))
			must(err)
		}
		must(os.Chtimes(place, time.Now().Add(-age), time.Now().Add(-age)))
		return place, file
	}
	dead, file := leave("dead", true, 0)
	must(file.Close())
	living, file := leave("living", true, time.Hour)
	must(unix.Flock(int(file.Fd()), unix.LOCK_EX))
	defer file.Close()
	defer func() { must(os.Chmod(filepath.Join(living, "run-1", "closed"), 0o700)) }()
	old, _ := leave("old", false, time.Hour)
	young, _ := leave("young", false, 0)
	defer func() { must(os.Chmod(filepath.Join(young, "run-1", "closed"), 0o700)) }()
	must(os.Symlink(work, filepath.Join(temp, "loom-scratch-link")))

	root, err := os.OpenRoot(work)
	must(err)
	defer root.Close()
	l := sandbox.NewLocal(&sandbox.Options{Tier: sandbox.TierLandlock, TempDir: temp})
	defer l.Close()
	if c := l.Describe(t.Context()); !c.Confined() {
		machine.Lacks(t, sandbox.TierLandlock, c.Problems)
	}
	job := sandbox.Job{Scope: kv.Scope{Tenant: "t", Kind: kv.OwnerAgent, Owner: "a"}, Argv: []string{"sh", "-c", "echo x > $TMPDIR/f && cat $TMPDIR/f"}, Root: root}
	out, err := l.Run(t.Context(), job, sandbox.Streams{})
	if err != nil || out.Exit != 0 {
		t.Fatalf("got %+v, %v", out, err)
	}
	for place, stays := range map[string]bool{dead: false, old: false, living: true, young: true, work: true} {
		if _, err := os.Lstat(place); (err == nil) != stays {
			t.Errorf("%s: stays %v, want %v", filepath.Base(place), err == nil, stays)
		}
	}
	must(l.Close())
	names, err := filepath.Glob(filepath.Join(temp, "*"))
	must(err)
	if len(names) != 3 { // living, young, link
		t.Errorf("after Close there are %v", names)
	}
}
