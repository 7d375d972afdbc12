package tokens_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/tokens"
)

func MustMeter(tb testing.TB) *tokens.Meter {
	tb.Helper()
	m, err := tokens.NewMeter(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func estimated(n int) tokens.Count { return tokens.Count{Tokens: n, Counter: "estimate"} }

func TestPredictFromAnchor(t *testing.T) {
	m := MustMeter(t)
	first := tokens.Request{Model: "x", ID: "1", Local: estimated(1000)}
	anchor := m.Report(first, tokens.Anchor{}, tokens.Usage{Prompt: 1300, Completion: 90, Reasoning: 40})
	next := tokens.Request{Model: "x", ID: "2", Base: "1", Local: estimated(1200), Added: 150}
	got := m.Predict(next, anchor)
	if got.Tokens != 1300+50+150 || !got.Anchored || got.Exact || got.Counter != "estimate" || got.Reserve <= 0 {
		t.Errorf("got %+v", got)
	}
}

// An anchor is only good for the prompt that it was reported for. What retired
// it does not change what the session's tokens are worth.
func TestRetiredAnchor(t *testing.T) {
	m := MustMeter(t)
	anchor := m.Report(tokens.Request{Model: "x", ID: "1", Local: estimated(1000)}, tokens.Anchor{}, tokens.Usage{Prompt: 1300, Completion: 90})
	for name, p := range map[string]tokens.Request{
		"folded":        {Model: "x", ID: "2", Local: estimated(500), Added: 100},
		"another base":  {Model: "x", ID: "2", Base: "0", Local: estimated(500), Added: 100},
		"without a key": {Model: "x", Local: estimated(500)},
	} {
		if got := m.Predict(p, anchor); got.Tokens != 650 || got.Anchored || got.Exact || got.Reserve == 0 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if got := m.Predict(tokens.Request{Model: "y", ID: "2", Base: "1", Local: estimated(500)}, anchor); got.Tokens != 500 || got.Anchored {
		t.Errorf("another model: got %+v", got)
	}
	unnamed := m.Report(tokens.Request{Model: "x", Local: estimated(1000)}, tokens.Anchor{}, tokens.Usage{Prompt: 1300})
	if got := m.Predict(tokens.Request{Model: "x", ID: "2", Local: estimated(500)}, unnamed); got.Anchored {
		t.Errorf("prompts without names anchored each other: %+v", got)
	}
}

// Without a report a known vocabulary is exact and an unknown one is not.
func TestPredictWithoutReports(t *testing.T) {
	m := MustMeter(t)
	known := tokens.Count{Tokens: 500, Counter: "o200k_base", Exact: true}
	if got := m.Predict(tokens.Request{Model: "gpt-4o", Local: known}, tokens.Anchor{}); got.Count != known || got.Reserve != 0 {
		t.Errorf("known: got %+v", got)
	}
	if got := m.Predict(tokens.Request{Model: "x", Local: estimated(500)}, tokens.Anchor{}); got.Count != estimated(500) || got.Reserve < 50 {
		t.Errorf("unknown: got %+v", got)
	}
}

// Reports make the ratio of a model for sessions that have none of their own,
// and their agreement makes the reserve small.
func TestCalibration(t *testing.T) {
	m := MustMeter(t)
	p := tokens.Request{Model: "x", Local: estimated(4000)}
	before := m.Predict(p, tokens.Anchor{}).Reserve
	for range 20 {
		m.Report(p, tokens.Anchor{}, tokens.Usage{Prompt: 6000})
	}
	got := m.Predict(p, tokens.Anchor{})
	if math.Abs(float64(got.Tokens)-6000) > 60 || got.Reserve >= before {
		t.Errorf("got %+v, reserve before %d", got, before)
	}
	for _, absurd := range []tokens.Usage{{Prompt: 0}, {Prompt: -5}, {Prompt: 100}, {Prompt: math.MaxInt}} {
		m.Report(p, tokens.Anchor{}, absurd)
	}
	if after := m.Predict(p, tokens.Anchor{}); after != got {
		t.Errorf("absurd usage changed the prediction: %+v, %+v", got, after)
	}
	if a := m.Report(p, tokens.Anchor{}, tokens.Usage{Completion: 7}); a != (tokens.Anchor{}) {
		t.Errorf("no prompt tokens anchored %+v", a)
	}
}

// More models than a meter keeps still are predicted.
func TestMeterOfManyModels(t *testing.T) {
	m := MustMeter(t)
	for i := range 3000 {
		model := fmt.Sprintf("model-%d", i)
		m.Report(tokens.Request{Model: model, Local: estimated(100)}, tokens.Anchor{}, tokens.Usage{Prompt: 150})
		if got := m.Predict(tokens.Request{Model: model, Local: estimated(100)}, tokens.Anchor{}); got.Tokens < 100 || got.Tokens > 150 {
			t.Fatalf("%s: got %+v", model, got)
		}
	}
}

// replay predicts every step of the recorded runs and hands each prediction
// over with what the provider reported and how many responses of the run came
// before.
func replay(tb testing.TB, model string, anchored bool, step func(got tokens.Prediction, real, responses int)) {
	tb.Helper()
	c, m := MustCounter(tb, nil), MustMeter(tb)
	for _, run := range MustRuns(tb, "mini_swe_dev.jsonl") {
		p := tokens.Request{Model: model, Local: tokens.Count{Counter: "x"}}
		var anchor tokens.Anchor
		responses := 0
		for _, recorded := range run {
			if recorded.Usage != nil {
				p.ID = fmt.Sprint(responses + 1)
				if p.Base = ""; anchored && responses > 0 {
					p.Base = anchor.ID
				}
				step(m.Predict(p, anchor), recorded.Usage.Prompt, responses)
				anchor = m.Report(p, anchor, tokens.Usage{Prompt: recorded.Usage.Prompt, Completion: recorded.Usage.Completion})
				responses++
				p.Added = 0
			}
			n, err := c.Message(model, counted(recorded))
			if err != nil {
				tb.Fatal(err)
			}
			p.Local.Tokens += n.Tokens
			if recorded.Usage == nil {
				p.Added += n.Tokens
			}
		}
	}
}

func counted(m message) tokens.Message {
	out := tokens.Message{Role: m.Role, Content: m.Content, CallID: m.CallID}
	for _, call := range m.ToolCalls {
		out.Calls = append(out.Calls, tokens.Call{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	return out
}

// percentile returns a percentile in percent.
func percentile(errs []float64, p float64) float64 {
	slices.Sort(errs)
	return 100 * errs[min(len(errs)-1, int(p*float64(len(errs))))]
}

// The next prompt of a recorded run, predicted from the usage reported for the
// one before: near, and with its reserve never late.
func TestAnchoredPredictions(t *testing.T) {
	for _, model := range []string{"deepseek-chat", "gpt-4o"} {
		var errs, reserves []float64
		late := 0
		replay(t, model, true, func(got tokens.Prediction, real, responses int) {
			if responses == 0 {
				return
			}
			if !got.Anchored {
				t.Fatalf("not anchored: %+v", got)
			}
			errs = append(errs, math.Abs(float64(got.Tokens)/float64(real)-1))
			reserves = append(reserves, float64(got.Reserve)/float64(real))
			if float64(got.Tokens+got.Reserve) < 0.99*float64(real) {
				late++
			}
		})
		p95, p99 := percentile(errs, .95), percentile(errs, .99)
		t.Logf("%s: %d steps: p50 %.2f %%, p95 %.2f %%, p99 %.2f %%, max %.2f %%; reserve p50 %.2f %%, p95 %.2f %%; late %d",
			model, len(errs), percentile(errs, .5), p95, p99, percentile(errs, 1), percentile(reserves, .5), percentile(reserves, .95), late)
		if p95 > 0.8 || p99 > 2.5 || late > 0 {
			t.Errorf("%s: want p95 ≤ 0.8 %%, p99 ≤ 2.5 %%, none late", model)
		}
	}
}

// A model that nobody knows, after three responses of a run: even where the
// anchor is retired at every step.
func TestUnknownModelAfterThreeResponses(t *testing.T) {
	for _, anchored := range []bool{true, false} {
		var errs []float64
		replay(t, "of-nobody", anchored, func(got tokens.Prediction, real, responses int) {
			if responses >= 3 {
				errs = append(errs, math.Abs(float64(got.Tokens)/float64(real)-1))
			}
		})
		p95 := percentile(errs, .95)
		t.Logf("anchored %v: %d steps: p50 %.2f %%, p95 %.2f %%, p99 %.2f %%", anchored, len(errs), percentile(errs, .5), p95, percentile(errs, .99))
		if p95 > 3 {
			t.Errorf("anchored %v: p95 %.2f %%, want ≤ 3 %%", anchored, p95)
		}
	}
}
