package replay

import (
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/history"
)

// Piece is one part of a prompt.
type Piece struct {
	// Text and Args are what it says; a call's name and arguments count apart
	// from what was said beside it.
	Text, Args string
	// Tokens is its size.
	Tokens int
}

// View is what one request sends.
type View struct {
	Pieces []Piece
	// Folded has, for each message before, whether it is not there as it was.
	Folded []bool
}

// Session is one run under a policy.
type Session interface {
	// View is the prompt of the request that message i answers. It is called
	// once for each request, in order.
	View(i int) (View, error)
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

// Policies are those that a comparison shows side by side: the baseline, what
// others do, the presets, and the ledger.
func Policies(budget int) []Policy {
	return []Policy{
		AppendOnly(),
		Dedupe(),
		SlidingMask(10),
		ClearToolUses(8000, 3, 2000),
		Preset("design", history.Design(), false),
		Preset("design", history.Design(), true),
		Preset("reduction", history.Reduction(), false),
		Preset("reduction", history.Reduction(), true),
		Ledger(budget, history.Options{}),
	}
}

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
	return ledger("append_only", 0, history.Options{NoFold: true, NoDedupe: true, ResultTokens: -1})
}

// Dedupe is AppendOnly without lines that the prompt shows already.
func Dedupe() Policy {
	return ledger("dedupe", 0, history.Options{NoFold: true, ResultTokens: -1})
}

// Ledger is the default policy, with a budget of tokens.
func Ledger(budget int, opts history.Options) Policy { return ledger("ledger", budget, opts) }

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
}

func (s *ledgerSession) View(i int) (View, error) {
	v, err := s.ledger.Compact(history.History{Entries: s.run.Entries[:i], Folds: s.folds, Budget: s.budget})
	if err != nil {
		return View{}, fmt.Errorf("run %s, message %d: %w", s.run.ID, i+1, err)
	}
	s.folds = append(s.folds, v.Made...)
	out := View{Folded: make([]bool, i)}
	for _, f := range s.folds {
		for _, span := range f.Spans {
			for p := span.First; p <= span.Last; p++ {
				out.Folded[p-1] = true
			}
		}
	}
	for _, it := range v.Items {
		if it.Fold != nil {
			out.Pieces = append(out.Pieces, Piece{Text: it.Fold.Text, Tokens: it.Tokens})
			continue
		}
		out.Pieces = append(out.Pieces, Piece{Text: it.Entry.Text + it.Output, Args: asked(it.Entry.Calls), Tokens: it.Tokens})
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
	return policy{fmt.Sprintf("sliding_mask_%d", keep), func(run *Run, count func(string) int) Session {
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
	return policy{fmt.Sprintf("clear_tool_uses_%d", trigger), func(run *Run, count func(string) int) Session {
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

func (s *maskSession) View(i int) (View, error) {
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

func (s *maskSession) view(i int) View {
	v := View{Folded: make([]bool, i)}
	for k := range i {
		v.Folded[k] = s.masked[k]
		v.Pieces = append(v.Pieces, s.piece(k))
	}
	return v
}

func (s *maskSession) piece(k int) Piece {
	if s.masked[k] {
		return Piece{Text: masked, Tokens: messageTokens + s.count(masked)}
	}
	return whole(&s.run.Entries[k], s.count)
}

// whole is a message as it was.
func whole(e *history.Entry, count func(string) int) Piece {
	p := Piece{Text: e.Text + shown(e), Args: asked(e.Calls), Tokens: messageTokens}
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

func total(pieces []Piece) int {
	n := 0
	for _, p := range pieces {
		n += p.Tokens
	}
	return n
}
