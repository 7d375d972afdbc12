package proxy

import (
	"strconv"
	"testing"
)

// What is known of conversations is bounded by their number and by their messages; those that
// were used longest ago go first, and what goes is not counted any more.
func TestKnownConversationsAreBounded(t *testing.T) {
	for _, c := range []struct {
		name                string
		messages, all, want int
	}{
		{"many", 1, maxKnown + 10, maxKnown},
		{"long", maxItems, maxMarks/maxItems + 10, maxMarks / maxItems},
		{"too long", maxMarks + 1, 3, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRecorder(nil)
			made := make([]*conversation, c.all)
			for i := range made {
				made[i] = &conversation{place: place{"t", "a"}, session: strconv.Itoa(i), marks: make([]mark, c.messages)}
				r.keep(made[i], made[i].marks)
			}
			if len(r.byName) != c.want || r.marks != c.want*c.messages || len(r.byFirst) != 1 {
				t.Fatalf("%d known with %d messages, %d first ones; want %d", len(r.byName), r.marks, len(r.byFirst), c.want)
			}
			for i, m := range made {
				if known := r.byName[m.place.key(m.session)] == m; known != (i >= c.all-c.want) {
					t.Errorf("conversation %d of %d is known: %v", i, c.all, known)
				}
			}
			for _, m := range made {
				r.forget(m)
			}
			if len(r.byName) != 0 || len(r.byFirst) != 0 || r.marks != 0 {
				t.Errorf("%d known with %d messages are left", len(r.byName), r.marks)
			}
		})
	}
}
