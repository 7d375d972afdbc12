package evidence

import (
	"context"
	"fmt"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/sets"
)

// Hint changes what a record says of where it comes from.
type Hint struct {
	Name string
	// Change changes the record of the turn in that place of its talk.
	Change func(place int, d *loombridgev1.MemorySaveRequest)
}

// Hints are the ways in which records may name their author and session: the first names
// neither.
func Hints() []Hint {
	all := []Hint{
		{"no author, no session", func(_ int, d *loombridgev1.MemorySaveRequest) { d.Author, d.SessionId = "", "" }},
		{"author", func(_ int, d *loombridgev1.MemorySaveRequest) { d.SessionId = "" }},
		{"session", func(_ int, d *loombridgev1.MemorySaveRequest) { d.Author = "" }},
		{"author, session", func(int, *loombridgev1.MemorySaveRequest) {}},
	}
	for _, messages := range []int{5, 100} {
		session := func(place int) string { return fmt.Sprintf("part-%d", place/messages) }
		all = append(all, Hint{fmt.Sprintf("session of %d", messages), func(place int, d *loombridgev1.MemorySaveRequest) {
			d.Author, d.SessionId = "", session(place)
		}}, Hint{fmt.Sprintf("author, session of %d", messages), func(place int, d *loombridgev1.MemorySaveRequest) {
			d.SessionId = session(place)
		}})
	}
	return all
}

// Hints asks the questions of all collections with and without authors and sessions, in
// sessions as they are, of 5 and of 100 messages. No hint should find less than none.
func (b *Bench) Hints(ctx context.Context) error {
	fmt.Fprintf(b.Table, "\nevidence found with hints, in %%\twith\tR@5\tR@10\tR@25\tin 4k\tR@5 against none\tin 4k against none\t\n")
	err := b.each(func(set *sets.Set, sizes *sizes) error {
		var none *score
		for _, hint := range Hints() {
			s, err := b.ours(ctx, set, way{name: hint.Name, change: hint.Change}, sizes)
			if err != nil {
				return err
			}
			if none == nil {
				none = s
			}
			percent := 100 / float64(max(1, s.questions))
			fmt.Fprintf(b.Table, "%s\t%s\t%.1f\t%.1f\t%.1f\t%.1f\t%+.1f\t%+.1f\t\n", set.Name, hint.Name,
				s.depths[1]*percent, s.depths[2]*percent, s.depths[3]*percent, s.budgets[1]*percent,
				(s.depths[1]-none.depths[1])*percent, (s.budgets[1]-none.budgets[1])*percent)
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(b.Table, "aim\tall\t\t\t\t\t≥ 0\t≥ 0\t")
	return b.Table.Flush()
}
