// Package edit changes text by exact replacement, as models write it: the text that is
// there, and what stands in its place.
//
// [Apply] takes several edits, one after another, all or nothing. An edit whose text is not
// there, or is there more than once, is an error that says what to do: which lines come
// nearest, or where the text stands. [Diff] shows a change.
package edit

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// Edit replaces a text by another one. Old is not empty.
type Edit struct {
	Old, New string
	// All replaces it wherever it stands; else it must stand there once.
	All bool
}

const (
	// maxPlaces bounds the lines that an error names.
	maxPlaces = 10
	// maxShownLines and maxShownBytes bound the text that an error shows.
	maxShownLines = 12
	maxShownBytes = 1500
)

// MissingError says that an edit's text is not there.
type MissingError struct {
	// Edit is the number of the edit, counted from 1, of Edits.
	Edit, Edits int
	// Before says that the text was there before the edits in front of this one.
	Before bool
	// Done is the line at which the edit's new text stands already; 0 for nowhere.
	Done int
	// Near is the first line of what is most like it, which is Shown; 0 for none.
	Near  int
	Shown []string
	// Blanks says that the shown lines differ in white space alone.
	Blanks bool
}

func (e *MissingError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%sold_string was not found", which(e.Edit, e.Edits))
	switch {
	case e.Before:
		b.WriteString(": an edit before this one has changed it")
	case e.Done > 0:
		fmt.Fprintf(&b, "; new_string stands at line %d already", e.Done)
	}
	switch {
	case e.Near == 0 && e.Done > 0:
		return b.String()
	case e.Near == 0:
		b.WriteString("; nothing in the file is like it, read the file first")
		return b.String()
	case e.Blanks:
		b.WriteString("; these lines differ from it in white space alone:")
	default:
		b.WriteString("; these lines are nearest to it:")
	}
	for i, line := range e.Shown {
		fmt.Fprintf(&b, "\n%d\t%s", e.Near+i, line)
	}
	return b.String()
}

// AmbiguousError says that an edit's text is there more than once.
type AmbiguousError struct {
	Edit, Edits int
	Count       int
	Lines       []int // of the first ones
}

func (e *AmbiguousError) Error() string {
	lines := strings.Trim(strings.ReplaceAll(fmt.Sprint(e.Lines), " ", ", "), "[]")
	if e.Count > len(e.Lines) {
		lines += ", …"
	}
	return fmt.Sprintf("%sold_string was found %d times, at lines %s: add the lines around the one that you mean, or set replace_all",
		which(e.Edit, e.Edits), e.Count, lines)
}

func which(edit, edits int) string {
	if edits == 1 {
		return ""
	}
	return fmt.Sprintf("edit %d of %d: ", edit, edits)
}

// TooLongError says that the edits make a text over the limit.
type TooLongError struct{ Limit int }

func (e *TooLongError) Error() string {
	return fmt.Sprintf("the file would become longer than the limit of %d bytes", e.Limit)
}

// Apply returns content after all edits, at most limit bytes, and how many texts were
// replaced. In a text whose lines all end with CR LF, edits are written with LF or CR LF.
// Errors are a *MissingError, an *AmbiguousError or a *TooLongError, of the first edit
// that fails.
func Apply(content string, edits []Edit, limit int) (after string, replaced int, err error) {
	after = content
	returns := strings.Count(content, "\r\n")
	windows := returns > 0 && returns == strings.Count(content, "\n")
	for i, e := range edits {
		if windows {
			e.Old, e.New = toCRLF(e.Old), toCRLF(e.New)
		}
		count := strings.Count(after, e.Old)
		switch {
		case count == 0:
			return "", 0, missing(content, after, e, i+1, len(edits))
		case count > 1 && !e.All:
			return "", 0, &AmbiguousError{Edit: i + 1, Edits: len(edits), Count: count, Lines: places(after, e.Old)}
		case len(after)+count*(len(e.New)-len(e.Old)) > limit:
			return "", 0, &TooLongError{Limit: limit}
		}
		after = strings.ReplaceAll(after, e.Old, e.New)
		replaced += count
	}
	return after, replaced, nil
}

func toCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

// places are the lines at which a text stands, counted from 1.
func places(content, old string) []int {
	var lines []int
	line, at := 1, 0
	for len(lines) < maxPlaces {
		i := strings.Index(content[at:], old)
		if i < 0 {
			return lines
		}
		line += strings.Count(content[at:at+i], "\n")
		lines = append(lines, line)
		line += strings.Count(old, "\n")
		at += i + len(old)
	}
	return lines
}

func missing(content, after string, e Edit, number, all int) error {
	failed := &MissingError{Edit: number, Edits: all, Before: strings.Contains(content, e.Old)}
	if e.New != "" {
		if at := places(after, e.New); len(at) == 1 {
			failed.Done = at[0]
		}
	}
	failed.Near, failed.Shown, failed.Blanks = nearest(after, e.Old)
	return failed
}

// Diff is the change as a unified diff with three lines around it, at most limit bytes of
// whole lines, and whether it was cut.
func Diff(name, before, after string, limit int) (diff string, cut bool) {
	diff = udiff.Unified("a/"+name, "b/"+name, before, after)
	if len(diff) <= limit {
		return diff, false
	}
	return diff[:strings.LastIndexByte(diff[:limit], '\n')+1], true
}

// shown is a line as an error shows it.
func shown(line string) string { return text.Cut(strings.TrimRight(line, "\r"), 200, text.Ellipsis) }
