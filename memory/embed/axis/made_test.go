package axis

import (
	"flag" //nolint:depguard // -update belongs to the test binary, no setting of the product
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/embed/builtin"
)

var update = flag.Bool("update", false, "write made.bin anew")

// What is at hand of the server's own model is what it would make, of the pairs as they are now.
func TestMade(t *testing.T) {
	t.Parallel()
	path := builtin.Find(filepath.Join("..", "..", "..", "bin", "loom-bridge-server"))
	if path == "" {
		t.Skip("no model of embeddings in bin: `make model` fetches it")
	}
	model, err := builtin.New(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := learn(t.Context(), model)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		made = want.encode(model.Space())
		if err := os.WriteFile("made.bin", made, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := madeFor(model.Space(), made)
	if got == nil {
		t.Fatal("the pairs have changed: go test ./memory/embed/axis -run TestMade -update")
	}
	const near = 1e-4 // another machine adds in another order
	if math.Abs(got.Middle-want.Middle) > near || math.Abs(got.Deviation-want.Deviation) > near {
		t.Errorf("middle and deviation are %v and %v, want %v and %v", got.Middle, got.Deviation, want.Middle, want.Deviation)
	}
	for i, one := range want.all() {
		other := got.all()[i]
		if len(other.direction) != len(one.direction) || math.Abs(other.middle-one.middle) > near || math.Abs(other.half-one.half) > near {
			t.Fatalf("axis %d: %d numbers, %v and %v, want %d, %v and %v", i, len(other.direction), other.middle, other.half, len(one.direction), one.middle, one.half)
		}
		for n, x := range one.direction {
			if math.Abs(float64(other.direction[n]-x)) > near {
				t.Errorf("axis %d, number %d: %v, want %v", i, n, other.direction[n], x)
			}
		}
	}
}

// Axes of another space, of other pairs, or of a file that was cut are not taken.
func TestMadeForAnother(t *testing.T) {
	t.Parallel()
	a := &Axes{Middle: 5, Deviation: 6}
	for i, one := range a.all() {
		*one = Axis{[]float32{float32(i), 2}, 3, 4}
	}
	b := a.encode("mine")
	if got := madeFor("mine", b); got == nil || got.Request.direction[0] != 4 || got.Turn.middle != 3 || got.Past.half != 4 || got.Middle != 5 || got.Deviation != 6 {
		t.Errorf("got %+v", got)
	}
	for name, other := range map[string]*Axes{"space": madeFor("other", b), "cut": madeFor("mine", b[:40]), "empty": madeFor("mine", nil)} {
		if other != nil {
			t.Errorf("%s: %+v", name, other)
		}
	}
}
