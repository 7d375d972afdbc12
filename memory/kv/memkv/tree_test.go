package memkv

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
)

// TestTreeAgainstMap holds the tree, which other engines are compared with,
// against a map and a sort.
func TestTreeAgainstMap(t *testing.T) {
	seed := chance.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	draw := func() string { return string([]byte{'a', byte(random.IntN(40)), 'z'}[:1+random.IntN(3)]) }
	var root *node
	model := map[string]string{}
	for range 3000 {
		k, v := draw(), draw()
		before, older := collect(root, nil, nil), root
		if random.IntN(3) == 0 {
			root = root.remove([]byte(k))
			delete(model, k)
		} else {
			root = root.put([]byte(k), []byte(v))
			model[k] = v
		}
		start, end := draw(), draw()
		want := wantRange(model, start, end)
		if diff := cmp.Diff(want, collect(root, []byte(start), []byte(end))); diff != "" {
			t.Fatalf("range %q..%q (-want +got):\n%s", start, end, diff)
		}
		if diff := cmp.Diff(before, collect(older, nil, nil)); diff != "" {
			t.Fatalf("the old tree has changed:\n%s", diff)
		}
		if n := root.find([]byte(k)); (n != nil) != (model[k] != "") || (n != nil && string(n.value) != model[k]) {
			t.Fatalf("find %q = %v, want %q", k, n, model[k])
		}
	}
}

// collect returns "key=value" of a range and checks that the descent agrees.
func collect(root *node, start, end []byte) []string {
	var up, down []string
	root.ascend(start, end, func(n *node) bool {
		up = append(up, string(n.key)+"="+string(n.value))
		return true
	})
	root.descend(start, end, func(n *node) bool {
		down = append(down, string(n.key)+"="+string(n.value))
		return true
	})
	slices.Reverse(down)
	if !slices.Equal(up, down) {
		return append(down, "the two directions differ")
	}
	return up
}

func wantRange(model map[string]string, start, end string) []string {
	var want []string
	for _, k := range slices.Sorted(maps.Keys(model)) {
		if k >= start && k < end {
			want = append(want, k+"="+model[k])
		}
	}
	return want
}
