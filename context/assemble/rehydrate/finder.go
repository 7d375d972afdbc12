package rehydrate

import (
	"strings"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
)

// Limits of what one prompt asks for.
const (
	// MaxNames are looked up: the first in the new texts.
	MaxNames = 128
	// MaxResults are asked for.
	MaxResults = 4
	// maxCachedBytes bounds what a Finder remembers: the names of about a hundred long
	// sessions.
	maxCachedBytes = 32 << 20
)

// Prompt is what a prompt shows without this package.
type Prompt struct {
	// New are the texts that may take something up.
	New []string
	// Shown are all texts in it but New and those of folds.
	Shown []string
	// Folds stand in it, in order.
	Folds []history.Fold
}

// Want is a folded result that is asked for.
type Want struct {
	// Ref is what begins its line in the fold, such as "012".
	Ref string
	// Names are those that were taken up, in order.
	Names []string
}

// Finder finds what a prompt takes up of its folds. Its methods are safe for concurrent
// use.
type Finder struct {
	// read has, by the text of a fold, the reference of the line that a name came with.
	read *cache.Cache[string, map[string]string]
}

// NewFinder returns a finder that has read nothing.
func NewFinder() *Finder {
	return &Finder{cache.New[string, map[string]string](maxCachedBytes)}
}

// Wants returns the folded results whose names the new texts take up, in the order in
// which they do, at most MaxResults. What is shown elsewhere in the prompt is not asked
// for.
func (f *Finder) Wants(p Prompt) []Want {
	if len(p.Folds) == 0 {
		return nil
	}
	var wants []Want
	at := make(map[string]int)
	for _, name := range named(p.New) {
		ref := f.ref(p.Folds, name)
		if ref == "" || shown(p.Shown, name) {
			continue
		}
		i, known := at[ref]
		if !known {
			if len(wants) == MaxResults {
				continue
			}
			i = len(wants)
			at[ref], wants = i, append(wants, Want{Ref: ref})
		}
		wants[i].Names = append(wants[i].Names, name)
	}
	return wants
}

// named returns the names in texts, each once, in order, at most MaxNames.
func named(texts []string) []string {
	var names []string
	known := make(map[string]bool)
	for _, text := range texts {
		excerpt.EachIdentifier(text, func(id string) {
			if !known[id] && len(names) < MaxNames {
				known[id] = true
				names = append(names, id)
			}
		})
	}
	return names
}

// ref is the reference of the first folded result that named something, or empty.
func (f *Finder) ref(folds []history.Fold, name string) string {
	for i := range folds {
		if ref := f.names(folds[i].Text)[name]; ref != "" {
			return ref
		}
	}
	return ""
}

// names are the names that the results in a fold held, each with the reference of the
// first.
func (f *Finder) names(fold string) map[string]string {
	if names, ok := f.read.Get(fold); ok {
		return names
	}
	const perName = 100 // bytes, about, of a name in a map
	names := readNames(fold)
	f.read.Put(fold, names, len(fold)+perName*len(names))
	return names
}

// readNames reads the lines of a fold: a reference, a call, an arrow and what the result
// held, and quoted lines behind it.
func readNames(fold string) map[string]string {
	names := make(map[string]string)
	ref := ""
	for line := range strings.Lines(fold) {
		if quoted, ok := strings.CutPrefix(line, history.QuoteMark); ok {
			addNames(names, quoted, ref)
			continue
		}
		first, rest, _ := strings.Cut(line, " ")
		if ref = ""; !isRef(first) {
			continue
		}
		ref = first
		if _, result, ok := strings.Cut(rest, history.ResultMark); ok {
			addNames(names, result, ref)
		}
	}
	return names
}

// isRef tells whether a word is what begins the line of a step or a message.
func isRef(word string) bool {
	digits := strings.TrimPrefix(word, "m")
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}

func addNames(names map[string]string, text, ref string) {
	if ref == "" {
		return
	}
	excerpt.EachIdentifier(text, func(id string) {
		if _, known := names[id]; !known {
			names[id] = ref
		}
	})
}

// shown tells whether one of the texts holds a name.
func shown(texts []string, name string) bool {
	for _, text := range texts {
		if excerpt.HasIdentifier(text, name) {
			return true
		}
	}
	return false
}
