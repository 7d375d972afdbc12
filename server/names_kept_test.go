package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Of a long file that was read and folded the prompt has the names, so that any of its
// lines can be written again: all of what a step keeps, and the best of what it leaves
// out.
func TestFoldsOfLongFilesKeepNames(t *testing.T) {
	for lines, least := range map[int]int{300: 299, 800: 790} {
		t.Run(fmt.Sprint(lines), func(t *testing.T) {
			s := servertest.Start(t, nil)
			var file strings.Builder
			for n := range lines {
				fmt.Fprintf(&file, "%6d\t    value_%d = look(at, the[%d])\n", n+1, n, n)
			}
			MustRecord(t, s, "s", "my:view", `{"path":"src/a.py"}`, file.String())
			for n := range 12 {
				MustRecord(t, s, "s", "my:run", fmt.Sprintf(`{"n":%d}`, n), strings.Repeat(fmt.Sprintf("nothing in part %d\n", n), 60))
			}
			_, err := s.Context.CompactHistory(t.Context(), &loombridgev1.CompactHistoryRequest{AgentId: agent, SessionId: "s"})
			must(t, err)
			got, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s", MaxTokens: 32_000})
			must(t, err)
			shown := shownIn(got) + " "
			names := 0
			for n := range lines {
				if strings.Contains(shown, fmt.Sprintf(" value_%d ", n)) {
					names++
				}
			}
			if names < least {
				t.Errorf("%d of %d names are left of a file of %d bytes, want %d", names, lines, file.Len(), least)
			}
		})
	}
}
