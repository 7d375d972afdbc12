package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// The server that has the workspace is told to stop under a call that another one has taken
// there. The call ends as it would have, within the time that the server drains, and its caller
// gets its answer; later ones are refused, and may be made again. What outlasts the drain is
// cut off, and its caller is told that it failed, or may have taken effect.
//
// Z45
func TestWorkspaceOwnerDrains(t *testing.T) {
	t.Parallel()
	type outcome struct {
		*loombridgev1.ToolResponse
		error
	}
	for name, c := range map[string]struct{ drain, line string }{
		"a call that ends in time": {"30s", "echo ran >> r1; while ! cat go; do sleep 0.02; done; echo done"},
		"a call that does not":     {"100ms", "echo ran >> r1; sleep 600"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := mustRoute(t, "--drain-timeout", c.drain)
			ended := make(chan outcome, 1)
			go func() {
				got, err := r.run(t.Context(), "r1", c.line)
				ended <- outcome{got, err}
			}()
			waitUntil(t, "it runs", func() bool { return r.ran("r1") == 1 })
			must(t, r.owner.command.Process.Signal(syscall.SIGTERM))
			if c.drain == "100ms" {
				got := <-ended // as the tool that was stopped says it, where that was in time
				if told := got.GetErrorCode(); reasonOf(got.error) != "OUTCOME_UNKNOWN" && (got.error != nil || told == 0) {
					t.Errorf("the call that was cut off: %v, %v", got.ToolResponse, got.error)
				}
				must(t, r.owner.command.Wait())
				return
			}
			var err error
			waitUntil(t, "calls are refused", func() bool {
				_, err = r.run(t.Context(), "", "echo more >> more")
				return err != nil
			})
			if status.Code(err) != codes.Unavailable || reasonOf(err) != "SHUTTING_DOWN" {
				t.Errorf("a call after it: %v, want SHUTTING_DOWN", err)
			}
			must(t, os.WriteFile(filepath.Join(r.folder, "go"), []byte("go"), 0o600))
			if got := <-ended; got.error != nil || !got.GetSuccess() || !got.GetRecorded() {
				t.Errorf("the call that ran: %v, %v", got.ToolResponse, got.error)
			}
			must(t, r.owner.command.Wait())
		})
	}
}
