package rehydrate

import (
	"slices"
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

// Shown is what a prompt shows without this package.
type Shown struct {
	// New are the texts that may take something up.
	New []string
	// Shown are all texts in it except New and the folds' texts.
	Shown []string
	// Folds stand in it, in order.
	Folds []history.Fold
}

// Want is a folded result that is asked for.
type Want struct {
	// Ref is what begins its line in the fold, such as "012".
	Ref string
	// Names are the names that were taken up, in order.
	Names []string
}

// Finder finds what a prompt takes up of its folds. Its methods are safe for concurrent
// use.
type Finder struct {
	// known has, by the text of a fold, what was read in it.
	known *cache.Cache[string, contents]
}

// contents are what the lines of a fold hold.
type contents struct {
	// names has the reference of the line that a name came with, calls the calls as they
	// were made.
	names map[string]string
	calls map[string]bool
	// reaches are the steps that it names together.
	reaches []reach
}

// NewFinder returns a finder that has read nothing.
func NewFinder() *Finder {
	return &Finder{cache.New[string, contents](maxCachedBytes)}
}

// Wants returns the folded results whose names the new texts take up, in the order in
// which they do, at most MaxResults. What is shown elsewhere in the prompt is not asked
// for.
func (f *Finder) Wants(p Shown) []Want {
	if len(p.Folds) == 0 {
		return nil
	}
	var wants []Want
	at := make(map[string]int)
	all := make([]contents, len(p.Folds))
	for i := range p.Folds {
		all[i] = f.read(p.Folds[i].Text)
	}
	for _, name := range named(p.New) {
		ref := refOf(all, name)
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

// refOf is the reference of the first folded result that named something, or empty.
func refOf(all []contents, name string) string {
	for i := range all {
		if ref := all[i].names[name]; ref != "" {
			return ref
		}
	}
	return ""
}

// read reads a fold, once.
func (f *Finder) read(fold string) contents {
	if known, ok := f.known.Get(fold); ok {
		return known
	}
	const perName = 100 // bytes, about, of a name in a map
	found := readFold(fold)
	f.known.Put(fold, found, 2*len(fold)+perName*(len(found.names)+len(found.calls)))
	return found
}

// readFold reads the lines of a fold: a reference, a call, an arrow and what the result
// held, and quoted lines behind it.
func readFold(fold string) contents {
	found := contents{names: make(map[string]string), calls: make(map[string]bool)}
	ref := ""
	for line := range strings.Lines(fold) {
		if quoted, ok := strings.CutPrefix(line, history.QuoteMark); ok {
			addNames(found.names, quoted, ref)
			continue
		}
		if r, ok := readReach(line); ok {
			found.reaches = append(found.reaches, r)
		}
		first, rest, _ := strings.Cut(line, " ")
		if ref = ""; !isRef(first) {
			continue
		}
		ref = first
		addCall(found.calls, rest)
		if _, result, ok := strings.Cut(rest, history.ResultMark); ok {
			addNames(found.names, result, ref)
		}
	}
	return found
}

// isRef reports whether a word is what begins the line of a step or a message.
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

// shown reports whether one of the texts holds a name.
func shown(texts []string, name string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return excerpt.HasIdentifier(text, name) })
}
