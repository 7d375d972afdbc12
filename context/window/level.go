package window

// Level is what a pressure asks for; the zero Level is nothing.
type Level uint8

// The levels, each stronger than the one before.
const (
	None Level = iota
	// Snip cuts long texts.
	Snip
	// Micro shows equal results once.
	Micro
	// Collapse makes one text of the middle messages.
	Collapse
	// Auto keeps the half that is worth most.
	Auto
	// Reactive is Auto, and a shorter cut of texts.
	Reactive
	// Renewal begins a fresh window: Auto, and a handoff in place of what went before.
	Renewal
)

// String is its name.
func (l Level) String() string {
	return [...]string{"", "snip", "micro", "collapse", "auto", "reactive", "renewal"}[min(l, Renewal)]
}

// Rules are the numbers of the levels. A zero field means its default.
type Rules struct {
	// Thresholds are the pressures over which Snip, Micro, Collapse and Auto begin.
	// Default 0.7, 0.8, 0.9, 0.95.
	Thresholds [4]float64
	// Inclusive lets a level begin at its threshold.
	Inclusive bool
	// Renew is the pressure from which a window begins anew. Default 1.
	Renew float64
	// SnipChars is how much of a text Snip leaves, ReactiveChars how much Reactive does.
	// Default 2000 and 500.
	SnipChars, ReactiveChars int
	// OtherIDs lets Micro find equal results of calls with other ids, too.
	OtherIDs bool
	// PreviewChars lets Micro show a result that can be read by a name as so many
	// characters of it, where it has more; 0 leaves it as it is.
	PreviewChars int
	// Nearness is how texts are compared with the goal. Default Lexical.
	Nearness Nearness
}

// Defaults of Rules.
const (
	DefaultRenew         = 1.0
	DefaultSnipChars     = 2000
	DefaultReactiveChars = 500
)

// WithDefaults fills in the defaults.
func (r Rules) WithDefaults() Rules {
	if r.Thresholds == ([4]float64{}) {
		r.Thresholds = [4]float64{0.7, 0.8, 0.9, 0.95}
	}
	if r.Renew == 0 {
		r.Renew = DefaultRenew
	}
	if r.SnipChars == 0 {
		r.SnipChars = DefaultSnipChars
	}
	if r.ReactiveChars == 0 {
		r.ReactiveChars = DefaultReactiveChars
	}
	return r
}

// Renews tells whether a pressure asks for a fresh window.
func (r Rules) Renews(pressure float64) bool { return pressure >= r.WithDefaults().Renew }

// At is the highest level that a pressure asks for, of a window that is not renewed.
func (r Rules) At(pressure float64) Level {
	r = r.WithDefaults()
	level := None
	for i, threshold := range r.Thresholds {
		if pressure > threshold || r.Inclusive && pressure >= threshold {
			level = Level(i + 1)
		}
	}
	return level
}
