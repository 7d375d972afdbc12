package history

import "strings"

// visible remembers what a prompt already shows, so that folds need not repeat
// it.
type visible struct {
	ids   map[string]bool
	lines map[string]bool
}

func newVisible() *visible {
	return &visible{ids: make(map[string]bool), lines: make(map[string]bool)}
}

// add remembers a text of the prompt.
func (v *visible) add(text string) {
	EachIdentifier(text, func(id string) { v.ids[id] = true })
	gather(text, func(_ Class, id string, _ int) { v.ids[id] = true })
	for line := range strings.Lines(text) {
		v.lines[strings.TrimSpace(line)] = true
	}
}

// has tells whether an identifier is shown.
func (v *visible) has(id string) bool { return v.ids[id] }

// hasLine tells whether a line is shown, wherever it is indented.
func (v *visible) hasLine(text string) bool { return v.lines[strings.TrimSpace(text)] }

// pick returns the best identifiers that are not shown yet as one text, class
// by class.
func pick(ids []Identifier, limit int, seen *visible) string {
	var byClass [classes][]string
	left := [classes]int{Path: limit * pathFactor}
	for _, id := range ids {
		if seen.has(id.Text) {
			continue
		}
		switch {
		case left[id.Class] > 0:
			left[id.Class]--
		case limit > 0:
			limit--
		default:
			continue
		}
		byClass[id.Class] = append(byClass[id.Class], id.Text)
	}
	var parts []string
	for _, list := range byClass {
		if len(list) > 0 {
			parts = append(parts, strings.Join(list, " "))
		}
	}
	return strings.Join(parts, classSeparator)
}

// pathFactor times as many paths as other identifiers are kept beside them:
// a listing of files is asked for to work on one of them.
const pathFactor = 2

// classSeparator stands between identifiers of different classes.
const classSeparator = " | "
