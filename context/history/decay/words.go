package decay

import (
	"cmp"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// Lengths of texts, in code points.
const (
	// foldChars is the longest text that stays whole in the zone of folds.
	foldChars = 300
	// foldHead and foldTail are what stays of a longer one.
	foldHead, foldTail = 150, 80
	// sentenceChars bounds a sentence in a summary.
	sentenceChars = 120
	// titleChars bounds a title in the line of a search.
	titleChars = 40
)

// Fold shortens the text of a message: its beginning, how many characters are left
// out, and its end. A text of up to 300 characters stays.
func Fold(s string) string {
	chars := utf8.RuneCountInString(s)
	if chars <= foldChars {
		return s
	}
	head, _ := text.HeadChars(s, foldHead)
	tail, _ := text.TailChars(s, foldTail)
	return fmt.Sprintf("%s …[%d chars omitted]… %s", head, chars-foldHead-foldTail, tail)
}

// CallLine is a call with what came of it on one line. turn is that of the user, tool
// the name as it was called.
func CallLine(turn int, tool, outcome string) string {
	return fmt.Sprintf("[Turn %d] %s → %s", turn, text.OneLine(tool), text.OneLine(outcome))
}

// Found is the outcome of a search: how many hits, and the titles of the first ones.
func Found(hits int, titles []string) string {
	short := make([]string, len(titles))
	for i, title := range titles {
		short[i] = oneLine(title, titleChars)
	}
	return fmt.Sprintf("Found %d results, most relevant: %s", hits, strings.Join(short, ", "))
}

// ImageLine stands for an image of a turn. An empty description says that it is one.
func ImageLine(turn int, description string) string {
	description = text.OneLine(description)
	description = cmp.Or(description, "image")
	return fmt.Sprintf("[Image at Turn %d: %s]", turn, description)
}

// Sentence is the first sentence of a text on one line, at most 120 characters.
// A sentence ends with its line, too.
func Sentence(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(text.Valid(s)), "\n")
	for i, r := range s {
		end := i + utf8.RuneLen(r)
		switch r {
		case '。', '！', '？':
			return oneLine(s[:end], sentenceChars)
		case '.', '!', '?':
			if end == len(s) || s[end] == ' ' || s[end] == '\t' {
				return oneLine(s[:end], sentenceChars)
			}
		}
	}
	return oneLine(s, sentenceChars)
}

// oneLine is a text on one line of at most n characters.
func oneLine(s string, n int) string {
	line, cut := text.OneLineHead(s, n)
	if !cut {
		return line
	}
	line, _ = text.HeadChars(line, n-utf8.RuneCountInString(text.Ellipsis))
	return line + text.Ellipsis
}

// CutTask shortens a task to at most so many tokens: two thirds of what stays are its
// beginning, one its end. ref is where the whole can be read; without one nothing says
// so. The text may be longer where not even the mark fits.
func CutTask(task, ref string, tokens int, count func(text string) int) string {
	if count(task) <= tokens {
		return task
	}
	chars := utf8.RuneCountInString(task)
	cut := func(keep int) string {
		tail := keep / 3
		head, _ := text.HeadChars(task, keep-tail)
		end, _ := text.TailChars(task, tail)
		return head + taskMark(chars-keep, ref) + end
	}
	// The marks of fewer characters are no longer, so that more of the task takes more.
	keep := sort.Search(chars, func(keep int) bool { return count(cut(keep)) > tokens })
	return cut(max(keep-1, 0))
}

func taskMark(chars int, ref string) string {
	if ref != "" {
		ref = "; full text: " + ref
	}
	return fmt.Sprintf("\n[...%d chars omitted%s]\n", chars, ref)
}
