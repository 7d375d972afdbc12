package memory_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// What says something of somebody else, or something else of the same, puts nothing out of
// date; what says the same of the same does, and then comes first.
func TestOnlyTheSameIsOutOfDate(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	ids := make(map[string]string)
	save := func(author, text string) {
		r.clock.Set(r.clock.Now().Add(1e9))
		ids[r.MustSave(t, record.Record{Author: author, SessionID: "s", Text: text}).ID] = text
	}
	for _, said := range [][2]string{
		{"user", "Balak's car is a green estate."},
		{"assistant", "Noted: Balak's car is a green estate."},
		{"user", "Balak's dentist is Doctor Brandt."},
		{"assistant", "Good to know. Is there anything else?"},
		{"user", "Balak's office is room 12."},
		{"assistant", "Good to know. Is there anything else?"},
		{"user", "Balak changed the car to an old pickup."},
		{"assistant", "Noted: Balak changed the car to an old pickup."},
		{"user", "Balak's car is an electric van now."},
		{"assistant", "Good to know. Is there anything else?"},
		{"user", "Galak changed the car to a yellow coupe."},
		{"assistant", "Good to know. Is there anything else?"},
		{"user", "The office of Galak moved, it is room 7 now."},
		{"assistant", "Good to know. Is there anything else?"},
		{"Ann", "My address is the flat above the bakery."},
		{"Bob", "My address is Mill Lane 3."},
		{"Ann", "We moved! My new address is Chestnut Lane 14."},
		{"Ann", "I like this address."},
	} {
		save(said[0], said[1])
	}
	for _, test := range []struct {
		asked, first string
		older        []string
	}{
		{"What is Balak's car?", "Balak's car is an electric van now.", []string{"Balak changed the car to an old pickup.", "Balak's car is a green estate."}},
		{"Which is Balak's car now?", "Balak's car is an electric van now.", []string{"Balak changed the car to an old pickup.", "Balak's car is a green estate."}},
		{"Tell me Balak's car.", "Balak's car is an electric van now.", []string{"Balak changed the car to an old pickup.", "Balak's car is a green estate."}},
		{"What is Galak's car?", "Galak changed the car to a yellow coupe.", nil},
		{"What is Balak's office?", "Balak's office is room 12.", nil},
		{"What is Galak's office?", "The office of Galak moved, it is room 7 now.", nil},
		{"What is Ann's address?", "We moved! My new address is Chestnut Lane 14.", []string{"My address is the flat above the bakery."}},
		{"What is Bob's address?", "My address is Mill Lane 3.", nil},
	} {
		hits := r.MustQuery(t, question.Question{Text: test.asked, Limit: 5}).Hits
		var older []string
		for _, id := range hits[0].Older {
			older = append(older, ids[id])
		}
		if hits[0].Record.Text != test.first || !slices.Equal(older, test.older) {
			var found []string
			for _, hit := range hits {
				found = append(found, hit.Record.Text)
			}
			t.Errorf("%s\nfirst of %s\nputs out of date %q", test.asked, strings.Join(found, " | "), older)
		}
	}
}

// A long message in which something else has changed takes the place of no short answer.
func TestLongMessageChangesNothing(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	for _, said := range []string{
		"My cello lesson is in the old mill.",
		"What a month, I moved to another desk at work, the neighbours replaced their fence, and then my sister came by to hear me play the cello after my lesson, " +
			"which was fun for everybody; later we cooked a huge pot of soup, watched two old films about sailors, and finished the puzzle with the lighthouse.",
	} {
		r.clock.Set(r.clock.Now().Add(1e9))
		r.MustSave(t, record.Record{Author: "Ann", Text: said})
		r.MustSave(t, record.Record{Author: "Bob", Text: "That is good to hear."})
	}
	if first := r.MustQuery(t, question.Question{Text: "Where is Ann's cello lesson?"}).Hits[0].Record.Text; !strings.Contains(first, "mill") {
		t.Errorf("first is %q", first)
	}
}
