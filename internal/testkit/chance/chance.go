// Package chance gives tests that play with chance their seeds.
//
// A test plays the same game in each run, so that a run that was green stays green. LOOM_SEED
// chooses another game: a number is the seed of the first one, which repeats what a log names,
// and "random" takes a new one each time, as `make soak` does.
package chance

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
)

// Seed returns the seed of a test's next game and logs it. A test's first seed is made of its
// name; each call takes the next number, also when `go test -count` runs the test again. It
// fails the test if LOOM_SEED is neither a number nor "random". It is safe for concurrent use.
func Seed(tb testing.TB) uint64 {
	tb.Helper()
	games.Lock()
	defer games.Unlock()
	seed, err := first(tb.Name(), os.Getenv("LOOM_SEED"))
	if err != nil {
		tb.Fatalf("LOOM_SEED: %v", err)
	}
	seed += games.played[tb.Name()]
	games.played[tb.Name()]++
	tb.Logf("seed %d", seed)
	return seed
}

// games counts what each test has played in this process.
var games = struct {
	sync.Mutex
	played map[string]uint64
}{played: make(map[string]uint64)}

// first returns the seed of a test's first game.
func first(test, asked string) (uint64, error) {
	switch asked {
	case "":
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(test)) // it takes all
		return hash.Sum64(), nil
	case "random":
		return rand.Uint64(), nil
	}
	return strconv.ParseUint(asked, 10, 64)
}
