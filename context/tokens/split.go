package tokens

import "unicode/utf8"

// A splitter cuts valid UTF-8 into pieces as the regular expression of its
// vocabulary would, reading every character a fixed number of times. Tokens
// never reach from one piece into the next.
type splitter interface {
	// next returns where the piece ends that begins at a place before the end
	// of the text.
	next(text string, at int) int
}

// splitO200K follows o200k_base. Its rules in the order they are tried:
//
//   - a word: at most one character before it that is no letter, number or line
//     break, capitals, then small letters, then a contraction;
//   - one to three numbers;
//   - a space at most, symbols, then line breaks and slashes;
//   - white space up to its last line break;
//   - white space at the end of the text, or all but its last character;
//   - one white space.
//
// Letters without case and marks stand for capitals and for small letters.
type splitO200K struct {
	classes *classTable
	// digits is how many digits of a number are one piece.
	digits int
}

func (s splitO200K) next(text string, at int) int {
	if end := asciiWord(text, at); end > 0 {
		return end
	}
	first, width := s.classes.at(text, at)
	behind := at + width
	second, _ := s.classes.at(text, behind)
	switch {
	case first&letter != 0:
		end, _ := s.word(text, at)
		return contraction(text, end, true)
	case first&mark != 0:
		return s.fromMark(text, at, behind)
	case first&newline == 0 && first&number == 0 && second&(upper|lower) != 0:
		end, _ := s.word(text, behind)
		return contraction(text, end, true)
	case first&number != 0:
		return numbers(s.classes, text, behind, s.digits-1)
	case first.symbol():
		return slashes(text, symbols(s.classes, text, behind))
	case text[at] == ' ' && second.symbol():
		return slashes(text, symbols(s.classes, text, behind))
	}
	return whiteSpace(s.classes, text, at, true)
}

// asciiWord is the word rule for what most pieces are: a word of ASCII letters,
// or a space and one, that plain ASCII other than an apostrophe follows. It
// returns 0 for everything else.
func asciiWord(text string, at int) int {
	i := at
	if text[i] == ' ' {
		i++
	}
	start := i
	for i < len(text) && text[i]-'A' < 26 {
		i++
	}
	for i < len(text) && text[i]-'a' < 26 {
		i++
	}
	if i == start || i < len(text) && (text[i] >= utf8.RuneSelf || text[i] == '\'') {
		return 0
	}
	return i
}

// word returns where the letters end that begin at a place; small says that
// there is a small letter, or one without case, among them. A word of capitals
// ends with them; otherwise it ends with the small letters behind them, or with
// the last letter without case if there are none.
func (s splitO200K) word(text string, at int) (end int, small bool) {
	i := at
	for i < len(text) && 'A' <= text[i] && text[i] <= 'Z' {
		i++
	}
	caselessEnd := -1
	c, width := s.classes.at(text, i)
	for c&upper != 0 {
		i += width
		if c&lower != 0 {
			caselessEnd = i
		}
		c, width = s.classes.at(text, i)
	}
	switch {
	case c&lower != 0:
		for c&lower != 0 {
			i += width
			for i < len(text) && 'a' <= text[i] && text[i] <= 'z' {
				i++
			}
			c, width = s.classes.at(text, i)
		}
		return i, true
	case caselessEnd >= 0:
		return caselessEnd, true
	}
	return i, false
}

// fromMark is for a mark that begins a piece: it may stand before a word or be
// one.
func (s splitO200K) fromMark(text string, at, behind int) int {
	if end, small := s.word(text, behind); small {
		return contraction(text, end, true)
	}
	end, _ := s.word(text, at)
	return contraction(text, end, true)
}

// splitApart is splitO200K with each run of line breaks its own piece.
type splitApart struct{ splitO200K }

func (s splitApart) next(text string, at int) int {
	end := s.splitO200K.next(text, at)
	breaks := text[at] == '\n'
	for i := at + 1; i < end; i++ {
		if (text[i] == '\n') != breaks {
			return i
		}
	}
	return end
}

