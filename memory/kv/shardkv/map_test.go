package shardkv_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv/shardkv"
)

// mapOf is a map with a system store and another one, which has a pinned tenant.
const mapOf = `{"epoch": 7, "system": "one",
	"stores": [{"name": "one", "address": "postgres://a/loom", "shards": ["0-511"]}, {"name": "two", "address": "postgres://b/loom", "shards": ["512-1022", "1023"]}],
	"pinned": {"acme": "two"}}`

func mustParse(tb testing.TB, text string) *shardkv.Map {
	tb.Helper()
	m, err := shardkv.Parse([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func TestMap(t *testing.T) {
	m := mustParse(t, mapOf)
	if m.Epoch() != 7 || m.System() != 0 || m.Of("*") != 0 || m.Of("") != 0 || m.Of("acme") != 1 || m.String() != "epoch 7, stores one, two" {
		t.Errorf("%v: epoch %d, system %d, acme in %d", m, m.Epoch(), m.System(), m.Of("acme"))
	}
	// The shard of a name never changes.
	for tenant, want := range map[string]int{"acme": 555, "umbrella": 372, "tenant-1": 662} {
		if got := shardkv.Shard(tenant); got != want {
			t.Errorf("%s has shard %d, want %d", tenant, got, want)
		}
	}
	if got := [2]int{}; true {
		for i := range 10_000 {
			got[m.Of(fmt.Sprint("tenant-", i))]++
		}
		if got[0] < 4700 || got[0] > 5300 {
			t.Errorf("10,000 tenants lie %v", got)
		}
	}
}

// The digest is of what the map says, not of how it is written, and of no address.
func TestDigest(t *testing.T) {
	digest := func(text string) [32]byte { return mustParse(t, text).Digest() }
	same := []string{mapOf, strings.ReplaceAll(mapOf, "\n", " "), strings.Replace(mapOf, "postgres://b", "postgres://c", 1), strings.Replace(mapOf, `"epoch": 7`, `"epoch": 8`, 1), strings.Replace(mapOf, `"0-511"`, `"256-511", "0-255"`, 1)}
	for _, text := range same {
		if digest(text) != digest(mapOf) {
			t.Errorf("another digest: %s", text)
		}
	}
	for _, text := range []string{
		strings.Replace(mapOf, `"system": "one"`, `"system": "two"`, 1), strings.Replace(mapOf, "acme", "umbrella", 1), strings.Replace(mapOf, `"acme": "two"`, `"acme": "one"`, 1),
		strings.Replace(strings.Replace(mapOf, "0-511", "0-512", 1), "512-1022", "513-1022", 1),
	} {
		if digest(text) == digest(mapOf) {
			t.Errorf("the same digest: %s", text)
		}
	}
}

func TestMapRefuses(t *testing.T) {
	for replaced, want := range map[[2]string]string{
		{`"epoch": 7`, `"epoch": 0`}:                                   "epoch 0",
		{`"epoch": 7`, `"epoch": 9007199254740992`}:                    "epoch 9007199254740992",
		{`"epoch": 7`, `"epoch": -7`}:                                  "JSON",
		{`"epoch": 7`, `"epoch": 7, "moving": 3`}:                      "moving",
		{`"system": "one"`, `"system": "three"`}:                       `system "three" is none`,
		{`"0-511"`, `"0-510"`}:                                         "shard 511 has no store",
		{`"0-511"`, `"0-512"`}:                                         `shard 512 of store "two" is given twice`,
		{`"1023"`, `"1024"`}:                                           `shards "1024"`,
		{`"0-511"`, `"511-0"`}:                                         `shards "511-0"`,
		{`"0-511"`, `"-1-511"`}:                                        `shards "-1-511"`,
		{`"name": "two"`, `"name": "one"`}:                             `store "one" is there twice`,
		{`"name": "two"`, `"name": "Two"`}:                             `store "Two"`,
		{`"postgres://b/loom"`, `""`}:                                  `store "two" has no address`,
		{`"acme": "two"`, `"acme": "three"`}:                           `tenant "acme" is pinned to "three"`,
		{`"acme": "two"`, `"acme": "two", "acme": "one"`}:              `tenant "acme" is pinned twice`,
		{`"acme": "two"`, `"*": "two"`}:                                `"*" is pinned`,
		{`"acme": "two"`, `"": "two"`}:                                 `"" is pinned`,
		{`"acme": "two"`, `"` + strings.Repeat("a", 129) + `": "two"`}: "is pinned and no name",
		{`{"acme": "two"}`, `["acme"]`}:                                "pinned is no object",
		{`{"acme": "two"}}`, `{"acme": "two"}} {}`}:                    "behind its end",
		{mapOf, `{"epoch": 1, "system": "one", "stores": []}`}:         "no stores",
		{mapOf, strings.Repeat(" ", shardkv.MaxMapBytes) + mapOf}:      "limit",
		{mapOf, `{`}: "JSON",
	} {
		text := strings.Replace(mapOf, replaced[0], replaced[1], 1)
		_, err := shardkv.Parse([]byte(text))
		if !errors.Is(err, shardkv.ErrMap) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "postgres:") {
			t.Errorf("%.60s: %v, want %s", replaced[1], err, want)
		}
	}
	var many strings.Builder
	for i := range shardkv.MaxStores + 1 {
		fmt.Fprintf(&many, `,{"name": "s%d", "address": "a", "shards": []}`, i)
	}
	if _, err := shardkv.Parse([]byte(`{"epoch": 1, "system": "s0", "stores": [` + many.String()[1:] + `]}`)); !errors.Is(err, shardkv.ErrMap) {
		t.Errorf("too many stores: %v", err)
	}
}
