package history

import (
	"cmp"
	"fmt"
)

// PolicyLedger names the rules of this package's ledger in the folds it makes.
// Its number rises when the text that it makes of the same entries changes.
const PolicyLedger = "ledger/4"

// Defaults of Options.
const (
	// DefaultMessageTokens is the frame of a message, about what providers
	// count.
	DefaultMessageTokens = 4
	// DefaultResultTokens bounds what an unfolded prompt shows of one result.
	DefaultResultTokens = 3000
	// DefaultKeepTurns stay unfolded behind a batch: the newest, which the model
	// has not seen yet, and the one before.
	DefaultKeepTurns = 2
	// DefaultPatience is how many times over not folding must have cost what
	// folding costs. At 1 a batch comes when both are equal, which is cheapest
	// for one session with an unknown end; a little more breaks the cached
	// prefix less often for hardly any cost.
	DefaultPatience = 1.7
	// DefaultBatchTokens is added to the tokens that each batch writes again, so that a
	// batch does not come for a few tokens.
	DefaultBatchTokens = 2000
	// DefaultFoldShare of the budget may be folds; then the older ones are
	// folded again, denser.
	DefaultFoldShare = 0.8
	// DefaultFoldTokens may be folds whatever the budget: read from a cache with
	// every turn, more of them cost more than the evidence is worth.
	DefaultFoldTokens = 24_000
	// DefaultHeader begins a fold.
	DefaultHeader = "[Earlier steps, folded: step call → result, or the names in it. Full text of step 012: fs:read_file step_012]"
)

// Prices are what a token costs, in any unit: only their ratios count.
type Prices struct {
	// Input is a token that is sent. CachedInput is one that the provider reads
	// from its cache, CacheWrite one that it writes there.
	Input, CachedInput, CacheWrite float64
}

// DefaultPrices returns the prices of a provider that charges for writing its cache.
func DefaultPrices() Prices { return Prices{Input: 1, CachedInput: 0.1, CacheWrite: 1.25} }

// Options adjusts a Ledger. Nil and zero fields mean the defaults.
type Options struct {
	// Prices decide when folding pays. Default DefaultPrices.
	Prices Prices
	// MessageTokens is the frame of one message. Default DefaultMessageTokens.
	MessageTokens int
	// ResultTokens bounds what a prompt shows of one unfolded result. Default
	// DefaultResultTokens; negative is no bound.
	ResultTokens int
	// KeepTurns are left unfolded by a batch. Default DefaultKeepTurns.
	KeepTurns int
	// BatchTokens are counted as written again by each batch. Default
	// DefaultBatchTokens.
	BatchTokens int
	// FoldTokens is the most that folds may take whatever the budget. Default
	// DefaultFoldTokens.
	FoldTokens int
	// Header begins every fold and explains it to the model. Default
	// DefaultHeader, which fits entries whose Ref is the number of a step.
	Header string
	// Memo remembers what folds name from one call to the next. Give all ledgers
	// of a process the same one. Default one of the ledger's own.
	Memo *Memo
	// NoDedupe shows lines again that the prompt shows already. Default false.
	NoDedupe bool
	// NoFold never folds: the history is only appended to. Default false.
	NoFold bool
}

// WithDefaults fills in the defaults, but for that of Memo.
func (o Options) WithDefaults() Options {
	if o.Prices == (Prices{}) {
		o.Prices = DefaultPrices()
	}
	o.MessageTokens = cmp.Or(o.MessageTokens, DefaultMessageTokens)
	o.ResultTokens = cmp.Or(o.ResultTokens, DefaultResultTokens)
	o.KeepTurns = cmp.Or(o.KeepTurns, DefaultKeepTurns)
	o.BatchTokens = cmp.Or(o.BatchTokens, DefaultBatchTokens)
	o.FoldTokens = cmp.Or(o.FoldTokens, DefaultFoldTokens)
	o.Header = cmp.Or(o.Header, DefaultHeader)
	return o
}

// Ledger is the default policy. It has no state but its Memo, which changes no
// result: all that it goes by are the entries and folds that it is given. All methods are safe for concurrent use
// if the counter is.
type Ledger struct {
	count func(text string) int
	opts  Options
}

// New returns a ledger that counts tokens with count; give it one that
// remembers, because the texts of a tail are counted again with every prompt.
func New(count func(text string) int, opts *Options) *Ledger {
	l := &Ledger{count: count}
	if opts != nil {
		l.opts = *opts
	}
	l.opts = l.opts.WithDefaults()
	if l.opts.Memo == nil {
		l.opts.Memo = NewMemo(0)
	}
	return l
}

