package assemble

import (
	"context"

	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/assemble/past"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Receipt is the account of a prompt: what was done to make it fit, and what it
// should cost. It belongs to the caller.
type Receipt struct {
	// PromptID names the prompt for ReportUsage: equal prompts have equal ids.
	PromptID string
	// Policy is what made the history: "ledger", "append_only", or the name of a
	// preset.
	Policy string
	// Folds stand in the history in place of entries, in order; none under
	// other policies than the ledger.
	Folds []history.Fold
	// Batch is what this call folded; nil when that was nothing. With DryRun it
	// is what would be.
	Batch *fold.Batch
	// StableTokens is how much of the prompt, from its beginning, is what the
	// session's prompt before of the same model and format had too, and StableBytes the
	// same in bytes of the layout that PrefixSHA256 is of. Neither prompt takes fewer
	// tokens. Both are 0 with the first prompt since the process started, and while dry
	// runs are all there were.
	StableTokens int
	StableBytes  int64
	// SettledTokens is how much stands before the goal, counted: what the next
	// prompt begins with, unless something is folded.
	SettledTokens int
	// AppendOnlyTokens is what the prompt would take with nothing folded and
	// every result shown again that is only referred to, counted.
	AppendOnlyTokens int
	// Cost is what the prompt should be billed, in units of one input token: its
	// stable part as read from the provider's cache, the rest as written to it.
	// AppendOnlyCost is the same for a prompt with nothing folded, whose stable
	// part is all that the prompt before had.
	Cost, AppendOnlyCost float64
	// Pressure is the share of the budget that is taken, 0 to 1.
	Pressure float64
	// ReserveTokens is how many more tokens the provider may well count than
	// Prompt.Tokens says.
	ReserveTokens int
	// ExpectedCached is how many tokens the provider should read from its cache, by the
	// marks of this prompt and the one before.
	ExpectedCached int
	// Layout is the order of the sections.
	Layout settings.Layout
	// Sections are the account of each, in the order of the prompt, and then those that do
	// not stand there.
	Sections []Section
	// Partitions are the tokens by what they are part of.
	Partitions Partitions
	// Tools are what each tool takes, in the order of the prompt.
	Tools []ToolCost
	// Difference is where the prompt first differs from the session's prompt before, of no
	// section where they are the same; nil where that one is not known.
	Difference *past.Difference
	// Calls is how many calls of tools the session has made, Faults how many of them asked
	// again for what had been folded away. Both are counted from the first prompt on that
	// is known.
	Calls, Faults int64
	// NewCalls and NewFaults are those that came since the prompt before.
	NewCalls, NewFaults int64
	// Reused says that the prompt is that of an earlier call with the same inputs.
	Reused bool
	// Sprint is how often the window was renewed.
	Sprint int
	// Sequences say how far what the prompt is made of was read.
	Sequences []gather.Sequence
}

// finish returns the prompt with its receipt, and remembers it.
func (t *task) finish(ctx context.Context, s *fold.Source, d *draft) (Prompt, error) {
	kind := promptKind{model: t.r.Model, format: t.r.Format}
	last := t.a.known.last(t.r.Scope, t.r.SessionID)
	cached := last.of(kind)
	now := lastPrompt{kind: kind, total: d.predicted.Tokens, places: d.b.Places, head: d.b.Head, settled: d.b.Settled.Tokens + d.Saved}
	stable := now.shared(cached)
	now.marks = t.marks(d.b, stable, cached)
	// What was predicted may be less than what is counted here, as after a report.
	stable.Tokens = min(stable.Tokens, now.total, cached.total)
	for i := range now.marks {
		now.marks[i].Expected = min(now.marks[i].Expected, stable.Tokens)
	}
	text, err := d.b.Finish(now.marks)
	if err != nil {
		return Prompt{}, err
	}
	p := promptOf(&text)
	settled := d.b.Settled
	p.Tokens = d.predicted.Count
	r := Receipt{
		PromptID: d.asked.ID, Policy: t.rules.Name, Folds: d.Folds, Batch: t.folding.Before.Plus(d.Batch),
		SettledTokens:    settled.Tokens,
		AppendOnlyTokens: d.b.Total.Tokens + d.Saved,
		Pressure:         float64(p.Tokens.Tokens) / float64(t.r.MaxTokens),
		ReserveTokens:    d.predicted.Reserve,
		Layout:           t.table.Name, Sections: t.sections(d.b), Tools: t.tools.costs, Sequences: t.sequences(),
	}
	r.Sprint = t.moment.Sprint
	if d.Renewal != nil && d.Renewal.Snapshot.Sprint > 0 {
		r.Sprint = d.Renewal.Snapshot.Sprint
	}
	r.Partitions = partitionsOf(r.Sections)
	now.account = accountOf(&r, d.b, p.Tokens.Tokens, t.r.MaxTokens)
	now.pressure, now.free = r.Pressure, max(t.r.MaxTokens-p.Tokens.Tokens, 0)
	r.ExpectedCached = expectedHit(now.marks)
	r.StableTokens, r.StableBytes = stable.Tokens, stable.Bytes
	r.Cost = t.cost(d.b.Total.Tokens, stable.Tokens)
	r.AppendOnlyCost = t.cost(r.AppendOnlyTokens, now.appended(cached))
	r.Difference = t.difference(d.b, last)
	asks := t.asks(ctx, s)
	r.Calls, r.Faults, r.NewCalls, r.NewFaults = asks.Calls, asks.Faults, asks.newCalls, asks.newFaults
	p.Receipt = r
	t.record(ctx, s, d, &p, asks, now.marks)
	if !t.r.DryRun {
		t.gathered.Rendered()
		texts, size := sentTexts(d.b)
		t.a.known.keepTexts(t.r.Scope, t.r.SessionID, texts, size)
		t.a.known.ask(t.r.Scope, t.r.SessionID, asks)
		t.a.known.leave(t.r.Scope, t.r.SessionID, d.b.Trail.With(t.r.Model, d.Folds))
		t.a.known.remember(t.r.Scope, t.r.SessionID, now, sentPrompt{
			asked: d.asked, last: d.last, predicted: p.Tokens.Tokens, stable: stable.Tokens,
		})
	}
	return p, nil
}

// Pressure is that of the last prompt of a session, as its receipt told it: 0 while
// there was none, and of a session whose last prompt was forgotten. A dry run is no
// prompt.
func (a *Assembler) Pressure(scope kv.Scope, sessionID string) float64 {
	return a.known.last(scope, sessionOf(sessionID)).pressure
}

// cost is what a prompt is billed, in units of one input token.
func (t *task) cost(all, stable int) float64 {
	stable = min(stable, all)
	write := max(t.rules.Prices.CacheWrite, t.rules.Prices.Input)
	return fold.Finite((t.rules.Prices.CachedInput*float64(stable) + write*float64(all-stable)) / t.rules.Prices.Input)
}

// shared is the end of what both prompts begin with.
func (p lastPrompt) shared(last lastPrompt) render.End {
	end := render.End{}
	for i := range min(len(p.places), len(last.places)) {
		if p.places[i].Sum != last.places[i].Sum {
			break
		}
		end = p.places[i]
	}
	return end
}

// appended is how much of the prompt the one before had, in tokens, if nothing
// was ever folded: all that stood before its goal, unless tools or system
// differ.
func (p lastPrompt) appended(last lastPrompt) int {
	if p.head != last.head || len(last.places) < last.head || p.places[p.head-1].Sum != last.places[p.head-1].Sum {
		return 0
	}
	return min(p.settled, last.settled)
}
