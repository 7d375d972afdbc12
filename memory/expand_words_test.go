package memory

import (
	"slices"
	"strings"
	"testing"
)

// Words are suggested by what stands near the words of the query, each place once.
func TestNearby(t *testing.T) {
	far := strings.Fields(strings.Repeat("far ", 30))
	text := slices.Concat(far, strings.Fields("one disk two disk three"), far)
	near := nearby(text, map[string]bool{"disk": true})
	if want := 2*feedbackReach + 3; len(near) != want || !slices.Contains(near, "one") || !slices.Contains(near, "three") {
		t.Errorf("near two words in %d are %d, want %d: %q", len(text), len(near), want, near)
	}
	if near := nearby(far, map[string]bool{"disk": true}); len(near) != len(far) {
		t.Errorf("of a text without the words %d of %d are near", len(near), len(far))
	}
}