// History is what a prompt is made of.
type History struct {
	// Entries are the session's entries in order. Those that stand in a fold may
	// be left out.
	Entries []Entry
	// Folds are all folds of the session that were not undone, in the order in which they
	// were made; folds that a later one replaces may be left out.
	Folds []Fold
	// Batch is the number of the last batch that was not undone, or of the last batch at
	// all where numbers must be unique. Through is the last position that batches decided
	// about. Complete Folds imply both.
	Batch, Through uint64
	// Budget is the most tokens that the history may take; 0 is no bound.
	Budget int
	// Since is a position: what stood before it does not count for the price of
	// waiting. Give the end of the log at which a batch was undone, so that the
	// same batch does not come again at once.
	Since uint64
	// ExpectedTurns is how many more turns the session will have; 0 expects as
	// many as there were.
	ExpectedTurns int
	// Now asks for a batch whatever it costs.
	Now bool
	// Summary, of a batch with Now, is what the caller says of the folded part. It
	// stands behind the header of the first fold of the batch, as one paragraph,
	// and replaces nothing; a denser fold that is made later leaves it out. One
	// that is blank, of more than DefaultSummaryTokens, or so long that the fold
	// would not be shorter than what it stands for is left out, too.
	Summary string
	// Parts are pieces of the work that are over. The entries of one are folded together, in
	// folds that hold nothing else and begin with its name; one that is a part of another is
	// the later begun.
	Parts []Part
	// Originals returns the entries from one position to another, both
	// included. It is asked when older folds without a Digest have to be folded
	// again and Entries leave theirs out. Nil means that Entries are all there are.
	Originals func(first, last uint64) ([]Entry, error)
}

// Part is a piece of the work that is over, such as an item of a plan.
type Part struct {
	// Name is a line that says what it was, and how it ended.
	Name string
	// After is the position behind which its entries stand, Through that of the last.
	After, Through uint64
}

// ShownItem is one part of a history as a prompt shows it.
type ShownItem struct {
	// Entry is the entry, or nil.
	Entry *Entry
	// Output stands for the output of the entry: without what is shown already,
	// and without the middle if it is too long.
	Output string
	// Fold is the fold that stands here, or nil.
	Fold *Fold
	// Tokens is its size, Original what it, or what it stands for, would take
	// shown whole.
	Tokens, Original int
}

// Position is its place in the log.
func (it *ShownItem) Position() uint64 {
	if it.Fold != nil {
		return it.Fold.first()
	}
	return it.Entry.Position
}

// View is a history as a prompt shows it. It belongs to the caller; the entries are the
// given ones.
type View struct {
	// Items are in order, Folds the folds among them.
	Items []ShownItem
	Folds []Fold
	// Tokens is the size of them all, Original what they would take with nothing
	// folded, and every line shown again that is only referred to.
	Tokens, Original int
	// Made are the folds of the batch that was just made, to be stored before
	// the view is used; none if there was no batch.
	Made []Fold
	// SummaryProblem says why the caller's summary was left out; empty where it was
	// not, or where there was none.
	SummaryProblem string
	// Decision says why there was a batch, or nothing.
	Decision Decision
}

// Decision is what a ledger weighed, in tokens.
type Decision struct {
	// Reason is why a batch was made; zero when none was.
	Reason Reason
	// Tokens is what the history took before anything was folded.
	Tokens int
	// Kept is what would have been written again behind a batch.
	Kept int
	// Rent is what leaving it unfolded has cost since the last batch, Price what
	// a batch costs, in units of an input token.
	Rent, Price float64
	// BreakEven is after how many turns a batch that was made, or refused, is
	// paid back; 0 when it was not looked at.
	BreakEven float64
}

// Compact returns the history as the prompt shows it, after folding what is
// due. It is an *OverflowError when the history is over its budget whatever is
// folded; nothing has been made then. The only other errors are of Originals.
func (l *Ledger) Compact(h History) (View, error) {
	p := &pass{l: l, h: h, folds: h.Folds}
	p.render()
	if !l.opts.NoFold {
		if err := p.fold(); err != nil {
			return View{}, fmt.Errorf("history: compact: %w", err)
		}
	}
	if p.over() {
		return View{}, p.overflow()
	}
	lighten(p.made)
	return View{
		Items: p.items, Folds: p.live, Tokens: p.total, Original: p.original, Made: p.made,
		SummaryProblem: p.summaryProblem(), Decision: p.decision,
	}, nil
}
