package blob

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

const (
	// maxStates bounds the memory of an automaton: half a KiB each.
	maxStates = 2000
	// maxRestarts is how often it is begun anew when it grew too large; then it is
	// of no use.
	maxRestarts = 8
)

// States that every automaton has.
const (
	notMade = iota // of a transition: make it first
	matched
	firstMade
)

// automaton tells quickly which lines a program may match: exactly those of
// ASCII, and all others. It makes its states as it meets them, and belongs to
// one goroutine.
type automaton struct {
	program  *syntax.Prog
	states   []state
	ids      map[string]int32
	start    int32
	restarts int
	// visited marks the instructions of the closure under way.
	visited []bool
}

// state is where a line has led to: the instructions that may go on, and the
// sort of the byte before.
type state struct {
	next [utf8.RuneSelf]int32
	pcs  []uint32
	before
	atEnd int8 // whether a line may end here: 0 not known, 1 no, 2 yes
}

// before stands for the bytes that a state may come behind: it matters only
// whether that is none, a letter of a word, or another one.
type before rune

const (
	nothing  before = -1
	wordByte before = 'a'
	spaces   before = ' '
)

func newAutomaton(program *syntax.Prog) *automaton {
	a := &automaton{program: program, visited: make([]bool, len(program.Inst))}
	a.reset()
	return a
}

func (a *automaton) reset() {
	a.states, a.ids = make([]state, firstMade, firstMade+16), make(map[string]int32)
	a.start = a.state(nil, nothing)
}

// state returns the id of a state, which it makes if there is none yet.
func (a *automaton) state(pcs []uint32, b before) int32 {
	key := make([]byte, 0, 4*len(pcs)+1)
	for _, pc := range pcs {
		key = binary.LittleEndian.AppendUint32(key, pc)
	}
	key = append(key, byte(b))
	if id, known := a.ids[string(key)]; known {
		return id
	}
	id := int32(len(a.states))
	a.states = append(a.states, state{pcs: pcs, before: b})
	a.ids[string(key)] = id
	return id
}

// lineAfter returns the beginning of the first line, from the beginning of one
// on, that may match, or -1.
func (a *automaton) lineAfter(text []byte, from int) int {
	line, at := from, a.start
	for i := from; i < len(text); i++ {
		b := text[i]
		switch {
		case a.restarts > maxRestarts || b >= utf8.RuneSelf:
			return line
		case b == '\n':
			if a.endsAt(at) {
				return line
			}
			line, at = i+1, a.start
			continue
		}
		next := a.states[at].next[b]
		if next == notMade {
			next = a.step(at, b)
		}
		if next == matched {
			return line
		}
		at = next
	}
	if line < len(text) && a.endsAt(at) {
		return line
	}
	return -1
}

// step makes a transition and returns where it leads. The automaton may have
// begun anew then: earlier states count no more.
func (a *automaton) step(at int32, b byte) int32 {
	if len(a.states) >= maxStates {
		s := a.states[at]
		a.restarts++
		a.reset()
		at = a.state(s.pcs, s.before)
	}
	s := &a.states[at]
	next, isMatch := a.follow(s.pcs, s.before, rune(b))
	if isMatch {
		s.next[b] = matched
		return matched
	}
	sort := spaces
	if syntax.IsWordChar(rune(b)) {
		sort = wordByte
	}
	to := a.state(next, sort)
	a.states[at].next[b] = to // not s: state may have moved them
	return to
}

// endsAt tells whether a line that ends here matches.
func (a *automaton) endsAt(at int32) bool {
	s := &a.states[at]
	if s.atEnd == 0 {
		s.atEnd = 1
		if _, isMatch := a.follow(s.pcs, s.before, -1); isMatch {
			s.atEnd = 2
		}
	}
	return s.atEnd == 2
}

// follow goes from some instructions, and from the program's beginning, over a
// rune, or over the end of the line when that is -1. It tells whether there is a
// match before the rune.
func (a *automaton) follow(pcs []uint32, b before, r rune) ([]uint32, bool) {
	flags := syntax.EmptyOpContext(rune(b), r)
	clear(a.visited)
	stack := append([]uint32{uint32(a.program.Start)}, pcs...)
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
			if r >= 0 && inst.MatchRune(r) {
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
