package analysis

// ascii yields the terms of a text without bytes over 7f.
func (w *walker) ascii(text string) bool {
	for i := 0; i < len(text); {
		if !isAlnum(text[i]) {
			i++
			continue
		}
		if w.aside != nil && beginsWithDot(text, i) && !w.dotted(text, i) {
			return false
		}
		end, ok := w.compound(text, i)
		if !ok {
			return false
		}
		i = end
	}
	return true
}

// compound yields the words of the identifier that begins at start: one word,
// or several with a single joining character between each two. Then it yields
// the identifier as a whole. It returns where the identifier ends.
func (w *walker) compound(text string, start int) (int, bool) {
	if d, end := numericDate(text, start); end > 0 {
		return end, w.emitNumericDate(d, text[start:start+4])
	}
	w.whole.reset()
	for i := start; ; {
		end, ok := w.word(text, i)
		if !ok {
			return end, false
		}
		if end+1 >= len(text) || !isJoiner(text[end]) || !isAlnum(text[end+1]) {
			return afterPossessive(text, end), w.emitWhole()
		}
		w.whole.join(text[end])
		i = end + 1
	}
}

// word yields the terms of the run of letters and digits at start and returns
// where it ends.
func (w *walker) word(text string, start int) (int, bool) {
	word := w.buf[:0]
	first := classes[text[start]]
	var later byte // classes of the characters behind the first
	i := start
	for ; i < len(text); i++ {
		c := text[i]
		class := classes[c]
		if class&alnum == 0 {
			break
		}
		if i > start {
			later |= class
		}
		if len(word) < MaxTermBytes {
			word = append(word, c|class&upper)
		}
	}
	if (first|later)&alnum == digit {
		word, i = thousands(word, text, start, i)
	}
	if end := afterSigil(text, start, i); end > i {
		return w.sigil(text, start, i, end)
	}
	w.whole.add(word, (first|later)&digit != 0)
	if later&upper != 0 && hasHump(text, start, i) && !w.humps(text[start:i]) {
		return i, false
	}
	k := w.analyzer.lookup(word)
	if k.month > 0 && !w.fixed {
		return i, w.emitMonth(k, text, start, i)
	}
	if k.stop && first&upper != 0 && w.aside != nil && !w.name(k, text, start, i) {
		return i, false
	}
	if w.tongue != nil && !w.fixed {
		return i, w.emitWord(k, k.in(w.tongue))
	}
	return i, w.emit(k)
}

func hasHump(text string, start, end int) bool {
	for i := start + 1; i < end; i++ {
		if isUpper(text[i]) && isHump(text, start, i) {
			return true
		}
	}
	return false
}

// isHump reports whether a part of a camel-case word begins at i, an upper-case
// letter: after a lower-case letter or digit, or as the last capital before
// lower-case letters (HTTPServer), unless these are just the s of a plural.
func isHump(text string, start, i int) bool {
	if !isUpper(text[i-1]) {
		return true
	}
	if i+1 >= len(text) || !isLower(text[i+1]) {
		return false
	}
	plural := text[i+1] == 's' && (i+2 >= len(text) || !isAlnum(text[i+2]))
	return !plural && i > start
}

// humps yields the parts of a camel-case word; single letters are no parts.
func (w *walker) humps(word string) bool {
	from := 0
	for i := 1; i <= len(word); i++ {
		if i < len(word) && !(isUpper(word[i]) && isHump(word, 0, i)) {
			continue
		}
		if i-from > 1 && !w.emit(w.analyzer.lookup(lower(w.part[:0], word[from:i]))) {
			return false
		}
		from = i
	}
	return true
}

// thousands reads on where a number goes on behind a separator: 45,000.
func thousands(number []byte, text string, start, end int) ([]byte, int) {
	if end-start > 3 {
		return number, end
	}
	for isGroup(text, end) && len(number) < MaxTermBytes-3 {
		number = append(number, text[end+1:end+4]...)
		end += 4
	}
	return number, end
}

