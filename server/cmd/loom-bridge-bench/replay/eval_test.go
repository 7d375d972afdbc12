package replay_test

import (
	"math"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/replay"
)

// recordedRows replays recorded runs under all policies and prints the table.
func recordedRows(t *testing.T, name string) map[string]replay.Measured {
	t.Helper()
	if testing.Short() {
		t.Skip("replaying all recorded runs takes a while")
	}
	runs := MustRuns(t, name)
	counter, err := tokens.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := replay.Bench{Count: func(text string) int {
		n, err := counter.Count("gpt-4o", text)
		if err != nil {
			t.Fatal(err)
		}
		return n.Tokens
	}}
	rows, err := b.Run(t.Context(), runs, replay.Policies(replay.Settings{Budget: replay.DefaultBudget}))
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := replay.WriteTable(&table, rows); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s\n%s", name, table.String())
	byName := make(map[string]replay.Measured)
	for _, r := range rows {
		byName[r.Policy] = r
	}
	return byName
}

// bound is a figure and what it may be.
type bound struct {
	name       string
	got        float64
	most, best float64
}

func atMost(name string, got, most float64) bound { return bound{name, got, most, math.Inf(-1)} }

func atLeast[N float64 | replay.Share](name string, got N, least float64) bound {
	return bound{name, float64(got), math.Inf(1), least}
}

func checkBounds(t *testing.T, bounds []bound) {
	t.Helper()
	for _, b := range bounds {
		if !(b.got <= b.most && b.got >= b.best) {
			t.Errorf("%s is %.4f, may be %.4f to %.4f", b.name, b.got, b.best, b.most)
		}
	}
}

// Coding runs: the ledger costs far less than sending everything and keeps the
// evidence; the anchors come out as they were measured elsewhere.
func TestRecordedCodingRuns(t *testing.T) {
	rows := recordedRows(t, "mini_swe_dev")
	l := rows["ledger"]
	checkBounds(t, []bound{
		atMost("dedupe: tokens", rows["dedupe"].TokensRatio, .90),
		atMost("dedupe: busts", rows["dedupe"].BustsPerStep, 0),
		atMost("cost", l.CostRatio, .605),
		atMost("tokens", l.TokensRatio, .475),
		atMost("worst run", l.WorstRunCostRatio, .90),
		atMost("busts", l.BustsPerStep, .042),
		atLeast("stable share", l.StableShare, .946),
		atMost("peak", float64(l.PeakMax), replay.DefaultBudget),
		atLeast("identifiers", l.IdentifiersVisible, .998),
		atLeast("identifiers of results only", l.IdentifiersVisibleToolOnly, .998),
		atLeast("paths", l.Survival["paths"], .97),
		atLeast("commands", l.Survival["commands"], .95),
		atLeast("numbers", l.Survival["numbers"], .90),
		atLeast("error lines", l.Survival["error_lines"], 1),
	})
	// What comes back is paid for with every prompt that has it.
	back := rows["ledger_rehydrated"]
	checkBounds(t, []bound{
		atMost("faults", float64(l.FaultRate), .001),
		atMost("faults, rehydrated", float64(back.FaultRate), .001),
		atMost("cost, rehydrated", back.CostRatio, .60),
		atMost("rehydrated tokens", back.RehydratedTokens, 7),
		atLeast("the same", back.RehydratedTokens, 1),
	})
	base := rows["append_only"]
	checkBounds(t, []bound{
		atMost("sent by append_only, million tokens", base.Sent/1e6, 75.14), atLeast("the same", base.Sent/1e6, 75.12),
		atMost("its cost, million units", base.Cost/1e6, 9.335), atLeast("the same", base.Cost/1e6, 9.325),
	})
	for _, anchor := range []struct {
		policy                                 string
		tokens, cost, busts, visible, toolOnly float64
	}{
		{"sliding_mask", .570, 2.130, .867, .960, .561},
		{"clear_tool_uses", .562, .747, .065, .957, .527},
	} {
		r := rows[anchor.policy]
		// The names were measured elsewhere with the letters of escapes in them: the
		// "nEOF" of `\nEOF` counted as one.
		const near, nearNames = .002, .005
		for _, pair := range [][3]float64{
			{r.TokensRatio, anchor.tokens, near},
			{r.CostRatio, anchor.cost, near},
			{r.BustsPerStep, anchor.busts, near},
			{float64(r.IdentifiersVisible), anchor.visible, nearNames},
			{float64(r.IdentifiersVisibleToolOnly), anchor.toolOnly, nearNames},
		} {
			if !(math.Abs(pair[0]-pair[1]) <= pair[2]) {
				t.Errorf("%s: got %.4f, elsewhere %.4f was measured", anchor.policy, pair[0], pair[1])
			}
		}
	}
}

// Dialogues are short: nothing is gained by much, nothing may be lost.
func TestRecordedDialogues(t *testing.T) {
	l := recordedRows(t, "tau_dev")["ledger"]
	checkBounds(t, []bound{
		atMost("cost", l.CostRatio, 1),
		atMost("worst run", l.WorstRunCostRatio, 1.0001),
		atLeast("identifiers", l.IdentifiersVisible, 1),
		atLeast("identifiers of results only", l.IdentifiersVisibleToolOnly, 1),
	})
}

// Observations in user messages fold like other results.
func TestRecordedDemonstrations(t *testing.T) {
	l := recordedRows(t, "swe_agent_demos")["ledger"]
	checkBounds(t, []bound{
		atMost("cost", l.CostRatio, .90),
		atMost("worst run", l.WorstRunCostRatio, 1.0001),
		atLeast("identifiers", l.IdentifiersVisible, 1),
		atLeast("identifiers of results only", l.IdentifiersVisibleToolOnly, 1),
		atMost("faults", float64(l.FaultRate), 0),
	})
}
