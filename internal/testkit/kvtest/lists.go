package kvtest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func listCases() []testCase {
	return []testCase{
		{name: "owners write to different parts", run: testPartsSpread},
		{name: "a list is found in all its scopes", run: testListScopes},
	}
}

// Undivide moves what stands in the parts of a list to the scope that the list had
// before format 4, and returns how many keys those were.
func Undivide(tb testing.TB, e kv.Engine, list kv.List) (moved int) {
	tb.Helper()
	for part, err := range list.Scopes(tb.Context(), e) {
		if err != nil {
			tb.Fatalf("scopes of %s: %v", list, err)
		}
		whole := list.Whole(part.Tenant)
		if part == whole {
			continue
		}
		c := kv.Commit{Guards: []kv.Guard{anyOf(kv.System, part), anyOf(kv.System, whole)}, Batch: new(kv.Batch)}
		prefix := part.AppendPrefix(nil)
		for pair, err := range e.Scan(tb.Context(), kv.System, kv.Prefix(prefix)) {
			if err != nil {
				tb.Fatalf("scan %s: %v", part, err)
			}
			c.Batch.Delete(kv.System, pair.Key)
			c.Batch.Put(kv.System, append(whole.AppendPrefix(nil), pair.Key[len(prefix):]...), pair.Value)
			moved++
		}
		mustCommit(tb, e, c)
	}
	return moved
}

// testPartsSpread: of a thousand agents hardly two that write at once name the same ref.
func testPartsSpread(t *testing.T, e kv.Engine) {
	const agents, most = 1000, 3 * 1000 / kv.Parts
	list, owners := kv.List("work"), make(map[kv.Ref]int)
	for i := range agents {
		of := kv.AgentScope("acme", fmt.Sprintf("agent-%d", i))
		owners[list.Ref(of)]++
		if !list.Has(list.Part(of)) {
			t.Errorf("%s is not one of the list's scopes", list.Part(of))
		}
		mustCommit(t, e, put(anyOf(kv.System, list.Part(of)), of.Owner+"="))
	}
	for ref, n := range owners {
		if n > most {
			t.Errorf("%d of %d agents write to %s", n, agents, ref)
		}
	}
	found := 0
	for part, err := range list.Scopes(t.Context(), e) {
		if err != nil || owners[kv.Ref{Keyspace: kv.System, Scope: part}] == 0 {
			t.Errorf("found %s, %v", part, err)
		}
		found++
	}
	if found != kv.Parts || len(owners) != kv.Parts {
		t.Errorf("%d parts are in use and %d are found, want %d", len(owners), found, kv.Parts)
	}
}

// testListScopes: names of other lists sort around and between the names of a list.
func testListScopes(t *testing.T, e kv.Engine) {
	list := kv.List("work")
	own := func(tenant, owner string) kv.Scope {
		return kv.Scope{Tenant: tenant, Kind: kv.OwnerSystem, Owner: owner}
	}
	want := []kv.Scope{own("a", "work#0"), own("b", "work"), own("b", "work#10"), own("b", "work#63"), own("d", "work")}
	for _, scope := range append(want,
		own("a", "wor"), own("a", "worm"), own("b", "work!"), own("b", "work#"), own("b", "work#064"), own("b", "work#64"),
		own("b", "work#7x"), own("b", "work$"), own("c", "work2"), own("d", "zoo"),
		kv.AgentScope("b", "work"), kv.AgentScope("b", "work#1"), kv.AgentScope("e", "work"),
	) {
		mustCommit(t, e, put(anyOf(kv.System, scope), "x="))
	}
	var got []kv.Scope
	for scope, err := range list.Scopes(t.Context(), e) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, scope)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scopes of the list (-want +got):\n%s", diff)
	}
	for scope, err := range list.Scopes(t.Context(), e) {
		if scope != want[0] || err != nil {
			t.Errorf("the first one is %s, %v", scope, err)
		}
		break // what it holds is released
	}
}
