package replay

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/history"
)

// PromptPart is one part of a prompt.
type PromptPart struct {
	// Text and Args are what it says; a call's name and arguments count apart
	// from what was said next to it.
	Text, Args string
	// Tokens is its size.
	Tokens int
}

// Sent is what one request sends.
type Sent struct {
	Pieces []PromptPart
	// Folded has, for each message before, whether it is not there as it was.
	Folded []bool
	// Over says that it is over the policy's budget, whatever is folded.
	Over bool
	// Rehydrated is how many of its tokens brought folded lines back.
	Rehydrated int
}

// Session is one run under a policy.
type Session interface {
	// View is the prompt of the request that message i answers. It is called
	// once for each request, in order.
	View(i int) (Sent, error)
}

// Policy decides what the requests of a run send.
type Policy interface {
	// Name is the policy's name in tables.
	Name() string
	// Start begins a run. count counts tokens and remembers.
	Start(run *Run, count func(string) int) Session
}

// DefaultBudget is what the ledger may send where nothing else is said, in
// tokens.
const DefaultBudget = 32_000

// Settings are what all policies of a comparison go by.
type Settings struct {
	// Budget is the most tokens that the ledger may send; 0 is no bound.
	Budget int
	// Prices are what tokens cost. Default history.DefaultPrices.
	Prices history.Prices
}

// The policies by their names; policies of presets are named after the preset, with the
// suffix _literal or _sticky. A number after a colon changes the first figure.
const (
	appendOnlyName = "append_only"
	dedupeName     = "dedupe"
	maskName       = "sliding_mask"
	clearName      = "clear_tool_uses"
	ledgerName     = "ledger"
	rehydratedName = "ledger_rehydrated"
)

// What sliding_mask and clear_tool_uses keep and free where nothing else is
// said, in results and in tokens: what others do by default, at a trigger at
// which it shows in runs of this length.
const (
	maskKeeps    = 10
	clearTrigger = 8000
	clearKeeps   = 3
	clearFrees   = 2000
)

// Names are the names of the policies that a comparison shows side by side: the
// baseline, what others do, the presets, and the ledger.
func Names() []string {
	return []string{
		appendOnlyName, dedupeName, maskName, clearName,
		"design" + literalForm, "design" + stickyForm, "reduction" + literalForm, "reduction" + stickyForm,
		ledgerName, rehydratedName,
	}
}

// Policies returns the policies of Names.
func Policies(s Settings) []Policy {
	all := make([]Policy, 0, len(Names()))
	for _, name := range Names() {
		if p, ok := Named(name, s); ok {
			all = append(all, p)
		}
	}
	return all
}

// Named returns the policy of a name: one of Names, sliding_mask:N that shows N
// results, clear_tool_uses:N that begins at N tokens, or any preset with
// _literal or _sticky; a preset's name alone is sticky. False for other names.
func Named(name string, s Settings) (Policy, bool) {
	kind, figure, has := strings.Cut(name, ":")
	n, err := strconv.Atoi(figure)
	switch {
	case has && (err != nil || n <= 0 || kind != maskName && kind != clearName):
		return nil, false
	case kind == appendOnlyName:
		return AppendOnly(), true
	case kind == dedupeName:
		return Dedupe(), true
	case kind == ledgerName:
		return Ledger(s), true
	case kind == rehydratedName:
		return Rehydrated(s), true
	case kind == maskName:
		return renamed{SlidingMask(cmp.Or(n, maskKeeps)), name}, true
	case kind == clearName:
		return renamed{ClearToolUses(cmp.Or(n, clearTrigger), clearKeeps, clearFrees), name}, true
	}
	return namedPreset(name, s)
}

func namedPreset(name string, s Settings) (Policy, bool) {
	name = strings.TrimSuffix(name, stickyForm)
	name, literal := strings.CutSuffix(name, literalForm)
	p, ok := history.Named(name)
	return Preset(name, p, !literal, s), ok
}

// renamed is a policy under the name that it was asked for.
type renamed struct {
	Policy
	name string
}

func (r renamed) Name() string { return r.name }

// messageTokens is the frame of one message.
const messageTokens = 4

// policy is a Policy made of a function.
type policy struct {
	name  string
	start func(run *Run, count func(string) int) Session
}

func (p policy) Name() string                                 { return p.name }
func (p policy) Start(r *Run, count func(string) int) Session { return p.start(r, count) }

// AppendOnly sends every message as it was: the baseline.
func AppendOnly() Policy {
	return ledger(appendOnlyName, 0, history.Options{NoFold: true, NoDedupe: true, ResultTokens: -1})
}

// Dedupe is AppendOnly without lines that the prompt shows already.
func Dedupe() Policy {
	return ledger(dedupeName, 0, history.Options{NoFold: true, ResultTokens: -1})
}

// Ledger is the default policy, as servers run it: with the defaults of
// history.Options, and the prices and the budget of s.
func Ledger(s Settings) Policy {
	return ledger(ledgerName, s.Budget, history.Options{Prices: s.Prices})
}

