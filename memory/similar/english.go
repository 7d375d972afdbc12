package similar

import (
	"slices"
	"strings"
)

func set(words string) map[string]bool {
	m := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		m[word] = true
	}
	return m
}

// The word lists; none is changed.
var (
	// courtesy are words of short answers that say nothing.
	courtesy = set(`yes yeah yep no nope ok okay sure fine great good cool nice awesome perfect thanks thank you very much
		so please hi hello hey bye goodbye sorry oh ah haha lol right exactly indeed absolutely definitely wow
		sounds that's it's is that it i see agreed done got understood welcome morning night evening well to me`)
	// negators are words near which each comma and each filler may matter.
	negators = set(`no not never none nobody nothing nowhere neither nor without hardly barely scarcely cannot unless except but only if`)
	// english are words by which an English text is known.
	english = set(`the is are was were and of with has have had they she he my your would does did been will`)
	// articleAfter are words behind which "a" and "an" are articles, and no letters.
	articleAfter = set(`is was are were has have had with for in on at of as to from by into and owns bought got needs wants likes became`)
	// noArticle are words before which "a" matters: few is not a few.
	noArticle = set(`few little lot bit hundred thousand million dozen couple number`)
	// fillers say nothing where nothing is denied.
	fillers = set(`really actually basically um uh please`)
	// sayers are words behind which "that" may be left out.
	sayers = set(`said says say think thinks thought know knows knew told mentioned noted remember remembers believes believe`)
	// openings stand in front of what is said, with a colon, comma or "that" behind them.
	openings = [][]string{
		{"note"},
		{"please", "note"},
		{"remember"},
		{"please", "remember"},
		{"reminder"},
		{"fyi"},
		{"for", "the", "record"},
		{"as", "i", "recall"},
		{"as", "mentioned"},
		{"as", "noted"},
		{"as", "mentioned", "before"},
		{"as", "noted", "before"},
		{"from", "memory"},
		{"memory"},
		{"recalled"},
		{"recalled", "memory"},
		{"i", "recall"},
	}
	// pronouns are words whose 's is short for is.
	pronouns = set(`it he she that there what who where how here`)
	// participles show that an 's is short for has, or may be.
	participles = set(`been got had gone done become taken seen made`)
	// moving are words of a time that moves on.
	moving = set(`today tonight yesterday tomorrow now currently nowadays recently lately soon ago later earlier presently
		just already still yet anymore meanwhile right-now heute gestern morgen jetzt hoy ayer mañana ahora hier demain maintenant aujourd'hui`)
	// spans are words that "this", "last" and "next" make a moving time of.
	spans = set(`morning afternoon evening night day week weekend month year quarter summer winter spring autumn fall time
		monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october november december`)
	// months are names of months that are other words, too.
	months   = set(`may march august`)
	pointers = set(`this last next past coming previous`)
	// alsoName are words that are another word where they are written as a name.
	alsoName = set(`us it who aids may march polish turkey china mark bill will rose grace hope faith joy dawn frank art rich
		jack pat sue bob drew chase amber august summer reading nice mobile bath job apple amazon shell target gap
		windows word excel teams slack notion linear discord signal telegram go rust swift java python ruby meta stripe square
		sky sandy penny ruby pearl jade lily daisy violet iris holly ivy heather olive ginger pepper basil max miles dean duke
		earl king prince baker cook smith mason hunter carter fisher taylor potter young long short brown green white black gray
		grey orange ford focus orlando jordan chad mali oman guinea jersey georgia holland wales bond sterling pole finn dane swede
		swiss dutch catholic liberal democrat republican earth moon mars mercury sun god bible ant maven gradle spark kafka flame`)
)

// expand writes contractions out.
func (f *Form) expand() {
	out := make([]token, 0, len(f.tokens))
	for i, t := range f.tokens {
		next := ""
		if i+1 < len(f.tokens) {
			next = f.tokens[i+1].text
		}
		stem, rest := contraction(t.text, next)
		if rest == "" {
			out = append(out, t)
			continue
		}
		raw := t.raw
		if len(stem) < len(t.raw) && strings.EqualFold(t.raw[:len(stem)], stem) {
			raw = t.raw[:len(stem)]
		}
		out = append(out, token{text: stem, raw: raw, first: t.first, word: true}, token{text: rest, raw: rest, first: true, word: true})
	}
	f.tokens = out
}

