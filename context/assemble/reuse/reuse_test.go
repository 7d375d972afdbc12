package reuse_test

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble/reuse"
)

func key(t *testing.T, inputs ...any) reuse.Key {
	t.Helper()
	k, err := reuse.KeyOf(inputs...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Other inputs have another key, also where their texts run together alike.
func TestKeyOf(t *testing.T) {
	first := key(t, "a", 1, []string{"b"})
	if again := key(t, "a", 1, []string{"b"}); first != again {
		t.Error("the same inputs have two keys")
	}
	for _, other := range [][]any{{"a", 2, []string{"b"}}, {"a1", []string{"b"}}, {"a", 1, []string{"b", ""}}, {"a", 1}, {"a\n1", []string{"b"}}} {
		if key(t, other...) == first {
			t.Errorf("%v has the same key", other)
		}
	}
	if key(t, []byte("ab"), []byte("c")) == key(t, []byte("a"), []byte("bc")) {
		t.Error("bytes that run together alike have one key")
	}
	if _, err := reuse.KeyOf(func() {}); err == nil {
		t.Error("a function is an input")
	}
}

// What is larger than the bound, or was used longest ago, is not kept; nothing is by nil.
func TestCache(t *testing.T) {
	c := reuse.New[string](10)
	c.Put(key(t, 1), "one", 6)
	c.Put(key(t, 2), "two", 6)
	if _, ok := c.Get(key(t, 1)); ok {
		t.Error("12 bytes of 10 are kept")
	}
	if got, ok := c.Get(key(t, 2)); !ok || got != "two" {
		t.Errorf("the newer one is %q, %v", got, ok)
	}
	var none *reuse.Cache[string]
	none.Put(key(t, 1), "one", 1)
	if _, ok := none.Get(key(t, 1)); ok {
		t.Error("a nil cache keeps something")
	}
}
