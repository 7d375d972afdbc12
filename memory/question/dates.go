package question

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/lexical/rank"
)

const (
	// maxSpans bounds the moments that one query can name.
	maxSpans = 32
	// A number of four digits in this range is a year.
	firstDated, lastDated = 1800, 2199
)

// months and days of the week by their names. The months of ambiguous are also
// everyday words: they need a number or a word like "in" next to them, and so does
// a day of the week.
var (
	months = map[string]time.Month{
		"january": 1, "february": 2, "march": 3, "april": 4, "may": 5, "june": 6, "july": 7, "august": 8, "september": 9, "october": 10, "november": 11, "december": 12,
		"jan": 1, "feb": 2, "mar": 3, "apr": 4, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "sept": 9, "oct": 10, "nov": 11, "dec": 12,
	}
	ambiguous   = []string{"may", "march", "mar", "jan", "jun", "sep", "dec"}
	pointing    = []string{"in", "since", "during", "of", "last", "this", "early", "late", "until", "by", "before", "after", "from"}
	weekdays    = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}
	onDay       = []string{"on", "last", "this", "past", "since", "until", "by", "before", "after", "from"}
	smallNumber = map[string]int{"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
)

// dates returns the days, months and years that an English or ISO date in a text
// names, also such as "yesterday" and "two weeks ago", counted from now. A date
// without a year is one of any year.
func dates(words []word, now time.Time) []rank.Span {
	s := dateScanner{now: now.UTC(), words: words}
	for s.at < len(s.words) && len(s.spans) < maxSpans {
		s.at += max(1, s.date())
	}
	return s.spans
}

// dateScanner walks over the words of a text.
type dateScanner struct {
	now   time.Time
	words []word
	at    int
	spans []rank.Span
}

// joint returns the character behind the word so far ahead, if it joins numbers
// to a date.
func (s *dateScanner) joint(ahead int) byte {
	if i := s.at + ahead; i < len(s.words) && strings.IndexByte("-/.", s.words[i].joint) >= 0 {
		return s.words[i].joint
	}
	return 0
}

// word returns the word so far ahead, or an empty one.
func (s *dateScanner) word(ahead int) string {
	if i := s.at + ahead; i >= 0 && i < len(s.words) {
		return s.words[i].lower
	}
	return ""
}

// date reads a date and returns how many words it took; zero if there is none.
func (s *dateScanner) date() int {
	for _, read := range []func() int{s.numeric, s.yearLast, s.dayFirst, s.monthFirst, s.year, s.relative} {
		if n := read(); n > 0 {
			return n
		}
	}
	return 0
}

// numeric reads 2023-05-08, 2023/5/8 and 2023-05.
func (s *dateScanner) numeric() int {
	year, month := yearOf(s.word(0)), numberOf(s.word(1), 12)
	if year == 0 || month == 0 || s.joint(0) == 0 {
		return 0
	}
	// A time may follow at once: 08T10.
	third, _, _ := strings.Cut(s.word(2), "t")
	if day := numberOf(third, 31); day > 0 && s.joint(1) == s.joint(0) {
		s.add(day, time.Month(month), year)
		return 3
	}
	if len(s.word(1)) != 2 {
		return 0
	}
	s.add(0, time.Month(month), year)
	return 2
}

// yearLast reads 8.5.2023 and 5/8/2023. Where the day and the month are unclear
// apart, both readings are meant, but for points, which stand behind the day.
func (s *dateScanner) yearLast() int {
	first, second, year := numberOf(s.word(0), 31), numberOf(s.word(1), 31), yearOf(s.word(2))
	if first == 0 || second == 0 || year == 0 || s.joint(0) == 0 || s.joint(0) != s.joint(1) {
		return 0
	}
	const months = 12
	if second <= months {
		s.add(first, time.Month(second), year)
	}
	if first <= months && first != second && s.joint(0) != '.' {
		s.add(second, time.Month(first), year)
	}
	if first > months && second > months {
		return 0
	}
	return 3
}

// dayFirst reads 8 May, 8th of May 2023.
func (s *dateScanner) dayFirst() int {
	day, n := dayOf(s.word(0)), 1
	if s.word(n) == "of" {
		n++
	}
	month := months[s.word(n)]
	if day == 0 || month == 0 {
		return 0
	}
	return s.withYear(day, month, n+1)
}

// monthFirst reads May 8, May 8th 2023, May 2023 and, where it is clear, May.
func (s *dateScanner) monthFirst() int {
	month := months[s.word(0)]
	if month == 0 {
		return 0
	}
	if day := dayOf(s.word(1)); day > 0 {
		return s.withYear(day, month, 2)
	}
	if yearOf(s.word(1)) == 0 && slices.Contains(ambiguous, s.word(0)) && !slices.Contains(pointing, s.word(-1)) {
		return 0
	}
	return s.withYear(0, month, 1)
}

