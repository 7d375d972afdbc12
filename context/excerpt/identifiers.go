package excerpt

import (
	"slices"
	"strings"
)

// Class is what sort of thing an identifier names.
type Class uint8

// The classes, in the order in which a fold lists them.
const (
	// Path is a file's: names joined by slashes.
	Path Class = iota
	// Failure is the name of an error, an exception, a warning or a failed
	// test.
	Failure
	// Number is a number with its unit: "3.4s", "12 passed", "45%".
	Number
	// Link is a URL.
	Link
	// Symbol is any other name: a function, a class, an id, a version.
	Symbol
	// Classes is how many there are.
	Classes = iota
)

// String returns the class's name, such as "path".
func (c Class) String() string {
	return [...]string{"path", "failure", "number", "link", "symbol"}[min(c, Classes-1)]
}

// Identifier is a name worth keeping.
type Identifier struct {
	// Class is what it names.
	Class Class
	// Text is the name.
	Text string
	// Score says how much it is worth: higher is kept first.
	Score int
}

// What an occurrence adds to the score of an identifier.
const (
	scorePath    = 3
	scoreDefined = 4
	scoreFailure = 2
	scoreAny     = 1
)

// Identifiers returns the identifiers of a text, each once, the best first;
// between equals the one that came first. It reads the text in one pass.
func Identifiers(text string) []Identifier {
	r := NewRanking()
	r.Add(text)
	return r.Best()
}

// Gather calls found for each identifier of a text in each of its classes,
// repetitions included, with what it adds to the score.
func Gather(text string, found func(class Class, id string, score int)) {
	g := gatherer{found: found}
	urlEnd := 0
	runs(text, func(start, end int, has byteKind) {
		if start < urlEnd {
			return
		}
		if has&isColon != 0 && has&isSlash != 0 {
			if link := url(text, start, end); link != "" {
				g.add(Link, link, scorePath)
				urlEnd = start + len(link)
				return
			}
		}
		g.run(text, start, end, has)
	})
}

type gatherer struct {
	found func(class Class, id string, score int)
}

func (g gatherer) add(class Class, id string, score int) {
	if id != "" && len(id) <= MaxIdentifierBytes {
		g.found(class, id, score)
	}
}

// run looks at one run of identifier bytes, text[start:end], with bytes of these
// kinds.
func (g gatherer) run(text string, start, end int, has byteKind) {
	run := text[start:end]
	if is(run[0], isDigit) {
		g.add(Number, measurement(text, start, end), scoreDefined)
	}
	if has&isSlash != 0 {
		paths(run, func(path string) { g.add(Path, path, scorePath) })
	}
	if word := lastWord(run); defines(word) {
		if name := strings.TrimRight(definedName(text[end:]), "."); !noise(name) {
			g.add(Symbol, name, scoreDefined)
		}
	}
	if has&isUpper != 0 { // all that name a failure have one
		words(run, func(word string) {
			if namesFailure(word) {
				g.add(Failure, word, scoreFailure)
			}
		})
	}
	if end-start < minIdentBytes {
		return
	}
	if id := identifier(run); id != "" && !noise(id) {
		g.add(Symbol, id, scoreAny)
	}
}

// maxSymbolBytes bounds a name that is no path: longer ones are names of built packages,
// tokens and digests, which are not written again.
const maxSymbolBytes = 64

// noise says what looks like an identifier but names nothing that a later
// step would ask for: a place in a file, which its path says, too; a number
// with a word glued to it, as grep prints it; a rule of underscores; an address
// in memory; what is very long.
func noise(id string) bool {
	if colon := strings.IndexByte(id, ':'); colon >= 0 && placed(id[colon:]) ||
		len(id) > maxSymbolBytes && strings.IndexByte(id, '/') < 0 || strings.HasPrefix(id, "0x") && isAddress(id) {
		return true
	}
	digits, letters := 0, 0
	for i := range len(id) {
		switch c := id[i]; {
		case is(c, isDigit):
			digits++
		case c != '_' && is(c, isWord):
			letters++
		}
	}
	if letters+digits < 2 {
		return true
	}
	glued := 0
	for glued < len(id) && is(id[glued], isDigit) {
		glued++
	}
	return letters > 0 && glued > 0 && id[glued] == '-'
}

// placed reports whether a single colon stands in what follows the first one of an
// identifier: it parts a path and a line, or a key and a value. Two are a part of
// names, such as "tests/a.py::test_b".
func placed(rest string) bool {
	for {
		if len(rest) < 2 || rest[1] != ':' {
			return true
		}
		next := strings.IndexByte(rest[2:], ':')
		if next < 0 {
			return false
		}
		rest = rest[2+next:]
	}
}

const (
	// addressDigits is the least number of digits of a printed memory address.
	addressDigits = 9
	// addressKinds is how many different ones it has at least; a constant has fewer.
	addressKinds = 5
)

// isAddress reports whether an identifier is an address in memory: it is another one
// in the next run.
func isAddress(id string) bool {
	digits, hex := strings.CutPrefix(id, "0x")
	if !hex || len(digits) < addressDigits {
		return false
	}
	var kinds [256]bool
	different := 0
	for i := range len(digits) {
		c := digits[i]
		if !is(c, isDigit) && (c|0x20 < 'a' || c|0x20 > 'f') {
			return false
		}
		if !kinds[c] {
			kinds[c] = true
			different++
		}
	}
	return different >= addressKinds
}

// Ranking adds up the identifiers of many texts. Only one goroutine may use it at a
// time.
type Ranking struct {
	// Found are the identifiers, each once; not to be changed.
	Found []Identifier
	index map[string]int
}

// NewRanking returns a ranking of nothing.
func NewRanking() *Ranking { return &Ranking{index: make(map[string]int)} }

// Add counts the identifiers of a text.
func (r *Ranking) Add(text string) {
	Gather(text, func(class Class, id string, score int) { r.AddOne(Identifier{class, id, score}) })
}

// Has reports whether an identifier was counted. Best and Bound end that.
func (r *Ranking) Has(id string) bool {
	_, known := r.index[id]
	return known
}

// AddOne counts an identifier once more.
func (r *Ranking) AddOne(id Identifier) {
	at, known := r.index[id.Text]
	if !known {
		r.index[id.Text] = len(r.Found)
		r.Found = append(r.Found, id)
		return
	}
	r.Found[at].Score += id.Score
	r.Found[at].Class = min(r.Found[at].Class, id.Class)
}

// AddBest counts the best of one text's identifiers: so many paths, and so many
// others. ranked has the best first. It returns the counted ones.
func (r *Ranking) AddBest(ranked []Identifier, limit, paths int) []Identifier {
	var best []Identifier
	for _, id := range ranked {
		left := &limit
		if id.Class == Path {
			left = &paths
		}
		if *left--; *left >= 0 {
			r.AddOne(id)
			best = append(best, id)
		}
	}
	return best
}

// Best returns them, the best first; between equals the one that came first.
func (r *Ranking) Best() []Identifier {
	slices.SortStableFunc(r.Found, func(a, b Identifier) int { return b.Score - a.Score })
	return r.Found
}

// Bound keeps the best of each class, in so many bytes. Nothing may be added after
// that.
func (r *Ranking) Bound(limits [Classes]int, bytes int) {
	r.Found = slices.DeleteFunc(r.Best(), func(id Identifier) bool {
		if limits[id.Class]--; limits[id.Class] >= 0 {
			bytes -= len(id.Text)
		}
		return limits[id.Class] < 0 || bytes < 0
	})
}
