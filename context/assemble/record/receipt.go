package record

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/assemble/past"
	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
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
	// Sections accounts for each section, first the ones in the prompt, in its order, then
	// the absent ones.
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
	// NewCalls and NewFaults count since the previous prompt.
	NewCalls, NewFaults int64
	// Reused says that the prompt is that of an earlier call with the same inputs.
	Reused bool
	// Sprint is how often the window was renewed.
	Sprint int
}

// Finish returns the prompt with its receipt, and remembers it.
func (a *Recorder) Finish(ctx context.Context, m *Made) (Prompt, error) {
	kind := CacheKind{Model: m.Model, Format: m.Format}
	last := a.Known.Last(m.Scope, m.SessionID)
	cached := last.Of(kind)
	now := Last{kind: kind, total: m.Predicted.Tokens, places: m.Built.Places, head: m.Built.Head, settled: m.Built.Settled.Tokens + m.Draft.Saved}
	stable := now.shared(cached)
	now.marks = a.marks(m, stable, cached)
	// The prediction may be less than our count, for example after a report.
	stable.Tokens = min(stable.Tokens, now.total, cached.total)
	for i := range now.marks {
		now.marks[i].Expected = min(now.marks[i].Expected, stable.Tokens)
	}
	text, err := m.Built.Finish(now.marks)
	if err != nil {
		return Prompt{}, err
	}
	p := promptOf(&text)
	p.Tokens = m.Predicted.Count
	r := Receipt{
		PromptID: m.Asked.ID, Policy: m.Policy, Folds: m.Draft.Folds, Batch: m.Batch,
		SettledTokens:    m.Built.Settled.Tokens,
		AppendOnlyTokens: m.Built.Total.Tokens + m.Draft.Saved,
		Pressure:         float64(p.Tokens.Tokens) / float64(m.MaxTokens),
		ReserveTokens:    m.Predicted.Reserve,
		Layout:           m.Layout, Sections: m.Sections, Tools: m.Tools,
	}
	r.Sprint = m.Sprint
	if m.Draft.Renewal != nil && m.Draft.Renewal.Snapshot.Sprint > 0 {
		r.Sprint = m.Draft.Renewal.Snapshot.Sprint
	}
	r.Partitions = partitionsOf(r.Sections)
	now.Account = accountOf(&r, m.Built, p.Tokens.Tokens, m.MaxTokens)
	now.Pressure, now.Free = r.Pressure, max(m.MaxTokens-p.Tokens.Tokens, 0)
	r.ExpectedCached = expectedHit(now.marks)
	r.StableTokens, r.StableBytes = stable.Tokens, stable.Bytes
	r.Cost = cost(m.Prices, m.Built.Total.Tokens, stable.Tokens)
	r.AppendOnlyCost = cost(m.Prices, r.AppendOnlyTokens, now.appended(cached))
	r.Difference = a.difference(m, last)
	asks := a.asks(ctx, m)
	r.Calls, r.Faults, r.NewCalls, r.NewFaults = asks.Calls, asks.Faults, asks.newCalls, asks.newFaults
	p.Receipt = r
	a.record(ctx, m, &p, asks, now.marks)
	if !m.DryRun {
		m.Rendered()
		key := sessionKey{m.Scope, m.SessionID}
		texts, size := sentTexts(m.Built)
		a.Known.texts.Put(key, texts, size)
		a.Known.asks.Put(key, asks, 1)
		a.Known.trails.Put(key, m.Built.Trail.With(m.Model, m.Draft.Folds), 1)
		a.Known.remember(m.Scope, m.SessionID, now, sentPrompt{
			asked: m.Asked, last: m.Last, predicted: p.Tokens.Tokens, stable: stable.Tokens,
		})
	}
	return p, nil
}

// Pressure returns the pressure of a session's last prompt, as in its receipt; 0 before the
// first prompt, or if the last one is no longer cached. Dry runs do not count.
func (a *Recorder) Pressure(scope kv.Scope, sessionID string) float64 {
	return a.Known.Last(scope, sessionOf(sessionID)).Pressure
}

// cost is what a prompt is billed, in units of one input token.
func cost(prices history.Prices, all, stable int) float64 {
	stable = min(stable, all)
	write := max(prices.CacheWrite, prices.Input)
	return fold.Finite((prices.CachedInput*float64(stable) + write*float64(all-stable)) / prices.Input)
}

