package history

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// Bounds of a digest. It has to hold more than a dense fold has room for, and
// little enough that digests are put together in a few milliseconds, however
// many steps they cover.
const (
	// digestCallBytes are kept of a call.
	digestCallBytes = 400
	// digestStepBytes of the newest steps are listed one by one, digestSaidBytes of
	// lines that say what went wrong are kept of those before.
	digestStepBytes = 40 << 10
	digestSaidBytes = 12 << 10
	// resultNames of one result are kept, and pathFactor times as many paths.
	resultNames = 40
	// stepNames are kept with their step.
	stepNames = 10
	// digestNameBytes bounds all names of a digest, digestToolBytes one name of a
	// tool.
	digestNameBytes = 128 << 10
	digestToolBytes = 64
)

// digestNames bounds the names of a digest by class.
var digestNames = [excerpt.Classes]int{excerpt.Path: 1200, excerpt.Failure: 100, excerpt.Number: 500, excerpt.Link: 100, excerpt.Symbol: 900}

// digest is what a fold keeps of its entries in addition to its text, so that a denser fold
// can be made later without reading them again. It is made from entries or other digests,
// never from the text of folds.
type digest struct {
	// first and last are the references of the first and the last step.
	first, last string
	failed      int
	tools       map[string]int
	// said are lines of failures outside steps, in order; failures of steps are in the
	// steps.
	said  []string
	names *excerpt.Ranking
	// steps are the newest, in order.
	steps []digestStep
}

// digestStep is one turn with what came of it.
type digestStep struct {
	ref string
	// calls are their texts, cut after digestCallBytes.
	calls []string
	// words begin what was said without a call.
	words  string
	failed bool
	said   []string
	// names are the best of what the results named.
	names []string
}

func newDigest() *digest { return &digest{tools: make(map[string]int), names: excerpt.NewRanking()} }

// add takes an atom in.
func (d *digest) add(entries []Entry, a atom, identifiers func(body string) []excerpt.Identifier) {
	s := digestStep{ref: entries[a.first()].Ref}
	called := 0
	for _, i := range a.members {
		e := &entries[i]
		if e.Kind == Unseen {
			continue
		}
		for _, c := range e.Calls {
			d.tools[text.Head(c.Name, digestToolBytes)]++
			d.names.AddBest(identifiers(c.Args), resultNames, resultNames*pathFactor)
			if body := shortCall(c); called < digestStepBytes/2 {
				s.calls = append(s.calls, body)
				called += len(body)
			}
		}
		if e.Kind == Turn {
			if len(e.Calls) == 0 {
				s.words = firstSentence(e.Text)
			}
			continue
		}
		if e.failed() {
			d.failed++
			s.failed = true
		}
		s.said = append(s.said, e.errorLines(e.Output, e.Evidence)...)
		for _, body := range []string{strings.TrimSpace(e.Output), e.Evidence} {
			if body != "" {
				s.addNames(d.names.AddBest(identifiers(body), resultNames, resultNames*pathFactor))
			}
		}
	}
	s.said = newestLines(s.said, digestSaidBytes)
	d.steps = append(d.steps, s)
	d.reach(s.ref, s.ref)
}

// shortCall is a call in one line, cut if it is long.
func shortCall(c Call) string {
	s := strings.TrimSpace(c.text())
	return strings.ReplaceAll(text.Cut(s, digestCallBytes, text.Ellipsis), "\n", " ")
}

func (s *digestStep) addNames(best []excerpt.Identifier) {
	best = best[:min(len(best), stepNames-len(s.names))]
	slices.SortStableFunc(best, func(a, b excerpt.Identifier) int { return cmp.Compare(a.Class, b.Class) })
	for _, id := range best {
		s.names = append(s.names, id.Text)
	}
}

// bytes is about what a step takes.
func (s *digestStep) bytes() int {
	n := len(s.ref) + len(s.words)
	for _, list := range [][]string{s.calls, s.said, s.names} {
		for _, text := range list {
			n += len(text) + 1
		}
	}
	return n
}

func (d *digest) reach(first, last string) {
	d.first = cmp.Or(d.first, first)
	if last != "" {
		d.last = last
	}
}

// join takes the digest of later entries in.
func (d *digest) join(later *digest) {
	d.failed += later.failed
	for name, n := range later.tools {
		d.tools[name] += n
	}
	d.said = append(d.said, later.said...)
	for _, id := range later.names.Found {
		d.names.AddOne(id)
	}
	d.steps = append(d.steps, later.steps...)
	d.reach(later.first, later.last)
}

// bound forgets what is too much: of steps the oldest, of lines, too, of names
// those with the lowest scores.
func (d *digest) bound() {
	at, room := len(d.steps), digestStepBytes
	for at > 0 && (room > 0 || at == len(d.steps)) {
		at--
		room -= d.steps[at].bytes()
	}
	for i := range d.steps[:at] {
		d.said = append(d.said, d.steps[i].said...)
	}
	d.steps = slices.Clone(d.steps[at:])
	d.said = newestLines(d.said, digestSaidBytes)
	d.names.Bound(digestNames, digestNameBytes)
	d.boundTools()
}

// newestLines returns the last of some lines, each once, in about so many bytes.
func newestLines(lines []string, room int) []string {
	known := make(map[string]bool, len(lines))
	var kept []string
	for _, text := range slices.Backward(lines) {
		if known[text] {
			continue
		}
		known[text] = true
		if room -= len(text) + 1; room < 0 {
			break
		}
		kept = append(kept, text)
	}
	slices.Reverse(kept)
	return kept
}

// maxDigestTools bounds the names of tools in a digest: what a model calls may
// be any word.
const maxDigestTools = 200

func (d *digest) boundTools() {
	if len(d.tools) <= maxDigestTools {
		return
	}
	for _, name := range toolsByCount(d.tools)[maxDigestTools:] {
		delete(d.tools, name)
	}
}

// toolsByCount returns the tools that were called most first.
func toolsByCount(tools map[string]int) []string {
	return slices.SortedFunc(maps.Keys(tools), func(a, b string) int {
		if tools[a] != tools[b] {
			return tools[b] - tools[a]
		}
		return strings.Compare(a, b)
	})
}
