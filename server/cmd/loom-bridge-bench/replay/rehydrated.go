package replay

import (
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/rehydrate"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/settings"
)

// Rehydrated is Ledger with the lines of folded results at the end that the newest
// call, or the newest message of the user, takes up.
func Rehydrated(s Settings) Policy {
	base := Ledger(s)
	return policy{rehydratedName, func(run *Run, count func(string) int) Session {
		session := base.Start(run, count).(*ledgerSession)
		r := &rehydrated{run: run, count: count, finder: rehydrate.NewFinder(), limit: settings.Prompt{}.Cap(settings.Rehydrated)}
		session.end = r.end
		return session
	}}
}

// rehydrated brings lines back.
type rehydrated struct {
	run    *Run
	count  func(string) int
	finder *rehydrate.Finder
	limit  int
}

// end is what stands at the end of the prompt that message i answers.
func (r *rehydrated) end(i int, v history.View) PromptPart {
	p := rehydrate.Shown{New: r.newest(i)}
	first := r.turn(i)
	for _, it := range v.Items {
		switch {
		case it.Fold != nil:
			p.Folds = append(p.Folds, *it.Fold)
		case int(it.Entry.Position)-1 == first && r.acted(first):
			p.Shown = append(p.Shown, it.Output)
		case int(it.Entry.Position)-1 == first:
			p.Shown = append(p.Shown, it.Entry.Text, it.Output)
		default:
			p.Shown = append(p.Shown, it.Entry.Text, it.Output, asked(it.Entry.Calls))
		}
	}
	shown := append(p.Shown[:len(p.Shown):len(p.Shown)], texts(p.Folds)...)
	var lines []rehydrate.Line
	for _, w := range r.finder.Wants(p) {
		lines = append(lines, rehydrate.Lines(w.Ref, r.result(w.Ref, i), w.Names, shown)...)
	}
	text := rehydrate.Section(lines, r.limit, r.count).Text
	if text == "" {
		return PromptPart{}
	}
	return PromptPart{Text: text, Tokens: r.count(text)}
}

// turn is the newest turn before message i, or -1.
func (r *rehydrated) turn(i int) int {
	for i--; i >= 0; i-- {
		if r.run.Entries[i].Kind == history.Turn {
			break
		}
	}
	return i
}

// newest are the texts that may take something up: the calls of the newest turn, and
// what the user said behind it.
func (r *rehydrated) newest(i int) []string {
	turn := r.turn(i)
	var texts []string
	switch {
	case r.acted(turn):
		texts = append(texts, r.run.Entries[turn].Text)
	case turn >= 0:
		texts = append(texts, asked(r.run.asked(turn)))
	}
	for k := turn + 1; k < i; k++ {
		if e := &r.run.Entries[k]; e.Kind == history.Fixed {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

// acted reports whether a message holds an action that is text.
func (r *rehydrated) acted(i int) bool {
	_, ok := r.run.actions[i]
	return ok
}

// result is what the step of a reference gave, before message i.
func (r *rehydrated) result(ref string, i int) string {
	var b strings.Builder
	for k := range i {
		if e := &r.run.Entries[k]; e.Ref == ref && e.Kind == history.Result {
			b.WriteString(e.Output + "\n")
		}
	}
	return b.String()
}

func texts(folds []history.Fold) []string {
	all := make([]string, len(folds))
	for i := range folds {
		all[i] = folds[i].Text
	}
	return all
}
