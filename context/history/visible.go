package history

import (
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
)

// visible remembers what a prompt already shows, so that folds need not repeat
// it.
type visible struct {
	own names
	// others are what others share; they are never added to.
	others []*names
}

// names are the identifiers and the lines of a text.
type names struct {
	ids, lines map[string]struct{}
}

func newNames() *names {
	return &names{ids: make(map[string]struct{}), lines: make(map[string]struct{})}
}

func (n *names) add(text string) {
	excerpt.EachIdentifier(text, func(id string) { n.ids[id] = struct{}{} })
	excerpt.Gather(text, func(_ excerpt.Class, id string, _ int) { n.ids[id] = struct{}{} })
	for line := range strings.Lines(text) {
		n.lines[strings.TrimSpace(strings.TrimPrefix(line, QuoteMark))] = struct{}{}
	}
}

func newVisible() *visible { return &visible{own: *newNames()} }

// add remembers a text of the prompt.
func (v *visible) add(text string) { v.own.add(text) }

// has reports whether an identifier is shown.
func (v *visible) has(id string) bool {
	if _, shown := v.own.ids[id]; shown {
		return true
	}
	return slices.ContainsFunc(v.others, func(n *names) bool { _, shown := n.ids[id]; return shown })
}

// hasLine reports whether a line is shown, wherever it is indented.
func (v *visible) hasLine(text string) bool {
	text = strings.TrimSpace(text)
	if _, shown := v.own.lines[text]; shown {
		return true
	}
	return slices.ContainsFunc(v.others, func(n *names) bool { _, shown := n.lines[text]; return shown })
}

// pick returns the best identifiers that are not shown yet as one text, class
// by class: so many paths, and so many others.
func pick(ids []excerpt.Identifier, limit, paths int, seen *visible) string {
	var byClass [excerpt.Classes][]string
	for _, id := range ids {
		left := &limit
		if id.Class == excerpt.Path {
			left = &paths
		}
		if *left == 0 || seen.has(id.Text) {
			continue
		}
		*left--
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

// pathFactor times as many paths as other identifiers are kept next to them:
// a listing of files is asked for to work on one of them.
const pathFactor = 2

// classSeparator stands between identifiers of different classes.
const classSeparator = " | "
