package replay

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// Row is what was measured of one policy. Ratios are to AppendOnly; where there
// was nothing to measure they are 1.
type Row struct {
	Policy string `json:"policy"`
	Runs   int    `json:"runs"`
	Steps  int    `json:"steps"`
	// TokensRatio and CostRatio are over all runs, WorstRunCostRatio is that of
	// the run that gained least.
	TokensRatio       float64 `json:"tokens_ratio"`
	CostRatio         float64 `json:"cost_ratio"`
	WorstRunCostRatio float64 `json:"worst_run_cost_ratio"`
	// BustsPerStep is the share of steps that broke the prefix, StableShare that
	// of tokens that were a prefix of the prompt before.
	BustsPerStep float64 `json:"busts_per_step"`
	StableShare  float64 `json:"stable_share"`
	// PeakP50 and PeakMax are over the largest prompts of the runs.
	PeakP50 int `json:"peak_p50"`
	PeakMax int `json:"peak_max"`
	// IdentifiersVisible is the share of needed identifiers that were shown, the
	// other that of those that only results had shown.
	IdentifiersVisible         float64 `json:"identifiers_visible"`
	IdentifiersVisibleToolOnly float64 `json:"identifiers_visible_tool_only"`
	// Survival is by class: paths, commands, numbers, error_lines. A class that
	// nothing folded held is left out.
	Survival map[string]float64 `json:"survival"`
}

func (m *measurement) row(name string, base *measurement) Row {
	peaks := slices.Sorted(slices.Values(m.peaks))
	r := Row{
		Policy: name, Runs: len(m.costs), Steps: m.steps,
		TokensRatio:                ratio(m.sent, base.sent),
		CostRatio:                  ratio(sum(m.costs), sum(base.costs)),
		BustsPerStep:               float64(m.busts) / float64(max(m.steps, 1)),
		StableShare:                ratio(m.shared, m.sent),
		IdentifiersVisible:         ratio(float64(m.visible), float64(m.needed)),
		IdentifiersVisibleToolOnly: ratio(float64(m.visibleTool), float64(m.neededTool)),
		Survival:                   make(map[string]float64),
	}
	for i := range m.costs {
		r.WorstRunCostRatio = max(r.WorstRunCostRatio, ratio(m.costs[i], base.costs[i]))
	}
	if len(peaks) > 0 {
		r.PeakP50, r.PeakMax = peaks[len(peaks)/2], peaks[len(peaks)-1]
	}
	for class, n := range m.held {
		r.Survival[class] = float64(m.survived[class]) / float64(n)
	}
	return r
}

// ratio is a to b, 1 if there is no b.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 1
	}
	return a / b
}

func sum(values []float64) float64 {
	n := 0.0
	for _, v := range values {
		n += v
	}
	return n
}

// WriteTable writes rows for people.
func WriteTable(w io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "policy\ttokens\tcost\tworst run\tbusts/step\tstable\tpeak p50\tpeak max\tids\tids tool-only\tsurvival")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%.3f\t%.3f\t%.3f\t%.4f\t%.4f\t%d\t%d\t%.4f\t%.4f\t",
			r.Policy, r.TokensRatio, r.CostRatio, r.WorstRunCostRatio, r.BustsPerStep, r.StableShare,
			r.PeakP50, r.PeakMax, r.IdentifiersVisible, r.IdentifiersVisibleToolOnly)
		for i, class := range slices.Sorted(maps.Keys(r.Survival)) {
			if i > 0 {
				fmt.Fprint(t, " ")
			}
			fmt.Fprintf(t, "%s %.3f", class, r.Survival[class])
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}
