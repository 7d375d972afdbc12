package server_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// providerCache is Anthropic's prompt cache, as its documents describe it: an entry for
// each mark, found by the same mark or by one at most so many blocks behind it. Times to
// live are left out: a run's prompts follow one another within minutes.
type providerCache struct {
	entries map[[32]byte]int // tokens by what stands before them
	// What was seen, in tokens: all, read from the cache, written to it, and neither;
	// and how many marks said that there would be a hit where there was none.
	all, read, written, plain, missed int
	// shared is what prompts have of the beginning of the one before.
	shared int
	before [][32]byte
}

// cached is how prices weigh tokens that are read, written and neither.
const (
	readPrice  = 0.1
	writePrice = 1.25
	lookBack   = 20
)

func (c *providerCache) cost() float64 {
	return readPrice*float64(c.read) + writePrice*float64(c.written) + float64(c.plain)
}

// send is a request with a prompt.
func (c *providerCache) send(tb testing.TB, p *loombridgev1.AssembleResponse) {
	tb.Helper()
	sums, marks := blocksOfPrompt(tb, p.GetPromptJson())
	if len(marks) > 4 || len(marks) != len(p.GetCacheMarks()) {
		tb.Fatalf("%d marks stand in the prompt, %d in its receipt", len(marks), len(p.GetCacheMarks()))
	}
	all, hit, last := int(p.GetTokens().GetTokens()), 0, 0
	for i, at := range marks {
		found := 0
		for back := at; back >= max(0, at-lookBack+1); back-- {
			if n, ok := c.entries[sums[back]]; ok {
				found = n
				break
			}
		}
		hit, last = max(hit, found), int(p.GetCacheMarks()[i].GetTokens())
	}
	for i, at := range marks {
		c.entries[sums[at]] = int(p.GetCacheMarks()[i].GetTokens())
	}
	hit = min(hit, last)
	c.all, c.read, c.written, c.plain = c.all+all, c.read+hit, c.written+last-hit, c.plain+all-last
	c.shared += int(p.GetReceipt().GetStableTokens())
	c.before = sums
}

// blocksOfPrompt are the hashes of everything up to each content block of a prompt, and
// which of them have marks.
func blocksOfPrompt(tb testing.TB, body string) (sums [][32]byte, marks []int) {
	tb.Helper()
	var prompt struct {
		Tools    []json.RawMessage `json:"tools"`
		System   []json.RawMessage `json:"system"`
		Messages []struct {
			Role    string            `json:"role"`
			Content []json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	must(tb, json.Unmarshal([]byte(body), &prompt))
	sum := sha256.New()
	add := func(kind string, raw json.RawMessage) {
		var block map[string]json.RawMessage
		must(tb, json.Unmarshal(raw, &block))
		_, marked := block["cache_control"]
		delete(block, "cache_control")
		plain, err := json.Marshal(block)
		must(tb, err)
		fmt.Fprintf(sum, "%s %d ", kind, len(plain))
		sum.Write(plain)
		if sums = append(sums, [32]byte(sum.Sum(nil))); marked {
			marks = append(marks, len(sums)-1)
		}
	}
	for _, tool := range prompt.Tools {
		add("tool", tool)
	}
	for _, block := range prompt.System {
		add("system", block)
	}
	for _, m := range prompt.Messages {
		for _, block := range m.Content {
			add(m.Role, block)
		}
	}
	return sums, marks
}

// Recorded runs, sent to a provider's cache with the marks that are planned: what the
// ledger costs beside what the same prompts cost with nothing folded, and how much of
// each prompt is the one before. A part of the runs by default, all with
// LOOM_SOAK_ROUNDS.
//
// M04, M05, Q10
func TestCacheOfRecordedRunsSoak(t *testing.T) {
	dir := os.Getenv("LOOM_EVAL_DATA")
	if dir == "" {
		t.Skip("LOOM_EVAL_DATA does not name the folder with recorded runs")
	}
	every, prompts := 12, 60
	if os.Getenv("LOOM_SOAK_ROUNDS") != "" {
		every, prompts = 1, 1<<20
	}
	runs := MustRuns(t, filepath.Join(dir, "trajectories", "mini_swe_dev.jsonl"))
	total := map[loombridgev1.HistoryPolicy]*providerCache{}
	worst := 0.0
	for i := 0; i < len(runs); i += every {
		s := servertest.Start(t, nil)
		costs := map[loombridgev1.HistoryPolicy]float64{}
		for _, policy := range []loombridgev1.HistoryPolicy{loombridgev1.HistoryPolicy_HISTORY_POLICY_LEDGER, loombridgev1.HistoryPolicy_HISTORY_POLICY_APPEND_ONLY} {
			cache := &providerCache{entries: map[[32]byte]int{}}
			c := &talk{tb: t, server: s, session: fmt.Sprint("run ", i, policy)}
			c.asks = func() {
				c.prompts++
				p, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
					AgentId: agent, SessionId: c.session, Goal: "Solve the issue and submit the patch.", MaxTokens: 150_000, Model: "claude-sonnet-4",
					Format: loombridgev1.PromptFormat_PROMPT_FORMAT_ANTHROPIC, History: &loombridgev1.HistorySettings{Policy: policy},
				})
				must(t, err)
				cache.send(t, p)
			}
			c.replay(&runs[i], prompts)
			costs[policy] = cache.cost()
			if total[policy] == nil {
				total[policy] = &providerCache{}
			}
			sum := total[policy]
			sum.all, sum.read, sum.written, sum.plain = sum.all+cache.all, sum.read+cache.read, sum.written+cache.written, sum.plain+cache.plain
			sum.shared, sum.missed = sum.shared+cache.shared, sum.missed+cache.missed
		}
		worst = max(worst, costs[loombridgev1.HistoryPolicy_HISTORY_POLICY_LEDGER]/costs[loombridgev1.HistoryPolicy_HISTORY_POLICY_APPEND_ONLY])
	}
	ledger, plain := total[loombridgev1.HistoryPolicy_HISTORY_POLICY_LEDGER], total[loombridgev1.HistoryPolicy_HISTORY_POLICY_APPEND_ONLY]
	shared := float64(ledger.shared) / float64(ledger.all)
	t.Logf("cost %.3f of append-only (worst run %.3f), tokens %.3f, shared prefix %.4f, read %.3f, look-back misses %d and %d",
		ledger.cost()/plain.cost(), worst, float64(ledger.all)/float64(plain.all), shared, float64(ledger.read)/float64(ledger.all), ledger.missed, plain.missed)
	if ledger.missed+plain.missed > 0 {
		t.Errorf("%d marks found no entry that they were to find", ledger.missed+plain.missed)
	}
	if shared < 0.9 {
		t.Errorf("prompts share %.4f with the one before", shared)
	}
	if ledger.cost() > plain.cost() {
		t.Errorf("folding costs %.3f of what it saves", ledger.cost()/plain.cost())
	}
}
