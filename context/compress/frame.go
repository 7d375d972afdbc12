package compress

import (
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// frame is what stands around every short form: a mark with the ref in front of
// the first line, and the path of the whole as the last line.
type frame struct{ mark, last string }

func frameOf(r *Result) frame {
	return frame{"[COMPRESSED:" + r.Ref + "] ", dataLine(r)}
}

// dataLine says where the whole can be read.
func dataLine(r *Result) string { return "Full data: " + r.RefPath }

// room is how many characters are left for the lines of a short form, each with
// its line feed, when all of it has a size.
func (f frame) room(size int) int {
	return size - utf8.RuneCountInString(f.mark) - utf8.RuneCountInString(f.last)
}

func (f frame) around(lines []string) string {
	return f.mark + strings.Join(lines, "\n") + "\n" + f.last
}

// lines collects lines while there is room for them.
type lines struct {
	all  []string
	room int
}

// add takes a line in, unless there is no room for it.
func (l *lines) add(line string) bool { return l.addKeeping(line, 0) }

// addKeeping is add where some room must be left.
func (l *lines) addKeeping(line string, reserve int) bool {
	need := utf8.RuneCountInString(line) + 1
	if need+reserve > l.room {
		return false
	}
	l.room -= need
	l.all = append(l.all, line)
	return true
}

// minPart is the least of a line that is worth showing, in characters.
const minPart = 20

// addPart takes in the beginning of a line for which there is no room.
func (l *lines) addPart(line string) {
	if l.room > minPart {
		l.add(cutLine(line, l.room-1))
	}
}

// cutLine returns a line of at most n characters, at least one.
func cutLine(line string, n int) string {
	if _, cut := text.HeadChars(line, n); !cut {
		return line
	}
	return text.CutChars(line, n-1, text.Ellipsis)
}

// oneLine returns at most n characters of s on one line.
func oneLine(s string, n int) string {
	line, cut := text.OneLineHead(s, n)
	if cut {
		line, _ = text.HeadChars(line, n-1)
		line += text.Ellipsis
	}
	return line
}
