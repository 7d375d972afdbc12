package share_test

import (
	"errors"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/share"
)

// What is counted since the last measurement counts, and is forgotten once it is measured.
func TestQuotaCounts(t *testing.T) {
	t.Parallel()
	q := share.NewQuota("bytes on disk", "--max-store-bytes")
	if err := q.Check("t"); err != nil {
		t.Fatalf("before anything was measured: %v", err)
	}
	q.Measured(map[string]int64{"t": 100}, 1000, true, nil)
	accepted := 100
	for ; q.Admit("t", 50) == nil; accepted += 50 {
		if accepted > 2000 {
			t.Fatal("nothing bounds it")
		}
		q.Stored("t", 50, false)
	}
	if accepted < 1000 || accepted > 1125 {
		t.Errorf("%d of 1000 were accepted", accepted)
	}
	if err := q.Admit("t", 1); !errors.Is(err, share.ErrQuota) {
		t.Errorf("one more: %v", err)
	}
	q.Measured(map[string]int64{"t": 500}, 1000, true, map[string]int64{"t": int64(accepted - 100)})
	if err := q.Admit("t", 500); err != nil {
		t.Errorf("after half was freed: %v", err)
	}
	if err := q.Admit("t", 700); !errors.Is(err, share.ErrQuota) {
		t.Errorf("far more than there is room for: %v", err)
	}
}

// A tenant may have what others leave, and its fair share in any case.
func TestQuotaIsShared(t *testing.T) {
	t.Parallel()
	const total = 1600 // of which 1500 are to be had
	for _, c := range []struct {
		sizes map[string]int64
		limit map[string]int64 // what a and b may have
	}{
		{map[string]int64{"a": 0, "b": 0}, map[string]int64{"a": 1500, "b": 1500}},
		{map[string]int64{"a": 1000, "b": 0}, map[string]int64{"a": 1500, "b": 750}},
		{map[string]int64{"a": 1400, "b": 100}, map[string]int64{"a": 1400, "b": 750}},
		{map[string]int64{"a": 900, "b": 900}, map[string]int64{"a": 750, "b": 750}},
		{map[string]int64{"a": 100, "b": 200, "c": 1300}, map[string]int64{"a": 650, "b": 700}},
	} {
		q := share.NewQuota("bytes", "--x")
		q.Measured(c.sizes, total, false, nil)
		for tenant, limit := range c.limit {
			if room := limit - c.sizes[tenant]; room >= 0 {
				q.Stored(tenant, int(room), false)
				if err := q.Check(tenant); err != nil {
					t.Errorf("%v: %s with %d: %v", c.sizes, tenant, limit, err)
				}
			}
			q.Stored(tenant, 1, false)
			if err := q.Check(tenant); err == nil {
				t.Errorf("%v: %s has more than %d", c.sizes, tenant, limit)
			}
		}
	}
}
