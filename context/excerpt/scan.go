package excerpt

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sizes of identifiers.
const (
	// minIdentBytes is the shortest identifier: shorter ones are words like
	// "the", or names that stand everywhere.
	minIdentBytes = 4
	// plainIdentBytes is the length from which a word is an identifier without
	// any other sign of being one.
	plainIdentBytes = 8
	// MaxIdentifierBytes bounds an identifier that is worth its place: longer ones
	// are encoded data.
	MaxIdentifierBytes = 120
)

// byteKind says where a byte may stand.
type byteKind uint8

const (
	isWord  byteKind = 1 << iota // letters, digits, underscore
	isDigit                      // 0-9
	isJoin                       // . / : -
	isURL                        // may stand in a URL behind its scheme
	isUpper                      // A-Z
	isSlash
	isColon
)

// kinds of all bytes; a table, because every byte of every result is looked up.
var kinds = byteKinds()

func byteKinds() (table [256]byteKind) {
	for c := range table {
		b := byte(c)
		switch {
		case b >= '0' && b <= '9':
			table[c] = isWord | isDigit | isURL
		case b >= 'A' && b <= 'Z':
			table[c] = isWord | isURL | isUpper
		case b >= 'a' && b <= 'z', b == '_':
			table[c] = isWord | isURL
		case b == '/':
			table[c] = isJoin | isURL | isSlash
		case b == ':':
			table[c] = isJoin | isURL | isColon
		case b == '.', b == '-':
			table[c] = isJoin | isURL
		case strings.IndexByte("?#[]@!$&*+,;=%~", b) >= 0:
			table[c] = isURL
		}
	}
	return table
}

func is(b byte, kind byteKind) bool { return kinds[b]&kind != 0 }

// runs calls found for each longest run of identifier bytes in text, that is of
// letters, digits and _./:-, that may hold something, with the kinds of its bytes.
// The letter of an escape, as in JSON, does not count.
func runs(text string, found func(start, end int, has byteKind)) {
	var quoted Quoted
	for i := 0; i < len(text); {
		if !is(text[i], isWord|isJoin) {
			i++
			continue
		}
		if skip := quoted.Escaped(text, i); skip > 0 {
			i += skip
			continue
		}
		end, has := i+1, kinds[text[i]]
		for end < len(text) {
			kind := kinds[text[end]]
			if kind&(isWord|isJoin) == 0 {
				break
			}
			has |= kind
			end++
		}
		found(i, end, has)
		i = end
	}
}

// withoutJoins is an identifier without the joining bytes at its ends.
func withoutJoins(run string) string {
	start, end := 0, len(run)
	for start < end && is(run[start], isJoin) {
		start++
	}
	for start < end && is(run[end-1], isJoin) {
		end--
	}
	return run[start:end]
}

// identifier returns the identifier of a run, or nothing when it is too short
// or too plain to be one.
func identifier(run string) string {
	for i := range len(run) {
		if is(run[i], isWord) {
			if len(run)-i < minIdentBytes {
				return ""
			}
			run = withoutJoins(run[i:])
			break
		}
		if i == len(run)-1 {
			return ""
		}
	}
	if len(run) < minIdentBytes || !specific(run) {
		return ""
	}
	return run
}

// specific reports whether a word is an identifier: it holds a digit, an underscore, a
// slash or a dot, changes from a small to a capital letter, or is long.
func specific(s string) bool {
	if len(s) >= plainIdentBytes {
		return true
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case is(c, isDigit), c == '_', c == '/', c == '.':
			return true
		case i > 0 && c >= 'A' && c <= 'Z' && s[i-1] >= 'a' && s[i-1] <= 'z':
			return true
		}
	}
	return false
}

// EachIdentifier calls found for each identifier of a text, in order, repetitions
// included.
func EachIdentifier(text string, found func(id string)) {
	runs(text, func(start, end int, _ byteKind) {
		if end-start < minIdentBytes {
			return
		}
		if id := identifier(text[start:end]); id != "" {
			found(id)
		}
	})
}

// HasIdentifier reports whether an identifier stands in a text as EachIdentifier finds it.
// It reads only the lines that hold the letters.
func HasIdentifier(text, id string) bool {
	for id != "" {
		at := strings.Index(text, id)
		if at < 0 {
			return false
		}
		start, end := strings.LastIndexByte(text[:at], '\n')+1, len(text)
		if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n
		}
		found := false
		EachIdentifier(text[start:end], func(one string) { found = found || one == id })
		if found {
			return true
		}
		text = text[end:]
	}
	return false
}

