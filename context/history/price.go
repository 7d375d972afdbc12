package history

// foldedPart is the share of words and outputs that a fold keeps, about; calls
// it keeps whole.
const foldedPart = 0.2

// due reports whether a batch is due, and why.
func (p *pass) due() Reason {
	price := p.weigh()
	switch {
	case p.h.Now:
		return ByCaller
	case p.over():
		return ByBudget
	case price:
		return ByPrice
	}
	return 0
}

// weigh compares what leaving the history as it is has cost since the last
// batch with what a batch costs now.
//
// Each turn, what a batch would have removed is read from the cache once more:
// that is the rent. A batch makes the provider write what stands behind the
// first changed byte again, which it would have read: that is the price. What
// is new since the last prompt is written either way. Whoever pays rent until
// it equals the price pays at most twice what was best, without knowing when
// the session ends.
func (p *pass) weigh() bool {
	o := &p.l.opts
	var since uint64
	for i := range p.folds {
		since = max(since, p.folds[i].Seen)
	}
	since = max(since, p.h.Since)
	pending := p.pending()
	rent, removed := 0.0, 0.0
	// lag holds the turns that a batch at that time would have kept.
	var lag []atom
	for _, a := range pending {
		if a.fixed {
			continue
		}
		lag = append(lag, a)
		if len(lag) > o.KeepTurns {
			removed += p.saving(lag[0])
			lag = lag[1:]
		}
		if p.position(a) > since {
			rent += o.Prices.CachedInput * removed
		}
	}
	kept := 0
	for i := range max(len(lag)-1, 0) {
		kept += p.atomSize(lag[i])
	}
	price := p.l.rewrite() * float64(kept+o.BatchTokens)
	p.decision = Decision{Tokens: p.total, Kept: kept, Rent: rent, Price: price}
	return removed > 0 && rent >= DefaultPatience*price
}

// rewrite is Prices.Rewrite of the ledger's prices.
func (l *Ledger) rewrite() float64 { return l.opts.Prices.Rewrite() }

// Rewrite is what a token costs that is written again where it would have been
// read. Where a cache costs nothing to write, writing is sending.
func (p Prices) Rewrite() float64 { return max(p.CacheWrite, p.Input) - p.CachedInput }

// saving is about what folding an atom removes.
func (p *pass) saving(a atom) float64 {
	n := 0.0
	for _, i := range a.members {
		n += float64(p.sizes[i] - p.asked[i])
	}
	return n * (1 - foldedPart)
}

// pays reports whether the turns to come pay for a batch, now that its size is
// known.
func (p *pass) pays(made []Fold) bool {
	removed, written, turns := 0, p.decision.Kept, 0
	for i := range made {
		removed += made[i].Before - made[i].Tokens
		written += made[i].Tokens
	}
	for i := range p.folds {
		turns += p.folds[i].Turns
	}
	for _, a := range p.atoms {
		if !a.fixed {
			turns++
		}
	}
	if p.h.ExpectedTurns > 0 {
		turns = p.h.ExpectedTurns
	}
	saved := p.l.opts.Prices.CachedInput * float64(removed)
	if saved <= 0 {
		return false
	}
	p.decision.BreakEven = p.l.rewrite() * float64(written) / saved
	return p.decision.BreakEven <= float64(turns)
}
