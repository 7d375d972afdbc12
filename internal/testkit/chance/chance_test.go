package chance_test

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
)

func TestSeed(t *testing.T) {
	t.Setenv("LOOM_SEED", "")
	one, two := chance.Seed(t), chance.Seed(t)
	if two != one+1 {
		t.Errorf("seeds %d and %d, want one after the other", one, two)
	}
	t.Run("of its own", func(t *testing.T) {
		if seed := chance.Seed(t); seed == one {
			t.Errorf("another test has the same seed %d", seed)
		}
	})
	t.Run("asked for", func(t *testing.T) {
		t.Setenv("LOOM_SEED", "7")
		if first, second := chance.Seed(t), chance.Seed(t); first != 7 || second != 8 {
			t.Errorf("seeds %d and %d, want 7 and 8", first, second)
		}
	})
	t.Run("at random", func(t *testing.T) {
		t.Setenv("LOOM_SEED", "random")
		if first, second := chance.Seed(t), chance.Seed(t); first == second {
			t.Error("the same seed twice")
		}
	})
}
