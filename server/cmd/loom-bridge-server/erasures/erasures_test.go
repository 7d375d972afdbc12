package erasures

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/stores"
)

var errPlace = errors.New("the store is asked for")

// run runs the command and returns the flag that it refuses, or what else it says.
func run(t *testing.T, args ...string) string {
	t.Helper()
	o := Options{
		Place:   func() (stores.Place, error) { return stores.Place{}, errPlace },
		Logger:  func(io.Writer) (*slog.Logger, error) { return slog.New(slog.DiscardHandler), nil },
		Backups: func() ([]string, error) { return nil, nil },
		Refuse:  func(flag, _, _ string) error { return errors.New("--" + flag) },
		Out:     io.Discard,
	}
	c := Command(o)
	c.SetArgs(args)
	c.SilenceErrors, c.SilenceUsage = true, true
	err := c.ExecuteContext(context.Background())
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestRefusedSubjects: who is to be erased has to be said once and exactly, before the store
// is looked at.
func TestRefusedSubjects(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := " --key " + filepath.Join(dir, "k") + " --out " + filepath.Join(dir, "o")
	for args, want := range map[string]string{
		"":                                              "--agent",
		"--agent a --user u" + files:                    "--agent",
		"--agent a --whole-tenant" + files:              "--agent",
		"--agent a --session=" + files:                  "--session",
		"--agent a --step=" + files:                     "--step",
		"--agent a --filter=" + files:                   "--filter",
		"--agent a --step 12" + files:                   "--step",
		"--agent a --step step_1" + files:               "--step",
		"--user u --session s" + files:                  "--session",
		"--user u --step step_001" + files:              "--step",
		"--agent a --shared all" + files:                "--shared",
		"--agent a --out " + filepath.Join(dir, "o"):    "--key",
		"--agent a --key " + filepath.Join(dir, "k"):    "--out",
		"--agent a --key k --out " + dir:                "--out",
		"--agent a" + files:                             errPlace.Error(),
		"--user u --shared authorship" + files:          errPlace.Error(),
		"--agent a --session s --step step_001" + files: errPlace.Error(),
		"--whole-tenant" + files:                        errPlace.Error(),
	} {
		if got := run(t, strings.Fields(args)...); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}
