package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Share is a part of a whole, 0 to 1. It is NaN where there was nothing to measure,
// and null in JSON.
type Share float64

// Measured reports whether there was anything to measure.
func (s Share) Measured() bool { return !math.IsNaN(float64(s)) }

// MarshalJSON writes a number or null.
func (s Share) MarshalJSON() ([]byte, error) {
	if !s.Measured() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(s))
}

// text is the share with so many decimals, or a dash.
func (s Share) text(decimals int) string {
	if !s.Measured() {
		return nothing
	}
	return strconv.FormatFloat(float64(s), 'f', decimals, 64)
}

// nothing stands in a table where nothing was measured.
const nothing = "-"

// share is a part of a whole.
func share(part, whole int) Share {
	if whole == 0 {
		return Share(math.NaN())
	}
	return Share(float64(part) / float64(whole))
}

// Measured is the measured value of one policy. Ratios are to AppendOnly; the ratio of a run
// without tokens is 1.
type Measured struct {
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
	// IdentifiersVisible is the share of needed identifiers that were shown,
	// IdentifiersVisibleToolOnly the share among identifiers that only results had shown.
	IdentifiersVisible         Share `json:"identifiers_visible"`
	IdentifiersVisibleToolOnly Share `json:"identifiers_visible_tool_only"`
	// Calls is how many calls there were, FaultRate the share of them that named what
	// only results had shown and the prompt did not, RepeatRate the share of them that
	// had been made before and whose result was folded.
	Calls      int   `json:"calls"`
	FaultRate  Share `json:"fault_rate"`
	RepeatRate Share `json:"repeat_rate"`
	// RehydratedTokens is how many tokens a prompt had, on average, of folded lines that
	// came back.
	RehydratedTokens float64 `json:"rehydrated_tokens"`
	// Survival is by class: paths, commands, numbers, error_lines.
	Survival map[string]Share `json:"survival"`
	// Sent is how many tokens were sent, Cost what they cost in units of an input
	// token at a price of 1, Over how many prompts were over the budget whatever
	// was folded.
	Sent float64 `json:"-"`
	Cost float64 `json:"-"`
	Over int     `json:"-"`
}

func (m *measurement) row(name string, base *measurement) Measured {
	peaks := slices.Sorted(slices.Values(m.peaks))
	r := Measured{
		Policy: name, Runs: len(m.costs), Steps: m.steps,
		TokensRatio:                ratio(m.sent, base.sent),
		CostRatio:                  ratio(sum(m.costs), sum(base.costs)),
		BustsPerStep:               float64(m.busts) / float64(max(m.steps, 1)),
		StableShare:                ratio(m.shared, m.sent),
		IdentifiersVisible:         share(m.visible, m.needed),
		IdentifiersVisibleToolOnly: share(m.visibleTool, m.neededTool),
		Calls:                      m.calls,
		FaultRate:                  share(m.faults, m.calls),
		RepeatRate:                 share(m.repeats, m.calls),
		RehydratedTokens:           m.rehydrated / float64(max(m.steps, 1)),
		Survival:                   make(map[string]Share),
		Sent:                       m.sent, Cost: sum(m.costs), Over: m.over,
	}
	for i := range m.costs {
		r.WorstRunCostRatio = max(r.WorstRunCostRatio, ratio(m.costs[i], base.costs[i]))
	}
	if len(peaks) > 0 {
		r.PeakP50, r.PeakMax = peaks[len(peaks)/2], peaks[len(peaks)-1]
	}
	for _, class := range classes {
		r.Survival[class] = share(m.survived[class], m.held[class])
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

// The columns of the table.
var columns = []string{
	"policy", "sent k", "cost k", "tokens", "cost", "worst run", "busts/step", "stable",
	"peak p50", "peak max", "ids", "tool-only ids", "faults", "repeats", "rehydrated", "survival in the folded part",
}

// WriteTable writes rows for people. Sent and cost are in thousands of tokens
// and of units of one input token.
func WriteTable(w io.Writer, rows []Measured) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(columns, "\t"))
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.3f\t%.3f\t%.3f\t%.4f\t%.4f\t%d\t%d\t%s\t%s\t%s\t%s\t%.1f\t%s\n",
			r.Policy, r.Sent/1000, r.Cost/1000, r.TokensRatio, r.CostRatio, r.WorstRunCostRatio, r.BustsPerStep, r.StableShare,
			r.PeakP50, r.PeakMax, r.IdentifiersVisible.text(4), r.IdentifiersVisibleToolOnly.text(4), r.FaultRate.text(4), r.RepeatRate.text(4),
			r.RehydratedTokens, r.survivalText())
	}
	if err := t.Flush(); err != nil || !slices.ContainsFunc(rows, Measured.lacks) {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s: nothing to measure\n", nothing)
	return err
}

// lacks reports whether there was nothing to measure for a figure of the row.
func (r Measured) lacks() bool {
	for _, s := range r.Survival {
		if !s.Measured() {
			return true
		}
	}
	return !r.IdentifiersVisible.Measured() || !r.IdentifiersVisibleToolOnly.Measured()
}

func (r Measured) survivalText() string {
	var parts []string
	for _, class := range classes {
		parts = append(parts, class+" "+r.Survival[class].text(3))
	}
	return strings.Join(parts, ", ")
}
