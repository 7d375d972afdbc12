package inject

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Clocks are what a program writes into a prompt to say what time it is. They are known by
// their form alone: by words that introduce the present and a time behind them, by a tag
// that is named after it, or by a line that is nothing but a time. A date in prose stays
// where it is, and so does one under any other word. All words are from closed lists, so
// that nothing but times moves to the end of a prompt.

const (
	// word is one of timeWords, which is looked up behind a match: naming them here makes
	// the expressions a hundred times slower.
	word    = `[\p{L}'’-]{3,14}\.?`
	isoDate = `\d{4}[-/.]\d{1,2}[-/.]\d{1,2}`
	dayDate = `\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}`
	cjkDate = `\d{4} ?[年년] ?\d{1,2} ?[月월] ?\d{1,2} ?[日일](?: ?\(?\p{L}{1,3}\)?)?`
	date    = `(?:` + isoDate + `|` + cjkDate + `|(?:` + word + `,? (?:\p{L}{2,3} )?)?(?:` + isoDate + `|` + dayDate + `|\d{1,2}(?:st|nd|rd|th|er|\.|º)?(?: de| of)?[ -]` + word + `(?: de|,)?[ -]\d{4}|` + word + ` \d{1,2}(?:st|nd|rd|th)?,? \d{4}))`
	zone    = `(?:z|(?:utc|gmt)(?: ?[+-]\d{1,2}(?::?\d{2})?)?|[+-]\d{2}:?\d{2}|\p{L}{3,4}|` + region + `|[a-z]+(?: [a-z]+)? (?:(?:standard|daylight|summer) )?time)`
	region  = `(?:europe|america|asia|africa|australia|pacific|atlantic|indian|etc)/[a-z_]{2,20}`
	hour    = `\d{1,2}(?::\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?: ?[ap]\.?m\b\.?)?| ?[ap]\.?m\b\.?|時\d{1,2}分|点\d{1,2}分)(?: uhr)?(?: ?(?:` + zone + `|\(` + zone + `\))){0,2}`
	joint   = `(?:[t_]| ?,? ?(?:at |um |à |alle |a las |às |- |\| )?)`
	// ctime is what date and ctime print: the year stands last.
	ctime  = word + ` ` + word + ` {1,2}\d{1,2} \d{2}:\d{2}:\d{2}(?: \p{L}{3,4})? \d{4}`
	moment = `(?:(` + ctime + `|` + date + joint + hour + `|` + hour + `,? (?:on )?` + date + `)|` + date + `|` + hour + `)`

	// whose and what are parts of present, which are words that say that a time is now.
	whose   = `(?:the |your |our |my )(?:user['’]s )?`
	what    = `(?:date ?(?:and|&|/) ?time|date ?time|datetime|date|time|timestamp|day)`
	present = `(?:(?:` + whose + `)?(?:current|present|local|today['’]?s|system|server|utc)(?: (?:local|utc|system|unix))? ` + what + `(?: (?:today|now))?(?: is)?(?: now)?` +
		`|(?:current|now)_(?:date_?time|date|time|timestamp)|(?:(?:the )?time )?now(?: is)?|right now(?: it is)?|it(?: is|['’]s) (?:now|currently)|today(?: is|['’]s)?|date ?(?:and|&|/) ?time|as of now` +
		`|the (?:user['’]s )?(?:date|time)(?: (?:today|now))? is(?: now)?` +
		`|heute(?: ist)?(?: der)?|jetzt(?: ist es)?|aktuelle[sr]? (?:datum(?: und uhrzeit)?|uhrzeit|zeit|zeitpunkt)|datum und uhrzeit|es ist jetzt` +
		`|nous sommes le|aujourd['’]hui(?:,? (?:c['’]est |nous sommes )?le)?|(?:la )?date(?: et (?:l['’])?heure)? actuelles?|(?:l['’])?heure actuelle` +
		`|hoy es|ahora|(?:la )?fecha(?: y hora)? actual(?: es)?|(?:la )?hora actual(?: es)?|fecha y hora` +
		`|oggi è|adesso|(?:la )?data(?: e ora)? attuale|(?:l['’])?ora attuale|hoje é|agora|(?:a )?data(?: e hora)? atual|hora atual` +
		`|(?:当前|现在|目前)(?:的)?(?:日期和时间|日期时间|时间|日期)?(?:是|为)?|今天(?:的日期)?(?:是)?|現在(?:の)?(?:日時|時刻|時間|日付)?は?|今日(?:の日付)?は|현재 ?(?:날짜와 시간|시간|시각|날짜|일시)(?:은|는)?|오늘은|сейчас|сегодня|текущ(?:ее время|ая дата)(?: и время)?)`
	// dating are words that may date anything; only a whole line of them with a time of
	// the day is taken.
	dating = `(?:time ?stamp|date|time|local time|datum|fecha|data|zeit|uhrzeit|日期|时间|日時)`
	tags   = `(?:(?:current|present|local|system|server|utc)[_-]?)?(?:date[_-]?time|datetime|date|time|timestamp|now|today)`
	mark   = `[*_` + "`" + `]{0,3}`
	// colon is what stands between the words and the time, behind a zone in brackets.
	colon = `(?: ?[(\[]` + zone + `[)\]])?` + mark + ` ?(?:[:：=]|->)?` + mark + ` ?`
)

