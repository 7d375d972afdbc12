package proxy

import (
	"errors"
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
		{"many", 1, maxMarks/(1+besideMarks) + 10, maxMarks / (1 + besideMarks)},
		{"long", maxItems, maxMarks/(maxItems+besideMarks) + 10, maxMarks / (maxItems + besideMarks)},
		{"too long", maxMarks + 1, 3, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRecorder(nil)
			made := make([]*conversation, c.all)
			for i := range made {
				made[i] = &conversation{place: place{"t", "a"}, session: strconv.Itoa(i), marks: make([]mark, c.messages)}
				r.keep(made[i], made[i].marks)
			}
			if names, _ := r.byFirst.Get(made[0].place.key(string(make([]byte, len(mark{}))))); r.known.Len() != c.want || len(names) > c.all {
				t.Fatalf("%d are known, %d names; want %d", r.known.Len(), len(names), c.want)
			}
			for i, m := range made {
				if known := r.of(m.place.key(m.session)) == m; known != (i >= c.all-c.want) {
					t.Errorf("conversation %d of %d is known: %v", i, c.all, known)
				}
			}
			for _, m := range made {
				r.forget(m)
			}
			if r.known.Len() != 0 || r.longest(place{"t", "a"}, make([]item, c.messages)) != nil {
				t.Errorf("%d are left", r.known.Len())
			}
		})
	}
}

// What is kept of an answer takes room before it is kept; where there is none, nothing is.
func TestAnswerTakesRoom(t *testing.T) {
	room := 0
	said := &heard{hold: func(bytes int) error {
		if bytes > 4<<20 {
			return errors.New("full")
		}
		room = bytes
		return nil
	}}
	part := make([]byte, copyBytes)
	for range 4 << 20 / len(part) / toldTimes {
		if said.take(part); said.long || len(said.text) > room {
			break
		}
	}
	if !said.long || said.text != nil || room == 0 {
		t.Fatalf("%d bytes are kept in room for %d", len(said.text), room)
	}
}
