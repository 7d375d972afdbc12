package analysis

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"golang.org/x/text/unicode/norm"
)

// walker walks through one text. Its methods return false when the receiver of
// the terms has had enough.
type walker struct {
	analyzer *Analyzer
	yield    func(string) bool
	// aside takes the terms that Terms leaves out, see Indexed; nil: they are dropped.
	aside func(string)
	// stopsAside: stop words are among them.
	stopsAside bool
	tongue     *tongue // the language that the text is recognised to be in, or nil
	dropStops  bool    // the stop words of tongue
	keepStops  bool
	found      bool   // whether a term was yielded
	all        string // the text
	fixed      bool   // a word is read in another form than the text has

	buf, part [MaxTermBytes]byte // a word and a part of it
	whole     whole
}

// read walks through a whole text, a second time with the stop words if it has
// nothing else.
func (w *walker) read(text string) {
	w.all = text
	if w.analyzer.language.recognizes {
		w.tongue, w.dropStops = recognize(text)
	}
	if w.text(text) && !w.found {
		w.keepStops = true
		w.text(text)
	}
}

// emit yields the term of a word.
func (w *walker) emit(k *known) bool {
	if k.stop && !w.keepStops {
		return !w.stopsAside || w.emitAside(k.term)
	}
	return w.emitTerm(k.term)
}

// emitAside yields a term that says nothing by itself, or says again what another says.
func (w *walker) emitAside(term string) bool {
	if w.aside != nil {
		w.aside(term)
	}
	return true
}

// emitWord yields the terms of a word: that of the Language, which is known, and that of
// the language which the text was recognised to be in.
func (w *walker) emitWord(k *known, m *meaning) bool {
	switch {
	case w.dropStops && !w.keepStops && m.stop:
		return !w.stopsAside || w.emitAside(k.term)
	case !w.emit(k):
		return false
	}
	return k.stop || m.stop && w.keepStops || m.term == "" || m.term == k.term || w.emitTerm(m.term)
}

func (w *walker) emitTerm(term string) bool {
	w.found = true
	return w.yield(term)
}

// text walks through stretches of ASCII and chunks, up to a space, of anything
// else.
func (w *walker) text(text string) bool {
	for at := 0; at < len(text); {
		plain := plainPrefix(text[at:])
		if !w.ascii(text[at : at+plain]) {
			return false
		}
		at += plain
		chunk := chunkPrefix(text[at:])
		if chunk > 0 && !w.chunk(text[at:at+chunk]) {
			return false
		}
		at += chunk
	}
	return true
}

// plainPrefix returns how much of text to take as ASCII: all, or up to the
// chunk that holds something else.
func plainPrefix(text string) int {
	afterSpace := 0
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return afterSpace
		}
		if classes[text[i]]&space != 0 {
			afterSpace = i + 1
		}
	}
	return len(text)
}

// chunkPrefix returns the length of text up to its first ASCII space.
func chunkPrefix(text string) int {
	for i := range len(text) {
		if classes[text[i]]&space != 0 {
			return i
		}
	}
	return len(text)
}

// chunk walks through a text without spaces that is not all ASCII: runs of scripts
// without spaces become pairs, symbols terms, and the stretches between other characters
// words.
func (w *walker) chunk(text string) bool {
	if from, to := trimMarks(text); isSimpleWord(text[from:to]) {
		return w.foreignWord(text[from:to])
	}
	normal := normalize(text)
	for at := 0; at < len(normal); {
		kind, size := cutStretch(normal[at:])
		if !w.stretch(kind, normal[at:at+size]) {
			return false
		}
		at += size
	}
	return true
}

// normalize returns the form in which a chunk is cut into words: NFKC, with the marks and
// plain digits in place of typographic ones, and without invisible characters.
func normalize(text string) string {
	return strings.Map(plainRune, norm.NFKC.String(text))
}

// plainRune returns the character of a keyboard that people take a character for; less
// than zero for one without a plain form.
func plainRune(r rune) rune {
	switch {
	case r < utf8.RuneSelf:
		return r
	case strings.ContainsRune("’‘‛ʼ′´ˈꞌ", r):
		return '\''
	case strings.ContainsRune("‐‑‒–−﹘﹣", r):
		return '-'
	case r == '⁄': // of ½
		return '/'
	case r == '\u034f', '\ufe00' <= r && r <= '\ufe0f', unicode.Is(unicode.Cf, r): // joiners and variants
		return -1
	case unicode.Is(unicode.Nd, r):
		return '0' + digitOf(r)
	}
	return r
}

// digitOf is the value of a decimal digit: the digits of a script stand in a row, from zero.
func digitOf(r rune) (value rune) {
	for value < 9 && unicode.Is(unicode.Nd, r-value-1) {
		value++
	}
	return value
}

// cutStretch returns the kind of a text's first character and how far the text
// is of that kind.
func cutStretch(text string) (runeKind, int) {
	first, size := utf8.DecodeRuneInString(text)
	kind := classify(first, size)
	end := size
	for end < len(text) && kind != symbol {
		r, size := utf8.DecodeRuneInString(text[end:])
		if classify(r, size) != kind && !(kind == unspaced && unicode.IsMark(r)) {
			break
		}
		end += size
	}
	return kind, end
}

// runeKind is what a character means for cutting a text into words.
type runeKind uint8

const (
	separator runeKind = iota
	wordly             // may stand in a word, or is ASCII
	unspaced           // of a script without spaces between words
	symbol             // a separate term, such as an emoji
)