func ledger(name string, budget int, opts history.Options) Policy {
	opts.MessageTokens = messageTokens
	return policy{name, func(run *Run, count func(string) int) Session {
		return &ledgerSession{run: run, ledger: history.New(count, &opts), budget: budget}
	}}
}

type ledgerSession struct {
	run    *Run
	ledger *history.Ledger
	folds  []history.Fold
	budget int
	// end, if not nil, is what stands at the end of a prompt.
	end func(i int, v history.View) PromptPart
}

func (s *ledgerSession) View(i int) (Sent, error) {
	h := history.History{Entries: s.run.Entries[:i], Folds: s.folds, Budget: s.budget}
	v, err := s.ledger.Compact(h)
	over := errors.Is(err, history.ErrOverflow)
	if over {
		// A server would refuse it; the run went on all the same.
		h.Budget = 0
		v, err = s.ledger.Compact(h)
	}
	if err != nil {
		return Sent{}, fmt.Errorf("run %s, message %d: %w", s.run.ID, i+1, err)
	}
	s.folds = append(s.folds, v.Made...)
	out := Sent{Folded: make([]bool, i), Over: over}
	for _, f := range s.folds {
		for _, span := range f.Spans {
			for p := span.First; p <= span.Last; p++ {
				out.Folded[p-1] = true
			}
		}
	}
	for _, it := range v.Items {
		if it.Fold != nil {
			out.Pieces = append(out.Pieces, PromptPart{Text: it.Fold.Text, Tokens: it.Tokens})
			continue
		}
		out.Pieces = append(out.Pieces, PromptPart{Text: it.Entry.Text + it.Output, Args: asked(it.Entry.Calls), Tokens: it.Tokens})
	}
	if s.end != nil {
		if p := s.end(i, v); p.Tokens > 0 {
			out.Pieces, out.Rehydrated = append(out.Pieces, p), p.Tokens
		}
	}
	return out, nil
}

// asked is the text of calls.
func asked(calls []history.Call) string {
	texts := make([]string, len(calls))
	for i, c := range calls {
		texts[i] = c.Name + " " + c.Args
	}
	return strings.Join(texts, " ")
}

// masked stands in the place of a result that was taken out.
const masked = "[Old tool result content cleared]"

// SlidingMask shows the last keep results, and of all older ones only that
// there were some.
func SlidingMask(keep int) Policy {
	return policy{maskName, func(run *Run, count func(string) int) Session {
		return &maskSession{run: run, count: count, choose: func(s *maskSession, results []int) {
			for _, i := range results[:max(len(results)-keep, 0)] {
				s.masked[i] = true
			}
		}}
	}}
}

// ClearToolUses takes out, for good, all results but the last keep, when the
// prompt is over trigger tokens and at least so many come free.
func ClearToolUses(trigger, keep, atLeast int) Policy {
	return policy{clearName, func(run *Run, count func(string) int) Session {
		return &maskSession{run: run, count: count, choose: func(s *maskSession, results []int) {
			s.clear(results, trigger, keep, atLeast)
		}}
	}}
}

// maskSession takes results out.
type maskSession struct {
	run    *Run
	count  func(string) int
	masked map[int]bool
	choose func(s *maskSession, results []int)
}

func (s *maskSession) View(i int) (Sent, error) {
	if s.masked == nil {
		s.masked = make(map[int]bool)
	}
	var results []int
	for k := range i {
		if s.run.Entries[k].Kind == history.Result {
			results = append(results, k)
		}
	}
	s.choose(s, results)
	return s.view(i), nil
}

func (s *maskSession) view(i int) Sent {
	v := Sent{Folded: make([]bool, i)}
	for k := range i {
		v.Folded[k] = s.masked[k]
		v.Pieces = append(v.Pieces, s.piece(k))
	}
	return v
}

func (s *maskSession) piece(k int) PromptPart {
	if s.masked[k] {
		return PromptPart{Text: masked, Tokens: messageTokens + s.count(masked)}
	}
	return whole(&s.run.Entries[k], s.count)
}

// whole is a message as it was.
func whole(e *history.Entry, count func(string) int) PromptPart {
	p := PromptPart{Text: e.Text + shown(e), Args: asked(e.Calls), Tokens: messageTokens + e.ExtraTokens}
	for _, text := range []string{p.Text, p.Args} {
		if text != "" {
			p.Tokens += count(text)
		}
	}
	return p
}

func shown(e *history.Entry) string {
	if e.Shown != "" {
		return e.Shown
	}
	return e.Output
}

func (s *maskSession) clear(results []int, trigger, keep, atLeast int) {
	if len(results) == 0 || total(s.view(results[len(results)-1]+1).Pieces) <= trigger {
		return
	}
	var out []int
	freed := 0
	for _, k := range results {
		if !s.masked[k] {
			out = append(out, k)
		}
	}
	out = out[:max(len(out)-keep, 0)]
	for _, k := range out {
		freed += s.piece(k).Tokens - messageTokens - s.count(masked)
	}
	if freed < atLeast {
		return
	}
	for _, k := range out {
		s.masked[k] = true
	}
}

func total(pieces []PromptPart) int {
	n := 0
	for _, p := range pieces {
		n += p.Tokens
	}
	return n
}