// withYear adds a date whose year, if it has one, stands n words ahead.
func (s *dateScanner) withYear(day int, month time.Month, n int) int {
	year := yearOf(s.word(n))
	s.add(day, month, year)
	if year == 0 {
		return n
	}
	return n + 1
}

// year reads a year that stands alone.
func (s *dateScanner) year() int {
	year := yearOf(s.word(0))
	if year == 0 || !slices.Contains(pointing, s.word(-1)) {
		return 0
	}
	s.add(0, 0, year)
	return 1
}

// add adds a day, or a month where day is zero, or a year where month is. A
// year of zero stands for any.
func (s *dateScanner) add(day int, month time.Month, year int) {
	yearly := year == 0
	if yearly {
		year = s.now.Year()
	}
	from := time.Date(year, max(1, month), max(1, day), 0, 0, 0, 0, time.UTC)
	switch {
	case day > 0:
		s.span(from, from.AddDate(0, 0, 1))
	case month > 0:
		s.span(from, from.AddDate(0, 1, 0))
	default:
		s.span(from, from.AddDate(1, 0, 0))
	}
	s.spans[len(s.spans)-1].Yearly = yearly
}

func (s *dateScanner) span(from, to time.Time) {
	s.spans = append(s.spans, rank.Span{From: from.UnixMicro(), To: to.UnixMicro()})
}

// relative reads today, yesterday, on Friday, last week and three days ago.
func (s *dateScanner) relative() int {
	today := time.Date(s.now.Year(), s.now.Month(), s.now.Day(), 0, 0, 0, 0, time.UTC)
	switch s.word(0) {
	case "today":
		s.span(today, today.AddDate(0, 0, 1))
		return 1
	case "yesterday":
		s.span(today.AddDate(0, 0, -1), today)
		return 1
	case "last", "this":
		return s.current(today, s.word(0) == "last")
	}
	if day := slices.Index(weekdays, s.word(0)); day >= 0 && slices.Contains(onDay, s.word(-1)) {
		const week = 7
		ago := (int(today.Weekday())-day+week-1)%week + 1 // today's name stands for a week ago
		s.span(today.AddDate(0, 0, -ago), today.AddDate(0, 0, 1-ago))
		return 1
	}
	n := smallNumber[s.word(0)]
	if n == 0 {
		n = numberOf(s.word(0), 99)
	}
	if n == 0 || s.word(2) != "ago" {
		return 0
	}
	return s.ago(today, n, strings.TrimSuffix(s.word(1), "s"))
}

// current reads the week, month or year that is, or the one before it.
func (s *dateScanner) current(today time.Time, last bool) int {
	var from time.Time
	var step [3]int // years, months, days
	switch s.word(1) {
	case "week":
		from, step = today.AddDate(0, 0, -(int(today.Weekday())+6)%7), [3]int{0, 0, 7}
	case "month":
		from, step = today.AddDate(0, 0, 1-today.Day()), [3]int{0, 1, 0}
	case "year":
		from, step = today.AddDate(0, 0, 1-today.YearDay()), [3]int{1, 0, 0}
	default:
		return 0
	}
	if last {
		from = from.AddDate(-step[0], -step[1], -step[2])
	}
	s.span(from, from.AddDate(step[0], step[1], step[2]))
	return 2
}

// ago reads a number of days, weeks, months or years ago, give or take half of
// the unit.
func (s *dateScanner) ago(today time.Time, n int, unit string) int {
	var from time.Time
	around := 0 // days
	switch unit {
	case "day":
		from = today.AddDate(0, 0, -n)
	case "week":
		from, around = today.AddDate(0, 0, -7*n), 3
	case "month":
		from, around = today.AddDate(0, -n, 0), 15
	case "year":
		from, around = today.AddDate(-n, 0, 0), 183
	default:
		return 0
	}
	s.span(from.AddDate(0, 0, -around), from.AddDate(0, 0, around+1))
	return 3
}

// numberOf returns a number from 1 to most, or zero.
func numberOf(word string, most int) int {
	n, err := strconv.Atoi(word)
	if err != nil || n < 1 || n > most {
		return 0
	}
	return n
}

// dayOf reads 8 and 8th.
func dayOf(word string) int {
	const ordinalEnding = 2 // st, nd, rd, th
	if n := len(word) - ordinalEnding; n > 0 && slices.Contains([]string{"st", "nd", "rd", "th"}, word[n:]) {
		word = word[:n]
	}
	return numberOf(word, 31)
}

func yearOf(word string) int {
	if n := numberOf(word, lastDated); n >= firstDated {
		return n
	}
	return 0
}
