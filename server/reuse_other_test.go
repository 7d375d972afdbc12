package server_test

import (
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

// What another server on the store changes is in the next prompt, whatever this one has
// cached of the prompts before.
//
// G19
func TestPromptsSeeWhatAnotherServerChanged(t *testing.T) {
	engine := pgtest.Engine(t)
	t.Cleanup(func() { must(t, engine.Close()) })
	start := func() *servertest.Server {
		return servertest.Start(t, &servertest.Options{Engine: engine, Domain: compose.Options{Assemble: assemble.Options{CacheBytes: -1}}})
	}
	here, there := start(), start()
	prompt := func() (text string) {
		t.Helper()
		for range 3 { // the last is of what is cached
			got, err := here.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s", Goal: "Repair the pump", Settings: patient("eva")})
			must(t, err)
			text = wholeText(got)
		}
		return text
	}
	must(t, tell(t, here, "s"))
	prompt()
	for _, kind := range []string{"", "note", "knowledge"} {
		save := func(says string) {
			remember(t, there, &loombridgev1.MemorySaveRequest{
				UserId: "eva", Replace: true, Kind: kind, Key: "pump-" + kind, Text: "How to repair the pump: " + says,
			})
		}
		first, second := kind+"-oil-it", kind+"-drain-it"
		save(first)
		if text := prompt(); !strings.Contains(text, first) {
			t.Errorf("%q that was saved is missing in\n%s", kind, text)
		}
		save(second)
		if text := prompt(); !strings.Contains(text, second) || strings.Contains(text, first) {
			t.Errorf("%q that was changed is missing in\n%s", kind, text)
		}
		_, err := there.Memory.DeleteRecords(t.Context(), &loombridgev1.DeleteRecordsRequest{AgentId: agent, UserId: "eva", Name: &loombridgev1.DeleteRecordsRequest_Key{Key: "pump-" + kind}})
		must(t, err)
		if text := prompt(); strings.Contains(text, second) {
			t.Errorf("%q that was deleted is still in\n%s", kind, text)
		}
	}
}
