package views

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"github.com/loom-bridge/loom-bridge/context/text"
)

const (
	// gap is between two columns.
	gap = "  "
	// cutMark ends a cell that was cut.
	cutMark = "…"
	// leastWidth is what a column keeps on a narrow terminal.
	leastWidth = 4
)

// table is rows of cells. Columns whose title begins with > are numbers, on the right; those
// with = are names, which are cut last.
type table struct {
	titles      []string
	right, name []bool
	rows        [][]string
	// empty is what is said if there are no rows, more says that there are further ones.
	empty string
	more  bool
}

func newTable(empty string, titles ...string) *table {
	t := &table{empty: empty}
	for _, title := range titles {
		title, right := strings.CutPrefix(title, ">")
		title, name := strings.CutPrefix(title, "=")
		t.titles, t.right, t.name = append(t.titles, title), append(t.right, right), append(t.name, name)
	}
	return t
}

// add adds a row. All that could steer a terminal is made visible; blanks and line ends
// count as one blank.
func (t *table) add(cells ...any) {
	row := make([]string, len(t.titles))
	for i, cell := range cells {
		row[i] = text.VisibleLine(strings.Join(strings.Fields(fmt.Sprint(cell)), " "))
	}
	t.rows = append(t.rows, row)
}

// write writes the table, in lines of at most limit columns; 0 is no limit.
func (t *table) write(to io.Writer, limit int) error {
	if len(t.rows) == 0 {
		_, err := fmt.Fprintln(to, t.empty)
		return err
	}
	all := append([][]string{t.titles}, t.rows...)
	widths := make([]int, len(t.titles))
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], columns(cell))
		}
	}
	if limit > 0 {
		room := limit - len(gap)*(len(widths)-1)
		narrow(widths, room, func(i int) bool { return !t.name[i] })
		narrow(widths, room, func(int) bool { return true })
	}
	out := bufio.NewWriter(to)
	for _, row := range all {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString(gap)
			}
			cell = cut(cell, widths[i])
			blanks := strings.Repeat(" ", widths[i]-columns(cell))
			if t.right[i] {
				line.WriteString(blanks + cell)
			} else {
				line.WriteString(cell + blanks)
			}
		}
		_, _ = out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return out.Flush()
}

// narrow makes the widest of some columns narrower, until all fit or those have the least width.
func narrow(widths []int, limit int, some func(i int) bool) {
	for {
		sum, widest := 0, -1
		for i, w := range widths {
			if sum += w; some(i) && (widest < 0 || w >= widths[widest]) {
				widest = i
			}
		}
		if sum <= limit || widest < 0 || widths[widest] <= leastWidth {
			return
		}
		widths[widest]--
	}
}

// columns is how many columns of a terminal a text takes.
func columns(s string) (n int) {
	for _, c := range s {
		n += wide(c)
	}
	return n
}

func wide(c rune) int {
	if unicode.In(c, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(c).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// cut is a text in at most so many columns.
func cut(s string, limit int) string {
	if columns(s) <= limit {
		return s
	}
	n := columns(cutMark)
	for i, c := range s {
		if n += wide(c); n > limit {
			return s[:i] + cutMark
		}
	}
	return s
}