func classify(r rune, size int) runeKind {
	switch {
	case r < utf8.RuneSelf:
		return wordly
	case r == utf8.RuneError && size <= 1:
		return separator
	case isCJK(r) || isSoutheastAsian(r):
		return unspaced
	case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || unicode.Is(unicode.Cf, r):
		return wordly
	case unicode.Is(unicode.So, r) && r != utf8.RuneError:
		return symbol
	}
	return separator
}

func isCJK(r rune) bool {
	const firstJamo, prolonged, halfProlonged = 0x1100, 'ー', 'ｰ'
	switch {
	case r < firstJamo:
		return false
	case '一' <= r && r <= '鿿', '가' <= r && r <= '힣': // nearly all there are
		return true
	}
	return r == prolonged || r == halfProlonged ||
		unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// isSoutheastAsian reports whether r is a letter or a mark on one of a script that
// puts no spaces between words either. To find where these end takes a dictionary.
func isSoutheastAsian(r rune) bool {
	const first, last = 0x0e00, 0xaadf // Thai, Tai Viet
	return first <= r && r <= last && !unicode.IsDigit(r) && (unicode.IsLetter(r) || unicode.IsMark(r)) &&
		unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tai_Tham, unicode.Tai_Viet)
}

func (w *walker) stretch(kind runeKind, text string) bool {
	switch kind {
	case unspaced:
		return w.pairs(text)
	case symbol:
		return w.emitTerm(text)
	case wordly:
		return w.words(text)
	}
	return true
}

// pairs yields each two neighbours of a run, or its only character.
func (w *walker) pairs(run string) bool {
	_, first := utf8.DecodeRuneInString(run)
	if first == len(run) {
		return w.emitTerm(run)
	}
	for at := 0; at+first < len(run); {
		_, second := utf8.DecodeRuneInString(run[at+first:])
		if !w.emitTerm(run[at:at+first+second]) || !w.lone(run[at:at+first]) {
			return false
		}
		at, first = at+first, second
	}
	return w.lone(run[len(run)-first:])
}

// lone yields a character of a run as a term aside: many are separate words. In a query,
// single characters of alphabetic scripts say too little.
func (w *walker) lone(character string) bool {
	r, _ := utf8.DecodeRuneInString(character)
	if unicode.IsMark(r) || !w.stopsAside && !unicode.In(r, unicode.Han, unicode.Hangul) {
		return true
	}
	return w.emitAside(character)
}

// words cuts a stretch into words after Unicode's rules.
func (w *walker) words(text string) bool {
	if isASCII(text) {
		return w.ascii(text)
	}
	state, rest := -1, text
	for len(rest) > 0 {
		var word string
		word, rest, state = uniseg.FirstWordInString(rest, state)
		read := w.foreign
		if isASCII(word) {
			read = w.ascii
		}
		if !read(word) {
			return false
		}
	}
	return true
}

// foreign yields a word with letters outside ASCII, its parts first when it
// has several.
func (w *walker) foreign(word string) bool {
	word = strings.TrimSuffix(strings.TrimSuffix(word, "'s"), "'S")
	parts := 0
	for at := 0; at < len(word); {
		size := strings.IndexFunc(word[at:], isGap)
		if size < 0 {
			size = len(word) - at
		}
		if size == 0 {
			_, gap := utf8.DecodeRuneInString(word[at:])
			at += gap
			continue
		}
		read := w.foreignWord
		if isASCII(word[at : at+size]) {
			read = w.ascii
		}
		if parts++; !read(word[at : at+size]) {
			return false
		}
		at += size
	}
	if parts > 1 && strings.ContainsAny(word, "._:") {
		// Yields a word of several parts, which were yielded before.
		k := w.analyzer.lookupText(word)
		if !k.plain {
			return w.foreignWord(word)
		}
		return len(k.term) > MaxTermBytes || w.emitTerm(k.term)
	}
	return true
}

// foreignWord yields the term of a word that is not ASCII. If folding makes it
// ASCII, it is read like any such word.
func (w *walker) foreignWord(word string) bool {
	k := w.analyzer.lookupText(word)
	if k.spelled != "" && k.spelled != k.term && !w.emitAside(k.spelled) {
		return false
	}
	if w.tongue != nil && scriptOf(word) == nil {
		// Yields the terms of a word with letters outside ASCII in a text whose language
		// was recognised.
		if strings.IndexFunc(k.term, isWordRune) < 0 {
			return true
		}
		if !k.plain {
			return w.emitWord(k, k.in(w.tongue))
		}
		english := w.analyzer.lookupText(k.term)
		if k.accented && english.stop {
			english = &known{word: english.word, term: english.word}
		}
		return w.emitWord(english, k.in(w.tongue))
	}
	if k.plain {
		fixed, keepStops := w.fixed, w.keepStops
		// Without its accents thé looks like a stop word, which it is not.
		w.fixed, w.keepStops = true, keepStops || k.accented
		more := w.ascii(k.term)
		w.fixed, w.keepStops = fixed, keepStops
		return more
	}
	if strings.IndexFunc(k.term, isWordRune) < 0 {
		return true
	}
	return w.emit(k)
}

func isGap(r rune) bool {
	return !isWordRune(r) && !unicode.IsMark(r) && !unicode.Is(unicode.Cf, r)
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// cut takes the first MaxTermBytes of a term, whole characters.
func cut(term string) string {
	if len(term) <= MaxTermBytes {
		return term
	}
	end := MaxTermBytes
	for !utf8.RuneStart(term[end]) {
		end--
	}
	return term[:end]
}