// paths calls found for each path in a run: names joined by single slashes.
func paths(run string, found func(path string)) {
	for part := range strings.SplitSeq(run, ":") {
		for part != "" {
			// An empty name, as in "a//b", ends one path and begins the next.
			cut := strings.Index(part, "//")
			piece := part
			if cut >= 0 {
				piece, part = part[:cut], part[cut+2:]
			} else {
				part = ""
			}
			piece = strings.TrimPrefix(strings.TrimSuffix(piece, "/"), "/")
			if strings.IndexByte(piece, '/') >= 0 {
				path := withoutJoins(piece)
				if strings.IndexByte(path, '/') < 0 && strings.HasPrefix(piece, "./") {
					// The dot is what makes "./setup.py" a path.
					path = "./" + path
				}
				if strings.IndexByte(path, '/') >= 0 {
					found(path)
				}
			}
		}
	}
}

// namesFailure reports whether a word names a failure: ValueError, SyntaxWarning,
// FAILED.
func namesFailure(word string) bool {
	return strings.HasSuffix(word, "Error") || strings.HasSuffix(word, "Exception") ||
		strings.HasSuffix(word, "Warning") || strings.Contains(word, "FAIL")
}

// defines reports whether a word comes before the name of what it brings in.
func defines(word string) bool {
	switch word {
	case "def", "class", "func", "fn", "struct", "interface", "const", "import", "from":
		return true
	}
	return false
}

// definedName returns the name that stands behind a defining word: white space
// and then a name, with dots.
func definedName(text string) string {
	rest := strings.TrimLeft(text, " \t\r\n")
	if len(rest) == len(text) || rest == "" || !is(rest[0], isWord) || is(rest[0], isDigit) {
		return ""
	}
	end := 1
	for end < len(rest) && (is(rest[end], isWord) || rest[end] == '.') {
		end++
	}
	return rest[:end]
}

// maxDefiningBytes is the length of the longest word that defines.
const maxDefiningBytes = len("interface")

// lastWord is the word at the end of a run, or nothing when it ends otherwise or in a
// word too long to define anything.
func lastWord(run string) string {
	start := len(run)
	for start > 0 && is(run[start-1], isWord) {
		if start--; len(run)-start > maxDefiningBytes {
			return ""
		}
	}
	return run[start:]
}

// words calls found for each word of a run.
func words(run string, found func(word string)) {
	for start := 0; start < len(run); {
		if !is(run[start], isWord) {
			start++
			continue
		}
		end := start + 1
		for end < len(run) && is(run[end], isWord) {
			end++
		}
		found(run[start:end])
		start = end
	}
}

// url returns the URL that begins with the run at text[start:end], or nothing.
func url(text string, start, end int) string {
	at := strings.Index(text[start:end], "://")
	if at <= 0 || start+at+3 >= len(text) {
		return ""
	}
	from := start + at
	for from > start && is(text[from-1], isWord) {
		from--
	}
	for end < len(text) && is(text[end], isURL) {
		end++
	}
	if from == start+at || end <= start+at+3 {
		return ""
	}
	return strings.TrimRight(text[from:end], ".,;:!?")
}

// units of measurements that follow a number, with a space or without, and the
// things that reports count.
func isUnit(word string) bool {
	switch word {
	case "ns", "us", "µs", "ms", "s", "sec", "secs", "second", "seconds", "min", "mins", "minutes", "h", "hours",
		"B", "kB", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "K", "M", "G", "bytes", "Hz", "MHz", "GHz", "fps", "px", "tokens",
		"passed", "failed", "failures", "failure", "errors", "error", "warnings", "warning", "skipped", "xfailed", "xpassed", "deselected",
		"tests", "test", "items", "insertions", "insertion", "deletions", "deletion":
		return true
	}
	return false
}

// isGlued reports whether a unit may follow its number without a space. Single
// capitals are left out: they end too many names.
func isGlued(word string) bool {
	switch word {
	case "K", "M", "G", "B", "h", "test", "tests", "error", "errors", "failed", "passed", "items":
		return false
	}
	return isUnit(word)
}

// measurement returns the number with its unit that begins at text[start],
// where a run begins that ends at end, or nothing: "3.4s", "12 passed", "45%".
func measurement(text string, start, end int) string {
	i := start
	for i < end && is(text[i], isDigit) {
		i++
	}
	if i+1 < end && text[i] == '.' && is(text[i+1], isDigit) {
		for i++; i < end && is(text[i], isDigit); i++ {
		}
	}
	if i < end {
		if unit := firstWord(text[i:]); isGlued(unit) {
			return text[start : i+len(unit)]
		}
		return ""
	}
	if i < len(text) && text[i] == '%' {
		return text[start : i+1]
	}
	if i+1 < len(text) && text[i] == ' ' {
		if unit := firstWord(text[i+1:]); isUnit(unit) {
			return text[start : i+1+len(unit)]
		}
	}
	return ""
}

// firstWord is the word that text begins with, letters only.
func firstWord(text string) string {
	for i, r := range text {
		if !unicode.IsLetter(r) {
			if is(text[i], isWord) {
				return ""
			}
			return text[:i]
		}
		if r == utf8.RuneError {
			return ""
		}
	}
	return text
}