// shared is the end of what both prompts begin with.
func (p Last) shared(last Last) render.End {
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
func (p Last) appended(last Last) int {
	if p.head != last.head || len(last.places) < last.head || p.places[p.head-1].Sum != last.places[p.head-1].Sum {
		return 0
	}
	return min(p.settled, last.settled)
}

// Section is the account of a section of a prompt.
type Section struct {
	// Name is that of the section.
	Name string
	// Phase is where it stands, 0 for the history and for tools as a parameter; Cache how
	// long it stays as it is, 0 for the same.
	Phase inject.Phase
	Cache inject.Cache
	// Tokens is its size, Before what it would take without its cap, MaxTokens its cap; 0
	// is none.
	Tokens, Before, MaxTokens int
	// Outcome is its result; Reason says why part of it is missing, or warns.
	Outcome Outcome
	Reason  string
	// Source says where its text came from, for people; empty if it has no text.
	Source string
	// Refs name what it shows, LeftOut what was found for it and had no room.
	Refs, LeftOut []string
}

// Outcome is the result of a section: whether and how the prompt shows it.
type Outcome uint8

// The outcomes.
const (
	// Shown: it stands there whole.
	Shown Outcome = iota + 1
	// Cut: a part of it stands there.
	Cut
	// LeftOut: there was no room for it.
	LeftOut
	// Failed: its source failed.
	Failed
	// TimedOut: its source took too long.
	TimedOut
	// Empty: there was nothing to show.
	Empty
)

// Partitions are the tokens of a prompt by what they are part of.
type Partitions struct {
	// System are instructions and examples, Memory is knowledge about the user and the
	// task, Skill active skills and tools, History messages and steps, Working the agent's
	// current work and everything that is only for this turn.
	System, Memory, Skill, History, Working int
}

// partitionsOf adds up sections.
func partitionsOf(sections []Section) Partitions {
	var p Partitions
	for i := range sections {
		s := &sections[i]
		switch {
		case s.Name == settings.ToolList || s.Name == settings.SkillTexts:
			p.Skill += s.Tokens
		case s.Name == settings.History || s.Name == settings.Tasks || s.Name == settings.Events || s.Name == settings.Messages:
			p.History += s.Tokens
		case s.Name == settings.Working || s.Name == settings.Goal || s.Phase == inject.Runtime:
			p.Working += s.Tokens
		case s.Phase == inject.UserContext:
			p.Memory += s.Tokens
		default:
			p.System += s.Tokens
		}
	}
	return p
}

// ToolCost is what a tool takes in a prompt.
type ToolCost struct {
	Name   string
	Tokens int
}

// marks plans the cache marks of a prompt that begins with shared of the one before.
func (a *Recorder) marks(m *Made, shared render.End, last Last) []provider.Mark {
	return provider.Plan(provider.Layout{
		Tools: m.Built.Edges.Tools, Stable: m.Built.Edges.Stable, Session: m.Built.Edges.Session, Folds: m.Built.Edges.Folds, History: m.Built.Edges.History,
		Shared: provider.Edge{Blocks: shared.Blocks, Tokens: shared.Tokens}, Before: last.marks,
		Minimum: a.counter.Model(m.Model).CacheMinimum,
	})
}

// expectedHit is how many tokens the provider should read from its cache.
func expectedHit(marks []provider.Mark) int {
	n := 0
	for _, m := range marks {
		n = max(n, m.Expected)
	}
	return n
}

// accountOf says what takes most of a prompt.
func accountOf(r *Receipt, b *render.Builder, all, budget int) render.OverflowError {
	e := render.OverflowError{TotalTokens: all, MaxTokens: budget}
	for i := range r.Sections {
		s := &r.Sections[i]
		if s.Name == settings.History {
			continue
		}
		if s.Tokens > e.PartTokens {
			e.Part, e.PartTokens = s.Name, s.Tokens
		}
		if s.Tokens > 0 {
			e.Detail += fmt.Sprintf("%s %d, ", s.Name, s.Tokens)
		}
	}
	for i := max(b.Head, 1); i < len(b.Places); i++ {
		if n := b.Places[i].Tokens - b.Places[i-1].Tokens; n > e.PartTokens {
			e.Part, e.PartTokens = fmt.Sprintf("message %d of the prompt", i), n
		}
	}
	e.Detail += fmt.Sprintf("history %d", b.Parts[settings.History])
	return e
}
