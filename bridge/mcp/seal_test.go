package mcp_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// stored is what a store has of added servers.
func stored(t *testing.T, engine kv.Engine) (keys, values [][]byte) {
	t.Helper()
	for pair, err := range engine.Scan(t.Context(), kv.System, kv.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		keys, values = append(keys, pair.Key), append(values, pair.Value)
	}
	return keys, values
}

func holds(values [][]byte, text string) bool {
	for _, v := range values {
		if strings.Contains(string(v), text) {
			return true
		}
	}
	return false
}

// What is stored of a server is sealed, and bound to its place; another machine can't read it
// and says so, until somebody adds it again.
func TestSealed(t *testing.T) {
	engine := memkv.New(nil)
	defer engine.Close()
	writer := kv.NewWriter(engine, nil)
	defer writer.Close()
	key := filepath.Join(t.TempDir(), "keys", "k")
	start := func(key string) *mcp.Clients {
		t.Helper()
		c, err := mcp.Start(t.Context(), nil, mcp.Options{Engine: engine, Writer: writer, Key: key})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const canary = "canary-in-plain-text"
	one := mcp.Server{Name: "one", Command: "/bin/one", Args: []string{"--token", canary}, Env: map[string]string{"KEY": canary}}
	two := mcp.Server{Name: "two", URL: "https://two.example/" + canary, Headers: map[string]string{"Authorization": canary}}

	c := start(key)
	if _, err := c.Add(t.Context(), "t", one); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Add(t.Context(), "t", two); err != nil {
		t.Fatal(err)
	}
	must(t, c.Close())
	keys, values := stored(t, engine)
	if len(values) != 2 || holds(values, canary) || holds(values, "/bin/one") {
		t.Errorf("stored: %q", values)
	}
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 || info.Size() != 32 {
		t.Errorf("the key: %v, %v", info, err)
	}

	// As an old server stored it: sealed by the next.
	plain, err := json.Marshal(one)
	must(t, err)
	put := func(key, value []byte) {
		t.Helper()
		scope, _, err := kv.SplitKey(key)
		must(t, err)
		must(t, writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{{Keyspace: kv.System, Scope: scope}}, Stage: func(_ context.Context, tx *kv.Tx) error {
			tx.Put(kv.System, key, value)
			return nil
		}}))
	}
	put(keys[0], plain)
	c = start(key)
	if list := c.List("t"); len(list) != 2 || list[0].Command != "/bin/one" || list[1].URL == "" {
		t.Errorf("read back: %+v", list)
	}
	must(t, c.Close())
	if _, values := stored(t, engine); holds(values, canary) {
		t.Errorf("stored: %q", values)
	}

	// Another machine.
	c = start(filepath.Join(t.TempDir(), "other"))
	list := c.Settle(t.Context(), "t")
	if len(list) != 2 || list[0].Name != "one" || list[0].State != mcp.Away || !strings.Contains(list[0].Problem, "Add it again with its secrets") {
		t.Errorf("without the key: %+v", list)
	}
	if _, err := c.Add(t.Context(), "t", one); err != nil {
		t.Errorf("added again: %v", err)
	}
	if list := c.List("t"); len(list) != 2 || list[0].Command != "/bin/one" {
		t.Errorf("added again: %+v", list)
	}
	must(t, c.Close())

	// What was moved to the place of another is none.
	keys, values = stored(t, engine)
	put(keys[0], values[1])
	c = start(key)
	if list := c.Settle(t.Context(), "t"); list[0].Command != "" || list[0].State != mcp.Away {
		t.Errorf("moved: %+v", list)
	}
	must(t, c.Close())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