// The expressions are for text in lower case: that is much faster than leaving them to
// ignore it.
var (
	clockTag   = atFirstUse(`<` + tags + `>\s*([^<>]{4,80}?)\s*</` + tags + `>[ \t]*\n?`)
	clockWords = atFirstUse(`^` + mark + `(` + present + colon + `)`)
	clockTime  = atFirstUse(`^` + moment)
	clockLine  = atFirstUse(`^[ \t]*(?:[-*#>]+ )?` + mark + `(?:(?:` + dating + mark + ` ?[:：=]|generated (?:at|on) ?[:：=]?)` + mark + ` ?)?[\[(]?`)
	clockAlone = atFirstUse(`^` + mark + `(?:` + dating + mark + ` ?[:：=]` + mark + ` ?)?[\[(]?`)
	clockAnd   = atFirstUse(`^,? (?:and|und|et|y|e) `)
	clockHead  = atFirstUse(`^[ \t]*(?:[-*#>]+ )?` + mark + present + colon + `$`)
	lineEnd    = atFirstUse(`^[\])]?` + mark + `[.。]?[ \t]*$`)
	inRegion   = atFirstUse(region)
)

// atFirstUse compiles an expression when it is first asked for: these together would be a
// tenth of what every start of the program takes, and most prompts hold no clock.
func atFirstUse(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// timeWords are all words that a time may have.
var timeWords = wordSet(`
	jan january januar janvier ene enero gennaio janeiro januari feb february februar febrero febbraio februari fév fev février fevrier fevereiro
	mar march mars marzo março marco märz maerz maart apr april aprile abr abril avr avril may mai mayo maggio maio mei jun june juni juin junio giugno junho
	jul july juli juil juillet julio luglio julho aug august augustus août aout ago agosto sep sept september septembre septiembre settembre setembro
	oct october octobre octubre okt oktober ottobre outubro nov november novembre noviembre novembro dec december décembre dez dezember dezembro déc dic diciembre dicembre
	mon tue tues wed thu thur thurs fri sat sun monday tuesday wednesday thursday friday saturday sunday
	montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag lundi mardi mercredi jeudi vendredi samedi dimanche
	lunes martes miércoles miercoles jueves viernes sábado sabado domingo lunedì martedì mercoledì giovedì venerdì domenica segunda terça quarta quinta sexta feira
	st nd rd th er de of at um on à alle a las às der den le il am pm m p uhr t z utc gmt
	cet cest est edt cst cdt mst mdt pst pdt eet eest wet west bst ist jst kst msk aest aedt
	coordinated universal central european eastern western mountain pacific greenwich mean british india japan china korea standard daylight summer time
	년 월 일 年 月 日 時 分 秒 点 星期一 星期二 星期三 星期四 星期五 星期六 星期日 星期天 月曜日 火曜日 水曜日 木曜日 金曜日 土曜日 日曜日 火 水 木 金 土 월요일 화요일 수요일 목요일 금요일 토요일 일요일`)

func wordSet(s string) map[string]bool {
	set := make(map[string]bool)
	for _, w := range strings.Fields(s) {
		set[w] = true
	}
	return set
}

// timeAt is where a time ends that a text in lower case begins with, and whether it has a
// date and a time of the day; 0 where it begins with none. A word behind it that no time has
// is not a part of it.
func timeAt(lower string) (end int, timed bool) {
	for lower = lower[:min(len(lower), maxClock)]; ; {
		m := clockTime().FindStringSubmatchIndex(lower)
		if m == nil {
			return 0, false
		}
		text := inRegion().ReplaceAllStringFunc(lower[:m[1]], func(s string) string { return strings.Repeat(" ", len(s)) })
		other := otherWord(text)
		if other < 0 {
			return m[1], m[2] >= 0
		}
		lower = lower[:other]
	}
}

// otherWord is where the first word of a text begins that no time has, or -1.
func otherWord(text string) int {
	for at := 0; at < len(text); {
		begin := strings.IndexFunc(text[at:], unicode.IsLetter)
		if begin < 0 {
			break
		}
		begin += at
		at = len(text)
		if end := strings.IndexFunc(text[begin:], func(r rune) bool { return !unicode.IsLetter(r) }); end >= 0 {
			at = begin + end
		}
		if !timeWords[text[begin:at]] {
			return begin
		}
	}
	return -1
}

// maxClock is how long a line is at most that is nothing but a time, in bytes.
const maxClock = 96

// openers are the first words of what says that a time is now, and datings of what dates
// anything. What is written without blanks is known by its beginning.
var (
	openers = wordSet(`the current present local today todays system server utc now time right it date as your our my heute jetzt aktuelle aktueller
		aktuelles datum es nous aujourd la l heure hoy ahora fecha hora oggi adesso data ora hoje agora a сейчас сегодня текущее текущая`)
	datings = wordSet(`timestamp time date local generated datum fecha data zeit uhrzeit 日期 时间 日時`)
	starts  = strings.Fields(`当前 现在 目前 今天 現在 今日 현재 오늘은`)
)

// opensWith reports whether a text begins with a word of a set.
func opensWith(lower string, set map[string]bool) bool {
	end := strings.IndexFunc(lower, func(r rune) bool { return !unicode.IsLetter(r) })
	if end < 0 {
		end = len(lower)
	}
	return set[lower[:end]]
}

// takeClocks takes the clocks out of a text that is cached, and gives each to found.
func takeClocks(s string, found func(clock string)) string {
	if !mayHoldClock(s) {
		return s
	}
	if lower := strings.ToLower(s); len(lower) == len(s) && strings.Contains(lower, "</") {
		s = takeTags(s, lower, found)
	}
	var out strings.Builder
	first := true // nothing but blank lines stood before
	last := ""    // the line before that is not blank
	for line := range strings.Lines(s) {
		text := strings.TrimRight(line, "\r\n")
		before := last
		if strings.TrimSpace(text) != "" {
			last = text
		}
		if mayHoldClock(text) {
			left := takeOfLine(text, first || introduces(before), found)
			if left == "" {
				continue
			}
			line = left + line[len(text):]
		}
		first = first && strings.TrimSpace(text) == ""
		out.WriteString(line)
	}
	return out.String()
}

// introduces reports whether a line, such as a heading, says that what follows is the time now.
func introduces(line string) bool {
	if line = strings.ToLower(strings.TrimSpace(line)); len(line) > maxClock || mayHoldClock(line) {
		return false
	}
	bare := strings.TrimLeft(line, "-*#>_` ")
	return (opensWith(bare, openers) || slices.ContainsFunc(starts, func(s string) bool { return strings.HasPrefix(bare, s) })) && clockHead().MatchString(line)
}

// takeTags takes out what stands in a tag that is named after the present.
func takeTags(s, lower string, found func(clock string)) string {
	var out strings.Builder
	from := 0
	for _, m := range clockTag().FindAllStringSubmatchIndex(lower, -1) {
		if end, _ := timeAt(lower[m[2]:m[3]]); end < m[3]-m[2] {
			continue
		}
		found(s[m[2]:m[3]])
		out.WriteString(s[from:m[0]])
		from = m[1]
	}
	return out.String() + s[from:]
}

// takeOfLine is a line without its clocks; empty where it is nothing else.
func takeOfLine(line string, first bool, found func(clock string)) string {
	lower := strings.ToLower(line)
	if len(lower) != len(line) {
		return line
	}
	if bare := strings.TrimLeft(lower, " \t-*#>[(_`"); len(line) <= maxClock && bare != "" && (isDigit(bare[0]) || opensWith(bare, timeWords) || opensWith(bare, datings)) {
		begin := len(clockLine().FindString(lower))
		end, timed := timeAt(lower[begin:])
		if end > 0 && (timed || first && !strings.Contains(lower[:begin], "time")) && lineEnd().MatchString(lower[begin+end:]) {
			found(strings.Trim(line[:begin+end], " \t-*#>_`[("))
			return ""
		}
	}
	return takeSaid(line, lower, found)
}

// takeSaid takes out of a line what says what time it is now, with the end of its sentence.
func takeSaid(line, lower string, found func(clock string)) string {
	var out strings.Builder
	from := 0
	for at := range line {
		if at < from || !sentenceBegins(line[from:at]) {
			continue
		}
		c, ok := saidAt(line, lower, at)
		if !ok {
			continue
		}
		found(strings.NewReplacer("*", "", "`", "").Replace(line[c.begin:c.till]))
		before := line[from:at]
		if open := strings.TrimRight(before, "(["); open != before && c.stop < len(line) && strings.ContainsRune(")]", rune(line[c.stop])) {
			before = open
		}
		if c.end == len(line) && strings.Trim(before, " \t-*#>([") == "" && from == 0 {
			return ""
		}
		out.WriteString(before)
		from = c.end
	}
	if from == 0 {
		return line
	}
	out.WriteString(line[from:])
	return strings.TrimRight(out.String(), " \t")
}

// clock is where a clock stands in a line: its words with its time, the end of their marks,
// and the end of the sentence.
type clock struct{ begin, till, stop, end int }

// saidAt is the clock that a sentence at a place of a line is: words for the present with a
// time, or behind another sentence a time alone that has a date and a time of the day.
func saidAt(line, lower string, at int) (c clock, ok bool) {
	bare := strings.TrimLeft(lower[at:], "*_`")
	present := opensWith(bare, openers) || slices.ContainsFunc(starts, func(s string) bool { return strings.HasPrefix(bare, s) })
	if m := clockWords().FindStringSubmatchIndex(lower[at:]); present && m != nil {
		if size, _ := timeAt(lower[at+m[3]:]); size > 0 {
			c, ok = closed(line, lower, at+m[2], at+m[3]+size)
		}
	}
	before := strings.TrimRight(line[:at], " \t")
	if ok || !strings.HasSuffix(before, ".") && !strings.HasSuffix(before, "。") || bare == "" || !isDigit(bare[0]) && !opensWith(bare, timeWords) && !opensWith(bare, datings) {
		return c, ok
	}
	begin := at + len(clockAlone().FindString(lower[at:]))
	if size, timed := timeAt(lower[begin:]); timed {
		return closed(line, lower, at, begin+size)
	}
	return c, false
}

// closed is a clock from begin to till, if its sentence ends there.
func closed(line, lower string, begin, till int) (c clock, ok bool) {
	c = clock{begin: begin, till: till}
	c.stop = len(line) - len(strings.TrimLeft(line[till:], "*`"))
	c.end, ok = sentenceEnd(line, lower, c.stop)
	return c, ok
}

// sentenceBegins reports whether a sentence may begin behind a text.
func sentenceBegins(before string) bool {
	if before == "" {
		return true
	}
	switch last := before[len(before)-1]; {
	case last == ' ' || last == '\t':
		trimmed := strings.TrimRight(before, " \t")
		return trimmed == "" || strings.IndexByte(".!?:;,-*#>|)", trimmed[len(trimmed)-1]) >= 0
	case last == '(' || last == '[':
		return true
	case last < utf8.RuneSelf:
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(before)
	return strings.ContainsRune("。！？；：", last)
}

// sentenceEnd is where a sentence ends that has ended, but for its mark and blanks, at a
// place; not ok where it goes on with anything but another clock.
func sentenceEnd(line, lower string, at int) (end int, ok bool) {
	rest := line[at:]
	if and := at + len(clockAnd().FindString(lower[at:])); and > at && clockWords().MatchString(lower[and:]) {
		_, ok = saidAt(line, lower, and)
		return and, ok
	}
	r, size := utf8.DecodeRuneInString(rest)
	switch {
	case rest == "":
		return at, true
	case strings.ContainsRune(".!;,)]|", r):
		if next, _ := utf8.DecodeRuneInString(rest[size:]); len(rest) > size && !unicode.IsSpace(next) {
			return at, false
		}
	case strings.ContainsRune("。！；，", r):
	default:
		trimmed := strings.TrimLeft(rest, " \t")
		if next, _ := utf8.DecodeRuneInString(trimmed); line[at-1] == '.' && len(trimmed) < len(rest) && unicode.IsUpper(next) {
			return len(line) - len(trimmed), true // the point of "p.m." is that of the sentence
		}
		return len(line), trimmed == ""
	}
	rest = strings.TrimLeft(rest[size:], " \t")
	return len(line) - len(rest), true
}

// mayHoldClock reports whether a text has the digits of a clock anywhere: a year of this
// century, or minutes. Asking the expressions takes far longer.
func mayHoldClock(s string) bool {
	for rest := s; ; {
		at := strings.Index(rest, "20")
		if at < 0 || len(rest)-at < 4 {
			break
		}
		if isDigit(rest[at+2]) && isDigit(rest[at+3]) {
			return true
		}
		rest = rest[at+2:]
	}
	for rest := s; ; {
		at := strings.IndexByte(rest, ':')
		if at < 0 || len(rest)-at < 3 {
			return false
		}
		if at > 0 && isDigit(rest[at-1]) && isDigit(rest[at+1]) && isDigit(rest[at+2]) {
			return true
		}
		rest = rest[at+1:]
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
