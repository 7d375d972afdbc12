package analysis

// What a number next to the name of a month may mean.
const (
	firstYear, lastYear = 1000, 2999
	lastMonth, lastDay  = 12, 31
)

// date is a day of the calendar.
type date struct{ year, month, day int }

// monthNames are the months from January.
var monthNames = [12]string{
	"january", "february", "march", "april", "may", "june",
	"july", "august", "september", "october", "november", "december",
}

// monthOf returns the number of a month by its English name or its first three
// letters (sept, too), in lower case; zero for other words.
func monthOf(word string) uint8 {
	for i, name := range monthNames {
		if word == name || len(word) == 3 && word == name[:3] || word == "sept" && name == "september" {
			return uint8(i + 1)
		}
	}
	return 0
}

// term is the term of a whole day: 2023-05-08.
func (d date) term() string {
	b := []byte("0000-00-00")
	putDigits(b[:4], d.year)
	putDigits(b[5:7], d.month)
	putDigits(b[8:], d.day)
	return string(b)
}

func putDigits(dst []byte, n int) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
}

// numericDate reads a date such as 2023-05-08, 2023/5/8 or 2023.05.08 at start
// and returns where it ends; zero where there is none. The time of day that
// follows after a T is not read, and neither is the T.
func numericDate(text string, start int) (d date, end int) {
	const shortest = len("2023-5-8")
	if len(text)-start < shortest || !isDigit(text[start]) {
		return date{}, 0
	}
	var at int
	if d.year, at = digits(text, start, 4, 4); at == 0 || !isDateJoiner(text[at]) {
		return date{}, 0
	}
	joiner := text[at]
	if d.month, at = digits(text, at+1, 1, 2); at == 0 || d.month < 1 || d.month > lastMonth || at >= len(text) || text[at] != joiner {
		return date{}, 0
	}
	if d.day, at = digits(text, at+1, 1, 2); at == 0 || d.day < 1 || d.day > lastDay {
		return date{}, 0
	}
	switch {
	case at+1 < len(text) && text[at] == 'T' && isDigit(text[at+1]):
		return d, at + 1
	case at < len(text) && isAlnum(text[at]), at+1 < len(text) && isJoiner(text[at]) && isAlnum(text[at+1]):
		return date{}, 0 // goes on as some other number or name
	}
	return d, at
}

func isDateJoiner(c byte) bool { return c == '-' || c == '/' || c == '.' }

// digits reads a number of so many digits and returns where it ends; zero when
// there is no such number.
func digits(text string, start, least, most int) (n, end int) {
	end = start
	for end < len(text) && isDigit(text[end]) && end-start <= most {
		n = n*10 + int(text[end]-'0')
		end++
	}
	if end-start < least || end-start > most {
		return 0, 0
	}
	return n, end
}

// emitNumericDate yields the year, the month by its name and the day, so that
// other spellings of them are met, and the whole.
func (w *walker) emitNumericDate(d date, year string) bool {
	return w.emitTerm(year) && w.emitTerm(w.analyzer.months[d.month]) &&
		w.emitTerm(smallNumber(d.day)) && w.emitTerm(d.term())
}

func smallNumber(n int) string {
	if n < 10 {
		return string([]byte{byte('0' + n)})
	}
	return string([]byte{byte('0' + n/10), byte('0' + n%10)})
}

// emitMonth yields the full name of a month that has a day or a year next to it:
// 8 May 2023, 8th of May, Sept. 8, May 2023. Without one it is a word like
// others: may is an auxiliary verb, mar and dec are more than months. The whole
// date is no term here: measured, it finds less, as day, month and year meet
// other spellings already.
func (w *walker) emitMonth(k *known, text string, start, end int) bool {
	if !dayBefore(text, start) && !dayOrYearAfter(text, end) {
		return w.emit(k)
	}
	return w.emitTerm(w.analyzer.months[k.month])
}

// dayOrYearAfter reports whether a day or a year follows the name of a month.
func dayOrYearAfter(text string, month int) bool {
	at := month
	if at < len(text) && text[at] == '.' {
		at++
	}
	if at = skip(text, at); at == month {
		return false
	}
	end := 0
	if day, after := digits(text, at, 1, 2); after > 0 && day >= 1 && day <= lastDay {
		end = skipOrdinal(text, after)
	} else if year, after := digits(text, at, 4, 4); after > 0 && year >= firstYear && year <= lastYear {
		end = after
	}
	return end > 0 && (end == len(text) || !isAlnum(text[end]) && text[end] != ':')
}

// dayBefore reports whether a day stands before the name of a month: 8, 8th, 8th
// of.
func dayBefore(text string, month int) bool {
	at := month
	for at > 0 && text[at-1] == ' ' {
		at--
	}
	if at == month {
		return false
	}
	if at >= 3 && text[at-3:at] == " of" {
		at -= 3
	}
	if at >= 2 && isOrdinal(text[at-2:at]) {
		at -= 2
	}
	first := at
	for first > 0 && isDigit(text[first-1]) && at-first <= 2 {
		first--
	}
	day, end := digits(text, first, 1, 2)
	return end == at && end > 0 && day >= 1 && day <= lastDay &&
		(first == 0 || !isAlnum(text[first-1]) && !isJoiner(text[first-1]))
}

// skip passes over the few spaces and commas that stand within a date.
func skip(text string, at int) int {
	const most = 3
	for n := 0; n < most && at < len(text) && (text[at] == ' ' || text[at] == ','); n++ {
		at++
	}
	return at
}

func skipOrdinal(text string, at int) int {
	if at+2 <= len(text) && isOrdinal(text[at:at+2]) {
		return at + 2
	}
	return at
}

func isOrdinal(ending string) bool {
	switch ending {
	case "st", "nd", "rd", "th":
		return true
	}
	return false
}
