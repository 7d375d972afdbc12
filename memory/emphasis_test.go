package memory_test

import (
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// What is saved again in capitals, with other marks or with emoji at its end is no new fact;
// what ends as a question is.
func TestEmphasisIsNoNewFact(t *testing.T) {
	t.Parallel()
	for _, said := range []string{"My dentist is Doctor Amsel in Mill Street", "Mein Zahnarzt ist Doktor Amsel", "Mi dentista se llama Teresa Amsel"} {
		for _, anew := range []string{
			strings.ToUpper(said), said + "!!!", said + " 😀", said + ". 👍🏽❤️", strings.ToUpper(said) + "! 👨‍👩‍👧", said + "…",
		} {
			r := MustRig(t, memkv.New(nil))
			first, err := r.SaveAs(t.Context(), agent, record.Record{Text: said, Author: "user"}, memory.Saving{Duplicates: memory.ReinforceDuplicates})
			if err != nil {
				t.Fatal(err)
			}
			again, err := r.SaveAs(t.Context(), agent, record.Record{Text: anew, Author: "user"}, memory.Saving{Duplicates: memory.ReinforceDuplicates})
			if err != nil || again.Record.ID != first.Record.ID {
				t.Errorf("%q is new: %v", anew, err)
			}
			asked, err := r.SaveAs(t.Context(), agent, record.Record{Text: said + "?", Author: "user"}, memory.Saving{Duplicates: memory.ReinforceDuplicates})
			if err != nil || asked.Record.ID == first.Record.ID {
				t.Errorf("%q is not new: %v", asked.Record.Text, err)
			}
		}
	}
}
