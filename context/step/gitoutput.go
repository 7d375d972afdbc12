package step

import (
	"strings"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// gitStatus recognizes git status, in its long form and, where the command says
// so, in its short one.
type gitStatus struct {
	short   bool
	section string
	counts  map[string]int64
	seen    bool
}

func (g *gitStatus) line(s *survey, line string) {
	if line == "" {
		return
	}
	if branch, ok := strings.CutPrefix(line, "On branch "); ok && !g.seen {
		g.seen = true
		s.set(figureBranch, text.Head(branch, maxNameBytes))
		return
	}
	if strings.HasPrefix(line, "HEAD detached at ") {
		g.seen = true
		return
	}
	switch {
	case g.seen && g.head(line):
	case g.seen && line[0] == '\t':
		g.count(g.section)
	case g.short && !g.seen:
		g.porcelain(line)
	}
}

// head takes the heading of a section.
func (g *gitStatus) head(line string) bool {
	switch line {
	case "Changes to be committed:":
		g.section = figureStaged
	case "Changes not staged for commit:":
		g.section = figureModified
	case "Untracked files:":
		g.section = figureUntracked
	case "Unmerged paths:":
		g.section = figureUnmerged
	default:
		return false
	}
	return true
}

// porcelain takes a line of the short form: two letters and a path.
func (g *gitStatus) porcelain(line string) {
	const letters = " MTADRCU?!"
	if len(line) < 4 || line[2] != ' ' || strings.IndexByte(letters, line[0]) < 0 || strings.IndexByte(letters, line[1]) < 0 {
		return
	}
	switch code := line[:2]; {
	case code == "??":
		g.count(figureUntracked)
	case code == "!!":
	case strings.ContainsRune(code, 'U') || code == "AA" || code == "DD":
		g.count(figureUnmerged)
	default:
		if line[0] != ' ' {
			g.count(figureStaged)
		}
		if line[1] != ' ' {
			g.count(figureModified)
		}
	}
}

func (g *gitStatus) count(section string) {
	if g.counts == nil {
		g.counts = make(map[string]int64)
	}
	if section != "" {
		g.counts[section]++
	}
}

func (g *gitStatus) end(s *survey) {
	for figure, n := range g.counts {
		s.counted(figure, n)
	}
}

// gitLog recognizes git log, its short form only where the command says so.
type gitLog struct {
	hinted       bool
	long, oneOff int64
}

const hashDigits = 40

func (g *gitLog) line(_ *survey, line string) {
	if hash, ok := strings.CutPrefix(line, "commit "); ok {
		if len(hash) >= hashDigits && hexLength(hash) == hashDigits {
			g.long++
		}
		return
	}
	if n := hexLength(line); g.hinted && n >= 7 && n <= hashDigits && len(line) > n && line[n] == ' ' {
		g.oneOff++
	}
}

// hexLength is how many hex digits a text begins with.
func hexLength(text string) int {
	n := 0
	for n < len(text) && ('0' <= text[n] && text[n] <= '9' || 'a' <= text[n] && text[n] <= 'f') {
		n++
	}
	return n
}

func (g *gitLog) end(s *survey) {
	if g.long > 0 {
		s.counted(figureCommits, g.long)
		return
	}
	s.counted(figureCommits, g.oneOff)
}

// diff recognizes diffs and their sums.
type diff struct {
	files, added, removed int64
	sum                   [3]int64
	inHunk                bool
}

func (d *diff) line(s *survey, line string) {
	switch {
	case line == "":
	case strings.HasPrefix(line, "diff --git "):
		d.files++
		d.inHunk = false
	case d.files > 0 && strings.HasPrefix(line, "@@ "):
		d.inHunk = true
	case d.inHunk && line[0] == '+':
		d.added++
	case d.inHunk && line[0] == '-':
		d.removed++
	case line[0] == ' ' && startsWithDigit(line[1:]) && strings.Contains(line, " changed"):
		if files := countBefore(line, "file"); files > 0 {
			d.sum = [3]int64{files, countBefore(line, "insertion"), countBefore(line, "deletion")}
			s.add(line)
		}
	}
}

func (d *diff) end(s *survey) {
	if d.sum[0] > 0 {
		s.set(figureFilesChanged, d.sum[0])
		s.always(figureInsertions, d.sum[1])
		s.always(figureDeletions, d.sum[2])
		return
	}
	if d.files > 0 && !s.partial {
		s.set(figureFilesChanged, d.files)
		s.always(figureInsertions, d.added)
		s.always(figureDeletions, d.removed)
	}
}
