// Package automaton finds the lines of a text that a regular expression may match, at
// some hundred megabytes a second, before each is looked at for good.
package automaton

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

const (
	// maxStates bounds the memory of an automaton: two KiB each.
	maxStates = 2000
	// maxRestarts is how often it is begun anew when it grew too large; then it is
	// of no use.
	maxRestarts = 8
)

// rowLen is how many transitions a state has, one for each byte.
const rowLen = 256

// Where a transition leads: to the row of a state in the table, or to one of
// these.
const (
	notMade   = iota * rowLen // make it first
	matched                   // the line may match
	lineEnded                 // it ended and did not match
	firstMade
)

// Automaton finds quickly the lines that a program may match. For ASCII lines it is exact;
// in other lines it takes each non-ASCII character as a wildcard. It builds its states on
// demand, and belongs to one goroutine.
type Automaton struct {
	program *syntax.Prog
	// words says that the program asks for the ends of words.
	words bool
	// table has the transitions of all states. A state is known by where its row
	// begins, which makes the loop over a text fast.
	table    []int
	states   []state
	ids      map[string]int
	start    int
	restarts int
	// visited marks the instructions of the closure under way.
	visited []bool
}

// state is where a line has led to: the instructions that may go on, and the
// sort of the byte before.
type state struct {
	pcs []uint32
	before
}

// before is the class of the byte before a state: none, a letter of a word, or another
// byte. The last two differ only for programs with word boundaries.
type before rune

const (
	nothing  before = -1
	wordByte before = 'a'
	spaces   before = ' '
)

// New returns the automaton of a program.
func New(program *syntax.Prog) *Automaton {
	a := &Automaton{program: program, visited: make([]bool, len(program.Inst))}
	for i := range program.Inst {
		inst := &program.Inst[i]
		ends := syntax.EmptyOp(inst.Arg)&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0
		a.words = a.words || inst.Op == syntax.InstEmptyWidth && ends
	}
	a.reset()
	return a
}

func (a *Automaton) reset() {
	a.table, a.states, a.ids = make([]int, firstMade, 16*rowLen), make([]state, firstMade/rowLen, 16), make(map[string]int)
	a.start = a.state(nil, nothing)
}

// state returns where the row of a state begins, which it makes if there is none
// yet.
func (a *Automaton) state(pcs []uint32, b before) int {
	key := make([]byte, 0, 4*len(pcs)+1)
	for _, pc := range pcs {
		key = binary.LittleEndian.AppendUint32(key, pc)
	}
	key = append(key, byte(b))
	if id, known := a.ids[string(key)]; known {
		return id
	}
	id := len(a.table)
	a.table = append(a.table, make([]int, rowLen)...)
	a.states = append(a.states, state{pcs: pcs, before: b})
	a.ids[string(key)] = id
	return id
}

// LineAfter returns the beginning of the first line, from the beginning of one
// on, that may match, or -1.
func (a *Automaton) LineAfter(text []byte, from int) int {
	line, at, table := from, a.start, a.table
	for i := from; i < len(text); i++ {
		next := table[at+int(text[i])]
		if next == at {
			// Most of a text leads nowhere. While it does, no byte has to wait for
			// what the one before it leads to.
			i += stays(table[at:at+rowLen], at, text[i+1:])
			continue
		}
		if next < firstMade {
			if next == notMade {
				next = a.step(at, text[i])
				table = a.table
			}
			switch {
			case next == matched, a.restarts > maxRestarts:
				return line
			case next == lineEnded:
				line, next = i+1, a.start
			}
		}
		at = next
	}
	if _, isMatch := a.follow(a.states[at/rowLen], -1); isMatch && line < len(text) {
		return line
	}
	return -1
}

// stays is how many bytes of text, from its beginning on, lead from a state to
// itself.
func stays(row []int, at int, text []byte) int {
	row = row[:rowLen] // so that no index has to be checked
	for i, b := range text {
		if row[b] != at {
			return i
		}
	}
	return len(text)
}

// step makes a transition and returns where it leads. The automaton may have
// begun anew then: earlier states count no more.
func (a *Automaton) step(at int, b byte) int {
	from := a.states[at/rowLen]
	if len(a.states) >= maxStates {
		a.restarts++
		a.reset()
		at = a.state(from.pcs, from.before)
	}
	to := a.lead(from, b)
	a.table[at+int(b)] = to
	return to
}

// lead returns where a byte leads.
func (a *Automaton) lead(from state, b byte) int {
	r := rune(b)
	switch {
	case b == '\n':
		r = -1
	case b >= utf8.RuneSelf:
		r = beyondASCII
	}
	next, isMatch := a.follow(from, r)
	switch {
	case isMatch:
		return matched
	case r == -1:
		return lineEnded
	case r == beyondASCII && !utf8.RuneStart(b):
		// It may belong to the character before, and lead nowhere.
		next = append(next, from.pcs...)
		slices.Sort(next)
		next = slices.Compact(next)
	}
	if a.words && syntax.IsWordChar(r) {
		return a.state(next, wordByte)
	}
	return a.state(next, spaces)
}

// beyondASCII stands for any character beyond ASCII, bytes that are no UTF-8
// included. It is no character itself, and so no letter of a word.
const beyondASCII = utf8.MaxRune + 1

// matchBeyondASCII reports whether an instruction takes any such character.
func matchBeyondASCII(inst *syntax.Inst) bool {
	if len(inst.Rune) != 1 { // ranges, in order
		return len(inst.Rune) > 0 && inst.Rune[len(inst.Rune)-1] >= utf8.RuneSelf
	}
	only := inst.Rune[0]
	for r := unicode.SimpleFold(only); r != only && syntax.Flags(inst.Arg)&syntax.FoldCase != 0; r = unicode.SimpleFold(r) {
		if r >= utf8.RuneSelf {
			return true
		}
	}
	return only >= utf8.RuneSelf
}

// follow goes from a state, and from the program's beginning, over a rune, or
// over the end of the line when that is -1. It reports whether there is a match
// before the rune.
func (a *Automaton) follow(from state, r rune) ([]uint32, bool) {
	flags := syntax.EmptyOpContext(rune(from.before), r)
	clear(a.visited)
	stack := append([]uint32{uint32(a.program.Start)}, from.pcs...)
	var next []uint32
	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if a.visited[pc] {
			continue
		}
		a.visited[pc] = true
		inst := &a.program.Inst[pc]
		switch inst.Op {
		case syntax.InstMatch:
			return nil, true
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^flags == 0 {
				stack = append(stack, inst.Out)
			}
		case syntax.InstRune, syntax.InstRune1:
			if r >= 0 && inst.MatchRune(r) || r == beyondASCII && matchBeyondASCII(inst) {
				next = append(next, inst.Out)
			}
		case syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if r >= 0 {
				next = append(next, inst.Out)
			}
		}
	}
	slices.Sort(next)
	return slices.Compact(next), false
}
