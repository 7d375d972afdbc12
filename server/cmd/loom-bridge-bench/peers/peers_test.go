package peers_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/peers"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/sets"
)

// Every engine finds what exists when it is asked, or names what installs it.
func TestEngines(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	talk := &sets.Talk{
		Turns: []sets.Turn{
			{ID: "boat", Author: "Ann", Text: "We painted the boat green"},
			{ID: "train", Author: "Ben", Text: "The train to Ghent was late"},
			{ID: "boats", Author: "Ben", Text: "All those boats are blue by now"},
		},
		Questions: []sets.Question{{Text: "Which boats are painted?", After: 2}, {Text: "When did Ben see blue boats?", After: 3}},
	}
	for _, engine := range peers.Engines() {
		t.Run(engine, func(t *testing.T) {
			answer, err := peers.Run(t.Context(), python, t.TempDir(), peers.Work{Engine: engine, Talks: []*peers.Talk{peers.NewTalk(talk)}, Limit: 2})
			if err != nil {
				t.Fatal(err)
			}
			if answer.Missing != "" {
				if engine == peers.SQLite || !strings.Contains(answer.Missing, "install") {
					t.Errorf("it says %q", answer.Missing)
				}
				return
			}
			if hits := answer.Talks[0].Hits; !slices.Equal(hits[0], []string{"boat"}) || hits[1][0] != "boats" {
				t.Errorf("%s found %q", answer.Version, hits)
			}
		})
	}
}