// isGroup reports whether a comma and exactly three digits stand at i.
func isGroup(text string, i int) bool {
	return i+3 < len(text) && text[i] == ',' &&
		isDigit(text[i+1]) && isDigit(text[i+2]) && isDigit(text[i+3]) &&
		(i+4 == len(text) || !isAlnum(text[i+4]))
}

// afterPossessive returns the end of a word with the 's that may follow it.
func afterPossessive(text string, end int) int {
	if end+1 < len(text) && text[end] == '\'' && text[end+1]|0x20 == 's' &&
		(end+2 == len(text) || !isAlnum(text[end+2])) {
		return end + 2
	}
	return end
}

// whole collects an identifier while its parts go by.
type whole struct {
	buf      [MaxTermBytes]byte
	size     int // above MaxTermBytes when it did not fit
	parts    int
	firm     bool // has a joiner that plain prose rarely has, or a digit
	lastPath int  // where the last path element begins
}

func (h *whole) reset() { h.size, h.parts, h.firm, h.lastPath = 0, 0, false, 0 }

func (h *whole) add(word []byte, hasDigit bool) {
	if h.size+len(word) <= MaxTermBytes {
		copy(h.buf[h.size:], word)
	}
	h.size += len(word)
	h.parts++
	h.firm = h.firm || hasDigit
}

// join adds the joiner between two words.
func (h *whole) join(c byte) {
	if h.size < MaxTermBytes {
		h.buf[h.size] = c
	}
	h.size++
	h.firm = h.firm || c != '-'
	if c == '/' || c == '\\' {
		h.lastPath = h.size
	}
}

// emitWhole yields the identifier, and its file name if it is a path. Words that hyphens
// alone join are no identifier, unless one of them is a number.
func (w *walker) emitWhole() bool {
	h := &w.whole
	if h.parts < 2 || h.size > MaxTermBytes {
		return true
	}
	id := h.buf[:h.size]
	if w.aside != nil && !w.joined(id) {
		return false
	}
	if !h.firm {
		return true
	}
	if name := id[h.lastPath:]; h.lastPath > 0 && hasJoiner(name) && !w.emitTerm(string(name)) {
		return false
	}
	return w.emitTerm(string(id))
}

func hasJoiner(name []byte) bool {
	for _, c := range name {
		if isJoiner(c) {
			return true
		}
	}
	return false
}

func lower(dst []byte, word string) []byte {
	for i := range min(len(word), cap(dst)) {
		dst = append(dst, word[i]|classes[word[i]]&upper)
	}
	return dst
}

func isUpper(c byte) bool { return classes[c]&upper != 0 }
func isLower(c byte) bool { return classes[c]&small != 0 }
func isDigit(c byte) bool { return classes[c]&digit != 0 }
func isAlnum(c byte) bool { return classes[c]&alnum != 0 }

// isJoiner reports whether c may stand inside an identifier.
func isJoiner(c byte) bool { return classes[c]&joiner != 0 }

// The classes of a byte. Upper has the value of the bit that distinguishes a capital
// from its small letter.
const (
	small  byte = 0x01
	digit  byte = 0x02
	joiner byte = 0x04 // joins the parts of an identifier
	space  byte = 0x08 // separates chunks of text
	upper  byte = 0x20

	alnum = small | digit | upper
)

// classes holds the classes of each byte. It is never changed.
var classes = classTable()

func classTable() (table [256]byte) {
	for c := byte('a'); c <= 'z'; c++ {
		table[c] = small
		table[c-'a'+'A'] = upper
	}
	for c := byte('0'); c <= '9'; c++ {
		table[c] = digit
	}
	for _, c := range []byte(`_-./\:@&`) {
		table[c] = joiner
	}
	for _, c := range []byte(" \t\n\v\f\r") {
		table[c] = space
	}
	return table
}
