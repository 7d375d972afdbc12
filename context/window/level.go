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

const (
	// snipChars is how many characters of a text Snip leaves.
	snipChars = 2000
	// ReactiveChars is how many Reactive leaves.
	ReactiveChars = 500
)

// Renews reports whether a window begins anew at a pressure.
func Renews(pressure float64) bool { return pressure >= 1 }

// At is the level that a pressure asks for: the highest whose threshold it is over.
func At(pressure float64) Level {
	level := None
	for i, threshold := range [...]float64{0.7, 0.8, 0.9, 0.95} {
		if pressure > threshold {
			level = Level(i + 1)
		}
	}
	return level
}