// splitCL100K follows cl100k_base: words have no case and no marks, and a
// contraction is its own piece.
type splitCL100K struct {
	classes *classTable
	// digits is how many digits of a number are one piece.
	digits int
}

func (s splitCL100K) next(text string, at int) int {
	if end := contraction(text, at, true); end > at {
		return end
	}
	first, width := s.classes.at(text, at)
	behind := at + width
	second, _ := s.classes.at(text, behind)
	switch {
	case first&letter != 0:
		return letters(s.classes, text, behind)
	case first&newline == 0 && first&number == 0 && second&letter != 0:
		return letters(s.classes, text, behind)
	case first&number != 0:
		return numbers(s.classes, text, behind, s.digits-1)
	case first.symbol():
		return newlines(text, symbols(s.classes, text, behind))
	case text[at] == ' ' && second.symbol():
		return newlines(text, symbols(s.classes, text, behind))
	}
	return whiteSpace(s.classes, text, at, true)
}

// splitP50K follows the older vocabularies: only a space leads a word, numbers
// have any length, and line breaks are white space like any other.
type splitP50K struct{ classes *classTable }

func (s splitP50K) next(text string, at int) int {
	if end := contraction(text, at, false); end > at {
		return end
	}
	start := at
	if text[at] == ' ' {
		start++
	}
	c, width := s.classes.at(text, start)
	switch {
	case c&letter != 0:
		return letters(s.classes, text, start+width)
	case c&number != 0:
		return numbers(s.classes, text, start+width, len(text))
	case c.symbol():
		return symbols(s.classes, text, start+width)
	}
	return whiteSpace(s.classes, text, at, false)
}

// contraction returns where 's, 't, 're, 've, 'm, 'll or 'd ends if one begins
// at a place, else the place. With fold their case does not matter, and a long
// s is an s.
func contraction(text string, at int, fold bool) int {
	if at+1 >= len(text) || text[at] != '\'' {
		return at
	}
	letterAt := func(i int) byte {
		switch {
		case i >= len(text):
			return 0
		case fold && 'A' <= text[i] && text[i] <= 'Z':
			return text[i] | 0x20
		}
		return text[i]
	}
	switch second := letterAt(at + 2); letterAt(at + 1) {
	case 's', 't', 'm', 'd':
		return at + 2
	case 'r', 'v':
		if second == 'e' {
			return at + 3
		}
	case 'l':
		if second == 'l' {
			return at + 3
		}
	case "\u017f"[0]:
		if fold && second == "\u017f"[1] {
			return at + 3
		}
	}
	return at
}

func letters(t *classTable, text string, i int) int {
	for {
		for i < len(text) && 'a' <= text[i] && text[i] <= 'z' {
			i++
		}
		c, width := t.at(text, i)
		if c&letter == 0 {
			return i
		}
		i += width
	}
}

func numbers(t *classTable, text string, i, most int) int {
	for range most {
		c, width := t.at(text, i)
		if c&number == 0 {
			return i
		}
		i += width
	}
	return i
}

func symbols(t *classTable, text string, i int) int {
	for {
		c, width := t.at(text, i)
		if !c.symbol() {
			return i
		}
		i += width
	}
}

func newlines(text string, i int) int {
	for i < len(text) && (text[i] == '\n' || text[i] == '\r') {
		i++
	}
	return i
}

func slashes(text string, i int) int {
	for i < len(text) && (text[i] == '\n' || text[i] == '\r' || text[i] == '/') {
		i++
	}
	return i
}

// whiteSpace returns the end of a piece of white space. With breaks it goes up
// to the last line break of its run, if there is one.
func whiteSpace(t *classTable, text string, at int, breaks bool) int {
	i, last, broken := at, at, at
	for {
		c, width := t.at(text, i)
		if c&space == 0 {
			break
		}
		last = i
		i += width
		if c&newline != 0 {
			broken = i
		}
	}
	switch {
	case breaks && broken > at:
		return broken
	case i == len(text) || last == at:
		return i
	}
	return last
}
