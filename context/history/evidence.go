package history

import (
	"regexp"
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
	classes = iota
)

// String returns the class's name, such as "path".
func (c Class) String() string {
	return [...]string{"path", "failure", "number", "link", "symbol"}[min(c, classes-1)]
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
	r := newRanking()
	r.add(text)
	return r.best()
}

// gather calls found for each identifier of a text in each of its classes,
// repetitions included, with what it adds to the score.
func gather(text string, found func(class Class, id string, score int)) {
	g := gatherer{found: found}
	urlEnd := 0
	runs(text, func(start, end int) {
		if start < urlEnd {
			return
		}
		if link := url(text, start, end); link != "" {
			g.add(Link, link, scorePath)
			urlEnd = start + len(link)
			return
		}
		g.run(text, start, end)
	})
}

type gatherer struct {
	found func(class Class, id string, score int)
}

func (g gatherer) add(class Class, id string, score int) {
	if id != "" && len(id) <= maxIdentBytes {
		g.found(class, id, score)
	}
}

// run looks at one run of identifier bytes, text[start:end].
func (g gatherer) run(text string, start, end int) {
	run := text[start:end]
	if is(run[0], isDigit) {
		g.add(Number, measurement(text, start, end), scoreDefined)
	}
	paths(run, func(path string) { g.add(Path, path, scorePath) })
	if word := lastWord(run); defines(word) {
		if name := strings.TrimRight(definedName(text[end:]), "."); !noise(name) {
			g.add(Symbol, name, scoreDefined)
		}
	}
	words(run, func(word string) {
		if isErrorWord(word) {
			g.add(Failure, word, scoreFailure)
		}
	})
	if id := identifier(run); id != "" && !noise(id) {
		g.add(Symbol, id, scoreAny)
	}
}

// noise tells what looks like an identifier but names nothing that a later
// step would ask for: a place in a file, which its path says, too; a number
// with a word glued to it, as grep prints it; a rule of underscores.
func noise(id string) bool {
	if strings.IndexByte(id, ':') >= 0 {
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

// errorLine finds lines that say what went wrong; raised those that name what
// was raised, such as "ValueError: …".
var (
	errorLine = regexp.MustCompile(`(?i)\b(?:error|exception|fatal|panic|failed|traceback|cannot|denied|not found)\b`)
	raised    = regexp.MustCompile(`\w(?:Error|Exception): `)
)

const (
	// firstErrorLines and lastErrorLines of one result are kept: what came first
	// is often the cause, what came last the summary.
	firstErrorLines = 3
	lastErrorLines  = 3
	// maxErrorLineBytes bounds one such line; longer ones are no text for
	// people.
	maxErrorLineBytes = 2000
)

// errorLines returns the lines of a failed call's output that say what went
// wrong, verbatim and in order, each once: the first and the last that say so,
// and the last that names what was raised.
func errorLines(output string) []string {
	var said []string
	reason := -1
	for text := range strings.Lines(output) {
		text = strings.TrimRight(text, "\r\n")
		if len(text) > maxErrorLineBytes {
			continue
		}
		names := raised.MatchString(text)
		if names {
			reason = len(said)
		}
		if names || errorLine.MatchString(text) {
			said = append(said, squeezed(text))
		}
	}
	return distinct(said, func(i int) bool { return i == reason })
}

// errorLines are those of the entry's output and evidence.
func (e *Entry) errorLines() []string {
	return append(errorLines(e.Output), errorLines(e.Evidence)...)
}

// distinct returns the first and last of those lines that say what went wrong,
// and those that are wanted, each once.
func distinct(said []string, wanted func(i int) bool) []string {
	matching := 0
	for _, text := range said {
		if errorLine.MatchString(text) {
			matching++
		}
	}
	var lines []string
	known := make(map[string]bool)
	nth := 0
	for i, text := range said {
		keep := wanted(i)
		if errorLine.MatchString(text) {
			keep = keep || nth < firstErrorLines || nth >= matching-lastErrorLines
			nth++
		}
		if keep && !known[text] {
			known[text] = true
			lines = append(lines, text)
		}
	}
	return lines
}

// ranking adds up the identifiers of many texts.
type ranking struct {
	found []Identifier
	index map[string]int
}

func newRanking() *ranking { return &ranking{index: make(map[string]int)} }

// add counts the identifiers of a text.
func (r *ranking) add(text string) {
	gather(text, func(class Class, id string, score int) { r.addOne(Identifier{class, id, score}) })
}

// addOne counts an identifier once more.
func (r *ranking) addOne(id Identifier) {
	at, known := r.index[id.Text]
	if !known {
		r.index[id.Text] = len(r.found)
		r.found = append(r.found, id)
		return
	}
	r.found[at].Score += id.Score
	r.found[at].Class = min(r.found[at].Class, id.Class)
}

// addBest counts the best of one text's identifiers, up to a limit, and up to
// pathFactor times as many paths. ranked has the best first. It returns those
// that it counted.
func (r *ranking) addBest(ranked []Identifier, limit int) []Identifier {
	paths := limit * pathFactor
	var best []Identifier
	for _, id := range ranked {
		left := &limit
		if id.Class == Path {
			left = &paths
		}
		if *left--; *left >= 0 {
			r.addOne(id)
			best = append(best, id)
		}
	}
	return best
}

// best returns them, the best first; between equals the one that came first.
func (r *ranking) best() []Identifier {
	slices.SortStableFunc(r.found, func(a, b Identifier) int { return b.Score - a.Score })
	return r.found
}

// bound keeps the best of each class. Nothing may be added after that.
func (r *ranking) bound(limits [classes]int) {
	bytes := digestNameBytes
	r.found = slices.DeleteFunc(r.best(), func(id Identifier) bool {
		if limits[id.Class]--; limits[id.Class] >= 0 {
			bytes -= len(id.Text)
		}
		return limits[id.Class] < 0 || bytes < 0
	})
}
