package frame

import (
	"math/rand/v2"
	"testing"
)

// A slot map finds the slots of what it was given, and of nothing else.
func TestSlotMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, last := range []uint32{1, 63, 64, 1023, 1024, 1025, 5000, 70_000} {
		for _, part := range []int{1, 2, 64, 3000} {
			var ordinals []uint32
			var rows []NumberedRow
			for o := uint32(1); o <= last; o++ {
				if rng.IntN(part) == 0 {
					ordinals, rows = append(ordinals, o), append(rows, NumberedRow{Ordinal: o})
				}
			}
			f := &Frame{slotMap: newSlotMap(rows, last), Last: last + 10}
			slot := uint32(0)
			for o := range last + 11 {
				word := f.slotMap.word(o/64*64)&(1<<(o%64)) != 0
				switch {
				case o > last || len(ordinals) > 0 && ordinals[0] == o:
					if o <= last {
						ordinals = ordinals[1:]
					}
					if f.slotsBefore(o) != slot {
						t.Fatalf("%d slots before %d, want %d", f.slotsBefore(o), o, slot)
					}
					slot++
					if f.Slot(o) != slot || f.Ordinal(slot) != o || !word {
						t.Fatalf("ordinal %d of %d has slot %d, slot %d is of %d, %v", o, last, f.Slot(o), slot, f.Ordinal(slot), word)
					}
				case f.Slot(o) != 0 || word:
					t.Fatalf("ordinal %d has slot %d, %v", o, f.Slot(o), word)
				}
			}
			if f.Slots() != slot || f.Slot(last+11) != 0 || f.Ordinal(0) != 0 {
				t.Errorf("%d slots, want %d", f.Slots(), slot)
			}
		}
	}
}