// contraction returns the two words that one is short for; an empty second one if it is
// none, or may be short for others.
func contraction(word, next string) (stem, rest string) {
	switch word {
	case "cannot", "can't":
		return "can", "not"
	case "won't":
		return "will", "not"
	case "shan't":
		return "shall", "not"
	case "ain't":
		return word, ""
	case "i'm":
		return "i", "am"
	}
	for _, c := range []struct{ ending, rest string }{{"n't", "not"}, {"'re", "are"}, {"'ve", "have"}, {"'ll", "will"}} {
		if stem, ok := strings.CutSuffix(word, c.ending); ok && stem != "" {
			return stem, c.rest
		}
	}
	if stem, ok := strings.CutSuffix(word, "'s"); ok && pronouns[stem] && !participles[next] && !strings.HasSuffix(next, "ed") {
		return stem, "is"
	}
	return word, ""
}

// dropPoints drops points and commas, but those inside a text that denies something, which
// may say what: "No, more coffee".
func (f *Form) dropPoints() {
	last := len(f.tokens)
	for last > 0 && f.tokens[last-1].point {
		last--
	}
	f.tokens = f.tokens[:last]
	if f.denies() {
		return
	}
	// The point behind an opening is needed to know it.
	opening := f.opening()
	kept := f.tokens[:0]
	for i, t := range f.tokens {
		if !t.point || i == opening-1 {
			kept = append(kept, t)
		}
	}
	f.tokens = kept
}

func (f *Form) denies() bool {
	return slices.ContainsFunc(f.tokens, func(t token) bool { return negators[t.text] })
}

// opening returns how many tokens are a phrase in front of what is said.
func (f *Form) opening() (n int) {
	for _, words := range openings {
		if len(f.tokens) <= len(words)+1 || len(words) < n {
			continue
		}
		begins := slices.EqualFunc(f.tokens[:len(words)], words, func(t token, word string) bool { return t.text == word })
		if mark := f.tokens[len(words)]; begins && (mark.point && mark.text != "." || mark.text == "that") {
			n = len(words) + 1
		}
	}
	return n
}

// dropFillers drops what an English text can do without.
func (f *Form) dropFillers() {
	if !slices.ContainsFunc(f.tokens, func(t token) bool { return english[t.text] || fillers[t.text] }) {
		return
	}
	denies := f.denies()
	kept := make([]token, 0, len(f.tokens))
	for i, t := range f.tokens {
		before, after := "", ""
		if len(kept) > 0 {
			before = kept[len(kept)-1].text
		}
		if i+1 < len(f.tokens) && f.tokens[i+1].word {
			after = f.tokens[i+1].text
		}
		if !t.empty(before, after, denies) {
			t.first = t.first || i > 0 && f.tokens[i-1].first && len(kept) == 0
			kept = append(kept, t)
		}
	}
	if len(kept) > 0 {
		f.tokens = kept
	}
}

// empty reports whether a word says nothing between those next to it.
func (t token) empty(before, after string, denies bool) bool {
	lowerCase := t.raw == t.text || t.first && !shouted(t.raw)
	switch {
	case !t.word || !lowerCase || after == "":
		return false
	case t.text == "the":
		return !strings.HasSuffix(after, "er") && after != "more" && after != "less" && after != "who"
	case t.text == "a" || t.text == "an":
		return (before == "" || articleAfter[before]) && !noArticle[after] && !denies
	case t.text == "that":
		return sayers[before]
	}
	return !denies && fillers[t.text]
}

// fleeting reports whether the words name a time that moves on.
func fleeting(tokens []token) bool {
	for i, t := range tokens {
		if moving[t.text] || i > 0 && spans[t.text] && pointers[tokens[i-1].text] {
			return true
		}
	}
	return false
}
