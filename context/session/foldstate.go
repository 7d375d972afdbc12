package session

import (
	"fmt"
	"maps"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/history"
)

// foldState says which entries of a journal count.
type foldState struct {
	version        uint64   // number of the journal's last entry
	live           []uint64 // numbers of the folds that stand in prompts, ascending
	marks          map[string]history.Mark
	batch, through uint64
	given          uint64 // highest number that a batch was given
	since          uint64
	change         uint64 // first entry of the last change that was not undone, 0 for none
}

// begin returns a change of so many entries, which are the next ones.
func (s *foldState) begin(entries int) *change {
	return &change{before: s.change, entries: entries, batch: s.batch, through: s.through}
}

// fold takes a batch in, whose entries were written.
func (s *foldState) fold(c *change, made []history.Fold) {
	s.change = s.version + 1 - uint64(len(made))
	s.live = without(s.live, c.superseded)
	for i := range made {
		s.live = append(s.live, s.change+uint64(i))
	}
	s.batch = made[0].Batch
	s.given = s.batch
}

// mark takes a moved mark in, whose entry was written.
func (s *foldState) mark(preset string, to history.Mark) {
	s.change = s.version
	s.setMark(preset, to)
}

func (s *foldState) setMark(preset string, to history.Mark) {
	if s.marks == nil {
		s.marks = make(map[string]history.Mark)
	}
	s.marks[preset] = to
}

// undo takes the last change back, given its entries.
func (s *foldState) undo(entries []journalEntry) (Undone, error) {
	first := entries[0]
	c := first.change
	var u Undone
	switch first.kind {
	case kindFold:
		u.Batch = s.batch
		own := make([]uint64, 0, len(entries))
		for _, e := range entries {
			f, err := e.fold()
			if err != nil {
				return Undone{}, err
			}
			u.Refs = append(u.Refs, f.Refs...)
			own = append(own, e.number)
		}
		u.Refs = distinct(u.Refs)
		s.live = append(without(s.live, own), c.superseded...)
		slices.Sort(s.live)
	case kindMark:
		preset, _, err := decodeMark(first.body)
		if err != nil {
			return Undone{}, err
		}
		if c.mark != nil {
			s.marks[preset] = *c.mark
		} else {
			delete(s.marks, preset)
		}
	default:
		return Undone{}, fmt.Errorf("%w: entry %d of the journal is no change", ErrDamaged, first.number)
	}
	s.change, s.batch, s.through = c.before, c.batch, c.through
	return u, nil
}

// without returns numbers without some of them; both ascend.
func without(numbers, gone []uint64) []uint64 {
	return slices.DeleteFunc(slices.Clone(numbers), func(n uint64) bool {
		_, found := slices.BinarySearch(gone, n)
		return found
	})
}

// distinct returns texts in order, each once.
func distinct(texts []string) []string {
	known := make(map[string]bool, len(texts))
	return slices.DeleteFunc(texts, func(text string) bool {
		was := known[text]
		known[text] = true
		return was
	})
}

// presets are the names of the marks in order.
func (s foldState) presets() []string { return slices.Sorted(maps.Keys(s.marks)) }
