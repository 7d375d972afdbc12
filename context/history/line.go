package history

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// laterHeader begins a fold that stands behind another one.
const laterHeader = "[Folded as above]"

// What a line of a fold keeps.
const (
	// resultIdentifiers and resultPaths of one result stand in its line,
	// turnIdentifiers and turnPaths of the model's words with its calls. A file that was
	// read has hundreds of names, and any of them may be written again long after; they
	// take a fifth of it. A result that lists more paths can be requested again.
	resultIdentifiers = 800
	resultPaths       = 200
	turnIdentifiers   = 50
	turnPaths         = 100
	// verbatimBytes bounds an output that stands in its line as it is, when that
	// is as short as its evidence; verbatimSlack is how many tokens longer it may
	// be, because it says more.
	verbatimBytes = 1000
	verbatimSlack = 4
	// verbatimTokens of what was said without any call stand as they are.
	verbatimTokens = 40
	// countedLines: from this many lines on, a line says how many there were.
	countedLines = 40
	// keptCallBytes are kept of a call that is cut.
	keptCallBytes = 200
)

// writer writes the lines of folds. What it wrote counts as shown.
type writer struct {
	count func(string) int
	seen  *visible
	// cut are the calls that are cut, by their text.
	cut map[string]bool
	// calls and cuts are how many calls were written, and cut.
	calls, cuts int
	// actions are the actions of turns without calls, by their text.
	actions map[string]string
	// ranked has the identifiers of longer texts, which are asked for twice.
	ranked map[string][]excerpt.Identifier
}

// identifiers are Identifiers, read once.
func (w *writer) identifiers(text string) []excerpt.Identifier {
	if ids, known := w.ranked[text]; known {
		return ids
	}
	ids := excerpt.Identifiers(text)
	w.ranked[text] = ids
	return ids
}

// atom returns the folded form of an atom: a line for each call, or for what
// was said.
func (w *writer) atom(entries []Entry, a atom) string {
	members := make([]*Entry, 0, len(a.members))
	for _, i := range a.members {
		if entries[i].Kind != Unseen {
			members = append(members, &entries[i])
		}
	}
	at := slices.IndexFunc(members, func(e *Entry) bool { return e.Kind == Turn })
	var lines []string
	if at >= 0 {
		turn := members[at]
		members = slices.Delete(members, at, at+1)
		if len(turn.Calls) == 0 {
			return w.said(turn, members)
		}
		lines, members = w.turn(turn, members)
	}
	for _, e := range members {
		lines = append(lines, w.line(e.Ref, e.Calls, e.Text, e))
	}
	return strings.Join(lines, "\n")
}

// turn has a line for each call of a turn, with its result. It returns the
// results that no call asked for, too.
func (w *writer) turn(turn *Entry, results []*Entry) (lines []string, left []*Entry) {
	said := turn.Text
	for _, c := range turn.Calls {
		ref := turn.Ref
		result, rest := answerOf(c, results)
		results = rest
		if result != nil && result.Ref != "" {
			ref = result.Ref
		}
		lines = append(lines, w.line(ref, []Call{c}, said, result))
		said = ""
	}
	return lines, results
}

// answerOf takes the result of a call out of results: the one with its id, or
// else the first.
func answerOf(c Call, results []*Entry) (result *Entry, rest []*Entry) {
	if len(results) == 0 {
		return nil, nil
	}
	at := max(slices.IndexFunc(results, func(e *Entry) bool { return e.CallID == c.ID }), 0)
	return results[at], slices.Delete(slices.Clone(results), at, at+1)
}

// line is a call with the names in what was said next to it, and its result.
func (w *writer) line(ref string, calls []Call, said string, result *Entry) string {
	text := ref
	for _, c := range calls {
		text = joined(text, w.call(c))
	}
	w.seen.add(text)
	if names := pick(w.identifiers(said), turnIdentifiers, turnPaths, w.seen); names != "" {
		text = joined(text, "("+names+")")
		w.seen.add(names)
	}
	if result == nil {
		return text
	}
	answer := w.result(result)
	w.seen.add(answer)
	return text + answer
}

// said is a turn without calls: the action that it wrote as text, or the beginning
// of what it said, and what came of it.
func (w *writer) said(turn *Entry, observed []*Entry) string {
	text := turn.Ref
	if action := w.action(turn); action != "" && len(observed) > 0 {
		text = joined(cmp.Or(observed[0].Ref, turn.Ref), w.call(Call{Name: action}))
	} else {
		text = joined(text, "said: "+inline(w.words(turn.Text)))
	}
	w.seen.add(text)
	if names := pick(excerpt.Identifiers(turn.Text), turnIdentifiers, turnPaths, w.seen); names != "" {
		text = joined(text, "("+names+")")
	}
	for _, e := range observed {
		text += w.result(e)
	}
	w.seen.add(text)
	return text
}

