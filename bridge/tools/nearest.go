package tools

import (
	"iter"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// minHintBytes is the shortest name that is taken for the beginning of another.
const minHintBytes = 3

// nearest returns the name most like asked: one that holds it whole, the
// shortest first, or else the one with the smallest edit distance, if at most a
// third of the longer of the two differs. Of equals the first by name wins.
func nearest(asked string, names iter.Seq[string]) string {
	if asked == "" || len(asked) > MaxNameBytes {
		return ""
	}
	asked = normal(asked)
	best, bestCost := "", -1
	for name := range names {
		cost, ok := unlike(asked, normal(name))
		if ok && (bestCost < 0 || cost < bestCost || cost == bestCost && name < best) {
			best, bestCost = name, cost
		}
	}
	return best
}

// distanceBase lifts every edit distance above every difference in length, so
// that a name which holds the asked one always comes first.
const distanceBase = MaxNameBytes

func unlike(asked, name string) (cost int, ok bool) {
	if len(asked) >= minHintBytes && strings.Contains(name, asked) {
		return len(name) - len(asked), true
	}
	d := text.Distance(asked, name)
	return distanceBase + d, d*3 <= max(len(asked), len(name))
}

// normal makes names comparable that differ in case or separator only.
func normal(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, ":", "_"))
}