// action is the action that a turn without calls wrote as text, or nothing.
func (w *writer) action(turn *Entry) string {
	action, known := w.actions[turn.Text]
	if !known {
		a, _ := step.ParseAction(turn.Text)
		action = strings.TrimSpace(a.Text)
		w.actions[turn.Text] = action
	}
	return action
}

// words is what was said, whole if it is short.
func (w *writer) words(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > verbatimBytes || w.count(text) > verbatimTokens {
		return firstSentence(text)
	}
	return text
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " " + b
}

// sentenceBytes bounds the first sentence of what the model said.
const sentenceBytes = 120

// firstSentence returns the beginning of a text, up to its first full stop or
// line end.
func firstSentence(s string) string {
	end := len(s)
	for _, stop := range []string{". ", "\n", "! ", "? "} {
		if at := strings.Index(s, stop); at >= 0 {
			end = min(end, at+1)
		}
	}
	short := strings.TrimSpace(text.Head(s[:end], sentenceBytes))
	if len(short) < end-1 {
		short += "…"
	}
	return short
}

// call is a call as it was made, or its beginning and what the rest names.
func (w *writer) call(c Call) string {
	w.calls++
	s := strings.TrimSpace(c.text())
	if !w.cut[s] {
		return inline(s)
	}
	w.cuts++
	short := inline(text.Head(s, keptCallBytes)) + "…"
	w.seen.add(short)
	return joined(short, pick(excerpt.Identifiers(s), turnIdentifiers, turnPaths, w.seen))
}

// result is what a call gave.
func (w *writer) result(e *Entry) string {
	text := w.output(e)
	if e.Evidence == "" {
		return text
	}
	w.seen.add(text)
	return text + w.evidence(e, e.Evidence)
}

// output is what the output shows, or names.
func (w *writer) output(e *Entry) string {
	body := strings.TrimSpace(e.Output)
	head := ResultMark
	switch {
	case e.Exit != nil && *e.Exit != 0:
		head += " exit " + strconv.Itoa(*e.Exit)
	case e.failed():
		head += " failed"
	case body == "":
		return head + " ok"
	}
	if body == "" {
		return head
	}
	evidence := w.lines(body) + w.evidence(e, body)
	if len(body) > verbatimBytes || !e.Brief && w.count(body) > w.count(evidence)+verbatimSlack {
		return head + evidence
	}
	if strings.Contains(body, "\n") {
		return head + quoted(body)
	}
	return head + " " + inline(body)
}

// lines says how many lines an output has, if it has many.
func (w *writer) lines(body string) string {
	if n := strings.Count(body, "\n") + 1; n >= countedLines {
		return " " + strconv.Itoa(n) + " lines"
	}
	return ""
}

// evidence is what an output named: identifiers by class, and the lines that say what went
// wrong, verbatim.
func (w *writer) evidence(e *Entry, body string) string {
	lines := slices.DeleteFunc(e.errorLines(body), w.seen.hasLine)
	for _, text := range lines {
		w.seen.add(text)
	}
	evidence := ""
	if names := pick(w.identifiers(body), resultIdentifiers, resultPaths, w.seen); names != "" {
		evidence += " " + names
	}
	for _, text := range lines {
		evidence += quoted(text)
	}
	return evidence
}

// Which calls are cut.
const (
	// longCallBytes: calls that are no longer are never cut.
	longCallBytes = 1200
	// maxCallBytes: longer calls are always cut. They are files that were
	// written, more than calls.
	maxCallBytes = 3000
	// callsPerCut: of the others one in this many may be cut, the longest first,
	// so that nearly all calls can be read, and made again, as they were.
	callsPerCut = 28
	// cutsAhead: the first may be cut so many calls early, because what is in
	// the first fold stays in the prompt longest.
	cutsAhead = 20
)

// chooseCuts decides which of the atoms' calls are cut. calls and cuts are the counts in
// earlier folds.
func (w *writer) chooseCuts(entries []Entry, atoms []atom, calls, cuts int) {
	var long []string
	for _, a := range atoms {
		for _, made := range w.made(entries, a) {
			calls++
			if text := strings.TrimSpace(made); len(text) > longCallBytes {
				long = append(long, text)
			}
		}
	}
	slices.SortStableFunc(long, func(a, b string) int { return len(b) - len(a) })
	w.cut = make(map[string]bool)
	allowed := (calls+cutsAhead)/callsPerCut - cuts
	for i, text := range long {
		if i < allowed || len(text) > maxCallBytes {
			w.cut[text] = true
		}
	}
}

// made are the calls of an atom, and the action that it wrote as text, if that came to
// something.
func (w *writer) made(entries []Entry, a atom) []string {
	var made []string
	for _, i := range a.members {
		e := &entries[i]
		for _, c := range e.Calls {
			made = append(made, c.text())
		}
		if e.Kind != Turn || len(e.Calls) > 0 || len(a.members) == 1 {
			continue
		}
		if action := w.action(e); action != "" {
			made = append(made, action)
		}
	}
	return made
}
